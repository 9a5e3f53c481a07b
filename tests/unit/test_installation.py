"""The installation has a name, once, in database and mailbox; another's mailbox is refused."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cloudwhale.control.desk import Desk, open_desk
from cloudwhale.control.installation import KEY, installation
from cloudwhale.settings import Settings
from cloudwhale.spi.errors import SettingsError, StoreUnusable


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with a_desk(tmp_path / "one", tmp_path / "mailbox") as made:
        yield made


def a_desk(home: Path, mailbox: Path) -> Desk:
    settings = Settings(home=home, mailbox=mailbox.as_uri())
    return open_desk(settings, may_migrate=True)


def test_it_is_made_once_and_kept_in_both(desk: Desk) -> None:
    name = installation(desk)
    assert len(name) == 12 and int(name, 16) >= 0
    assert installation(desk, lambda: "other") == name
    said = json.loads(desk.objects.get(KEY) or b"")
    assert said["id"] == name and said["database"].endswith("one/cloudwhale.db")


def test_a_mailbox_that_was_emptied_gets_the_name_again(desk: Desk) -> None:
    name = installation(desk)
    desk.objects.delete([KEY])
    assert installation(desk, lambda: "other") == name
    assert json.loads(desk.objects.get(KEY) or b"")["id"] == name


def test_a_database_that_was_begun_anew_finds_its_name_in_the_mailbox(tmp_path: Path) -> None:
    home, mailbox = tmp_path / "one", tmp_path / "mailbox"
    with a_desk(home, mailbox) as first:
        name = installation(first)
    for file in home.glob("cloudwhale.db*"):
        file.unlink()
    with a_desk(home, mailbox) as second:
        assert installation(second) == name


def test_a_second_database_at_one_mailbox_is_refused_and_told_whose_it_is(
    desk: Desk, tmp_path: Path
) -> None:
    name = installation(desk)
    with a_desk(tmp_path / "two", tmp_path / "mailbox") as other:
        with pytest.raises(SettingsError) as refused:
            installation(other)
    assert name in str(refused.value) and "one/cloudwhale.db" in str(refused.value)
    assert "prefix of its own" in refused.value.remedy


def test_a_database_that_rented_already_does_not_take_another_name(
    desk: Desk, tmp_path: Path
) -> None:
    installation(desk)
    with a_desk(tmp_path / "two", tmp_path / "elsewhere") as other:
        installation(other)
    with a_desk(tmp_path / "two", tmp_path / "mailbox") as other:
        with pytest.raises(SettingsError):
            installation(other)


def test_a_name_that_cannot_be_read_is_told(desk: Desk) -> None:
    desk.objects.create(KEY, b"[]")
    with pytest.raises(StoreUnusable, match="cannot be read"):
        installation(desk)
