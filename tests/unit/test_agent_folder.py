"""An attempt's folder: what is put into it, what it says after a restart, when it goes."""

import io
import json
import os
import tarfile
import threading
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from live_agent import CLOCK, a_start

from cloudwhale.agent import preparing
from cloudwhale.agent.attempts import AttemptFolder, broken, closing, found, known
from cloudwhale.agent.cgroups import Groups
from cloudwhale.agent.leases import signal_number
from cloudwhale.agent.place import Place, ReadTo
from cloudwhale.agent.seen import (
    CannotStart,
    Prepared,
    StopWish,
)
from cloudwhale.agent.tidying import KEPT_S, tidy
from cloudwhale.mailbox.box import workdir_key
from cloudwhale.mailbox.documents import AttemptEnded
from cloudwhale.mailbox.objects import StoreObjects, open_objects


@pytest.fixture
def objects() -> StoreObjects:
    """Give an empty store."""
    return open_objects("memory:///")


# -- preparing -------------------------------------------------------------------------------


def an_archive(objects: StoreObjects, fill: Callable[[tarfile.TarFile], None]) -> str:
    """Put a packed working directory into the store and return its key."""
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w:gz") as tar:
        fill(tar)
    key = workdir_key(sha256(body.getvalue()).hexdigest())
    objects.create(key, body.getvalue())
    return key


def a_member(name: str, body: bytes = b"", **fields: object) -> Callable[[tarfile.TarFile], None]:
    """Make what adds one member to an archive."""
    info = tarfile.TarInfo(name)
    info.size = len(body)
    for field, value in fields.items():
        setattr(info, field, value)
    return lambda tar: tar.addfile(info, io.BytesIO(body))


def test_a_working_directory_is_unpacked(tmp_path: Path, objects: StoreObjects) -> None:
    key = an_archive(objects, a_member("src/train.py", b"print(1)", mode=0o755))
    folder = AttemptFolder(tmp_path, ("job", 1))
    folder.path.mkdir(parents=True)
    assert preparing.prepare(a_start(workdir=key), folder, objects) == Prepared(("job", 1))
    assert (folder.work / "src" / "train.py").read_bytes() == b"print(1)"
    assert (folder.work / "src" / "train.py").stat().st_mode & 0o777 == 0o755
    assert sorted(path.name for path in folder.path.iterdir()) == [
        "checkpoints",
        "shim.lock",
        "work",
    ]


def test_what_a_shim_has_begun_in_is_not_prepared_anew(
    tmp_path: Path, objects: StoreObjects
) -> None:
    folder = AttemptFolder(tmp_path, ("job", 1))
    (folder.work / "mine").mkdir(parents=True)
    assert folder.fence_out(), "as a shim does that an agent started just before it died"
    assert preparing.prepare(a_start(), folder, objects) == Prepared(("job", 1))
    assert (folder.work / "mine").exists()


def test_no_shim_begins_in_a_folder_that_is_being_prepared(
    tmp_path: Path, objects: StoreObjects
) -> None:
    key = an_archive(objects, a_member("train.py", b"print(1)"))
    folder = AttemptFolder(tmp_path, ("job", 1))
    folder.path.mkdir(parents=True)
    lived: list[bool] = []

    class Watched(StoreObjects):
        def __init__(self, objects: StoreObjects) -> None:
            super().__init__(objects._store)

        def get_file(self, key: str, path: Path) -> str | None:
            lived.append(folder.shim_lives())  # the lock is taken: a shim would go
            return super().get_file(key, path)

    told = preparing.prepare(a_start(workdir=key), folder, Watched(objects))
    assert told == Prepared(("job", 1))
    assert lived == [True]
    assert not folder.shim_lives()
    assert (folder.work / "train.py").exists()


