"""A machine's timetable: jobs side by side and one after another, exact in every dimension.

What is free in one stretch of time is one whole number with a field for each dimension and a guard
bit above each field: a demand fits when its subtraction leaves the guard bits standing. So one
subtraction asks for share and memory of all devices, CPU, memory and disk at once.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from cloudwhale.spi.renting import Demand, Kind
from cloudwhale_policies.renting.arrays import Tables

if TYPE_CHECKING:
    from cloudwhale_policies.renting.inserting import Insertion
    from cloudwhale_policies.renting.retyping import Sums

UNIT = 1e6
"""Parts of a share, a CPU or a GiB that are told apart."""
WIDTH = 48
"""Bits of a field with its guard: 140 million GiB."""
ONES = (1 << (WIDTH - 1)) - 1


class Need(NamedTuple):
    """What a job of a lot takes of a machine of a kind."""

    test: int
    """What is subtracted to see where it fits: its scalars, and its part of every device."""
    number: int
    """Devices to be found among several; 0: `test` says all."""
    run_s: float
    latest_s: float
    """When it must start."""
    scalars: int
    unit: int
    """Its part of the first device."""
    devices: int


class Layout:
    """How the fields of a kind lie: share and memory of each device, then CPU, memory and disk."""

    def __init__(self, kind: Kind) -> None:
        self.devices, self.boot_s = kind.devices, kind.boot_s
        self.device_gib = kind.device_gib
        first = 2 * kind.devices
        fields = [1.0, kind.device_gib] * kind.devices + [kind.cpu, kind.memory_gib, kind.disk_gib]
        self.guard = sum(1 << (WIDTH * (place + 1) - 1) for place in range(len(fields)))
        self.free = self.guard
        for place, amount in enumerate(fields):
            self.free += min(round(amount * UNIT), ONES) << (WIDTH * place)
        self.scalars = sum(1 << (WIDTH * (place + 1) - 1) for place in range(first, first + 3))
        self.shares = sum(1 << (WIDTH * (2 * one + 1) - 1) for one in range(kind.devices))
        self.first = first * WIDTH
        self.bits = [WIDTH * (2 * one + 1) - 1 for one in range(kind.devices)]
        self.every = sum(1 << (2 * WIDTH * one) for one in range(kind.devices))

    def need(self, demand: Demand, run_s: float, latest_s: float) -> Need:
        """Return what a job takes here."""
        scalars = 0
        for place, amount in enumerate((demand.cpu, demand.memory_gib, demand.disk_gib)):
            scalars += _units(amount) << (self.first + place * WIDTH)
        if not demand.devices:
            return Need(scalars, 0, run_s, latest_s, scalars, 0, 0)
        gib = demand.device_gib
        memory = demand.share * self.device_gib if gib is None else gib
        unit = _units(demand.share) + (_units(memory) << WIDTH)
        count = 0 if demand.devices == self.devices else demand.devices
        test = scalars + unit * self.every
        return Need(test, count, run_s, latest_s, scalars, unit, demand.devices)


@dataclass(slots=True, eq=False)
class Machine:
    """A machine, or so many alike for gangs, with its jobs; never changed once made."""

    kind: int
    width: int
    times: list[float]
    """When what is free changes; the last stretch has no end and is wholly free."""
    free: list[int]
    lots: tuple[int, ...]
    """Of its jobs, in the order in which they were placed."""
    starts: tuple[float, ...]
    masks: tuple[int, ...]
    """Devices of each job, a bit each."""
    end_s: float
    extra_usd: float
    usd: float
    """All that it counts: its time and what its jobs cost on top."""
    tries: dict[int, Insertion] = field(default_factory=lambda: {})
    """By lot, how one job more is best put there by packing all anew, as far as it is known."""
    starts_s: dict[int, tuple[float, float]] = field(default_factory=lambda: {})
    """By lot, what one job more adds while nothing else moves, and when it starts."""
    floors: dict[int, float] = field(default_factory=lambda: {})
    """By lot, the least that one job more could add."""
    sums: Sums | None = None
    """What its jobs ask of every kind, once it was asked."""
    devices_s: float | None = None
    """How long its jobs would run one after another on all its devices, once it was asked."""
    noted: bool = False
    """Whether it is among the machines that were seen."""
    settled: Machine | None = None
    """The cheapest machine known for the same jobs, once it was looked for."""


class Yard:
    """Makes machines of a problem's kinds, empty ones and ones with one job more."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._money = tables.money
        self._layouts: dict[int, Layout] = {}
        self._needs: dict[tuple[int, int], Need] = {}

    def layout(self, kind: int) -> Layout:
        """Return how a kind's fields lie."""
        found = self._layouts.get(kind)
        if found is None:
            found = self._layouts[kind] = Layout(self.tables.kinds[kind])
        return found

    def need(self, lot: int, kind: int) -> Need:
        """Return what a job of a lot takes of a kind that fits it."""
        found = self._needs.get((lot, kind))
        if found is None:
            tables = self.tables
            found = self.layout(kind).need(
                tables.demands[lot],
                float(tables.runs_s[lot, kind]),
                float(tables.latest_s[lot, kind]),
            )
            self._needs[lot, kind] = found
        return found

    def empty(self, kind: int, width: int = 1) -> Machine:
        """Return a machine without jobs, which costs nothing yet."""
        layout = self.layout(kind)
        return Machine(
            kind, width, [layout.boot_s], [layout.free], (), (), (), layout.boot_s, 0.0, 0.0
        )

    def again(self, machine: Machine, kind: int) -> Machine:
        """Return the same machine where its kind has another number."""
        return Machine(
            kind, machine.width, machine.times, machine.free, machine.lots, machine.starts,
            machine.masks, machine.end_s, machine.extra_usd, machine.usd,
        )  # fmt: skip

    def earliest(self, machine: Machine, lot: int) -> float | None:
        """Return when a job of a lot can start at the earliest; None: nowhere in time.

        Of the timetable that stands: no job is moved. The lot must fit the kind and the width.
        """
        kind = machine.kind
        need = self._needs.get((lot, kind)) or self.need(lot, kind)
        return _earliest(machine.times, machine.free, need, self._layouts[kind])

    def price(self, machine: Machine, lot: int, start_s: float) -> float:
        """Return what a job adds that starts then."""
        end_s = start_s + self._needs[lot, machine.kind].run_s
        extra = float(self.tables.extra_usd[lot, machine.kind])
        if end_s <= machine.end_s and machine.lots:
            return extra
        used = machine.width * self._money.of(machine.kind, max(end_s, machine.end_s))
        return used + machine.extra_usd + extra - machine.usd

    def placed(self, machine: Machine, lot: int, start_s: float) -> Machine:
        """Return the machine with one job more, which fits there."""
        need = self.need(lot, machine.kind)
        times, free = machine.times.copy(), machine.free.copy()
        mask = _take(times, free, need, self.layout(machine.kind), start_s)
        end_s = max(machine.end_s, start_s + need.run_s)
        extra = machine.extra_usd + float(self.tables.extra_usd[lot, machine.kind])
        usd = machine.width * self._money.of(machine.kind, end_s) + extra
        return Machine(
            machine.kind, machine.width, times, free, (*machine.lots, lot),
            (*machine.starts, start_s), (*machine.masks, mask), end_s, extra, usd,
        )  # fmt: skip

    def packed(self, kind: int, width: int, lots: Sequence[int]) -> Machine | None:
        """Return a machine with these jobs, each placed as early as it can, one after another."""
        machine = self.empty(kind, width)
        layout, extra = self._layouts[kind], 0.0
        times, free, end_s = machine.times, machine.free, machine.end_s
        starts: list[float] = []
        masks: list[int] = []
        for lot in lots:
            need = self._needs.get((lot, kind)) or self.need(lot, kind)
            start = _earliest(times, free, need, layout)
            if start is None:
                return None
            starts.append(start)
            masks.append(_take(times, free, need, layout, start))
            end_s = max(end_s, start + need.run_s)
        for lot in lots:
            extra += float(self.tables.extra_usd[lot, kind])
        usd = width * self._money.of(kind, end_s) + extra
        return Machine(
            kind, width, times, free, tuple(lots), tuple(starts), tuple(masks), end_s, extra, usd
        )


