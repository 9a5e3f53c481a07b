"""The least that an errand can cost over several sites for somebody who knows what will happen.

An exact dynamic programme, backwards over ticks. What is done is counted in the largest unit that
divides tick and changeover, so nothing is rounded. A start is taken as a whole: to leave a machine,
or lose it, before its changeover is over gains nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloudwhale.spi.spot import Errand, Market, Sight, Site, SpotPlayer, Standing, Use

Values: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]

IDLE = -1
HOUR_S = 3600.0
PART_S = 1.0
"""Tick and changeover are taken as multiples of this where they have no larger unit."""


@dataclass(frozen=True, slots=True, eq=False)
class Future:
    """What happens at the sites from the errand's start on, ticks by sites."""

    is_on: Flags
    spot_usd_h: Values
    """One row for all ticks, or a row for each."""


@dataclass(frozen=True, slots=True, eq=False)
class _Machines:
    """All machines that may be rented: spot and, once a region, the cheapest on-demand."""

    uses: tuple[Use, ...]
    region: NDArray[np.int64]
    is_on: Flags
    usd_tick: Values
    """Ticks by machines, for a tick's full length."""
    egress_usd: Values
    """Regions by machines."""


@dataclass(frozen=True, slots=True)
class _Grid:
    """How time and work are counted."""

    lengths: tuple[float, ...]
    """Of the ticks, s."""
    unit_s: float
    tick: int
    """Units of a whole tick."""
    start: int
    """Ticks until a start has brought anything."""
    gain: int
    """Units that a start has brought by then."""
    work_left: Values
    """By units done, s."""


@dataclass(frozen=True, slots=True, eq=False)
class Least:
    """What it can cost at best, and how."""

    usd: float
    """Infinite: nobody can make it."""
    way: tuple[Use | None, ...]
    """By tick, until the work is done; empty unless asked for."""


def least(
    errand: Errand, sites: Sequence[Site], future: Future, *, with_way: bool = False
) -> Least:
    """Return the least cost in USD; the way takes memory for ticks x machines x units of work."""
    grid = _grid(errand)
    machines = _machines(errand, sites, future, len(grid.lengths))
    programme = _Programme(errand, grid, machines, with_way=with_way)
    usd = programme.solve()
    return Least(usd, programme.way() if with_way and np.isfinite(usd) else ())


