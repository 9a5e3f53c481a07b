"""The whale's filling: what a seat strands, by sight, by experience and by price."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloudwhale.spi.filling import GPU_MILLI, Demand, Left, Mix, Seat, Shape
from cloudwhale_policies.filling.board import Board, Rated, Seats
from cloudwhale_policies.filling.fits import CPU_MOST, GPU_MOST
from cloudwhale_policies.filling.fragmentation import Fragmentation
from cloudwhale_policies.filling.learned_waste import Waste, joined, learned
from cloudwhale_policies.filling.menu import Floats, Menu, menu_of
from cloudwhale_policies.filling.prices import Free, Programme
from cloudwhale_policies.filling.rehearsal import Scene, rehearsed, scenes


@dataclass(frozen=True, slots=True)
class Weights:
    """What each term of the score counts; 0 leaves one out.

    Fragmentation, waste and price are in GPU milli, so their weights can be compared.
    """

    fragmentation: float = 0.3
    """What typical pods can no longer use, at once."""
    waste: float = 3.0
    """What was left over of such nodes in rehearsals."""
    price: float = 3.0
    """What the rest of the mix would give for what the pod takes."""
    cpu: float = 15.0
    """Of a node with as much CPU left as the largest has: the fuller one first."""
    gpu: float = 15.0
    """The same for GPUs."""


@dataclass(frozen=True, slots=True)
class Practice:
    """How the waste is learned: on openb 25 to 40 s of one core."""

    scenes: int = 3
    rounds: int = 2
    """Beyond the first, which knows of no waste."""
    newer: float = 0.3
    """What the waste of a round counts beside all before it."""
    seed: int = 0


EVERY_PODS = 200
"""Prices are made anew after so many pods; on openb a fiftieth of what comes."""

LEAST_SHARE = 0.05
"""Of the cluster's GPUs: never fewer are expected to be asked for still."""

CHOOSY = 1.5
"""So many times the pods for which only some models will do are expected, the others less.

A node that was kept for one that does not come serves others; nothing serves one that finds its
model taken. Chosen on streams drawn from the mix of openb's `gpuspec33`: 1 fills a point less.
"""


class Whale:
    """The least of what a seat strands, weighed; one set of weights for every mix."""

    def __init__(self, weights: Weights | None = None, practice: Practice | None = None) -> None:
        self.weights = weights or Weights()
        self.practice = practice or Practice()

    def study(self, shapes: Sequence[Shape], mix: Mix) -> WhaleRule:
        """Return the rule that filled most in rehearsals; the first of them knows no waste."""
        menu = menu_of(shapes, mix)
        rule = WhaleRule(menu, self.weights, None)
        if not self.weights.waste or not mix.demands:
            return rule
        practice = self.practice
        drawn = scenes(shapes, mix, practice.scenes, practice.seed)
        allocated, waste = _practised(drawn, menu, rule)
        best = (allocated, rule)
        for _ in range(practice.rounds):
            rule = WhaleRule(menu, self.weights, waste)
            allocated, newer = _practised(drawn, menu, rule)
            if allocated > best[0]:
                best = (allocated, rule)
            waste = waste.blended(newer, practice.newer)
        return best[1]


def _practised(drawn: Sequence[Scene], menu: Menu, rule: WhaleRule) -> tuple[float, Waste]:
    """Return what a rule allocates on average, and the waste that was seen meanwhile."""
    played = [rehearsed(scene, menu, rule) for scene in drawn]
    allocated = sum(each.allocated for each in played) / len(played)
    return allocated, learned(joined([each.seen for each in played]), len(menu.kinds))


class WhaleRule:
    """The whale's filling for one mix."""

    def __init__(self, menu: Menu, weights: Weights, waste: Waste | None) -> None:
        self.menu = menu
        self.weights = weights
        self.waste = waste
        self.rated = Rated(menu, self.badness)
        self._fragmentation = Fragmentation(menu)

    def begin(self, shapes: Sequence[Shape]) -> Board | WhaleChooser:
        """Return a chooser for a run."""
        board = Board(shapes, self.rated)
        return WhaleChooser(board, self, shapes) if self.weights.price else board

    def badness(self, seats: Seats) -> Floats:
        """Return what every way to be seated strands by sight and by experience, weighed."""
        weights = self.weights
        full = weights.cpu * seats.cpu / CPU_MOST + weights.gpu * int(seats.gpus.sum()) / GPU_MOST
        badness = full + weights.fragmentation * self._fragmentation.growth(seats)
        if self.waste is not None:
            badness = badness + weights.waste * self.waste.growth(seats)
        return badness


class WhaleChooser:
    """One run: a board whose prices follow what is left and what is still to come."""

    def __init__(self, board: Board, rule: WhaleRule, shapes: Sequence[Shape]) -> None:
        self._board = board
        self._menu = rule.menu
        self._weight = rule.weights.price
        self._programme = Programme(rule.menu)
        self._capacity = GPU_MILLI * sum(shape.gpus for shape in shapes)
        self._arrived = 0
        self._pods = 0

    def choose(self, demand: Demand, left: Left) -> Seat | None:
        """Return the seat that strands least, or None when there is none."""
        if self._pods % EVERY_PODS == 0:
            prices = self._programme.prices(self._free(left), self._coming())
            if prices is not None:
                worth = prices.of(self._menu)[:, self._board.kinds]
                self._board.extra = self._weight * worth
        self._pods += 1
        self._arrived += demand.gpu_total_milli
        return self._board.choose(demand, left)

    def _free(self, left: Left) -> Free:
        """Return what is free on all nodes of each kind together."""
        kinds, number = self._board.kinds, len(self._menu.kinds)
        cpu, memory, gpu = (
            np.bincount(kinds, weights=each, minlength=number).astype(np.float64)
            for each in (left.cpu_milli, left.memory_mib, left.gpu_milli.sum(axis=1))
        )
        return Free(cpu, memory, gpu)

    def _coming(self) -> Floats:
        """Return how many pods of every demand are expected until all GPUs are asked for."""
        menu = self._menu
        rest = max(self._capacity - self._arrived, LEAST_SHARE * self._capacity)
        usual = menu.counts * menu.asked.astype(np.float64)
        choosy = ~menu.models.all(axis=1)
        some, most = float(usual @ choosy), float(usual.sum())
        others = max(most - CHOOSY * some, 0.0) / (most - some) if most > some else 1.0
        factors: Floats = np.where(choosy, CHOOSY, others).astype(np.float64)
        coming: Floats = (rest / most if most else 0.0) * factors * menu.counts
        return coming
