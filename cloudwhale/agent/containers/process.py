"""A container seen from this machine: its first process, which all others of it end with."""

import os
import select
from dataclasses import dataclass
from pathlib import Path

from cloudwhale.agent import shim_processes as processes


@dataclass(frozen=True, slots=True)
class FirstProcess:
    """The init of a container, by its number here."""

    pid: int
    started: int
    ended: int | None
    """A descriptor that becomes readable when it has ended; None on kernels before 5.3."""

    @property
    def lives(self) -> bool:
        """Say whether it runs; when it does not, no process of its container does."""
        if self.ended is not None:
            return not select.select([self.ended], [], [], 0)[0]
        return processes.started_at(self.pid) == self.started and not _is_zombie(self.pid)

    def signal(self, number: int) -> None:
        """Send a signal to the job: the process group of init's first child, ours and the job's."""
        leaders = [pid for pid in processes.descendants(self.pid) if _parent(pid) == self.pid]
        first = min(leaders, key=lambda pid: processes.started_at(pid) or 0, default=None)
        if first is None or not self.lives:
            return
        try:
            os.killpg(first, number)
        except (ProcessLookupError, PermissionError):
            pass  # over meanwhile; or it stays until it is killed

    def kill(self) -> None:
        """Kill it, and with it the whole container."""
        if self.lives:
            processes.send([self.pid], processes.SIGNAL_KILL)


def first_process(pid: int, container: str) -> FirstProcess | None:
    """Return the first process of a container, or None when that number is not it here."""
    started = processes.started_at(pid) if pid > 0 else None
    if started is None or not _is_inside(pid, container):
        return None
    try:
        ended = os.pidfd_open(pid)
    except OSError:
        ended = None
    if processes.started_at(pid) != started:  # it has ended, and another got its number
        if ended is not None:
            os.close(ended)
        return None
    return FirstProcess(pid, started, ended)


def _is_inside(pid: int, container: str) -> bool:
    try:
        return container in Path(f"/proc/{pid}/cgroup").read_text()
    except OSError:
        return False


def _parent(pid: int) -> int:
    return int((_fields(pid) or ["", "0"])[1])


def _is_zombie(pid: int) -> bool:
    return (_fields(pid) or ["Z"])[0] in ("Z", "X")


def _fields(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return []
    return text[text.rfind(")") + 2 :].split()
