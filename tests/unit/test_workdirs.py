"""A packed working directory is fetched once onto a node, and held against its hash."""

import hashlib
import os
from pathlib import Path

import pytest

from cloudwhale.agent.restoring import Broken
from cloudwhale.agent.workdirs import kept, make_room
from cloudwhale.mailbox.box import workdir_key
from cloudwhale.mailbox.objects import StoreObjects, open_objects

BODY = b"packed" * 100
KEY = workdir_key(hashlib.sha256(BODY).hexdigest())


@pytest.fixture
def store() -> StoreObjects:
    objects = open_objects("memory://")
    objects.create(KEY, BODY)
    return objects


def test_it_is_fetched_once(tmp_path: Path, store: StoreObjects) -> None:
    first = kept(KEY, tmp_path, store)
    asked = store.counts.use.gets
    assert kept(KEY, tmp_path, store) == first
    assert store.counts.use.gets == asked
    assert first.read_bytes() == BODY


def test_one_that_the_disk_has_damaged_is_fetched_anew(tmp_path: Path, store: StoreObjects) -> None:
    kept(KEY, tmp_path, store).write_bytes(bytes(len(BODY)))
    assert kept(KEY, tmp_path, store).read_bytes() == BODY


def test_one_that_is_not_what_its_name_says_is_refused_and_not_kept(tmp_path: Path) -> None:
    objects = open_objects("memory://")
    objects.create(KEY, b"other")
    with pytest.raises(Broken, match="is damaged"):
        kept(KEY, tmp_path, objects)
    with pytest.raises(Broken, match="not in the store any more"):
        kept(workdir_key("0" * 64), tmp_path, objects)
    assert list((tmp_path / "workdirs").iterdir()) == []


def test_those_used_longest_ago_make_room(tmp_path: Path, store: StoreObjects) -> None:
    old = kept(KEY, tmp_path, store)
    os.utime(old, (1, 1))
    other = b"other"
    key = workdir_key(hashlib.sha256(other).hexdigest())
    store.create(key, other)
    new = kept(key, tmp_path, store)
    make_room(tmp_path, most_bytes=len(BODY))
    assert (old.exists(), new.exists()) == (False, True)


def test_what_a_killed_agent_has_fetched_in_part_goes(tmp_path: Path, store: StoreObjects) -> None:
    archive = kept(KEY, tmp_path, store)
    left, own = (archive.with_name(f".{pid}-left") for pid in (os.getpid() + 1, os.getpid()))
    for draft in (left, own):
        draft.write_bytes(b"half")
    make_room(tmp_path)
    assert (left.exists(), own.exists(), archive.exists()) == (False, True, True)
