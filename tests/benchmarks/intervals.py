"""Intervals over seeds: how sure a mean of paired differences is."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

RESAMPLES = 10_000
OUTSIDE = 0.05  # of the resamples lie outside the interval


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and its 95 % interval."""

    middle: float
    low: float
    high: float


def gain(pairs: Sequence[tuple[float, float]], sign: int = 1) -> Interval:
    """Return by how much the second of each pair is better, as a fraction of the firsts' mean.

    `sign`: 1 where more is better, -1 where less is. Seeds are drawn again with replacement, both
    of a pair together; the same pairs give the same interval.
    """
    dice = random.Random(0)
    found = sorted(
        _gain([pairs[dice.randrange(len(pairs))] for _ in pairs], sign) for _ in range(RESAMPLES)
    )
    edge = int(RESAMPLES * OUTSIDE / 2)
    return Interval(_gain(pairs, sign), found[edge], found[-edge - 1])


def mean(samples: Sequence[float]) -> Interval:
    """Return the mean of some samples with its interval."""
    dice = random.Random(0)
    found = sorted(
        sum(samples[dice.randrange(len(samples))] for _ in samples) / len(samples)
        for _ in range(RESAMPLES)
    )
    edge = int(RESAMPLES * OUTSIDE / 2)
    return Interval(sum(samples) / len(samples), found[edge], found[-edge - 1])


def _gain(pairs: Sequence[tuple[float, float]], sign: int) -> float:
    firsts = sum(first for first, _ in pairs)
    if firsts == 0:
        return 0.0
    return sign * (sum(second for _, second in pairs) - firsts) / firsts
