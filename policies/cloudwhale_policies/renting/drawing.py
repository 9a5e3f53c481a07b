"""Random numbers of a seed, drawn in blocks: one at a time costs more than what it decides."""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence

import numpy as np

BLOCK = 4096


class Draws:
    """The same seed draws the same."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._block: list[float] = []

    def part(self) -> float:
        """Return a number in [0, 1)."""
        if not self._block:
            self._block = self._rng.random(BLOCK).tolist()
        return self._block.pop()

    def below(self, count: int) -> int:
        """Return a whole number below a count, which is at least one."""
        return int(self.part() * count)

    def weighed(self, weights: Sequence[float]) -> int:
        """Return a place by weights, which are not negative and not all nothing."""
        left = self.part() * sum(weights)
        for place, weight in enumerate(weights):
            left -= weight
            if left < 0:
                return place
        return len(weights) - 1

    def shuffle(self, some: MutableSequence[int]) -> None:
        """Bring some numbers into any order."""
        for place in range(len(some) - 1, 0, -1):
            other = self.below(place + 1)
            some[place], some[other] = some[other], some[place]
