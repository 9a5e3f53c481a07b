"""Settings: which of several sources holds, and how a wrong one is refused."""

from pathlib import Path

import pytest

from cloudwhale.settings import Settings, load
from cloudwhale.spi.errors import SettingsError


def loaded(folder: Path, **environment: str) -> Settings:
    """Load with nothing of this user's: no configuration folder, no variables."""
    named = {f"CLOUDWHALE_{key}": value for key, value in environment.items()}
    home = {"HOME": str(folder / "user"), "CLOUDWHALE_HOME": str(folder / "home")}
    return load(folder, {**home, **named})


def refused(folder: Path, **environment: str) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        loaded(folder, **environment)
    return caught.value


def test_the_environment_holds_over_the_folder_and_that_over_the_user(tmp_path: Path) -> None:
    config = tmp_path / "user" / ".config" / "cloudwhale"
    config.mkdir(parents=True)
    (config / "cloudwhale.toml").write_text('user = "a"\nnode = "a"\nseed = 1\n')
    (tmp_path / "cloudwhale.toml").write_text('user = "b"\nnode = "b"\n')
    found = loaded(tmp_path, USER="c")
    assert (found.user, found.node, found.seed) == ("c", "b", 1)


def test_labels_are_read_from_the_environment(tmp_path: Path) -> None:
    assert loaded(tmp_path, LABELS="rack=a, disk=fast=er,").labels == {
        "rack": "a", "disk": "fast=er",
    }  # fmt: skip
    assert loaded(tmp_path, LABELS="").labels == {}


@pytest.mark.parametrize("text", ["rack", "rack=a,gpu", "=a"])
def test_a_label_that_has_no_name_or_no_value_is_refused(tmp_path: Path, text: str) -> None:
    wrong = refused(tmp_path, LABELS=text)
    assert "$CLOUDWHALE_LABELS" in wrong.says and "NAME=VALUE" in wrong.says
    assert wrong.remedy


def test_a_file_that_is_not_utf_8_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "cloudwhale.toml"
    file.write_bytes('seed = 1\nuser = "J\u00f6rg"\n'.encode("latin-1"))
    wrong = refused(tmp_path)
    assert f"{file}:2: " in wrong.says
    assert "UTF-8" in wrong.remedy


@pytest.mark.parametrize("share", ["0", "-0.1", "1.5", "nan", "most"])
def test_a_soft_line_lies_within_the_budget(tmp_path: Path, share: str) -> None:
    assert "$CLOUDWHALE_BUDGET_SOFT_SHARE" in refused(tmp_path, BUDGET_SOFT_SHARE=share).says


def test_a_setting_that_nobody_knows_is_refused_with_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "cloudwhale.toml").write_text('scoer = "best-fit"\n')
    assert "score" in refused(tmp_path).remedy
