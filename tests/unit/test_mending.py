"""What is written into a settings file, or shown: a file that exists keeps all that it says."""

import tomllib
from pathlib import Path

import pytest

from cloudwhale.cli import mending
from cloudwhale.cli.exits import WrongUsage
from cloudwhale.control.mending import Unwritten, patient
from cloudwhale.settings import Settings
from cloudwhale.spi.errors import SettingsError
from cloudwhale.spi.provider import Amends, Check, Mending

LACKS = Unwritten("aws", "s3://lab/cloudwhale", {"regions": ["us-east-1"], "profile": "x"})
WHOLE = {
    "mailbox": "s3://lab/cloudwhale",
    "clouds": {"aws": {"regions": ["us-east-1"], "profile": "x"}},
}


@pytest.mark.parametrize(
    "before",
    ["", "user = 'ann'\n", "[clouds.aws]\n", "[clouds.gcp]\nzone = 'a'\n",
     "# a\nmailbox = 'file:///old'\n\n[clouds.aws]  # rented\npin_zone = true\n[shares]\na = 1\n"],
)  # fmt: skip
def test_what_a_file_lacks_is_added_to_what_it_says(before: str) -> None:
    after = tomllib.loads(LACKS.added_to(before))
    assert LACKS.fits(before)
    said = tomllib.loads(before)
    assert after["mailbox"] == WHOLE["mailbox"]
    assert after["clouds"]["aws"] == {**said.get("clouds", {}).get("aws", {}),
                                      **LACKS.table}  # fmt: skip
    for key in {*said} - {"mailbox", "clouds"}:
        assert after[key] == said[key]


def test_a_file_that_says_it_otherwise_is_not_made_unreadable() -> None:
    assert not LACKS.fits("clouds = {aws = {}}\n")


def test_what_is_missing_stands_alone_as_a_file() -> None:
    assert tomllib.loads(LACKS.lines()) == WHOLE


def test_nothing_is_missing_when_all_is_said() -> None:
    assert not Unwritten("aws", "", {})


def test_a_cloud_that_the_settings_do_not_name_yet_can_be_set_up(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    home = tmp_path_factory.mktemp("home")
    assert patient(Settings(home=home), "aws").settings.clouds == {"aws": {}}


@pytest.mark.parametrize("name", ["", "local", "azure"])
def test_what_is_no_cloud_cannot_be_set_up(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with pytest.raises(SettingsError) as caught:
        patient(Settings(home=tmp_path_factory.mktemp("home")), name)
    assert "aws" in caught.value.remedy


def test_the_only_cloud_of_the_settings_is_meant_without_its_name(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    settings = Settings(home=tmp_path_factory.mktemp("home"), clouds={"aws": {}})
    assert patient(settings, "").name == "aws"


class Account:
    """Lacks a bucket, and is never changed."""

    def amends(self, allow: str) -> Amends:
        return Amends(mendings=(Mending("bucket", "make the bucket lab", self.changed),))

    def changed(self) -> Check:
        raise AssertionError("nobody has agreed to it")


def test_nobody_who_cannot_be_asked_has_an_account_changed_and_sees_what_it_lacks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(mending, "settings_here", lambda *, starts: Settings(home=tmp_path))
    monkeypatch.setattr(mending, "patient", lambda settings, name: Account())
    with pytest.raises(WrongUsage, match="nobody can be asked"):
        mending.fix(mending.Wanted("aws", "", yes=False, as_json=True))
    assert "make the bucket lab" in capsys.readouterr().err
