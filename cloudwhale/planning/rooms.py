"""What a policy is told of many places at once: `scoring.room` over arrays."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from cloudwhale.model.node import Device
from cloudwhale.planning.asks import Asks, taken_gib
from cloudwhale.planning.columns import Columns, Floats, Ints
from cloudwhale.planning.needs import Need
from cloudwhale.planning.scoring import IMAGE_GIB, INPUT_GIB, NETWORK_MB_S, Song
from cloudwhale.planning.usual import SLACK, Kind
from cloudwhale.spi.policy import Room

Singles: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Places:
    """Pairs of a need and a column, and the devices that the need would get there."""

    needs: Ints
    columns: Ints
    first: Ints
    """Position of the first of its devices in the column; without devices 0."""
    count: Ints
    """How many devices it would get."""


class Likings:
    """How much of what needs would like to find lies on each node, and what is to be fetched."""

    def __init__(self, needs: Sequence[Need], songs: Sequence[Song]) -> None:
        numbers: dict[tuple[str, ...], int] = {}
        of = [numbers.setdefault(need.likes, len(numbers)) for need in needs]
        self._of = np.array(of, dtype=np.int64)
        wanted = {one for likes in numbers for one in likes}
        here = {one: np.array([one in song.here for song in songs]) for one in sorted(wanted)}
        shape = (len(numbers), len(songs))
        self._found, self._fetch_gib = np.zeros(shape), np.zeros(shape)
        for likes, row in numbers.items():
            for one in likes:
                size = {"image": IMAGE_GIB, "input": INPUT_GIB}.get(one.partition(":")[0], 0.0)
                self._found[row] += here[one]
                self._fetch_gib[row] += np.where(here[one], 0.0, size)
        rates = [song.node.facts.network_mb_s or NETWORK_MB_S for song in songs]
        self._mb_s = np.array(rates)

    def found(self, needs: Ints, nodes: Ints) -> Floats:
        """Return how many of its likings each need finds on a node."""
        found: Floats = self._found.reshape(-1).take(self._flat(needs, nodes))
        return found

    def fetch_s(self, needs: Ints, nodes: Ints) -> Floats:
        """Return how long the rest takes to fetch."""
        gib: Floats = self._fetch_gib.reshape(-1).take(self._flat(needs, nodes))
        return gib * (1024 / self._mb_s).take(nodes)

    def _flat(self, needs: Ints, nodes: Ints) -> Ints:
        at: Ints = self._of.take(needs) * len(self._mb_s) + nodes
        return at


class Usable:
    """What waiting and usual jobs could use of each column: `usual.lost_gpus` over arrays.

    Single precision: it is the largest of all arrays here, and a score needs no more.
    """

    def __init__(self, kinds: Sequence[Kind], devices: Sequence[Device], columns: Columns) -> None:
        self._columns = columns
        self._worth = _singles([kind.weight * kind.gpus for kind in kinds])
        self._share = np.array([kind.gpu.share for kind in kinds])
        self._least = np.array([kind.gpu.memory_gib.least for kind in kinds])
        self._per_share = 1.0 / self._share
        self._per_device = _singles([1.0 / kind.gpu.count for kind in kinds])
        self._per_cpu, self._any_cpu = _rates([kind.cpu for kind in kinds])
        self._per_gib, self._any_memory = _rates([kind.memory_gib for kind in kinds])
        self._suits = np.array(
            [[*((d.model, d.memory_gib) in kind.suits for d in devices), False] for kind in kinds]
        ).T
        """By device kind, the last of which is none, and kind of demand."""
        shape = (columns.size, columns.width, len(kinds))
        self._on_device = np.zeros(shape, dtype=np.float32)
        """Copies of each kind of demand that each device could hold."""
        self._copies = np.zeros((columns.size, len(kinds)), dtype=np.float32)
        self._gpus = np.zeros(columns.size)
        self.look_again(np.arange(columns.size))

    def look_again(self, at: Ints) -> None:
        """Count again in columns that have changed."""
        columns = self._columns
        self._on_device[at] = self._copies_on(
            columns.share[at], columns.gpu_gib[at], columns.packs_gib[at], columns.kind[at]
        )
        self._copies[at] = self._on_device[at].sum(axis=1)
        self._gpus[at] = self._usable(self._copies[at], columns.cpu[at], columns.memory[at])

    def lost(
        self, places: Places, share: Floats, taken: Floats, cpu_and_memory: tuple[Floats, Floats]
    ) -> Floats:
        """Return what the usual jobs could use less; `share` and `taken` of each device."""
        columns, at = self._columns, places.columns
        first = at * columns.width + places.first
        gone = self._on_device.reshape(-1, len(self._worth)).take(first, axis=0)
        (shared,) = np.nonzero((share < 1.0) & (share > 0.0))
        if len(shared):
            given = first.take(shared)
            gone[shared] -= self._copies_on(
                columns.share.reshape(-1).take(given) - share.take(shared),
                columns.gpu_gib.reshape(-1).take(given) - taken.take(shared),
                columns.packs_gib.reshape(-1).take(given),
                columns.kind.reshape(-1).take(given),
            )
        gone *= places.count.astype(np.float32)[:, None]
        copies = self._copies.take(at, axis=0)
        copies -= gone
        cpu = columns.cpu.take(at) - cpu_and_memory[0]
        memory = columns.memory.take(at) - cpu_and_memory[1]
        lost: Floats = self._gpus.take(at) - self._usable(copies, cpu, memory)
        return lost

    def _copies_on(self, share: Floats, gib: Floats, packs_gib: Floats, kind: Ints) -> Singles:
        needed = taken_gib(self._share, self._least, packs_gib[..., None])
        copies = np.minimum(share[..., None] * self._per_share, gib[..., None] / needed)
        copies += SLACK
        np.floor(copies, out=copies)
        np.maximum(copies, 0.0, out=copies)
        copies *= self._suits.take(kind, axis=0)
        singles: Singles = copies.astype(np.float32)
        return singles

    def _usable(self, copies: Singles, cpu: Floats, memory: Floats) -> Floats:
        """Return the devices that usual jobs could use, by how usual they are."""
        jobs = copies * self._per_device
        np.floor(jobs + np.float32(SLACK), out=jobs)
        for free, per, anyway in (
            (cpu, self._per_cpu, self._any_cpu),
            (memory, self._per_gib, self._any_memory),
        ):
            np.minimum(jobs, _singles(np.maximum(0.0, free))[:, None] * per + anyway, out=jobs)
        # Not `@`: the kernels of BLAS add up in another order on each kind of processor, and
        # some of them report numbers that are none beyond the end of a short row.
        gpus: Floats = np.einsum("ij,j->i", jobs, self._worth).astype(np.float64)
        return gpus


class Rooms:
    """Makes the rooms of places, as the columns are now."""

    def __init__(self, asks: Asks, columns: Columns, usable: Usable) -> None:
        self._asks, self._columns, self._usable = asks, columns, usable

    def of(self, places: Places, found: Floats, fetch_s: Floats) -> Room:
        """Return the rooms of places as one room of arrays."""
        asks, columns, needs, at = self._asks, self._columns, places.needs, places.columns
        first = at * columns.width + places.first
        cpu, memory, disk, disk_io, network, length_s, likes, has_gpu, share, least = (
            asks.rows.take(needs, axis=1)
        )
        device = columns.devices.reshape(len(columns.devices), -1).take(first, axis=1)
        taken = taken_gib(share, least, device[2])
        throughput = 1.0 - has_gpu * device[5]
        speeds: Ints = asks.of_speeds.take(needs)
        kind: Ints = columns.kind.reshape(-1).take(first)
        speed: Floats = asks.speeds.reshape(-1).take(speeds * len(asks.speeds[0]) + kind)
        run_s: Floats = length_s / (speed * throughput)
        node = columns.nodes.take(at, axis=1)
        amounts = dict(
            wants_cpu=cpu,
            wants_memory_gib=memory,
            wants_disk_gib=disk,
            wants_gpus=places.count * share,
            wants_gpu_gib=places.count * taken,
            wants_disk_io_mb_s=disk_io,
            wants_network_mb_s=network,
            free_cpu=node[0],
            free_memory_gib=node[1],
            free_disk_gib=node[2],
            free_disk_io_mb_s=node[3],
            free_network_mb_s=node[4],
            busy_s=node[5],
            free_gpus=node[6],
            free_gpu_gib=node[7],
            cpu=node[8],
            memory_gib=node[9],
            disk_gib=node[10],
            gpus=node[11],
            gpu_gib=node[12],
            done_s=fetch_s + run_s,
            soonest_s=length_s / asks.speeds[:, -1].take(speeds),
            run_s=run_s,
            needs=likes,
            found=found,
            throughput=throughput,
            sm=has_gpu * device[4],
            lost_gpus=self._usable.lost(places, share, taken, (cpu, memory)),
        )
        return Room(**cast(dict[str, float], amounts))


def _rates(amounts: Sequence[float]) -> tuple[Singles, Singles]:
    """Return jobs per unit, and what to add: where nothing is wanted nothing limits."""
    wanted = np.array(amounts)
    rates = np.divide(1.0, wanted, out=np.zeros(len(amounts)), where=wanted > 0)
    return _singles(rates), _singles(np.where(wanted > 0, 0.0, np.inf))


def _singles(amounts: Sequence[float] | Floats) -> Singles:
    return np.asarray(amounts, dtype=np.float32)
