"""Scores of every demand on every node, kept up to date as nodes fill."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from cloudwhale.spi.filling import GPU_MILLI, Demand, Left, Seat, Shape
from cloudwhale_policies.filling.menu import Floats, Ints, Menu


class Seats:
    """All the ways in which a node in one state could take the demands of a menu."""

    __slots__ = ("cpu", "cpu_after", "gpus", "gpus_after", "kind", "rows", "takes")

    def __init__(self, menu: Menu, kind: int, cpu: int, gpus: Ints) -> None:
        self.kind = kind
        self.cpu = cpu
        self.gpus = gpus
        """Rising; what is left of each."""
        able = menu.models[:, kind] & (menu.cpu <= cpu)
        whole = menu.gpus * ~menu.shared
        free = int((gpus == GPU_MILLI).sum())
        plain = np.flatnonzero(able & ~menu.shared & (whole <= free))
        share = np.flatnonzero(able & menu.shared)
        width = len(gpus)
        first = np.concatenate(([True], gpus[1:] != gpus[:-1]))
        row, device = np.nonzero(first & (gpus >= menu.milli[share][:, None]))
        self.rows: Ints = np.concatenate((plain, share[row]))
        self.takes: Ints = np.concatenate((np.full(len(plain), -1), gpus[device]))
        """What is left of the GPU that is shared; -1 where none is."""
        after = np.tile(gpus, (len(self.rows), 1))
        columns = np.arange(width)
        after[: len(plain)][columns >= width - whole[plain][:, None]] = 0
        after[np.arange(len(plain), len(self.rows)), device] -= menu.milli[share[row]]
        self.gpus_after = after
        self.cpu_after: Ints = cpu - menu.cpu[self.rows]


class Measure(Protocol):
    """How bad a seat is; the least is taken."""

    def __call__(self, seats: Seats) -> Floats:
        """Return the badness of every way to be seated; called once per state of a node."""
        ...


class Rated:
    """The best badness and the GPU of every demand, by state of a node; grows as states appear."""

    def __init__(self, menu: Menu, measure: Measure) -> None:
        self.menu = menu
        self.measure = measure
        self._known: dict[tuple[int, int, bytes], tuple[Floats, Ints]] = {}

    def of(self, kind: int, cpu: int, gpus: Ints) -> tuple[Floats, Ints]:
        """Return for every demand the least badness (infinite: no seat) and the GPU to share.

        Of GPUs that are equally good the one with the least left is shared.
        """
        key = (kind, cpu, gpus.tobytes())
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._rate(Seats(self.menu, kind, cpu, gpus))
        return found

    def _rate(self, seats: Seats) -> tuple[Floats, Ints]:
        best = np.full(len(self.menu.cpu), np.inf)
        takes = np.full(len(self.menu.cpu), -1, dtype=np.int64)
        badness = self.measure(seats)
        np.minimum.at(best, seats.rows, badness)
        chosen = np.flatnonzero(badness == best[seats.rows])[::-1]
        takes[seats.rows[chosen]] = seats.takes[chosen]
        return best, takes


class Board:
    """The chooser of every policy that scores a node by its state alone."""

    def __init__(self, shapes: Sequence[Shape], rated: Rated) -> None:
        self.rated = rated
        menu = rated.menu
        self.kinds: Ints = np.array([menu.kinds.index(shape) for shape in shapes], dtype=np.int64)
        self._scores = np.full((len(menu.cpu), len(shapes)), np.inf)
        self._takes = np.full((len(menu.cpu), len(shapes)), -1, dtype=np.int64)
        self._seen = -1
        self.extra: Floats | None = None
        """Added to the badness: a row per demand, a column per node."""

    def choose(self, demand: Demand, left: Left) -> Seat | None:
        """Return the best seat, the first of the cluster among equals; None: there is none."""
        self._catch_up(left)
        row = self.rated.menu.number(demand)
        if row is None:
            return None
        scores = self._scores[row]
        if self.extra is not None:
            scores = scores + self.extra[row]
        scores = np.where(left.memory_mib < demand.memory_mib, np.inf, scores)
        node = int(scores.argmin())
        if not np.isfinite(scores[node]):
            return None
        return Seat(node, self._devices(demand, left.gpu_milli[node], int(self._takes[row, node])))

    def _devices(self, demand: Demand, gpus: Ints, takes: int) -> tuple[int, ...]:
        if demand.shared:
            return (int((gpus == takes).argmax()),)
        return tuple(int(device) for device in np.flatnonzero(gpus == GPU_MILLI)[: demand.gpus])

    def _catch_up(self, left: Left) -> None:
        """Rate again the nodes that have changed."""
        if self._seen < 0:
            stale = range(len(self.kinds))
        else:
            stale = left.changed[self._seen :]
        for node in stale:
            rated = self.rated.of(
                int(self.kinds[node]), int(left.cpu_milli[node]), np.sort(left.gpu_milli[node])
            )
            self._scores[:, node], self._takes[:, node] = rated
        self._seen = len(left.changed)