def _grid(errand: Errand) -> _Grid:
    ticks = int(np.ceil(errand.deadline_s / errand.tick_s - 1e-9))
    lengths = [errand.tick_s] * ticks
    lengths[-1] = errand.deadline_s - errand.tick_s * (ticks - 1)
    tick, changeover = round(errand.tick_s / PART_S), round(errand.changeover_s / PART_S)
    unit = int(np.gcd(tick, changeover)) if changeover else tick
    start = max(1, -(-changeover // tick))
    units = int(np.ceil(errand.work_s / (unit * PART_S) - 1e-9))
    return _Grid(
        tuple(lengths), unit * PART_S, tick // unit, start, (start * tick - changeover) // unit,
        np.array(errand.work_s - np.arange(units) * (unit * PART_S), np.float64),
    )  # fmt: skip


def _machines(errand: Errand, sites: Sequence[Site], future: Future, ticks: int) -> _Machines:
    regions = sorted({site.region for site in sites})
    cheapest = [
        min((site for site in sites if site.region == region), key=lambda s: s.on_demand_usd_h)
        for region in regions
    ]
    markets: tuple[Market, Market] = ("spot", "on-demand")
    uses = [Use(site.name, markets[0]) for site in sites]
    uses += [Use(site.name, markets[1]) for site in cheapest]
    where = [regions.index(site.region) for site in [*sites, *cheapest]]
    prices = np.broadcast_to(future.spot_usd_h, (max(len(future.spot_usd_h), ticks), len(sites)))
    fixed = np.array([site.on_demand_usd_h for site in cheapest])
    usd_h = np.hstack([prices[:ticks], np.broadcast_to(fixed, (ticks, len(fixed)))])
    is_on = np.hstack([future.is_on[:ticks], np.ones((ticks, len(fixed)), dtype=np.bool_)])
    egress = [
        [_egress(errand.egress_usd, region, regions[there]) for there in where]
        for region in regions
    ]
    return _Machines(
        tuple(uses), np.array(where), is_on, usd_h * errand.tick_s / HOUR_S, np.array(egress)
    )


def _egress(usd: Mapping[tuple[str, str], float], source: str, target: str) -> float:
    return 0.0 if source == target else usd.get((source, target), 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Chosen:
    """What is best at a tick, by units done from the first that can be reached."""

    low: int
    starts: NDArray[np.int16]
    """Regions by units: the machine to start, or IDLE."""
    stays: Flags
    """Machines by units."""

    def stays_on(self, machine: int, done: int) -> bool:
        return bool(self.stays[machine, done - self.low])

    def start_from(self, region: int, done: int) -> int:
        return int(self.starts[region, done - self.low])


class _Programme:
    """The values of having a machine, or none, by tick and work done."""

    def __init__(self, errand: Errand, grid: _Grid, machines: _Machines, *, with_way: bool) -> None:
        self._errand, self._grid, self._machines = errand, grid, machines
        self._ticks, self._units = len(grid.lengths), len(grid.work_left)
        self._regions = len(machines.egress_usd)
        self._starts: dict[int, tuple[float, int]] = {}
        """By tick: the least to begin at it with nothing done, and on which machine."""
        self._kept: dict[int, _Chosen] | None = {} if with_way else None

    def solve(self) -> float:
        """Return the least cost from the start on."""
        grid, count = self._grid, len(self._machines.uses)
        if not self._units:
            return 0.0
        shape = (count, self._units + max(grid.tick, grid.gain))
        slots = [np.full(shape, np.inf) for _ in range(grid.start + 1)]
        """Values of having each machine, without changeover, at this tick and those after it."""
        for slot in slots:
            slot[:, self._units :] = 0.0
        idle = np.full((self._regions, self._units), np.inf)
        for tick in reversed(range(self._ticks)):
            low, high = self._reached(tick)
            here, after, begun_at = (
                slots[(tick + ahead) % len(slots)] for ahead in (0, 1, grid.start)
            )
            begun = np.full((count, high - low), np.inf)
            run = np.full((count, high - low), np.inf)
            for machine in range(count):
                self._begun(begun[machine], machine, tick, begun_at[machine])
                self._run(run[machine], machine, tick, after[machine])
            ways = self._machines.egress_usd[:, :, None] + begun
            best = ways.argmin(axis=1)
            least = np.take_along_axis(ways, best[:, None], axis=1)[:, 0]
            starts = least < idle[:, low:high]
            idle[:, low:high] = np.where(starts, least, idle[:, low:high])
            left = idle[self._machines.region, low:high]
            stays = run <= left
            here[:, low:high] = np.where(stays, run, left)
            if not low:
                first = int(begun[:, 0].argmin())
                self._starts[tick] = (float(begun[first, 0]), first)
            if self._kept is not None:
                choice = np.where(starts, best, IDLE).astype(np.int16)
                self._kept[tick] = _Chosen(low, choice, stays)
        return min(usd for usd, _ in self._starts.values())

    def _reached(self, tick: int) -> tuple[int, int]:
        """Return which units can be done at a tick of a ride that can still be made."""
        before_s = tick * self._errand.tick_s
        late = self._errand.work_s - (self._errand.deadline_s - before_s)
        low = max(0, int(np.floor(late / self._grid.unit_s)) - 1)
        high = int(np.ceil(before_s / self._grid.unit_s)) + 1
        return min(low, self._units - 1), min(high, self._units)

    def _run(self, run: Values, machine: int, tick: int, after: Values) -> None:
        """Fill in the values of running on for a tick; after it they are as given."""
        if not self._machines.is_on[tick, machine]:
            return
        low, high = self._reached(tick)
        usd, gain = float(self._machines.usd_tick[tick, machine]), self._grid.tick
        run[:] = usd + after[low + gain : high + gain]
        self._ended(run, low, usd, 0.0, (0.0, self._grid.lengths[tick]))

    def _begun(self, begun: Values, machine: int, tick: int, after: Values) -> None:
        """Fill in the values of a start, without egress, until it has brought something."""
        gain, last = self._grid.gain, tick + self._grid.start - 1
        if last >= self._ticks or not self._machines.is_on[tick : last + 1, machine].all():
            return
        low, high = self._reached(tick)
        prices = self._machines.usd_tick[tick : last + 1, machine]
        usd = float(prices[:-1].sum())
        begun[:] = usd + float(prices[-1]) + after[low + gain : high + gain]
        lost = self._errand.changeover_s - self._errand.tick_s * (self._grid.start - 1)
        self._ended(begun, low, float(prices[-1]), usd, (lost, self._grid.lengths[last]))

    def _ended(
        self, values: Values, low: int, usd: float, before: float, tick: tuple[float, float]
    ) -> None:
        """Put right what ends in a tick, given what of it is lost and its length, s."""
        lost, length = tick
        left = self._grid.work_left[low : low + len(values)]
        ends = left + lost <= length + 1e-9
        values[ends] = before + usd * (left[ends] + lost) / self._errand.tick_s
        if length < self._errand.tick_s:
            values[~ends] = np.inf

    def way(self) -> tuple[Use | None, ...]:
        """Return the way that costs least."""
        kept, grid, uses = self._kept or {}, self._grid, self._machines.uses
        first = min(self._starts, key=lambda tick: (self._starts[tick][0], tick))
        way: list[Use | None] = [None] * first
        machine, done = self._starts[first][1], 0
        while True:
            way += [uses[machine]] * grid.start
            done += grid.gain
            while self._goes_on(len(way), done) and kept[len(way)].stays_on(machine, done):
                way.append(uses[machine])
                done += grid.tick
            region = int(self._machines.region[machine])
            machine = IDLE
            while self._goes_on(len(way), done) and machine == IDLE:
                machine = kept[len(way)].start_from(region, done)
                way += [None] * (machine == IDLE)
            if machine == IDLE:
                return tuple(way)

    def _goes_on(self, tick: int, done: int) -> bool:
        return tick < self._ticks and done < self._units


@dataclass(frozen=True, slots=True, eq=False)
class OmniscientZones:
    """Plays the least costly way; it is told what will happen."""

    future: Future

    def begin(self, errand: Errand, sites: Sequence[Site], past: Sequence[Sight]) -> SpotPlayer:
        """Return a player; an errand that nobody can make is idled away."""
        found = least(errand, sites, self.future, with_way=True)
        return _Way(found.way, errand.tick_s)


@dataclass(frozen=True, slots=True, eq=False)
class _Way:
    way: tuple[Use | None, ...]
    tick_s: float

    def choose(self, now: Standing) -> Use | None:
        tick = round(now.at_s / self.tick_s)
        return self.way[tick] if tick < len(self.way) else None
