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
        share = np.cumsum(menu.counts) / max(int(menu.counts.sum()), 1)
        typical = int(np.searchsorted(share, COVERED)) + 1
        weights: Floats = menu.counts[:typical] / menu.counts[:typical].sum()
        # A pod without GPUs can use none, so it counts with its whole weight: with none of ours.
        on_gpus = np.flatnonzero(menu.gpus[:typical] > 0)
        self._weights = weights[on_gpus]
        self._cpu = menu.cpu[on_gpus]
        self._models = menu.models[on_gpus]
        self._devices = menu.gpus[on_gpus]
        need = np.where(menu.shared, menu.milli, GPU_MILLI)[on_gpus]
        self._needs, self._need_of = np.unique(need, return_inverse=True)

    def of(self, kind: int, cpu: int, gpus: Ints) -> float:
        """Return the fragmentation of a node of a kind, in GPU milli."""
        used, enough = self._useful(gpus)
        none = np.zeros((1, 1), dtype=np.int64)
        return float(gpus.sum() - self._used(kind, np.array([cpu]), used + none, enough + none)[0])

    def growth(self, seats: Seats) -> Floats:
        """Return by how much every way to be seated raises the node's fragmentation."""
        used, enough = self._useful(seats.gpus)
        whole, takes, left = seats.whole[:, None], seats.takes[:, None], seats.left[:, None]
        before = takes >= self._needs
        after = left >= self._needs
        used = used - GPU_MILLI * whole - before * takes + after * left
        enough = enough - whole - before + after
        idle = float(seats.gpus.sum())
        was = idle - self.of(seats.kind, seats.cpu, seats.gpus)
        return was - seats.asked - self._used(seats.kind, seats.cpu_after, used, enough)

    def _useful(self, gpus: Ints) -> tuple[Ints, Ints]:
        """Return the milli on GPUs that are large enough, and their number, by need."""
        useful = gpus >= self._needs[:, None]
        return (useful * gpus).sum(axis=1), useful.sum(axis=1)

    def _used(self, kind: int, cpu: Ints, used: Ints, enough: Ints) -> Floats:
        """Return the milli that typical pods could use, weighted; a number per row."""
        runs = self._models[:, kind] & (self._cpu <= cpu[:, None])
        runs &= enough[:, self._need_of] >= self._devices
        useful: Floats = np.einsum("ij,j->i", runs * used[:, self._need_of], self._weights)
        return useful


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
        growth = self._fragmentation.growth(seats)
        score: Floats = np.floor(100.0 / (1.0 + np.exp(growth / STEEP_MILLI)))
        return -score
