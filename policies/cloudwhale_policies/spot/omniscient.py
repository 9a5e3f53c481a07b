"""What nobody could beat at one zone: the exact optimum of an errand whose future is known.

For measuring alone. As policies, `Omniscient` and `NextLifetime` read the time to come from the
sights they are given, at 0 and later; who plays them without gets a ValueError, so nobody picks one
by accident.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloudwhale.model.units import Seconds
from cloudwhale.spi.spot import Errand, Sight, Site, SpotPlayer, SpotPolicy, Standing, Use
from cloudwhale_policies.spot import safety
from cloudwhale_policies.spot.known import Rule, cheapest

Flags: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]

HOUR_S: Seconds = 3600.0
NEVER = 1e15
"""What cannot be had costs so much."""


@dataclass(frozen=True, slots=True)
class _Grains:
    """An errand in grains, the longest time that ticks, changeover and work are made of."""

    grain_s: int
    tick: int
    changeover: int
    work: int
    deadline: int
    """Rounded down: what ends, ends at a whole grain."""

    @property
    def ticks(self) -> int:
        return -(-self.deadline // self.tick)

    @property
    def slack(self) -> int:
        return self.deadline - self.work

    def left(self) -> tuple[int, ...]:
        """Return what may be left of a changeover after a whole tick; the last is 0."""
        found = range(self.changeover - self.tick, 0, -self.tick)
        return (*found, 0)


def _grains(errand: Errand) -> _Grains:
    tick, changeover, work = (
        round(length) for length in (errand.tick_s, errand.changeover_s, errand.work_s)
    )
    grain = gcd(tick, changeover, work)
    deadline = int(errand.deadline_s / grain + 1e-9)
    return _Grains(grain, tick // grain, changeover // grain, work // grain, deadline)


@dataclass(frozen=True, slots=True)
class _Values:
    """Least costs from a tick on, [record, slack], by machine and changeover left."""

    idle: Floats
    spot: tuple[Floats, ...]
    on_demand: tuple[Floats, ...]


class _Backwards:
    """Works backwards from the deadline, for several records of equal length at once."""

    def __init__(self, grains: _Grains, spot_usd: Floats, on_demand_usd: float) -> None:
        self._g, self._lefts = grains, grains.left()
        self._spot_usd, self._on_demand_usd = spot_usd, on_demand_usd
        self._slack = np.arange(grains.slack + 1)

    def end(self, records: int) -> _Values:
        """Return the costs at the deadline: what is not done by then is never done."""
        none = np.full((records, len(self._slack)), NEVER)
        of = tuple(none for _ in self._lefts)
        return _Values(none, of, of)

    def before(self, tick: int, is_on: Flags, after: _Values) -> _Values:
        """Return the costs at a tick; `is_on` by record."""
        start = self._run(tick, self._g.changeover, after.on_demand, self._on_demand_usd)
        idle = np.minimum(start, self._shifted(after.idle, self._length(tick)))
        off = ~is_on
        spot = self._run(tick, self._g.changeover, after.spot, self._spot_usd[tick])
        spot[off] = NEVER
        idle = np.minimum(idle, spot)
        idle[:, self._done(tick)] = 0.0
        return _Values(
            idle,
            tuple(
                np.where(
                    off[:, None], idle,
                    np.minimum(idle, self._run(tick, left, after.spot, self._spot_usd[tick])),
                )
                for left in self._lefts
            ),
            tuple(
                np.minimum(idle, self._run(tick, left, after.on_demand, self._on_demand_usd))
                for left in self._lefts
            ),
        )  # fmt: skip

    def _length(self, tick: int) -> int:
        return min(self._g.tick, self._g.deadline - tick * self._g.tick)

    def _work(self, tick: int) -> NDArray[np.int64]:
        return self._g.deadline - tick * self._g.tick - self._slack

    def _done(self, tick: int) -> Flags:
        return self._work(tick) <= 0

    def _shifted(self, values: Floats, by: int) -> Floats:
        found = np.full_like(values, NEVER)
        if by < values.shape[1]:
            found[:, by:] = values[:, : values.shape[1] - by]
        return found

    def _run(self, tick: int, left: int, after: tuple[Floats, ...], usd: float) -> Floats:
        """Return the costs of running a tick, `usd` a grain, with so much changeover left."""
        length = self._length(tick)
        lost = min(left, length)
        rest, work = left - lost, self._work(tick)
        nxt = (
            after[self._lefts.index(rest)] if rest in self._lefts else np.full_like(after[0], NEVER)
        )
        found = usd * length + self._shifted(nxt, lost)
        if rest == 0:
            ends = work <= length - lost
            found[:, ends] = usd * (lost + np.maximum(work[ends], 0))
        return found


def least_usd(errand: Errand, is_on: Flags, site: Site) -> Floats:
    """Return the least cost by record; `is_on` is records by ticks. Infinite: none meets it."""
    grains = _grains(errand)
    if grains.slack < grains.changeover:
        return np.full(len(is_on), np.inf)
    per_grain = grains.grain_s / HOUR_S
    backwards = _Backwards(
        grains, np.full(grains.ticks, site.spot_usd_h * per_grain), site.on_demand_usd_h * per_grain
    )
    values = backwards.end(len(is_on))
    for tick in range(grains.ticks - 1, -1, -1):
        values = backwards.before(tick, is_on[:, tick], values)
    return np.where(values.idle[:, -1] < NEVER / 2, values.idle[:, -1], np.inf)


def ahead(errand: Errand, past: Sequence[Sight], site: str) -> Flags:
    """Return a site's availability by tick; raise ValueError when the sights end before that."""
    ticks = int(np.ceil(errand.deadline_s / errand.tick_s - 1e-9))
    found = np.zeros(ticks, dtype=np.int8)
    for sight in past:
        tick = round(sight.at_s / errand.tick_s)
        if sight.site == site and 0 <= tick < ticks:
            found[tick] = 1 if sight.is_on else -1
    if not found.all():
        raise ValueError("a policy for measuring: it needs sights of the whole time to come")
    return found > 0


