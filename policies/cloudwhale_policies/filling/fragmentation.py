"""Fragmentation: the idle GPU that a pod of the usual mix could not use (FGD, USENIX ATC '23)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cloudwhale.spi.filling import GPU_MILLI, Mix, Shape
from cloudwhale_policies.filling.board import Board, Rated, Seats
from cloudwhale_policies.filling.menu import Floats, Ints, Menu, menu_of

COVERED = 0.95
"""Typical are the most frequent demands that together cover this part of the pods (FGD)."""

STEEP_MILLI = 1000.0
"""The sigmoid of FGD's score is as steep as one GPU."""


class Fragmentation:
    """Idle GPU milli of a node that typical pods cannot use, weighted by how usual they are."""

    def __init__(self, menu: Menu) -> None:
        share = np.cumsum(menu.counts) / menu.counts.sum()
        typical = int(np.searchsorted(share, COVERED)) + 1
        weights = menu.counts[:typical] / menu.counts[:typical].sum()
        on_gpus = np.flatnonzero(menu.gpus[:typical] > 0)
        self._without = float(weights[menu.gpus[:typical] == 0].sum())
        self._weights = weights[on_gpus]
        self._cpu = menu.cpu[on_gpus]
        self._models = menu.models[on_gpus]
        need = np.where(menu.shared, menu.milli, GPU_MILLI)[on_gpus]
        self._devices = menu.gpus[on_gpus]
        self._needs, self._need_of = np.unique(need, return_inverse=True)

    def __call__(self, kind: int, cpu: Ints, gpus: Ints) -> Floats:
        """Return the fragmentation in GPU milli of nodes of a kind, a row of GPUs for each."""
        idle = gpus.sum(axis=1)
        useful = gpus[:, None, :] >= self._needs[:, None]
        used = (useful * gpus[:, None, :]).sum(axis=2)[:, self._need_of]
        enough = useful.sum(axis=2)[:, self._need_of] >= self._devices
        runs = enough & (self._cpu <= cpu[:, None]) & self._models[:, kind]
        return idle * 1.0 - (used * runs) @ self._weights


class Fgd:
    """Fragmentation gradient descent: the node whose fragmentation grows least.

    Scores are whole numbers and ties go to the first node, as in its authors' simulator:
    with exact scores it fills five points less.
    """

    def study(self, shapes: Sequence[Shape], mix: Mix) -> FgdRule:
        """Return the rule for a mix."""
        return FgdRule(menu_of(shapes, mix))


class FgdRule:
    """Fragmentation gradient descent for one mix."""

    def __init__(self, menu: Menu) -> None:
        self._fragmentation = Fragmentation(menu)
        self._rated = Rated(menu, self._badness)

    def begin(self, shapes: Sequence[Shape]) -> Board:
        """Return a chooser for a run."""
        return Board(shapes, self._rated)

    def _badness(self, seats: Seats) -> Floats:
        before = self._fragmentation(seats.kind, np.array([seats.cpu]), seats.gpus[None, :])
        after = self._fragmentation(seats.kind, seats.cpu_after, seats.gpus_after)
        return -np.floor(100.0 / (1.0 + np.exp((after - before) / STEEP_MILLI)))
