"""The agent's archive: what lies in it, that it is the same each time, what is missing and why."""

import fcntl
import json
import os
import sys
import tarfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cloudwhale.control import bundle, bundle_archive, bundle_content
from cloudwhale.control.bundle import Bundle, made
from cloudwhale.control.bundle_check import check
from cloudwhale.control.bundle_content import Libraries, content
from cloudwhale.control.bundle_distributions import Files, Source, closure, installed
from cloudwhale.spi.errors import Denied, SettingsError, Unreachable

HERE = ".".join(map(str, sys.version_info[:2]))


@dataclass
class Index:
    """A package index that has all, or nothing."""

    has_it: bool = True
    asked: list[str] = field(default_factory=list[str])

    def fetched(
        self, wanted: Sequence[Source], python: str, folder: Path, say: object
    ) -> Sequence[Source]:
        if not wanted:
            return ()
        self.asked.append(python)
        if not self.has_it:
            raise Unreachable(f"packages for Python {python} cannot be fetched: no route")
        return [self._of(one, python) for one in wanted]

    def _of(self, one: Source, python: str) -> Source:
        number = python.replace(".", "")
        files: Files = {f"{one.name}.{number}.so": lambda: f"for {python}".encode()}
        tag = f"cp{number}-cp{number}-manylinux_2_17_x86_64"
        return Source(one.name, one.version, (tag,), lambda: files)


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Index:
    found = Index()
    monkeypatch.setattr(bundle, "fetched", found.fetched)
    return found


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> list[Source]:
    """Let an agent need two small libraries, one of them compiled for this Python."""
    number = HERE.replace(".", "")
    pure: Files = {"pure.py": lambda: b"here = 1\n"}
    compiled: Files = {f"fast.{number}.so": lambda: b"compiled"}
    libraries = [
        Source("fast", "2.0", (f"cp{number}-cp{number}-manylinux_2_28_x86_64",), lambda: compiled),
        Source("pure", "1.0", ("py3-none-any",), lambda: pure),
    ]
    monkeypatch.setattr(bundle, "installed", lambda: libraries)
    ours = bundle_content.ours()
    monkeypatch.setattr(bundle, "ours", lambda: ours)  # whoever edits the source meanwhile
    return libraries


def names_in(found: Bundle) -> list[str]:
    with tarfile.open(found.file) as archive:
        return archive.getnames()


def about(found: Bundle) -> dict[str, object]:
    told = json.loads(bundle_archive.first(found.file))
    assert isinstance(told, dict)
    return told


# -- what lies in it -------------------------------------------------------------------------


def test_it_holds_what_an_agent_needs_and_nothing_of_the_controllers() -> None:
    rooms = {
        path.split("/")[2] for path in bundle_content.ours() if path.startswith("lib/cloudwhale/")
    }
    assert {"agent", "mailbox", "model", "spi", "host", "clock.py", "plugins.py"} <= rooms
    assert not rooms & {"control", "cli", "simulation", "reporting", "planning"}
    assert not any(
        "cloudwhale_policies" in path or ".pyc" in path for path in bundle_content.ours()
    )


def test_the_scripts_of_the_first_boot_stand_at_its_top() -> None:
    ours = bundle_content.ours()
    assert ours["boot/first.sh"].startswith(b"#!/bin/sh")
    assert not any("agent/boot" in path for path in ours)


def test_it_says_of_our_entry_points_those_alone_that_an_agent_looks_for() -> None:
    (points,) = (body for path, body in bundle_content.ours().items() if "entry_points" in path)
    groups = [line for line in points.splitlines() if line.startswith(b"[")]
    assert groups == [b"[cloudwhale.notices]", b"[cloudwhale.stores]"]


def test_libraries_lie_once_unless_they_are_compiled_for_one_python(
    tmp_path: Path, index: Index, small: list[Source]
) -> None:
    names = names_in(made(tmp_path))
    assert names[0] == "bundle.json"
    compiled = [name for name in names if "fast" in name]
    assert sorted(compiled) == ["lib-cp311/fast.311.so", "lib-cp312/fast.312.so"]
    assert [name for name in names if name.endswith("pure.py")] == ["lib/pure.py"]


def test_it_says_what_is_in_it(tmp_path: Path, index: Index, small: list[Source]) -> None:
    told = about(made(tmp_path))
    assert told["pythons"] == ["3.11", "3.12"]
    assert told["distributions"] == {"fast": "2.0", "pure": "1.0"}
    assert told["missing"] == {}


