"""Kills what a shim that died left behind: found by group, by control group, by environment."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

from cloudwhale.agent import shim
from cloudwhale.agent import shim_processes as processes
from cloudwhale.agent.attempts import AttemptFolder, Pids
from cloudwhale.agent.containers import runtime as containers
from cloudwhale.clock import pause
from cloudwhale.model.units import Seconds

LOOK_AGAIN_S: Seconds = 0.05  # what is killed may have started another just before
LOOKS = 100
"""Five seconds: what still lives then cannot be killed, as it waits for a device or a disk."""


def kill_shim(folder: AttemptFolder) -> None:
    """Kill a shim that does not react; its job's main process dies with it."""
    pids = _pids(folder)
    if pids is not None and processes.started_at(pids.shim) == pids.shim_started:
        _kill(pids.shim)


def runs_on(folder: AttemptFolder) -> bool:
    """Say whether anything of an attempt runs on without its shim."""
    return next(_remains(folder, _pids(folder)), None) is not None


def kill_remains(folder: AttemptFolder) -> bool:
    """Kill everything of an attempt that is over; False when something could not be killed."""
    pids = _pids(folder)
    if containers.marked(folder):
        # Where Docker does not answer, the processes of the container are killed all the same;
        # what it holds of them is removed when it is back.
        containers.remove(folder)
    for _ in range(LOOKS):
        left = set(_remains(folder, pids))
        if not left and _groups_removed(pids):
            return True
        for pid in left:
            _kill(pid)
        pause(LOOK_AGAIN_S)
    return False


def _pids(folder: AttemptFolder) -> Pids | None:
    pids = folder.pids()
    return pids if pids is not None and pids.boot == processes.boot_id() else None


def _remains(folder: AttemptFolder, pids: Pids | None) -> Iterator[int]:
    """Return the living processes of an attempt."""
    for pid in _candidates(folder, pids):
        if pid != os.getpid() and not _is_dead(pid):
            yield pid


def _candidates(folder: AttemptFolder, pids: Pids | None) -> Iterator[int]:
    if pids is not None:
        # A number that names a session is not given to a new process while the session lives.
        if processes.started_at(pids.job) in (None, pids.job_started):
            yield from processes.members(pids.job)
            yield from processes.descendants(pids.job)
        for group in pids.groups:
            yield from _members(Path(group))
    yield from _by_environment(folder)


def _members(group: Path) -> list[int]:
    try:
        return [int(line) for line in (group / "cgroup.procs").read_text().split()]
    except OSError:
        return []


def _by_environment(folder: AttemptFolder) -> Iterator[int]:
    """Return the processes whose environment says that they belong to this attempt, here.

    The folder is asked for too: another installation on this host may have a job of that name.
    A shim has that environment not yet, but the folder in its command.
    """
    job, attempt = folder.key
    wanted = {f"CLOUDWHALE_JOB_ID={job}".encode(), f"CLOUDWHALE_ATTEMPT={attempt}".encode()}
    inside = f"CLOUDWHALE_CHECKPOINT_DIR={folder.path}/".encode()
    path = os.fsencode(folder.path)
    shims = [[os.fsencode(one), path, b""] for one in (str(shim.__file__), containers.SHIM)]
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        try:
            words = Path(f"/proc/{name}/environ").read_bytes().split(b"\0")
            command = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        of_job = wanted <= set(words) and any(word.startswith(inside) for word in words)
        if of_job or command[-3:] in shims:
            yield int(name)


def _is_dead(pid: int) -> bool:
    """Say whether a process has ended: it is gone, or only waits to be collected."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return True
    return text[text.rfind(")") + 2 :][:1] in ("Z", "X")


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def _groups_removed(pids: Pids | None) -> bool:
    for group in pids.groups if pids is not None else ():
        try:
            os.rmdir(group)
        except FileNotFoundError:
            continue
        except OSError:
            return False
    return True
