"""A shim by itself: what it is told, what it writes, and that it begins a job once at most."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from live_agent import until

from cloudwhale.agent import shim
from cloudwhale.agent.attempts import AttemptFolder
from cloudwhale.agent.shim_json import decoded, encoded
from cloudwhale.agent.shim_limits import Limits
from cloudwhale.agent.shim_processes import started_at

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)  # fmt: skip


@given(PLAIN)
def test_a_shim_reads_and_writes_json_as_everybody_does(value: Any) -> None:
    assert json.loads(encoded(value)) == value
    assert decoded(json.dumps(value)) == value


@pytest.mark.parametrize("text", ["", "{", '{"a"}', "nothing"])
def test_a_shim_refuses_what_is_no_json(text: str) -> None:
    with pytest.raises((ValueError, StopIteration)):
        decoded(text)


def told(folder: Path, **changes: Any) -> bytes:
    """Make the description of a job that runs `true`."""
    return json.dumps(
        {
            "job": "job", "attempt": 1, "setup": None, "command": "true", "cwd": str(folder),
            "env": {"PATH": os.environ["PATH"]}, "secrets": [],
            "limits": {"cpu": None, "memory_bytes": None, "groups": None},
            "log": {"segment": 1000, "head": 10000, "tail": 10000},
            "full_below": 1, "full_paths": [str(folder)], **changes,
        },
        separators=(",", ":"),
    ).encode()  # fmt: skip


def a_folder(tmp_path: Path) -> AttemptFolder:
    """Make an attempt's folder."""
    folder = AttemptFolder(tmp_path, ("job", 1))
    folder.path.mkdir(parents=True)
    return folder


def run_shim(folder: AttemptFolder, description: bytes) -> subprocess.CompletedProcess[bytes]:
    """Run a shim as an agent does, and wait for it."""
    words = [sys.executable, "-I", "-S", str(shim.__file__), str(folder.path)]
    return subprocess.run(words, input=description, capture_output=True, timeout=30, check=True)


