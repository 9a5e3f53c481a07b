"""How much processor, memory, disk and network is used: by this machine and by each attempt."""

import importlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cloudwhale.agent.seen import Key
from cloudwhale.model.job import Peaks
from cloudwhale.model.units import Instant

BYTES_PER_GIB = 2**30
BYTES_PER_MB = 10**6
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Load:
    """What a machine is used for; None: nobody can tell yet."""

    cpu: float | None = None
    memory_gib: float | None = None
    disk_io_mb_s: float | None = None
    network_mb_s: float | None = None


@dataclass(frozen=True, slots=True)
class _Counted:
    """What the kernel has counted until a moment."""

    at: Instant
    cpu_s: float
    disk_bytes: float
    network_bytes: float

    def load(self, before: "_Counted | None", memory_gib: float) -> Load:
        """Return the rates since an earlier count."""
        if before is None or self.at <= before.at:
            return Load(memory_gib=round(memory_gib, 3))
        for_s = self.at - before.at
        return Load(
            cpu=_rate(self.cpu_s - before.cpu_s, for_s),
            memory_gib=round(memory_gib, 3),
            disk_io_mb_s=_rate(self.disk_bytes - before.disk_bytes, for_s * BYTES_PER_MB),
            network_mb_s=_rate(self.network_bytes - before.network_bytes, for_s * BYTES_PER_MB),
        )


def _rate(count: float, per: float) -> float:
    return round(max(0.0, count) / per, 2)  # a counter that was reset gives no negative rate


class HostUsage:
    """The whole machine, by psutil, which is loaded at the first look."""

    def __init__(self) -> None:
        self._before: _Counted | None = None
        self._psutil: Any = None

    def look(self, now: Instant) -> Load:
        """Return what is used, rates since the last look."""
        if self._psutil is None:
            self._psutil = importlib.import_module("psutil")
        psutil = self._psutil
        times, memory = psutil.cpu_times(), psutil.virtual_memory()
        disk = psutil.disk_io_counters()
        network = psutil.net_io_counters(pernic=True)
        counted = _Counted(
            at=now,
            cpu_s=times.user + times.system + getattr(times, "irq", 0.0)
            + getattr(times, "softirq", 0.0),
            disk_bytes=0 if disk is None else disk.read_bytes + disk.write_bytes,
            network_bytes=sum(
                one.bytes_sent + one.bytes_recv for name, one in network.items() if name != "lo"
            ),
        )  # fmt: skip
        before, self._before = self._before, counted
        return counted.load(before, (memory.total - memory.available) / BYTES_PER_GIB)


@dataclass(frozen=True, slots=True)
class _Process:
    born: bytes
    cpu_s: float
    io_bytes: int | None


_UNBORN = _Process(b"", 0.0, 0)


class JobUsage:
    """The attempts, each as the sum of its processes; one that came and went in between is missed.

    A process's network is not told apart from the machine's: only a container's own is.
    """

    def __init__(self) -> None:
        self._before: dict[int, _Process] = {}
        self._network: dict[Key, int] = {}
        self._known: frozenset[Key] = frozenset()
        self._at: Instant | None = None
        self._own_network = _network_of("self")

    def look(self, members: Mapping[Key, Iterable[int]], now: Instant) -> Mapping[Key, Peaks]:
        """Return what each attempt uses, rates since the last look."""
        before, self._before = self._before, {}
        for_s = None if self._at is None or now <= self._at else now - self._at
        known, self._known, self._at = self._known, frozenset(members), now
        self._network = {key: sent for key, sent in self._network.items() if key in members}
        return {
            # What an attempt had used before it was first looked at says nothing of now.
            key: self._of_one(key, list(pids), before, for_s if key in known else None)
            for key, pids in members.items()
        }

    def _of_one(
        self, key: Key, pids: list[int], before: Mapping[int, _Process], for_s: float | None
    ) -> Peaks:
        memory, cpu_s, io_bytes, io_told = 0, 0.0, 0, False
        for pid in pids:
            found = _process(pid)
            if found is None:
                continue
            self._before[pid] = found
            old = before.get(pid)
            if old is None or old.born != found.born:
                old = _UNBORN
            memory += _memory_bytes(pid)
            cpu_s += found.cpu_s - old.cpu_s
            if found.io_bytes is not None:
                io_told, io_bytes = True, io_bytes + found.io_bytes - (old.io_bytes or 0)
        sent = self._sent(key, pids)
        return Peaks(
            memory_gib=round(memory / BYTES_PER_GIB, 3) if pids else None,
            cpu=_rate(cpu_s, for_s) if for_s else None,
            disk_io_mb_s=_rate(io_bytes, for_s * BYTES_PER_MB) if for_s and io_told else None,
            network_mb_s=None if sent is None or not for_s else _rate(sent, for_s * BYTES_PER_MB),
        )

    def _sent(self, key: Key, pids: list[int]) -> int | None:
        """Return the bytes since the last look through an attempt's own network; or None."""
        for pid in pids:
            where = _network_of(str(pid))
            if where and self._own_network and where != self._own_network:
                before, now = self._network.get(key), _network_bytes(pid)
                self._network[key] = now
                return None if before is None else now - before
        return None


def _process(pid: int) -> _Process | None:
    text = _read(f"/proc/{pid}/stat")
    fields = text[text.rfind(b")") + 2 :].split()
    if len(fields) < 20:
        return None
    cpu_s = (int(fields[11]) + int(fields[12])) / TICKS_PER_S
    return _Process(fields[19], cpu_s, _io_bytes(pid))


def _io_bytes(pid: int) -> int | None:
    """Return what a process has read from disks and written; None where we may not know."""
    total = 0
    lines = _read(f"/proc/{pid}/io").splitlines()
    for line in lines:
        if line.startswith((b"read_bytes:", b"write_bytes:")):
            total += int(line.split()[1])
    return total if lines else None


def _memory_bytes(pid: int) -> int:
    """Return a process's memory, what it shares with others not counted."""
    fields = _read(f"/proc/{pid}/statm").split()
    return (int(fields[1]) - int(fields[2])) * PAGE_BYTES if len(fields) > 2 else 0


def _network_bytes(pid: int) -> int:
    total = 0
    for line in _read(f"/proc/{pid}/net/dev").splitlines()[2:]:
        name, _, rest = line.partition(b":")
        fields = rest.split()
        if name.strip() != b"lo" and len(fields) > 8:
            total += int(fields[0]) + int(fields[8])
    return total


def _network_of(pid: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return ""


def _read(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read()
    except OSError:
        return b""
