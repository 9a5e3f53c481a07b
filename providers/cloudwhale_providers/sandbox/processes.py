"""Finds and ends every process of a machine in the box: by its folder, and by descent."""

import os
import signal
from collections.abc import Iterable, Mapping
from pathlib import Path
from threading import Event

from cloudwhale.model.units import Seconds

MARKS = frozenset((b"HOME", b"CLOUDWHALE_CHECKPOINT_DIR"))
"""Variables by which the processes of a machine are known."""
LOOK_AGAIN_S: Seconds = 0.02  # what is killed may have started another just before
LOOKS = 500
"""Ten seconds: what still lives then cannot be killed, as it waits for a device or a disk."""


def killed(folders: Iterable[Path], roots: Iterable[int] = ()) -> frozenset[int]:
    """Kill all that belongs to some folders, and all that descends from some processes.

    Return what could not be killed. Roots must be children that nobody has collected: their
    numbers are not given to others until then.
    """
    beginnings = [os.fsencode(folder) for folder in folders]
    left: frozenset[int] = frozenset()
    tick, known = Event(), set(roots)
    for _ in range(LOOKS):
        table = _parents()
        left = _living(_belonging(beginnings, known, table), table)
        if not left:
            break
        for pid in left:
            _kill(pid)
        tick.wait(LOOK_AGAIN_S)
    return left


def of_folder(folder: Path) -> frozenset[int]:
    """Return the living processes that belong to a folder."""
    table = _parents()
    return _living(_belonging([os.fsencode(folder)], (), table), table)


def _belonging(
    beginnings: Iterable[bytes], roots: Iterable[int], table: Mapping[int, tuple[int, str]]
) -> set[int]:
    """Return the processes of some folders, and all that descends from them."""
    found = {pid for pid in roots if pid in table}
    found.update(pid for pid in table if _speaks_of(pid, tuple(beginnings)))
    found.discard(os.getpid())
    children: dict[int, list[int]] = {}
    for pid, (parent, _) in table.items():
        children.setdefault(parent, []).append(pid)
    todo = list(found)
    while todo:
        for pid in children.get(todo.pop(), ()):
            if pid not in found and pid != os.getpid():
                found.add(pid)
                todo.append(pid)
    return found


def _speaks_of(pid: int, beginnings: tuple[bytes, ...]) -> bool:
    """Say whether a process was started for a machine of some folders.

    An agent has its home in its command, a shim its attempt's folder; jobs have their checkpoints
    in their environment, and all of them their home. Who only looks into a folder has neither.
    """
    command = _words(pid, "cmdline")
    if any(b"cloudwhale" in word for word in command) and _python(command):
        if any(_is_inside(word.partition(b"=")[2] or word, beginnings) for word in command):
            return True
    named = (word.partition(b"=") for word in _words(pid, "environ"))
    return any(name in MARKS and _is_inside(value, beginnings) for name, _, value in named)


def _words(pid: int, name: str) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes().split(b"\0")
    except OSError:
        return []  # it has ended, or is another user's: then it is none of ours


def _python(command: list[bytes]) -> bool:
    return os.path.basename(command[0]).startswith(b"python")


def _is_inside(value: bytes, beginnings: tuple[bytes, ...]) -> bool:
    return any(value == beginning or value.startswith(beginning + b"/") for beginning in beginnings)


def _parents() -> dict[int, tuple[int, str]]:
    """Return every process with its parent and its state."""
    found: dict[int, tuple[int, str]] = {}
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        try:
            text = Path(f"/proc/{name}/stat").read_text(errors="replace")
        except OSError:
            continue
        state, parent = text[text.rfind(")") + 2 :].split()[:2]
        found[int(name)] = (int(parent), state)
    return found


def _living(pids: Iterable[int], table: Mapping[int, tuple[int, str]]) -> frozenset[int]:
    return frozenset(pid for pid in pids if table[pid][1] not in "ZX")


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
