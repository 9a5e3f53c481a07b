"""The packing rules that look at sizes alone: best fit and dot product."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cloudwhale.spi.filling import Mix, Shape
from cloudwhale_policies.filling.board import Board, Rated, Seats
from cloudwhale_policies.filling.menu import Floats, Menu, menu_of

CPU_MOST = 128_000.0
"""CPU milli of the largest node, by which FGD's authors measure all (openb)."""
GPU_MOST = 8_000.0
"""GPU milli of the largest node."""


class SizeRule:
    """A rule for one mix whose measure knows the menu."""

    def __init__(self, menu: Menu) -> None:
        self.menu = menu
        self._rated = Rated(menu, self.badness)

    def begin(self, shapes: Sequence[Shape]) -> Board:
        """Return a chooser for a run."""
        return Board(shapes, self._rated)

    def badness(self, seats: Seats) -> Floats:
        """Return the badness of every seat, equal for all GPUs of a node."""
        raise TypeError("a size rule needs a measure")


class BestFitRule(SizeRule):
    """The least left over after the pod, CPU and GPU counting the same."""

    def badness(self, seats: Seats) -> Floats:
        """Return the whole percent that is left."""
        gpu = int(seats.gpus.sum()) - seats.asked
        left = 0.5 * seats.cpu_after / CPU_MOST + 0.5 * gpu / GPU_MOST
        score: Floats = np.floor(100.0 * (1.0 - left))
        return -score


class DotProductRule(SizeRule):
    """The least product of what is free with what is asked for."""

    def badness(self, seats: Seats) -> Floats:
        """Return the whole percent of the mean product."""
        cpu = seats.cpu / CPU_MOST * self.menu.cpu[seats.rows] / CPU_MOST
        gpu = float(seats.gpus.sum()) / GPU_MOST * seats.asked / GPU_MOST
        score: Floats = np.floor(100.0 * (1.0 - 0.5 * (cpu + gpu)))
        return -score


class BestFit:
    """Best fit over CPU and GPU."""

    def study(self, shapes: Sequence[Shape], mix: Mix) -> BestFitRule:
        """Return the rule; of the mix it takes only what can be asked for."""
        return BestFitRule(menu_of(shapes, mix))


class DotProduct:
    """Alignment of demand and remainder."""

    def study(self, shapes: Sequence[Shape], mix: Mix) -> DotProductRule:
        """Return the rule; of the mix it takes only what can be asked for."""
        return DotProductRule(menu_of(shapes, mix))
