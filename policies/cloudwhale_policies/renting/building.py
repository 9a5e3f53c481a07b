"""Machines for many jobs at once: the kind that does most for its money comes first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cloudwhale_policies.renting.machine import Machine

if TYPE_CHECKING:
    from cloudwhale_policies.renting.arrays import Floats
    from cloudwhale_policies.renting.drawing import Draws
    from cloudwhale_policies.renting.inserting import Inserting

KINDS = 6
"""Kinds that are tried for a machine: where its first job costs least when it is well filled."""
MOST = 80
"""Jobs that are tried for one machine."""
OVER = (1.0, 1.6)
"""A job may add so many times its worth: the worths are below what any plan can reach."""
SUITED = (0.4, 0.95)
"""A job is tried where its worth is at least such a part of its cost there, well filled."""


class Building:
    """Builds machines around one job after the other."""

    def __init__(self, inserting: Inserting, worth: Floats, filled: Floats, draws: Draws) -> None:
        self._inserting, self._draws = inserting, draws
        self._yard, self._tables = inserting.yard, inserting.tables
        self._worth = worth.tolist()
        able = np.where(np.isfinite(worth), worth, 0.0)  # who can run nowhere is never asked for
        self._suited = able[:, None] / np.maximum(filled, 1e-12)
        near = np.argsort(filled, axis=1, kind="stable")[:, :KINDS]
        own = self._tables.own_usd.argmin(axis=1)
        self._near = [
            [
                kind
                for kind in dict.fromkeys([*row, alone])
                if self._tables.own_usd[lot, kind] < math.inf
            ]
            for lot, (row, alone) in enumerate(zip(near.tolist(), own.tolist(), strict=True))
        ]

    def around(self, first: int, others: Sequence[int]) -> Machine:
        """Return a machine for a job and those of some others that suit it."""
        return self._around(first, others)

    def machines(self, lots: Sequence[int]) -> list[Machine]:
        """Return machines that hold all of some jobs, each of which some kind can do."""
        left = sorted(lots, key=lambda lot: (-self._worth[lot], lot))
        built: list[Machine] = []
        while left:
            first = left[0] if self._draws.part() < 0.7 else left[self._draws.below(len(left))]
            machine = self._around(first, left)
            for lot in machine.lots:
                left.remove(lot)
            built.append(self._inserting.retyped(machine))
        return built

    def _around(self, first: int, left: Sequence[int]) -> Machine:
        least, most = SUITED
        suited = least + (most - least) * self._draws.part()
        over = OVER[0] + (OVER[1] - OVER[0]) * self._draws.part()
        best, best_ratio = None, math.inf
        for kind in self._near[first]:
            machine = self._filled(kind, first, self._chosen(kind, first, left, suited), over)
            worth = sum(self._worth[lot] for lot in machine.lots)
            ratio = machine.usd / max(worth, 1e-12) * (1 + 0.1 * self._draws.part())
            if ratio < best_ratio:
                best, best_ratio = machine, ratio
        if best is None:
            raise ValueError("no kind can do the job")
        return best

    def _chosen(self, kind: int, first: int, left: Sequence[int], suited: float) -> list[int]:
        """Return the jobs that suit a kind, in the order in which they are tried."""
        others = list(left)
        others.remove(first)
        rates = self._suited[others, kind]
        able = np.flatnonzero(rates >= suited)
        if len(able) > MOST:
            able = np.sort(able[np.argsort(-rates[able], kind="stable")[:MOST]])
        return [others[place] for place in able.tolist()]

    def _filled(self, kind: int, first: int, others: Sequence[int], over: float) -> Machine:
        yard, nodes = self._yard, self._tables.nodes
        machine = yard.empty(kind, nodes[first])
        machine = yard.placed(machine, first, machine.times[0])
        self._inserting.work += 1 + len(others)
        for lot in others:
            if nodes[lot] != machine.width or not self._tables.fits[lot, kind]:
                continue
            start = yard.earliest(machine, lot)
            if start is not None and yard.price(machine, lot, start) <= over * self._worth[lot]:
                machine = yard.placed(machine, lot, start)
        return machine