def test_a_shim_writes_who_runs_what_was_said_and_how_it_ended(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    run_shim(folder, told(folder.path, command="echo hello; exit 3"))
    pids, end = folder.pids(), folder.exit()
    assert pids is not None and end is not None
    assert pids.began_at <= end.ended_at
    assert (end.how, end.code) == ("exited", 3)
    assert (folder.log / "000001").read_bytes() == b"hello\n"
    assert not folder.shim_lives()
    assert folder.has_begun


WAITS = "trap 'exit 0' TERM; echo > ready; sleep 60 & wait $!"
LEAVES_SOMETHING = "(trap '' TERM; echo > ready; sleep 60) & while [ ! -e ready ]; do :; done"
"""For a second the shim waits for what is left, although the job's process is over."""


@pytest.mark.parametrize(("command", "by_itself"), [(LEAVES_SOMETHING, True), (WAITS, False)])
def test_a_shim_writes_whether_a_stop_reached_the_job_before_its_end(
    tmp_path: Path, command: str, by_itself: bool
) -> None:
    folder = a_folder(tmp_path)
    description = told(folder.path, command=command)
    runs = threading.Thread(target=run_shim, args=(folder, description))
    runs.start()
    pids = until(folder.pids, "the job runs")
    until((folder.path / "ready").exists, "it has begun")
    if by_itself:
        until(lambda: started_at(pids.job) is None, "the job's process is over")
    assert folder.tell_shim("stop 15 5.0")
    runs.join()
    end = folder.exit()
    assert end is not None
    assert (end.how, end.code, end.by_itself) == ("exited", 0, by_itself)


def test_a_stop_before_the_command_began_is_no_end_by_itself(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    description = told(folder.path, setup="trap '' TERM; echo > ready; sleep 0.5; true")
    runs = threading.Thread(target=run_shim, args=(folder, description))
    runs.start()
    until((folder.path / "ready").exists, "the set-up runs")
    assert folder.tell_shim("stop 15 5.0")
    runs.join()
    end = folder.exit()
    assert end is not None
    assert not end.by_itself


def test_a_job_begins_once_however_many_shims_are_started(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    description = told(folder.path, command="echo ran >> times; sleep 0.3")
    shims = [threading.Thread(target=run_shim, args=(folder, description)) for _ in range(5)]
    for one in shims:
        one.start()
    for one in shims:
        one.join()
    run_shim(folder, description)
    assert (folder.path / "times").read_text() == "ran\n"


def test_a_job_that_was_fenced_out_is_never_begun(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    assert folder.fence_out()
    run_shim(folder, told(folder.path, command="echo ran > ran"))
    assert not (folder.path / "ran").exists()
    assert folder.exit() is None


def test_a_shim_lives_while_its_job_does(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    description = told(folder.path, command="while [ ! -e go ]; do sleep 0.02; done")
    runs = threading.Thread(target=run_shim, args=(folder, description))
    runs.start()
    until(folder.pids, "the job runs")
    assert folder.shim_lives()
    (folder.path / "go").touch()
    runs.join()
    assert not folder.shim_lives()


def test_a_command_too_long_for_the_kernel_is_not_started(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    run_shim(folder, told(folder.path, command="true " + "x" * 300_000))
    end = folder.exit()
    assert end is not None
    assert (end.how, end.code) == ("start-failed", None)
    assert "Argument list too long" in end.says


def test_a_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    run_shim(folder, told(folder.path, cwd=str(tmp_path / "gone")))
    end = folder.exit()
    assert end is not None
    assert (end.how, "gone: No such file or directory" in end.says) == ("start-failed", True)


def test_a_disk_counts_as_full_below_what_the_shim_is_told(tmp_path: Path) -> None:
    for below, how in ((1, "exited"), (1 << 60, "disk-full")):
        folder = AttemptFolder(tmp_path, (f"job-{how}", 1))
        folder.path.mkdir(parents=True)
        run_shim(folder, told(folder.path, command="exit 1", full_below=below))
        end = folder.exit()
        assert end is not None
        assert end.how == how


def test_a_job_that_went_well_on_a_full_disk_went_well(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    run_shim(folder, told(folder.path, full_below=1 << 60))
    end = folder.exit()
    assert end is not None
    assert (end.how, end.code) == ("exited", 0)


def test_an_order_that_makes_no_sense_is_ignored(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    description = told(folder.path, command="trap 'exit 6' TERM; while true; do sleep 0.02; done")
    runs = threading.Thread(target=run_shim, args=(folder, description))
    runs.start()
    until(lambda: folder.tell_shim("dance"), "the shim listens")
    until(folder.pids, "the job runs")
    assert folder.tell_shim("")
    folder.tell_shim("stop 15 20")
    runs.join()
    end = folder.exit()
    assert end is not None
    assert end.code in (6, 143), "143: the signal came before the trap was set"


# -- limits over control groups that are only folders ----------------------------------------


def a_group(parent: Path, *files: str) -> Path:
    """Make what the kernel makes when a group is made."""
    folder = parent / "job-group"
    folder.mkdir(parents=True)
    for name in (*files, "cgroup.procs"):
        (folder / name).touch()
    return folder


def test_limits_by_version_1_are_written_where_the_kernel_reads_them(tmp_path: Path) -> None:
    cpu = a_group(tmp_path / "cpu", "cpu.cfs_period_us", "cpu.cfs_quota_us")
    memory = a_group(tmp_path / "memory", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
    groups = {"version": 1, "cpu": str(cpu.parent), "memory": str(memory.parent)}
    limits = Limits({"cpu": 1.5, "memory_bytes": 1000, "groups": groups}, "job-group")
    assert (cpu / "cpu.cfs_quota_us").read_text() == "150000"
    assert (memory / "memory.limit_in_bytes").read_text() == "1000"
    assert (memory / "memory.memsw.limit_in_bytes").read_text() == "1000"
    assert (limits.folders, limits.watches) == ([str(cpu), str(memory)], False)
    limits.enter()
    assert (cpu / "cgroup.procs").read_text() == (memory / "cgroup.procs").read_text() == "0"


def test_limits_by_version_2_are_written_where_the_kernel_reads_them(tmp_path: Path) -> None:
    group = a_group(tmp_path, "cpu.max", "memory.max", "memory.swap.max", "memory.oom.group")
    groups = {"version": 2, "all": str(tmp_path)}
    limits = Limits({"cpu": 0.001, "memory_bytes": 1000, "groups": groups}, "job-group")
    assert (group / "cpu.max").read_text() == "1000 100000", "the kernel takes no smaller quota"
    assert (group / "memory.max").read_text() == "1000"
    assert (group / "memory.swap.max").read_text() == "0"
    assert (group / "memory.oom.group").read_text() == "1"
    assert (limits.folders, limits.watches) == ([str(group)], False)


@pytest.mark.parametrize(
    ("version", "file", "text", "killed"),
    [
        (1, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", True),
        (1, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n", False),
        (2, "memory.events", "low 0\nmax 9\noom 1\noom_kill 1\n", True),
        (2, "memory.events", "low 0\nmax 9\noom 1\noom_kill 0\n", False),
    ],
)
def test_a_kill_for_memory_is_read_from_the_group(
    tmp_path: Path, version: int, file: str, text: str, killed: bool
) -> None:
    group = a_group(tmp_path, "memory.limit_in_bytes", "memory.max", "memory.oom.group")
    groups = {"version": version, "memory": str(tmp_path), "all": str(tmp_path)}
    limits = Limits({"cpu": None, "memory_bytes": 1000, "groups": groups}, "job-group")
    (group / file).write_text(text)
    assert limits.killed() is killed


def test_without_groups_memory_is_watched(tmp_path: Path) -> None:
    limits = Limits({"cpu": 1.0, "memory_bytes": 1000, "groups": None}, "job-group")
    assert (limits.folders, limits.watches, limits.killed()) == ([], True, False)
    assert limits.close()


def test_a_group_that_cannot_be_limited_is_not_used(tmp_path: Path) -> None:
    groups = {"version": 1, "memory": str(tmp_path)}  # a folder, and the kernel makes no files
    limits = Limits({"cpu": 1.0, "memory_bytes": 1000, "groups": groups}, "job-group")
    assert limits.watches
    assert list(tmp_path.iterdir()) == []


def test_a_job_that_asks_for_no_memory_is_not_watched() -> None:
    limits = Limits({"cpu": None, "memory_bytes": None, "groups": None}, "job-group")
    assert (limits.folders, limits.watches) == ([], False)
