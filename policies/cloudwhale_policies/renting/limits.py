"""How many machines may be rented: quotas, and offers of which only so many can be had."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cloudwhale_policies.renting.machine import Machine

if TYPE_CHECKING:
    from cloudwhale.spi.renting import RentalProblem
    from cloudwhale_policies.renting.arrays import Flags, Floats

SLACK = 1e-9


class Limits:
    """What is known of quotas and supply; what is not known forbids nothing."""

    def __init__(self, problem: RentalProblem) -> None:
        kinds = problem.kinds
        groups = [name for name in problem.quotas if any(kind.quota == name for kind in kinds)]
        self._left = np.array([problem.quotas[name] for name in groups], dtype=np.float64)
        self._units = np.array(
            [[kind.quota_units * (kind.quota == name) for kind in kinds] for name in groups]
        ).reshape(len(groups), len(kinds))
        most = [np.inf if kind.at_most is None else float(kind.at_most) for kind in kinds]
        self._most = np.array(most)
        self.any = bool(groups) or bool(np.isfinite(self._most).any())

    def counts(self, machines: Iterable[Machine]) -> Floats:
        """Return how many machines of each kind these are."""
        counts = np.zeros(len(self._most))
        for machine in machines:
            counts[machine.kind] += machine.width
        return counts

    def keep(self, machines: Sequence[Machine]) -> bool:
        """Return whether all of them may be rented together."""
        if not self.any:
            return True
        counts = self.counts(machines)
        over = (self._units @ counts > self._left + SLACK).any()
        return not over and bool((counts <= self._most).all())

    def room(self, machines: Iterable[Machine], width: int = 1) -> Flags | None:
        """Return of which kinds so many more may be rented beside these; None: of any."""
        if not self.any:
            return None
        counts = self.counts(machines)
        room = counts + width <= self._most
        for units, left in zip(self._units, self._left, strict=True):
            room &= (units == 0) | (units @ counts + width * units <= left + SLACK)
        return room
