"""The agent's archive in the mailbox: once, whole, before a machine is asked for."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cloudwhale.control.bundle import Bundle
from cloudwhale.control.bundle_delivery import OLD_S, Delivery
from cloudwhale.mailbox.objects import StoreObjects, open_objects
from cloudwhale.spi.errors import Denied, StoreUnusable, Unreachable

BODY = b"an archive"


class Counting:
    """Makes an archive, and says how often it was asked."""

    def __init__(self, folder: Path, name: str = "a" * 64) -> None:
        self.file = folder / "made.tar.gz"
        self.name = name
        self.times = 0

    def __call__(self) -> Bundle:
        self.times += 1
        self.file.write_bytes(BODY)
        return Bundle(
            file=self.file, sha256=self.name, size_bytes=len(BODY), pythons=("3.11", "3.12")
        )


class Silent(StoreObjects):
    """A store that nobody answers for."""

    def __init__(self) -> None:
        pass

    def size_bytes(self, key: str) -> int | None:
        raise StoreUnusable(f"cannot look at {key} in the mailbox: timed out", "Is it there?")


@pytest.fixture
def objects(tmp_path: Path) -> StoreObjects:
    return open_objects((tmp_path / "mailbox").as_uri())


def test_it_is_uploaded_once_and_made_once(tmp_path: Path, objects: StoreObjects) -> None:
    make = Counting(tmp_path)
    delivery = Delivery(objects, make)
    found = {delivery.delivered().key for _ in range(3)}
    assert found == {f"bundles/{'a' * 64}.tar.gz"}
    assert objects.get(found.pop()) == BODY
    assert (make.times, objects.counts.use.puts) == (1, 1)


def test_launches_at_once_share_one_upload(tmp_path: Path, objects: StoreObjects) -> None:
    make = Counting(tmp_path)
    delivery = Delivery(objects, make)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: delivery.delivered().key, range(16)))
    assert len(set(found)) == 1
    assert (make.times, objects.counts.use.puts) == (1, 1)


def test_another_controller_finds_it_there(tmp_path: Path, objects: StoreObjects) -> None:
    Delivery(objects, Counting(tmp_path)).delivered()
    Delivery(objects, Counting(tmp_path)).delivered()
    assert objects.counts.use.puts == 1


@pytest.mark.parametrize(
    "befalls",
    [
        pytest.param(lambda objects, key: objects.delete([key]), id="a lifecycle rule took it"),
        pytest.param(
            lambda objects, key: (objects.delete([key]), objects.create(key, BODY[:4])),
            id="half of it lies there",
        ),
    ],
)
def test_what_has_become_of_it_is_mended_before_the_next_launch(
    tmp_path: Path, objects: StoreObjects, befalls: Callable[[StoreObjects, str], object]
) -> None:
    delivery = Delivery(objects, Counting(tmp_path))
    key = delivery.delivered().key
    befalls(objects, key)
    delivery.delivered()
    assert objects.get(key) == BODY


def test_archives_of_versions_long_gone_are_deleted(tmp_path: Path, objects: StoreObjects) -> None:
    folder = tmp_path / "mailbox" / "bundles"
    folder.mkdir()
    for name, age_s in (("old", OLD_S + 3600.0), ("recent", OLD_S - 3600.0)):
        file = folder / f"{name}.tar.gz"
        file.write_bytes(b"an earlier one")
        os.utime(file, (file.stat().st_mtime - age_s,) * 2)
    key = Delivery(objects, Counting(tmp_path)).delivered().key
    assert objects.keys("bundles") == [key, "bundles/recent.tar.gz"]


def test_a_mailbox_that_does_not_answer_is_tried_again(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="is not in the mailbox: cannot look at") as told:
        Delivery(Silent(), Counting(tmp_path)).delivered()
    assert told.value.remedy == "Is it there?"


def test_an_archive_that_vanished_from_this_host_is_made_again(
    tmp_path: Path, objects: StoreObjects
) -> None:
    make = Counting(tmp_path)
    delivery = Delivery(objects, make)
    key = delivery.delivered().key
    objects.delete([key])
    make.file.unlink()
    with pytest.raises(Denied, match="cannot be read"):
        delivery.delivered()
    delivery.delivered()
    assert (make.times, objects.get(key)) == (2, BODY)
