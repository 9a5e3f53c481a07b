"""Whether a zone, or any zone of a region, is on, as a small Markov chain: each young or old."""

from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloudwhale_policies.spot.lives import AGES_H, HOUR_S, Lives, Rates, Spell

Matrix: TypeAlias = NDArray[np.float64]

PHASES = 4
OFF_YOUNG, OFF_OLD, ON_YOUNG, ON_OLD = range(PHASES)
OLD_H = 1.5
"""From this age on a spell is old: past the knee of lifetimes, where most that are to end have."""
OLDEST_H = 48.0
"""Rates of old spells are means up to this age: the longest that a plan looks ahead."""

LONG_H = 512
"""After so long it does not matter any more what was seen."""


def phase(spell: Spell, at_s: float) -> int:
    """Return the phase of a site whose newest spell goes on at a time."""
    old = (at_s - spell.since_s) / HOUR_S >= OLD_H
    return (ON_YOUNG if spell.is_on else OFF_YOUNG) + int(old)


class Chain:
    """How a zone goes from phase to phase."""

    def __init__(self, lives: Lives) -> None:
        self.lives = lives
        self.rates = (*_by_phase(lives.off), *_by_phase(lives.on))
        """Ends of spells an hour, by phase."""
        self._usual: Matrix | None = None
        self.after = lru_cache(maxsize=64)(self._after)
        """The matrix of some hours: from phase (row) to phase."""

    def _after(self, hours: float) -> Matrix:
        steps = max(1, int(np.ceil(hours / 0.25)))
        return np.linalg.matrix_power(self._short(hours / steps), steps)

    def _short(self, hours: float) -> Matrix:
        """Return the matrix of a time in which a spell ends once at most."""
        matrix = np.zeros((PHASES, PHASES))
        grows = min(1.0, hours / OLD_H)
        for young, other in ((OFF_YOUNG, ON_YOUNG), (ON_YOUNG, OFF_YOUNG)):
            for now in (young, young + 1):
                ends = 1.0 - np.exp(-self.rates[now] * hours)
                matrix[now, other] += ends
                matrix[now, now] += 1.0 - ends
            moved = matrix[young, young] * grows
            matrix[young, young] -= moved
            matrix[young, young + 1] += moved
        return matrix

    def step(self, hours: float) -> Matrix:
        """Return the matrix of one step of a plan: a spell ends once at most in it."""
        return self._short(hours)

    def usual(self) -> Matrix:
        """Return how likely each phase is for somebody who never looked."""
        found = self._usual
        if found is None:
            found = self._usual = np.linalg.matrix_power(self.after(1.0), LONG_H)[0]
        return found

    def rate(self) -> float:
        """Return how many spells that are on end in an hour of being on."""
        usual = self.usual()[ON_YOUNG:]
        return float((usual * self.rates[ON_YOUNG:]).sum() / usual.sum())

    def share(self) -> float:
        """Return the part of time in which the zone is on."""
        usual = self.usual()
        return float(usual[ON_YOUNG] + usual[ON_OLD])


def _by_phase(rates: Rates) -> tuple[float, float]:
    """Return the mean rate of young and of old spells, weighted by how many get so old."""
    edges = np.append(AGES_H, OLDEST_H)
    at = np.unique(np.append(np.linspace(0.0, OLDEST_H, 385), edges))
    middle, width = (at[1:] + at[:-1]) / 2.0, np.diff(at)
    rate = rates[np.searchsorted(AGES_H, middle, side="right") - 1]
    lives = np.exp(-np.append(0.0, np.cumsum(rate * width)[:-1])) * width
    young = middle < OLD_H
    return (
        float((rate * lives)[young].sum() / lives[young].sum()),
        float((rate * lives)[~young].sum() / lives[~young].sum()),
    )
