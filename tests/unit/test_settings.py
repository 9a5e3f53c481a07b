"""Settings: which of several sources holds, and how a wrong one is refused."""

import argparse
import json
import math
import os
from pathlib import Path

import pytest

from cloudwhale.host import HostOptions, add_arguments, declared, options_from
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


@pytest.mark.parametrize("key", ["CPU", "MEMORY_GIB", "ATTEMPT_LEASE_S"])
@pytest.mark.parametrize("text", ["nan", "inf", "0", "-4", "many"])
def test_an_amount_is_finite_and_above_0(tmp_path: Path, key: str, text: str) -> None:
    wrong = refused(tmp_path, **{key: text})
    assert f"$CLOUDWHALE_{key}: {key.lower()} must be a number" in wrong.says
    assert "above 0" in wrong.says and repr(text) in wrong.says
    assert wrong.remedy


def test_clocks_may_agree_but_not_by_less_than_nothing(tmp_path: Path) -> None:
    assert loaded(tmp_path, CLOCK_SKEW_S="0").clock_skew_s == 0
    for text in ("nan", "inf", "-1"):
        assert "0 or more" in refused(tmp_path, CLOCK_SKEW_S=text).says


def test_an_amount_in_a_file_is_refused_with_the_file(tmp_path: Path) -> None:
    file = tmp_path / "cloudwhale.toml"
    file.write_text("cpu = nan\n")
    assert str(file) in refused(tmp_path).says


@pytest.mark.parametrize("text", ["nan", "inf", "0", "-4"])
@pytest.mark.parametrize("name", ["--cpu", "--memory-gib"])
def test_a_host_is_not_given_an_amount_that_none_has(name: str, text: str) -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    with pytest.raises(SettingsError) as caught:
        options_from(parser.parse_args([f"{name}={text}"]))
    assert name in caught.value.says and caught.value.remedy


@pytest.mark.parametrize("amount", [math.nan, math.inf])
def test_what_a_value_writes_it_reads_again(amount: float) -> None:
    written = HostOptions(cpu=amount).model_dump_json()
    assert repr(HostOptions.model_validate_json(written).cpu) == repr(amount)
    dumped = json.dumps(HostOptions(cpu=amount).model_dump(mode="json"))
    assert repr(HostOptions.model_validate_json(dumped).cpu) == repr(amount)


@pytest.mark.parametrize("name", ["../../x", ".x", "a b", "a/b", "x" * 64, "n\u00f6de", "a\n"])
def test_a_node_whose_name_cannot_be_a_folder_is_refused(tmp_path: Path, name: str) -> None:
    wrong = refused(tmp_path, NODE=name)
    assert "$CLOUDWHALE_NODE: node must be up to 63 letters" in wrong.says and wrong.remedy


@pytest.mark.parametrize("name", ["", "gpu-01.lab_2", "x" * 63])
def test_a_node_has_a_plain_name_or_none(tmp_path: Path, name: str) -> None:
    assert loaded(tmp_path, NODE=name).node == name


@pytest.mark.parametrize("text", ["0x RTX4090 24GB", "00 x L4 24GB", "RTX4090", "24GB", "-1"])
def test_devices_that_nothing_can_declare_are_refused(tmp_path: Path, text: str) -> None:
    wrong = refused(tmp_path, DEVICES=f"2x L4 24GB,{text}")
    assert "$CLOUDWHALE_DEVICES: devices must be a list" in wrong.says
    with pytest.raises(SettingsError):
        declared([text])


@pytest.mark.parametrize("text", ["RTX4090 24GB", "2x RTX 4090 24 GiB", "1 x L4 22.5gb"])
def test_devices_that_settings_take_are_devices(tmp_path: Path, text: str) -> None:
    assert declared(loaded(tmp_path, DEVICES=text).devices)


def test_a_variable_that_nobody_knows_is_refused_with_the_nearest(tmp_path: Path) -> None:
    wrong = refused(tmp_path, SCOER="best-fit")
    assert "$CLOUDWHALE_SCOER" in wrong.says and "score" in wrong.remedy


def test_what_a_job_is_told_is_no_setting(tmp_path: Path) -> None:
    told = {"JOB_ID": "1", "ATTEMPT": "1", "CHECKPOINT_DIR": "/c", "RESUME": "0",
            "NODE_RANK": "0", "NUM_NODES": "1", "TRACES": ""}  # fmt: skip
    assert loaded(tmp_path, **told) == loaded(tmp_path)


@pytest.mark.parametrize("key", list(Settings.model_fields))
def test_a_wrong_type_is_refused_in_words(tmp_path: Path, key: str) -> None:
    (tmp_path / "cloudwhale.toml").write_text(f"{key} = [[1]]\n")
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, {"HOME": str(tmp_path / "user")})
    says = caught.value.says
    assert f"{key} must be " in says and "nput should" not in says


@pytest.mark.parametrize("what", ["pipe", "folder"])
def test_a_settings_file_that_is_not_a_file_is_refused_and_not_waited_for(
    tmp_path: Path, what: str
) -> None:
    file = tmp_path / "cloudwhale.toml"
    os.mkfifo(file) if what == "pipe" else file.mkdir()
    assert f"{file} is not a regular file" in refused(tmp_path).says
