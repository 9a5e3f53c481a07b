"""The lease of a job whose controller is elsewhere: without a living agent, it ends in time.

An agent that cannot reach the store stops its jobs before its lease is over, so that they can be
started elsewhere. One that is dead, and is not started again, can stop nothing: its shims do.
"""

from __future__ import annotations

import fcntl
import os

from cloudwhale.agent.shim_files import write_whole
from cloudwhale.agent.shim_json import encoded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

LOOK_EVERY_S = 5.0


class Lease:
    """Looks now and then at the file that the agent touches when the store has answered."""

    def __init__(self, folder: str, told: Mapping[str, Any] | None) -> None:
        self._folder = folder
        self._told = told
        self._touched = 0.0
        self._since: float | None = None
        """When the file was last seen to change, by a clock that nobody sets."""
        self._looked = -LOOK_EVERY_S
        self._over = False

    def look(self, steady: float, wall: float) -> None:
        """Order the shim to stop once the lease is over; cheap, called each turn."""
        if self._told is None or self._over or steady < self._looked + LOOK_EVERY_S:
            return
        self._looked = steady
        touched = _modified(self._told["heard"])
        if self._since is None:
            self._since = steady - max(0.0, wall - touched if touched else 0.0)
        elif touched != self._touched:
            self._since = steady
        self._touched = touched
        silent_s = steady - self._since
        # A living agent judges by itself, and better; one that hangs does not.
        if silent_s >= self._told["hung_s" if _is_held(self._told["lock"]) else "after_s"]:
            self._over = True
            self._stop(silent_s)

    def _stop(self, silent_s: float) -> None:
        told = self._told or {}
        why = f"its agent was silent for {silent_s:.0f} s"
        wish = encoded({"signal": told["signal"], "grace_s": told["grace_s"], "why": why})
        try:
            write_whole(f"{self._folder}/stop.json", wish)  # as the agent would have
        except OSError:
            pass  # the next agent cannot say why; the job stops all the same
        line = f"stop {told['number']} {told['grace_s']}\n"
        pipe = os.open(f"{self._folder}/control", os.O_WRONLY | os.O_NONBLOCK)
        try:
            os.write(pipe, line.encode())
        finally:
            os.close(pipe)


def _modified(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def _is_held(lock: str) -> bool:
    try:
        file = os.open(lock, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False
