"""Which attempt each process of this machine belongs to: by descent, container or environment."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cloudwhale.agent.seen import Key

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Root:
    """Where the processes of one attempt begin."""

    key: Key
    folder: Path
    """The attempt's own: its processes have it in their environment."""
    shim: int
    job: int
    """Its main process."""
    container: str = ""
    """Id of its container, which stands in the control groups of its processes."""


class Belonging:
    """Remembers every process that it has seen: only new ones cost more than their name.

    Who once belonged to an attempt always does: its shim is the reaper of all that it starts.
    """

    def __init__(self) -> None:
        self._roots: tuple[Root, ...] = ()
        self._owners: dict[int, Key | None] = {}
        self._strangers: dict[int, Key | None] = {}

    def look(self, roots: Iterable[Root]) -> Mapping[Key, list[int]]:
        """Return the living processes of each attempt but its shim; called every second."""
        now = tuple(roots)
        if now != self._roots:
            self._roots, self._owners, self._strangers = now, {}, {}
        by_key: dict[Key, list[int]] = {root.key: [] for root in now}
        if not now:
            return by_key
        alive = [int(name) for name in os.listdir(PROC) if name.isdecimal()]
        kept = self._owners
        self._owners = {pid: kept[pid] for pid in alive if pid in kept}
        self._strangers = {pid: key for pid, key in self._strangers.items() if pid in self._owners}
        self._meet([pid for pid in alive if pid not in kept])
        shims = {root.shim for root in now}
        for pid, key in self._owners.items():
            if key is not None and pid not in shims:
                by_key[key].append(pid)
        return by_key

    def owner(self, pid: int) -> Key | None:
        """Return the attempt of a process that uses a device; None: it is somebody else's."""
        key = self._owners.get(pid)
        if key is not None or not self._roots:
            return key
        if pid not in self._strangers:
            self._strangers[pid] = self._by_environment(pid)
        return self._strangers[pid]

    def _meet(self, new: list[int]) -> None:
        """Find out where new processes belong: parents first, whatever their numbers are."""
        roots = {pid: root.key for root in self._roots for pid in (root.shim, root.job)}
        parents = {pid: _parent(pid) for pid in new}
        for pid in new:
            family: list[int] = []
            while pid in parents and pid not in self._owners and pid not in roots:
                family.append(pid)
                pid = parents[pid]
                if pid in family:
                    break
            key = roots.get(pid, self._owners.get(pid))
            self._owners.update({one: key or self._by_container(one) for one in family})
            if pid in roots:
                self._owners[pid] = key

    def _by_container(self, pid: int) -> Key | None:
        named = [root for root in self._roots if root.container]
        text = _bytes(pid, "cgroup") if named else b""
        return next((root.key for root in named if root.container.encode() in text), None)

    def _by_environment(self, pid: int) -> Key | None:
        """Find one that has left its family, as after the death of its shim."""
        words = _bytes(pid, "environ").split(b"\0")
        for root in self._roots:
            inside = os.fsencode(f"CLOUDWHALE_CHECKPOINT_DIR={root.folder}/")
            if any(word.startswith(inside) for word in words):
                return root.key
        return self._by_container(pid)


def _parent(pid: int) -> int:
    text = _bytes(pid, "stat")
    fields = text[text.rfind(b")") + 2 :].split()
    return int(fields[1]) if len(fields) > 1 else 0


def _bytes(pid: int, name: str) -> bytes:
    try:
        return (PROC / str(pid) / name).read_bytes()
    except OSError:
        return b""
