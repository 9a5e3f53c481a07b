"""Makes this process the parent of all that its machines leave without one, and collects it."""

import ctypes
import os
from collections.abc import Collection

SET_SUBREAPER = 36  # prctl(2), PR_SET_CHILD_SUBREAPER


def adopt() -> None:
    """Become the parent of what descends from us and loses its own; where there is none: init."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "prctl"):
        libc.prctl(SET_SUBREAPER, 1, 0, 0, 0)


def own_pid() -> int:
    """Return the number of this process."""
    return os.getpid()


def collect(children: Collection[int]) -> None:
    """Collect what was adopted and has ended; `children`: those that somebody else waits for."""
    for pid in _children():
        if pid in children:
            continue
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            continue


def _children() -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []  # a kernel without that file: they stay in its table until we end
