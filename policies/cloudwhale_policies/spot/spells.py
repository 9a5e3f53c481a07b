"""How long a zone has spot machines, and has none: heavy-tailed spells, and a belief about them.

A spell survives to age a with probability (a0 / (a0 + a))^e · exp(-r a): the tails that Wu et al.
(NSDI 2024) found, log-log slopes near -0.7, cut off by a rate that differs between zones. A *kind*
of zone is a pair of such laws, for its spells with machines and without. Nobody knows a zone's
kind: a belief holds weights over nine, moved by what is seen, and by less than that would say were
it independent, since a zone's spells come in storms. Once days of a zone were seen, its own ends by
age are believed instead: that costs less than weighing kinds, which hopes too much.
"""

from bisect import bisect_right
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


AGES = (1, 2, 3, 5, 9, 17, 33, 65, 129)
"""First ages of the brackets that ages are told apart by, in ticks."""
DOUBT_TICKS = 30.0
"""So many ticks of the usual are mixed into what was seen of a zone in a bracket."""
PORTION_S: Seconds = 2 * 86400.0
"""What is seen is learned from in such portions, so that errands of the same days share tables."""
ENOUGH_PORTIONS = 2
"""From so many on a zone is believed to be as its own spells were."""
MOST = 0.95
"""No spell ends for sure."""
ALL = np.ones(1, dtype=np.float32)

ON = (Law(0.6, 0.06), Law(1.0, 0.06), Law(1.0, 0.18))
"""Spells with machines: some last days; more; none lasts a day."""
OFF = (Law(0.6, 0.02), Law(0.6, 0.12), Law(1.0, 0.06))
"""Spells without: days may pass; hours; short ones mostly."""


@dataclass(frozen=True, slots=True)
class Laws:
    """What kinds of zones there may be: every pair."""

    on: tuple[Law, ...] = ON
    off: tuple[Law, ...] = OFF


Ends: TypeAlias = tuple[float, ...]
"""The probability that a spell ends within a tick, by bracket of its age."""
Kind: TypeAlias = tuple[Ends, Ends]
"""Of spells with machines, and without."""


def bracket_of(age: float) -> int:
    """Return the bracket of an age in ticks; 1 is the first tick of a spell."""
    return max(0, bisect_right(AGES, age + 1e-9) - 1)


def ends_of(law: Law, tick_s: Seconds) -> Ends:
    """Return how likely spells end in a tick, by bracket."""
    found: list[float] = []
    for first, after in zip(AGES, (*AGES[1:], 2 * AGES[-1]), strict=True):
        middle = first - 1 + 0.45 * (after - first - 1)
        found.append(law.ends(middle * tick_s, tick_s))
    return tuple(found)


def kinds_of(laws: Laws, tick_s: Seconds) -> tuple[Kind, ...]:
    """Return the kinds of zones, in the order of a belief's weights."""
    on, off = ([ends_of(law, tick_s) for law in side] for side in (laws.on, laws.off))
    return tuple((x, y) for x in on for y in off)


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
        self._ticks = {side: [0.0] * len(AGES) for side in self._laws}
        self._ends = {side: [0] * len(AGES) for side in self._laws}
        self._seen = 0.0
        self._own: tuple[Kind, ...] = ()
        self._usual = kinds_of(laws, tick_s)

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
        self._count(was_on, since_s, has_ended=is_on != was_on)
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

    def kinds(self) -> tuple[Kind, ...]:
        """Return what the zone may be: as its own spells were, or all kinds while few were seen."""
        return self._own or self._usual

    def weights(self) -> Floats:
        """Return what each of `kinds` is believed to be worth; they sum to 1."""
        if self._own:
            return ALL
        on, off = (_shares(self._said[side]) for side in (True, False))
        return np.array([x * y for x in on for y in off], dtype=np.float32)

    def _count(self, was_on: bool, since_s: Seconds, *, has_ended: bool) -> None:
        """Count what was seen by age, and take it for the zone's own every PORTION_S."""
        ticks = since_s / self._tick_s
        bracket = bracket_of(self.age_s / self._tick_s + 1.0)
        self._ticks[was_on][bracket] += ticks
        self._ends[was_on][bracket] += has_ended
        before, self._seen = self._seen, self._seen + since_s
        portions = int(self._seen / PORTION_S + 1e-9)
        if portions >= ENOUGH_PORTIONS and portions > int(before / PORTION_S + 1e-9):
            self._own = ((self._ends_of(True), self._ends_of(False)),)

    def _ends_of(self, side: bool) -> Ends:
        """Return how likely the zone's spells end: as seen, and as usual where little was."""
        usual = [ends_of(law, self._tick_s) for law in self._laws[side]]
        means = [sum(each) / len(usual) for each in zip(*usual, strict=True)]
        seen = zip(means, self._ticks[side], self._ends[side], strict=True)
        return tuple(
            min(MOST, (ends + DOUBT_TICKS * mean) / (ticks + DOUBT_TICKS))
            for mean, ticks, ends in seen
        )


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