def _units(amount: float) -> int:
    return min(math.floor(amount * UNIT + 1e-3), ONES)


def _earliest(times: list[float], free: list[int], need: Need, layout: Layout) -> float | None:
    """Return when a job can start at the earliest: when something ends, if not at once."""
    test, count, run_s, latest_s, *_ = need
    if count:
        return _among(times, free, need, layout)
    guard, at, last = layout.guard, 0, len(times)
    while at < last:
        start = times[at]
        if start > latest_s:
            return None
        stop, here = start + run_s, at
        while (free[here] - test) & guard == guard:
            here += 1
            if here == last or times[here] >= stop:
                return start
        at = here + 1
    return None


def _among(times: list[float], free: list[int], need: Need, layout: Layout) -> float | None:
    """Return the same where some devices of several must be free all the time."""
    test, count, run_s, latest_s, *_ = need
    scalars, shares, last, at = layout.scalars, layout.shares, len(times), 0
    while at < last:
        start = times[at]
        if start > latest_s:
            return None
        stop, here, fits = start + run_s, at, -1
        while True:
            alone = free[here] - test
            fits &= alone
            if fits & scalars != scalars or (fits & (fits >> WIDTH) & shares).bit_count() < count:
                break
            here += 1
            if here == last or times[here] >= stop:
                return start
        # Where a stretch is full by itself, no earlier start gets past it.
        full = alone & scalars != scalars
        full = full or (alone & (alone >> WIDTH) & shares).bit_count() < count
        at = here + 1 if full else at + 1
    return None


