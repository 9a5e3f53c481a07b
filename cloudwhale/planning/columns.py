"""Songs as arrays, a column for each, so that one call of numpy asks all of them."""

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloudwhale.model.node import Device
from cloudwhale.planning.devices import in_order, is_plain
from cloudwhale.planning.inventory import Free
from cloudwhale.planning.scoring import Song
from cloudwhale.planning.speeds import throughput

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

DeviceKind: TypeAlias = tuple[str, float]
"""Model and nominal memory: what decides whether a device suits a job."""


def listed(numbers: Ints) -> list[int]:
    """Return numbers as Python's own."""
    found: list[int] = numbers.tolist()
    return found


class Columns:
    """What is free in each song; devices lie in the order in which a job would try them."""

    def __init__(self, songs: Sequence[Song], kinds: Sequence[Device]) -> None:
        count = len(songs)
        width = max((len(song.free.devices) for song in songs), default=0) or 1
        self.kind_numbers = {(d.model, d.memory_gib): n for n, d in enumerate(kinds)}
        devices = np.zeros((6, count, width))
        devices[:3] = np.array([-1.0, -1.0, 1.0])[:, None, None]
        self.kind = np.full((count, width), len(kinds), dtype=np.int64)
        """Number of each device's kind; one more than there are where there is no device."""
        self.ids: list[tuple[str, ...]] = [()] * count
        self.is_plain = np.ones(count, dtype=np.bool_)
        """Whether a job's devices are simply the first open ones."""
        self._name(np.zeros((13, count)), devices)
        for column, song in enumerate(songs):
            facts = song.node.facts
            gib = sum(d.packs_gib for d in facts.devices)
            all_of_it = (facts.cpu, facts.memory_gib, facts.disk_gib, len(facts.devices), gib)
            self.nodes[8:, column] = all_of_it
            self.write(column, song.free, song.busy_s)

    def _name(self, nodes: Floats, devices: Floats) -> None:
        """Name the rows: of nodes and of devices, each a table of its own."""
        self.size, self.width = len(devices[0]), len(devices[0, 0]) if len(devices[0]) else 1
        self.nodes, self.devices = nodes, devices
        self.amounts = nodes[:3]
        self.cpu, self.memory, self.disk = self.amounts
        self.disk_io, self.network, self.busy_s = nodes[3:6]
        self.free_gpus, self.free_gpu_gib = nodes[6:8]
        self.all_cpu, self.all_memory, self.all_disk, self.all_gpus, self.all_gpu_gib = nodes[8:]
        self.share, self.gpu_gib, self.packs_gib = devices[:3]
        self.foreign_gib, self.sm, self.slowed = devices[3:]
        """`slowed`: the part of its speed that a job loses beside those that are there."""

    def of(self, at: Ints) -> "Columns":
        """Return a copy of some columns; one may stand there more than once."""
        copy = object.__new__(Columns)
        copy.kind_numbers = self.kind_numbers
        copy.kind, copy.is_plain = self.kind[at], self.is_plain[at]
        copy.ids = [self.ids[column] for column in listed(at)]
        copy._name(self.nodes[:, at], self.devices[:, at])
        return copy

    def write(self, column: int, free: Free, busy_s: float) -> None:
        """Take over what is free in a song now."""
        facts = free.node.facts
        self.cpu[column], self.memory[column] = free.cpu, free.memory_gib
        self.disk[column], self.busy_s[column] = free.disk_gib, busy_s
        self.disk_io[column] = math.inf if free.disk_io_mb_s is None else free.disk_io_mb_s
        self.network[column] = math.inf if free.network_mb_s is None else free.network_mb_s
        if not free.devices:
            return

        def slowed(jobs: int) -> float:
            return 1.0 - throughput(jobs)

        devices = in_order(free.devices, facts.links) if len(free.devices) > 1 else free.devices
        rows = [
            (d.share, d.memory_gib, d.device.packs_gib, d.foreign_gib, d.sm, slowed(d.jobs))
            for d in devices
        ]
        self.devices[:, column, : len(rows)] = np.array(rows).T
        kinds = [self.kind_numbers[d.device.model, d.device.memory_gib] for d in devices]
        self.kind[column, : len(kinds)] = kinds
        self.free_gpus[column] = sum(row[0] for row in rows)
        self.free_gpu_gib[column] = sum(row[1] for row in rows)
        self.ids[column] = tuple(d.device.id for d in devices)
        self.is_plain[column] = is_plain(free.devices, facts.links)
