"""Scores of every demand on every node, kept up to date as nodes fill."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from cloudwhale.spi.filling import GPU_MILLI, Demand, Left, Seat, Shape
from cloudwhale_policies.filling.menu import Floats, Ints, Menu

NO_GPU = 0
"""What is left of the GPU that a pod shares, where it shares none."""


class Seats:
    """All the ways in which a node in one state could take the demands of a menu.

    GPUs of which the same is left are one choice, so a way is a demand and what is left of the
    GPU that it shares.
    """

    __slots__ = ("asked", "cpu", "cpu_after", "gpus", "kind", "left", "rows", "takes", "whole")

    def __init__(self, menu: Menu, kind: int, cpu: int, gpus: Ints) -> None:
        self.kind = kind
        self.cpu = cpu
        self.gpus = gpus
        """Rising; what is left of each."""
        able = menu.models[:, kind] & (menu.cpu <= cpu)
        free = int((gpus == GPU_MILLI).sum())
        plain = np.flatnonzero(able & (menu.whole <= free) & ~menu.shared)
        share = np.flatnonzero(able & menu.shared)
        values = np.array(sorted(set(gpus.tolist())), dtype=np.int64)
        row, choice = np.nonzero(values >= menu.milli[share][:, None])
        self.rows: Ints = np.concatenate((plain, share[row]))
        self.takes: Ints = np.concatenate(
            (np.full(len(plain), NO_GPU, dtype=np.int64), values[choice])
        )
        """What is left of the GPU that is shared."""
        self.asked: Ints = menu.asked[self.rows]
        self.whole: Ints = menu.whole[self.rows]
        self.left: Ints = np.where(self.takes > NO_GPU, self.takes - self.asked, NO_GPU)
        """What will be left of it."""
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
        demands = len(self.menu.cpu)
        best, takes = np.full(demands, np.inf), np.full(demands, NO_GPU, dtype=np.int64)
        if len(seats.rows):
            badness = self.measure(seats)
            # The last to be written stays: the best, and of the best the fullest.
            order = np.lexsort((-seats.takes, -badness))
            best[seats.rows[order]] = badness[order]
            takes[seats.rows[order]] = seats.takes[order]
        return best, takes


class Board:
    """The chooser of every policy that scores a node by its state alone."""

    def __init__(self, shapes: Sequence[Shape], rated: Rated) -> None:
        menu = rated.menu
        number = {kind: index for index, kind in enumerate(menu.kinds)}
        self.kinds: Ints = np.array([number[shape] for shape in shapes], dtype=np.int64)
        self.extra: Floats | None = None
        """Added to the badness: a row per demand, a column per node."""
        self._rated = rated
        self._scores = np.full((len(menu.cpu), len(shapes)), np.inf)
        self._takes = np.full((len(menu.cpu), len(shapes)), NO_GPU, dtype=np.int64)
        self._seen = -1

    def choose(self, demand: Demand, left: Left) -> Seat | None:
        """Return the best seat, the first of the cluster among equals; None: there is none."""
        self._catch_up(left)
        row = self._rated.menu.number(demand)
        if row is None or not len(self.kinds):
            return None
        scores = self._scores[row]
        if self.extra is not None:
            scores = scores + self.extra[row]
        scores = np.where(left.memory_mib < demand.memory_mib, np.inf, scores)
        node = int(scores.argmin())
        if scores[node] == np.inf:
            return None
        return Seat(node, _devices(demand, left.gpu_milli[node], int(self._takes[row, node])))

    def _catch_up(self, left: Left) -> None:
        """Rate again the nodes that have changed."""
        stale = range(len(self.kinds)) if self._seen < 0 else left.changed[self._seen :]
        for node in stale:
            kind, cpu = int(self.kinds[node]), int(left.cpu_milli[node])
            rated = self._rated.of(kind, cpu, np.sort(left.gpu_milli[node]))
            self._scores[:, node], self._takes[:, node] = rated
        self._seen = len(left.changed)


def _devices(demand: Demand, gpus: Ints, takes: int) -> tuple[int, ...]:
    """Return the first GPUs that are free, or the first of which so much is left."""
    if demand.shared:
        return (int((gpus == takes).argmax()),)
    return tuple(int(device) for device in np.flatnonzero(gpus == GPU_MILLI)[: demand.gpus])
