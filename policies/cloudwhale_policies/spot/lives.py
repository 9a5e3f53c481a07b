"""How long spot machines of a zone are on and off, by age, and the spells that somebody saw.

A zone's time is a row of spells, on or off. The chance that a spell ends falls with its age: few
machines live long, but those that do go on (Li et al., "SkyNomad", arXiv 2601.06520, find straight
lines of slope -0.66 to -0.80 in log-log plots of lifetimes). So there is a rate for each bracket of
ages.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloudwhale.model.units import Seconds
from cloudwhale.spi.spot import Sight

Rates: TypeAlias = NDArray[np.float64]
"""Ends of spells an hour, by bracket of ages."""

HOUR_S = 3600.0
AGES_H = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Where brackets begin: each as long as all before it, as befits a power law."""
SLOPE, KNEE_H = 0.7, 0.5
"""The prior's survival is (1 + age / knee) ** -slope: half of all spells end within 0.85 h."""
COARSE_H = 0.5
"""Half of all spells end within an hour: who looks less often than this misses many."""


@dataclass(slots=True)
class Spell:
    """A time in which every look found the same."""

    is_on: bool
    since_s: Seconds
    until_s: Seconds
    """When it was seen last, or ended."""
    looks: int = 0
    """How many looks came after the one that found it, the one that found its end among them."""

    @property
    def age_h(self) -> float:
        """How long it is known to have lasted, in hours."""
        return (self.until_s - self.since_s) / HOUR_S

    @property
    def is_coarse(self) -> bool:
        """Say whether looks were so rare that spells between them were missed."""
        return self.age_h > COARSE_H * self.looks


@dataclass(frozen=True, slots=True)
class Spells:
    """What was seen of each site, in order of time."""

    by_site: dict[str, list[Spell]] = field(default_factory=dict[str, list[Spell]])

    def see(self, site: str, at_s: Seconds, *, is_on: bool) -> None:
        """Remember a look; a spell ends halfway between two looks that differ."""
        spells = self.by_site.setdefault(site, [])
        if spells and spells[-1].is_on == is_on:
            spells[-1].until_s = max(spells[-1].until_s, at_s)
            spells[-1].looks += 1
            return
        since_s = at_s
        if spells:
            spells[-1].looks += 1
            since_s = spells[-1].until_s = (spells[-1].until_s + at_s) / 2.0
        spells.append(Spell(is_on, since_s, at_s))

    def see_all(self, sights: Iterable[Sight]) -> None:
        """Remember many looks."""
        for sight in sights:
            self.see(sight.site, sight.at_s, is_on=sight.is_on)

    def newest(self, site: str) -> Spell | None:
        """Return the spell that was seen last."""
        spells = self.by_site.get(site)
        return spells[-1] if spells else None


@dataclass(frozen=True, slots=True, eq=False)
class Lives:
    """How spells of a site end."""

    off: Rates
    on: Rates

    def ends_within(self, age_h: float, hours: float, *, is_on: bool) -> float:
        """Return the chance that a spell of an age ends within some hours."""
        rates = self.on if is_on else self.off
        return 1.0 - float(np.exp(_hazard(rates, age_h) - _hazard(rates, age_h + hours)))


def _hazard(rates: Rates, age_h: float) -> float:
    """Return the sum of rates up to an age."""
    last = bisect_right(AGES_H, age_h) - 1
    whole = sum(float(rates[b]) * (AGES_H[b + 1] - AGES_H[b]) for b in range(last))
    return whole + float(rates[last]) * (age_h - AGES_H[last])


def prior() -> Rates:
    """Return the rates of somebody who has seen nothing."""
    lows = np.array(AGES_H)
    highs = np.append(lows[1:], 2.0 * lows[-1])
    rates: Rates = SLOPE * np.log((highs + KNEE_H) / (lows + KNEE_H)) / (highs - lows)
    return rates