class _Omniscient:
    """Does what the costs say."""

    def __init__(self, errand: Errand, site: Site, is_on: Flags) -> None:
        self._spot, self._on_demand = Use(site.name, "spot"), Use(site.name, "on-demand")
        self._errand, self._g = errand, _grains(errand)
        self._lefts, self._is_on = self._g.left(), is_on
        grain_h = self._g.grain_s / HOUR_S
        self._usd = site.spot_usd_h * grain_h, site.on_demand_usd_h * grain_h
        backwards = _Backwards(self._g, np.full(self._g.ticks, self._usd[0]), self._usd[1])
        values = [backwards.end(1)]
        for tick in range(self._g.ticks - 1, -1, -1):
            values.append(backwards.before(tick, is_on[tick : tick + 1], values[-1]))
        self._values = values[::-1]

    def choose(self, now: Standing) -> Use | None:
        """Return what costs least; ties stay."""
        tick = round(now.at_s / self._errand.tick_s)
        wanted: list[tuple[float, bool, int, Use | None]] = []
        for at, use in enumerate((self._spot, None, self._on_demand)):
            wanted.append((self._cost(tick, now, use), use != now.use, at, use))
        return min(wanted, key=lambda one: (round(one[0], 9), *one[1:3]))[3]

    def _cost(self, tick: int, now: Standing, use: Use | None) -> float:
        """Return what it costs to play this tick so and the rest well."""
        after = self._values[tick + 1]
        length = min(self._g.tick, self._g.deadline - tick * self._g.tick)
        work = round(now.work_left_s / self._g.grain_s)
        slack = self._g.deadline - tick * self._g.tick - work
        if length <= 0 or (use == self._spot and not self._is_on[tick]):
            return NEVER if use != self._on_demand else 0.0
        if use is None:
            return _at(after.idle, slack - length)
        left = self._g.changeover
        if use == now.use:
            left = round(now.changeover_left_s / self._g.grain_s)
        lost = min(left, length)
        usd = self._usd[0] if use == self._spot else self._usd[1]
        if left <= lost and work <= length - lost:
            return usd * (lost + work)
        of = after.spot if use == self._spot else after.on_demand
        rest = left - lost
        return usd * length + (
            _at(of[self._lefts.index(rest)], slack - lost) if rest in self._lefts else NEVER
        )


def _at(costs: Floats, slack: int) -> float:
    return float(costs[0, slack]) if 0 <= slack < costs.shape[1] else NEVER


class Omniscient:
    """The exact optimum of one site at prices that stay; for measuring: it is told the future."""

    def begin(self, errand: Errand, sites: Sequence[Site], past: Sequence[Sight]) -> SpotPlayer:
        """Return a player of the cheapest site; raise ValueError without the future in `past`."""
        site = next(site for site in sites if site.name == cheapest(sites))
        return _Omniscient(errand, site, ahead(errand, past, site.name))


class _NextLifetime(Rule):
    """Knows how long the spot machines that can be had now will stay, and no more."""

    def __init__(self, errand: Errand, sites: Sequence[Site], is_on: Flags) -> None:
        super().__init__(errand, sites)
        lasts = np.zeros(len(is_on) + 1, dtype=np.int64)
        for tick in range(len(is_on) - 1, -1, -1):
            lasts[tick] = lasts[tick + 1] + 1 if is_on[tick] else 0
        self._lasts: list[int] = lasts.tolist()
        site = next(site for site in sites if site.name == self.site)
        ratio = site.on_demand_usd_h / site.spot_usd_h
        self._least_s = errand.changeover_s * ratio / (ratio - 1.0) if ratio > 1.0 else float("inf")

    def wants(self, now: Standing, *, spot_is_on: bool) -> Use | None:
        lasts_s = self._lasts[round(now.at_s / self.errand.tick_s)] * self.errand.tick_s
        if now.use == self.spot:
            return self.spot
        if now.use == self.on_demand:
            return self.spot if spot_is_on and lasts_s > 2.0 * self._least_s else self.on_demand
        if spot_is_on and lasts_s > self._least_s:
            return self.spot
        due_s = now.at_s * self.errand.work_s / self.errand.deadline_s
        return self.on_demand if self.done_s(now) + safety.ROUNDING_S < due_s else None


class NextLifetime:
    """Uniform Progress that skips short spells with machines (Wu et al.); it is told the future."""

    def begin(self, errand: Errand, sites: Sequence[Site], past: Sequence[Sight]) -> SpotPlayer:
        """Return a player of the cheapest site; raise ValueError without the future in `past`."""
        return _NextLifetime(errand, sites, ahead(errand, past, cheapest(sites)))


_: tuple[SpotPolicy, ...] = (Omniscient(), NextLifetime())