@pytest.mark.parametrize(
    "member",
    [
        a_member("/etc/evil", b"1"),
        a_member("../evil", b"1"),
        a_member("a/../../evil", b"1"),
        a_member("link", type=tarfile.SYMTYPE, linkname="/etc"),
        a_member("a/link", type=tarfile.SYMTYPE, linkname="../../elsewhere"),
        a_member("pipe", type=tarfile.FIFOTYPE),
        a_member("device", type=tarfile.CHRTYPE),
    ],
)
def test_an_archive_that_leads_out_of_its_folder_is_refused(
    tmp_path: Path, objects: StoreObjects, member: Callable[[tarfile.TarFile], None]
) -> None:
    folder = AttemptFolder(tmp_path / "attempts", ("job", 1))
    folder.path.mkdir(parents=True)
    told = preparing.prepare(a_start(workdir=an_archive(objects, member)), folder, objects)
    assert isinstance(told, CannotStart)
    assert told.how == "start-failed"
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("body", [b"", b"no archive at all"])
def test_an_archive_that_is_damaged_is_refused(
    tmp_path: Path, objects: StoreObjects, body: bytes
) -> None:
    folder = AttemptFolder(tmp_path, ("job", 1))
    folder.path.mkdir(parents=True)
    for key in (workdir_key(sha256(body).hexdigest()), workdir_key("0" * 64)):
        objects.create(key, body)
        told = preparing.prepare(a_start(workdir=key), folder, objects)
        assert isinstance(told, CannotStart)
    told = preparing.prepare(a_start(workdir=workdir_key("1" * 64)), folder, objects)
    assert isinstance(told, CannotStart)
    assert told.says.endswith("is not in the store any more")


def test_a_mount_that_no_plain_process_can_be_given_is_refused(
    tmp_path: Path, objects: StoreObjects
) -> None:
    folder = AttemptFolder(tmp_path, ("job", 1))
    folder.path.mkdir(parents=True)
    same = a_start(mounts={str(tmp_path): str(tmp_path)})
    assert isinstance(preparing.prepare(same, folder, objects), Prepared)
    read_only = {str(tmp_path): f"{tmp_path}:ro"}
    for mounts in (read_only, {str(tmp_path): "/data"}, {"/no/such/folder": "/no/such/folder"}):
        assert isinstance(preparing.prepare(a_start(mounts=mounts), folder, objects), CannotStart)


# -- an agent's own folder -------------------------------------------------------------------


def test_one_agent_at_a_time_works_in_a_place(tmp_path: Path) -> None:
    first, second = Place(tmp_path, "host"), Place(tmp_path, "host")
    assert first.take()
    assert not second.take()
    first.leave()
    assert second.take()
    second.leave()


def test_a_lock_that_is_only_asked_for_does_not_turn_an_agent_away(tmp_path: Path) -> None:
    asked, place = Place(tmp_path, "host"), Place(tmp_path, "host")
    assert asked.take()
    threading.Thread(target=asked.leave).start()
    assert place.take()
    place.leave()


def test_what_was_read_and_the_keys_outlive_the_agent(tmp_path: Path) -> None:
    place = Place(tmp_path, "host")
    place.attempts.mkdir(parents=True)
    assert place.read_to() is None
    place.keep_read_to(ReadTo(7, 3, 2))
    assert Place(tmp_path, "host").read_to() == ReadTo(7, 3, 2)
    assert Place(tmp_path, "host").keys() == place.keys()


def test_a_folder_tells_what_was_under_way(tmp_path: Path) -> None:
    waits, runs, ended = (AttemptFolder(tmp_path, (name, 2)) for name in ("waits", "runs", "ended"))
    for one in (waits, runs, ended):
        one.accept(a_start(one.key[0], attempt=2))
    assert runs.fence_out() and not runs.fence_out()
    runs.keep_stop(StopWish("SIGUSR1", 4.0, "why"))
    ended.mark_ended(an_end("ended"))
    by_job = {one.order.job: one for one in found(tmp_path)}
    assert set(by_job) == {"waits", "runs"}
    assert by_job["waits"].began_at is None
    assert by_job["runs"].began_at is not None
    assert by_job["runs"].stop == StopWish("SIGUSR1", 4.0, "why")
    assert known(tmp_path) == {"waits": 2, "runs": 2, "ended": 2}
    assert ended.ended() == an_end("ended")


def test_a_folder_without_an_order_is_of_an_agent_that_died_before_it_accepted(
    tmp_path: Path,
) -> None:
    AttemptFolder(tmp_path, ("job", 1)).path.mkdir(parents=True)
    (tmp_path / "job" / "1" / "order.json.new").touch()
    assert known(tmp_path) == {}, "so the order, read again, is obeyed"
    assert found(tmp_path) == ()