def test_libraries_travel_with_their_licences() -> None:
    bears = {
        source.name
        for source in installed()
        if any("/licenses/" in path or "LICENSE" in path for path in source.files())
    }
    assert {"pydantic", "psutil", "requests", "pynacl", "certifi"} <= bears


def test_neither_tests_nor_stubs_nor_how_it_was_installed_travel() -> None:
    paths = [path for source in installed() for path in source.files()]
    assert {"pydantic/main.py", "obstore/__init__.py"} < set(paths)
    wrong = (".pyi", "/RECORD", "/INSTALLER", "/direct_url.json", ".pyc")
    assert not any(path.endswith(wrong) or "/tests/" in path for path in paths)


# -- the same content, the same bytes --------------------------------------------------------


def test_two_builds_in_two_folders_at_two_times_give_the_same_bytes(
    tmp_path: Path, index: Index, small: list[Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = made(tmp_path / "one")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    mask = os.umask(0o077)
    try:
        small.reverse()
        monkeypatch.setattr(bundle, "installed", lambda: sorted(small, key=lambda one: one.name))
        second = made(tmp_path / "two")
    finally:
        os.umask(mask)
    assert second.sha256 == first.sha256
    assert second.file.read_bytes() == first.file.read_bytes()
    assert second.key == f"bundles/{first.sha256}.tar.gz"


def test_its_hash_is_that_of_its_bytes(tmp_path: Path, index: Index, small: list[Source]) -> None:
    found = made(tmp_path)
    body = found.file.read_bytes()
    assert bundle._sha256(body) == found.sha256
    assert len(body) == found.size_bytes


def test_members_bear_neither_time_nor_owner(tmp_path: Path) -> None:
    file = tmp_path / "a.tar.gz"
    bundle_archive.write({"b": lambda: b"1", "boot/a.sh": lambda: b"2"}, file)
    with tarfile.open(file) as archive:
        members = archive.getmembers()
    assert [(one.name, one.mode) for one in members] == [("b", 0o644), ("boot/a.sh", 0o755)]
    assert {(one.mtime, one.uid, one.gid, one.uname) for one in members} == {(0, 0, 0, "")}
    assert file.read_bytes()[4:8] == b"\0\0\0\0", "no time in gzip's header"


def test_a_change_of_ours_makes_another(
    tmp_path: Path, index: Index, small: list[Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = made(tmp_path)
    ours = bundle_content.ours()
    monkeypatch.setattr(bundle, "ours", lambda: {**ours, "lib/cloudwhale/agent/new.py": b""})
    after = made(tmp_path)
    assert before.sha256 != after.sha256
    assert "lib/cloudwhale/agent/new.py" in names_in(after)


# -- made once, then kept --------------------------------------------------------------------


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return the archives that are written."""
    found: list[Path] = []
    write = bundle_archive.write

    def counted(files: Files, into: Path) -> str:
        found.append(into)
        return write(files, into)

    monkeypatch.setattr(bundle_archive, "write", counted)
    return found


def test_it_is_made_once(
    tmp_path: Path, index: Index, small: list[Source], writes: list[Path]
) -> None:
    assert made(tmp_path) == made(tmp_path)
    assert len(writes) == 1 and len(index.asked) == 1


def test_those_who_want_one_at_once_make_one(
    tmp_path: Path, index: Index, small: list[Source], writes: list[Path]
) -> None:
    together = threading.Barrier(4)

    def make(_: int) -> str:
        together.wait()
        return made(tmp_path).sha256

    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(make, range(4)))
    assert len(found) == 1 and len(writes) == 1


def test_one_who_waits_for_another_that_hangs_is_told_and_gives_up(
    tmp_path: Path, index: Index, small: list[Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "LOOKS", 3)
    said: list[str] = []
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Denied, match="another process has been making"):
            made(tmp_path, said.append)
    assert said == ["another process makes the agent's archive …"]
    assert made(tmp_path).file.exists()


@pytest.mark.parametrize("torn", [b"", b"\x1f\x8b\x08", b"no archive at all"])
def test_one_that_is_torn_is_made_again(
    tmp_path: Path, index: Index, small: list[Source], torn: bytes
) -> None:
    found = made(tmp_path)
    found.file.write_bytes(torn)
    assert made(tmp_path).sha256 == found.sha256
    assert bundle._sha256(found.file.read_bytes()) == found.sha256


def test_one_whose_end_is_damaged_is_made_again(
    tmp_path: Path, index: Index, small: list[Source]
) -> None:
    found = made(tmp_path)
    body = found.file.read_bytes()
    found.file.write_bytes(body[:-9] + bytes([body[-9] ^ 1]) + body[-8:])
    assert made(tmp_path) == found
    assert found.file.read_bytes() == body


def test_old_ones_go(
    tmp_path: Path, index: Index, small: list[Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = bundle_content.ours()
    for number in range(6):
        monkeypatch.setattr(bundle, "ours", lambda n=number: {**ours, "lib/n": str(n).encode()})
        newest = made(tmp_path)
        os.utime(newest.file, (number, number))
    (tmp_path / "somebody.draft").touch()
    newest = made(tmp_path)
    assert newest.file.exists()
    assert len(list(tmp_path.glob("*.tar.gz"))) <= bundle.KEEPS


# -- what cannot be had ----------------------------------------------------------------------


def test_a_python_that_packages_cannot_be_had_for_is_left_out_and_said(
    tmp_path: Path, index: Index, small: list[Source]
) -> None:
    index.has_it = False
    found = made(tmp_path)
    (other,) = {"3.11", "3.12"} - {HERE}
    assert found.pythons == (HERE,)
    says = f"packages for Python {other} cannot be fetched: no route"
    assert found.missing == (says,)
    assert about(found)["missing"] == {other: says}


def test_what_was_missing_is_tried_again_and_the_fuller_one_is_used(
    tmp_path: Path, index: Index, small: list[Source], writes: list[Path]
) -> None:
    index.has_it = False
    assert made(tmp_path) == made(tmp_path)
    assert len(writes) == 1, "the same is not written twice"
    index.has_it = True
    assert made(tmp_path).pythons == ("3.11", "3.12")
    index.has_it = False
    assert made(tmp_path).pythons == ("3.11", "3.12")


def test_without_any_python_there_is_none(
    tmp_path: Path, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As on macOS, without a network.
    mac = Source("fast", "2.0", ("cp311-cp311-macosx_11_0_arm64",), dict)
    monkeypatch.setattr(bundle, "installed", lambda: [mac])
    index.has_it = False
    with pytest.raises(Denied, match="cannot be made: packages for Python 3.11 cannot") as told:
        made(tmp_path)
    assert "reach a package index" in told.value.remedy
    index.has_it = True
    assert made(tmp_path).pythons == ("3.11", "3.12")


def test_a_folder_that_cannot_be_written_is_a_sentence(
    tmp_path: Path, index: Index, small: list[Source]
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Denied, match="cannot be made in") as told:
        made(tmp_path / "file" / "bundles")
    assert "XDG_CACHE_HOME" in told.value.remedy


def test_a_library_that_is_not_installed_is_a_sentence(
    tmp_path: Path, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone() -> Sequence[Source]:
        raise SettingsError("obstore, which an agent needs, is not installed here", "Install it.")

    monkeypatch.setattr(bundle, "installed", gone)
    with pytest.raises(Denied, match="cannot be made: obstore, which an agent needs"):
        made(tmp_path)


def test_another_system_fetches_what_is_for_linux_alone() -> None:
    foreign = {one.name: one for one in installed("darwin")}
    assert set(foreign) == closure()
    assert foreign["inotify-simple"].pin == "inotify-simple"
    assert not foreign["inotify-simple"].runs_on(HERE)


def test_the_order_of_what_is_written_is_that_of_paths() -> None:
    libraries = Libraries({HERE: []}, {})
    paths = list(content({"lib/b": b"", "boot/a": b"", "lib/a": b""}, libraries))
    assert paths == ["bundle.json", "boot/a", "lib/a", "lib/b"]


# -- doctor ----------------------------------------------------------------------------------


def quietly(says: str) -> None:
    """Tell nobody."""


def test_doctor_says_how_large_it_is_and_for_whom(
    tmp_path: Path, index: Index, small: list[Source]
) -> None:
    row = check(quietly, tmp_path)
    assert (row.name, row.state) == ("bundle", "ok")
    assert row.says.endswith(" MiB, for Python 3.11 and 3.12")


def test_doctor_says_what_it_lacks_and_how_to_mend_it(
    tmp_path: Path, index: Index, small: list[Source]
) -> None:
    index.has_it = False
    row = check(quietly, tmp_path)
    (other,) = {"3.11", "3.12"} - {HERE}
    assert row.state == "warning"
    assert f"packages for Python {other} cannot be fetched" in row.says
    assert f"Images with Python {other} are refused" in row.remedy


def test_doctor_fails_where_there_is_none(
    tmp_path: Path, index: Index, small: list[Source]
) -> None:
    (tmp_path / "file").touch()
    row = check(quietly, tmp_path / "file")
    assert row.state == "failed" and "XDG_CACHE_HOME" in row.remedy
