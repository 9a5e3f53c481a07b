"""How long a zone has spot machines, and has none: heavy-tailed spells, and a belief about them.

A spell survives to age a with probability (a0 / (a0 + a))^e · exp(-r a): the tails that Wu et al.
(NSDI 2024) found, log-log slopes near -0.7, cut off by a rate that differs between zones. A *kind*
of zone is a pair of such laws, for its spells with machines and without. Nobody knows a zone's
kind: a belief holds weights over nine, moved by what is seen, and by less than that would say were
it independent, since a zone's spells come in storms.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, log, log2
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloudwhale.model.units import Seconds
from cloudwhale.spi.spot import Sight

Floats: TypeAlias = NDArray[np.float32]

HOUR_S: Seconds = 3600.0
SCALE_S: Seconds = 600.0
"""a0; no spell shorter than the ticks of published records, 3 to 10 minutes, is known of."""
TRUST = 0.5
"""A sight counts this much of an independent one."""
HALF_LIFE_S: Seconds = 14 * 86400.0
"""Zones change: what was seen two weeks ago counts half."""
AGES_IN_OCTAVE = 4.0
"""So roughly ages are told apart."""
FIRST_AGE_S: Seconds = 7200.0
"""Of a spell whose beginning nobody saw: who comes at random meets the long ones."""


@dataclass(frozen=True, slots=True)
class Law:
    """How long spells last."""

    exponent: float
    ends_per_h: float

    def ends(self, age_s: Seconds, length_s: Seconds) -> float:
        """Return the probability that a spell of this age ends within a time."""
        young = (SCALE_S + age_s) / (SCALE_S + age_s + length_s)
        return float(1.0 - young**self.exponent * exp(-self.ends_per_h * length_s / HOUR_S))


ON = (Law(0.6, 0.06), Law(1.0, 0.06), Law(1.0, 0.18))
"""Spells with machines: some last days; more; none lasts a day."""
OFF = (Law(0.6, 0.02), Law(0.6, 0.12), Law(1.0, 0.06))
"""Spells without: days may pass; hours; short ones mostly."""


@dataclass(frozen=True, slots=True)
class Laws:
    """What kinds of zones there may be: every pair."""

    on: tuple[Law, ...] = ON
    off: tuple[Law, ...] = OFF

    def pairs(self) -> tuple[tuple[Law, Law], ...]:
        """Return the kinds, in the order of a belief's weights."""
        return tuple((on, off) for on in self.on for off in self.off)


class Belief:
    """What is believed of one site; seen to once a tick, so without arrays."""

    def __init__(self, laws: Laws, tick_s: Seconds) -> None:
        self.is_on: bool | None = None
        """As last seen; None: never seen."""
        self.age_s = FIRST_AGE_S
        """Of the spell that it is in, when it was last seen."""
        self._tick_s = tick_s
        self._seen_s: Seconds = 0.0
        self._laws = {True: laws.on, False: laws.off}
        self._said = {side: [0.0] * len(of) for side, of in self._laws.items()}

    def learn(self, past: Iterable[Sight]) -> None:
        """Take in what was seen of the site, in order."""
        for sight in past:
            self.see(sight.at_s, is_on=sight.is_on)

    def see(self, at_s: Seconds, *, is_on: bool) -> None:
        """Take in whether it has machines now; the same time twice is nothing new."""
        was_on = self.is_on
        if was_on is None:
            self.is_on, self._seen_s = is_on, at_s
            return
        since_s = at_s - self._seen_s
        if since_s <= 0.0:
            return
        age = int(AGES_IN_OCTAVE * log2(1.0 + self.age_s / SCALE_S) + 0.5)
        kept = _kept(since_s)
        for side, of in self._said.items():
            logs = (
                _logs(self._laws[side], age, since_s, was_on != is_on) if side == was_on else None
            )
            self._said[side] = (
                [kept * said for said in of] if logs is None
                else [kept * said + new for said, new in zip(of, logs, strict=True)]
            )  # fmt: skip
        if is_on == was_on:
            self.age_s += since_s
        else:
            self.is_on, self.age_s = is_on, 0.5 * max(0.0, since_s - self._tick_s)
        self._seen_s = at_s

    def weights(self) -> Floats:
        """Return what each pair of laws is believed to be worth; they sum to 1."""
        on, off = (_shares(self._said[side]) for side in (True, False))
        return np.array([x * y for x in on for y in off], dtype=np.float32)


@lru_cache(maxsize=64)
def _kept(since_s: Seconds) -> float:
    """Return how much of what was seen before a time still counts."""
    return float(0.5 ** (since_s / HALF_LIFE_S))


@lru_cache(maxsize=4096)
def _logs(laws: tuple[Law, ...], age: int, length_s: Seconds, has_ended: bool) -> tuple[float, ...]:
    """Return the log-likelihood, by law, of an end within a time or of none."""
    age_s = SCALE_S * (2.0 ** (age / AGES_IN_OCTAVE) - 1.0)
    ends = [law.ends(age_s, length_s) for law in laws]
    return tuple(TRUST * log(end if has_ended else 1.0 - end) for end in ends)


def _shares(said: Sequence[float]) -> list[float]:
    most = max(said)
    found = [exp(one - most) for one in said]
    total = sum(found)
    return [one / total for one in found]


def of_site(past: Sequence[Sight], site: str) -> list[Sight]:
    """Return what was seen of a site."""
    return [sight for sight in past if sight.site == site]