def _take(times: list[float], free: list[int], need: Need, layout: Layout, start_s: float) -> int:
    """Take a job's part from a timetable, and return the devices that it has."""
    first, last = _cut(times, free, start_s), _cut(times, free, start_s + need.run_s)
    mask = _devices(free[first:last], need, layout) if need.devices else 0
    if need.number or not need.devices:
        taken = need.scalars + need.unit * _spread(mask)
    else:
        taken = need.test
    for place in range(first, last):
        free[place] -= taken
    return mask


def _cut(times: list[float], free: list[int], at_s: float) -> int:
    """Return the stretch that begins then, made if there is none."""
    place = bisect_left(times, at_s)
    if place == len(times) or times[place] != at_s:
        times.insert(place, at_s)
        free.insert(place, free[place - 1])
    return place


def _devices(free: list[int], need: Need, layout: Layout) -> int:
    """Return which devices a job takes: of those that are free all the time the fullest first."""
    if not need.number:
        return (1 << layout.devices) - 1
    fits = layout.guard
    for one in free:
        fits &= one - need.test
    fits &= (fits >> WIDTH) & layout.shares
    if fits.bit_count() == need.number:
        return sum(1 << place for place in range(layout.devices) if fits >> layout.bits[place] & 1)
    able = [place for place in range(layout.devices) if fits >> layout.bits[place] & 1]
    able.sort(key=lambda place: (free[0] >> (2 * WIDTH * place) & ONES, place))
    return sum(1 << place for place in able[: need.number])


def _spread(mask: int) -> int:
    """Return a factor that brings a device's part to each device of a mask."""
    factor, place = 0, 0
    while mask:
        if mask & 1:
            factor += 1 << (2 * WIDTH * place)
        mask >>= 1
        place += 1
    return factor