def test_files_of_another_version_are_read_as_far_as_they_can_be(tmp_path: Path) -> None:
    folder = AttemptFolder(tmp_path, ("job", 2))
    folder.accept(a_start(attempt=2))
    newer: dict[str, dict[str, object]] = {
        "pids.json": {"shim": 1, "shim_started": 2, "job": 3, "job_started": 4, "boot": "b",
                      "began_at": 5.0, "groups": [], "mood": "good"},
        "stop.json": {"signal": "SIGTERM", "grace_s": 4.0, "why": "why", "mood": "good"},
        "exit.json": {"how": "exited", "code": 0, "ended_at": 9.0, "mood": "good"},
    }  # fmt: skip
    for name, content in newer.items():
        (folder.path / name).write_text(json.dumps(content))
    pids, stop, exit = folder.pids(), folder.stop(), folder.exit()
    assert pids is not None and pids.job == 3
    assert stop == StopWish("SIGTERM", 4.0, "why")
    assert exit is not None and exit.code == 0


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"seq": "x", "checkpoints": [{}]}', '{"shim"'])
def test_files_that_say_nothing_do_not_keep_an_agent_from_waking(tmp_path: Path, text: str) -> None:
    folder = AttemptFolder(tmp_path, ("job", 2))
    folder.accept(a_start(attempt=2))
    for name in ("pids.json", "stop.json", "exit.json", "published.json", "closing.json", "ended"):
        (folder.path / name).write_text(text)
    (tmp_path / "stray").touch()
    (tmp_path / "job" / "stray").touch()
    [one] = found(tmp_path)
    assert (one.order.job, one.began_at, one.seq, one.stop) == ("job", None, 0, None)
    assert (folder.exit(), folder.pids(), closing(tmp_path)) == (None, None, ())
    assert known(tmp_path) == {"job": 2}


def test_an_order_that_a_power_cut_left_empty_is_obeyed_when_it_is_read_again(
    tmp_path: Path,
) -> None:
    folder = AttemptFolder(tmp_path, ("job", 2))
    folder.accept(a_start(attempt=2))
    (folder.path / "order.json").write_bytes(b"")
    assert (known(tmp_path), found(tmp_path), broken(tmp_path)) == ({}, (), ())
    folder.fence_out()
    assert broken(tmp_path) == (("job", 2),), "but not when it may have run"
    assert known(tmp_path) == {"job": 2}


def test_an_attempt_that_was_being_closed_before_it_ran_is_closed_not_run(tmp_path: Path) -> None:
    folder = AttemptFolder(tmp_path, ("job", 2))
    folder.accept(a_start(attempt=2))
    folder.keep_end(an_end("job"))
    folder.fence_out()
    assert found(tmp_path) == ()
    assert closing(tmp_path) == (an_end("job"),)
    folder.mark_ended(an_end("job"))
    assert closing(tmp_path) == ()


def an_end(job: str) -> AttemptEnded:
    """Make the end of an attempt that was stopped before it ran."""
    return AttemptEnded(at=1.0, agent="a", job=job, attempt=2, how="stopped", exit_code=None)


def test_what_is_old_is_removed_and_what_runs_is_not(tmp_path: Path) -> None:
    old, runs = AttemptFolder(tmp_path, ("old", 1)), AttemptFolder(tmp_path, ("runs", 1))
    for one in (old, runs):
        one.accept(a_start(one.key[0]))
        (one.work / "data").mkdir(parents=True)
    old.mark_ended(an_end("old"))
    tidy(tmp_path, CLOCK.now() + KEPT_S + 60.0)
    assert not old.path.exists()
    assert (runs.work / "data").exists()


@pytest.mark.parametrize(
    ("name", "number"),
    [("SIGTERM", 15), ("TERM", 15), ("usr1", 10), ("12", 12), ("SIGNONSENSE", 15), ("", 15)],
)
def test_signals_have_names(name: str, number: int) -> None:
    assert signal_number(name) == number


def test_groups_of_shims_that_were_killed_are_removed_and_others_are_not(tmp_path: Path) -> None:
    gone = 2**22 + 1  # above what the kernel gives out
    for name in (f"cloudwhale-job-1-{gone}", f"cloudwhale-job-2-{os.getpid()}", "system.slice"):
        (tmp_path / name).mkdir()
    (tmp_path / f"cloudwhale-full-1-{gone}" / "inner").mkdir(parents=True)
    Groups(1, cpu=tmp_path, memory=None).sweep()
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {f"cloudwhale-job-2-{os.getpid()}", "system.slice", f"cloudwhale-full-1-{gone}"}
