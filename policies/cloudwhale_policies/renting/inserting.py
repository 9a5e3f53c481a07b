"""One job more on a machine, some jobs less, another kind for the same jobs: what each would cost.

A machine never changes, so what was found out about it once is kept with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cloudwhale.spi.renting import HOUR_S
from cloudwhale_policies.renting.machine import Machine, Yard
from cloudwhale_policies.renting.retyping import Retyping, Sums

if TYPE_CHECKING:
    from cloudwhale_policies.renting.arrays import Tables

LEAST_GAIN_USD = 1e-9


class Insertion(NamedTuple):
    """The best known way to put a job on a machine by packing all its jobs anew."""

    machine: Machine | None
    """None: no way is known that adds less than was asked."""
    asked_usd: float


class Inserting:
    """Knows the cheapest machines for sets of jobs; `work` counts jobs placed or tried."""

    def __init__(self, tables: Tables, yard: Yard, tries: int = 3) -> None:
        self.tables, self.yard, self._tries = tables, yard, tries
        self.work = 0
        self._retyping = Retyping(tables, yard)
        self._packs: dict[tuple[int, int, tuple[int, ...]], Machine | None] = {}
        self._orders = _orders(tables)
        self._runs: list[list[float]] = tables.able_s.tolist()
        self._extra: list[list[float]] = tables.extra_usd.tolist()
        self._boot: list[float] = tables.boot_s.tolist()
        self._rate: list[float] = (tables.of_kinds("usd_h") / HOUR_S).tolist()
        self._devices: dict[int, list[float]] = {}

    def least_added(self, machine: Machine, lot: int) -> float:
        """Return the least that a job could add on this kind; infinity: it cannot run there."""
        kind = machine.kind
        if machine.devices_s is None:
            machine.devices_s = sum(self._of_devices(one)[kind] for one in machine.lots)
        longest = max(self._runs[lot][kind], machine.devices_s + self._of_devices(lot)[kind])
        longer = self._boot[kind] + longest - machine.end_s
        extra = self._extra[lot][kind]
        return extra + longer * self._rate[kind] * machine.width if longer > 0 else extra

    def _of_devices(self, lot: int) -> list[float]:
        """Return by kind how long a job would run were all devices its own."""
        found = self._devices.get(lot)
        if found is None:
            row: list[float] = self.tables.seconds(lot)[0].tolist()
            found = self._devices[lot] = row
        return found

    def added(self, machine: Machine, lot: int) -> tuple[float, float]:
        """Return what a job adds while nothing else moves, and its start; infinity: no room."""
        known = machine.starts_s.get(lot)
        if known is None:
            self.work += 1
            known = (math.inf, 0.0)
            if self.tables.fits[lot, machine.kind]:
                start = self.yard.earliest(machine, lot)
                if start is not None:
                    known = (self.yard.price(machine, lot, start), start)
            machine.starts_s[lot] = known
        return known

    def repacked(self, machine: Machine, lot: int, below_usd: float) -> Machine | None:
        """Return a machine of any kind that holds a job more and adds less than that."""
        known = machine.tries.get(lot)
        if known is None or (known.machine is None and known.asked_usd < below_usd):
            sums = self.sums(machine).with_one(self.tables, lot)
            most = machine.usd + below_usd
            found = self._cheapest(sums, machine.width, (*machine.lots, lot), most)
            known = machine.tries[lot] = Insertion(found, below_usd)
        if known.machine is None or known.machine.usd - machine.usd >= below_usd:
            return None
        return known.machine

    def floor(self, machine: Machine, lot: int) -> float:
        """Return the least that a job could add to a machine, whatever its kind."""
        found = machine.floors.get(lot)
        if found is None:
            sums = self.sums(machine).with_one(self.tables, lot)
            least = self._retyping.least_usd(sums, machine.width)
            found = machine.floors[lot] = float(least.min()) - machine.usd
        return found

    def retyped(self, machine: Machine) -> Machine:
        """Return the cheapest machine found for the same jobs, itself at worst."""
        if machine.settled is None:
            found = self._cheapest(self.sums(machine), machine.width, machine.lots, machine.usd)
            machine.settled = found or machine
            machine.settled.settled = machine.settled
        return machine.settled

    def without(self, machine: Machine, gone: Sequence[int]) -> Machine | None:
        """Return a machine for all but some of its jobs; None: none is left, or no packing held."""
        lots = list(machine.lots)
        for lot in gone:
            lots.remove(lot)
        packed = self.packed(machine.kind, machine.width, lots, math.inf) if lots else None
        return None if packed is None else self.retyped(packed)

    def packed(
        self, kind: int, width: int, lots: Sequence[int], below_usd: float
    ) -> Machine | None:
        """Return jobs on a machine of a kind for less, in the better of some orders."""
        best: Machine | None = None
        for order in dict.fromkeys(tuple(sorted(lots, key=key)) for key in self._orders):
            key = (kind, width, order)
            if key not in self._packs:
                self.work += len(order)
                self._packs[key] = self.yard.packed(kind, width, order)
            machine = self._packs[key]
            if machine is not None and machine.usd < below_usd:
                best, below_usd = machine, machine.usd
        return best

    @property
    def packs(self) -> Iterator[Machine]:
        """Return all machines that were packed."""
        return (machine for machine in self._packs.values() if machine is not None)

    def sums(self, machine: Machine) -> Sums:
        """Return what a machine's jobs ask of every kind."""
        if machine.sums is None:
            machine.sums = self._retyping.sums(tuple(sorted(machine.lots)))
        return machine.sums

    def _cheapest(
        self, sums: Sums, width: int, lots: Sequence[int], below_usd: float
    ) -> Machine | None:
        least = self._retyping.least_usd(sums, width)
        below_usd -= LEAST_GAIN_USD
        near = np.flatnonzero(least < below_usd)
        best: Machine | None = None
        if len(near) > self._tries:
            near = near[np.argpartition(least[near], self._tries - 1)[: self._tries]]
        for kind in near[np.argsort(least[near], kind="stable")].tolist():
            if least[kind] >= below_usd:
                break
            machine = self.packed(kind, width, lots, below_usd)
            if machine is not None:
                best, below_usd = machine, machine.usd
        return best


def _orders(tables: Tables) -> tuple[Callable[[int], tuple[float, ...]], ...]:
    """Return the orders in which jobs are packed: those in a hurry first, or the dearest."""
    dear = tables.cheapest_usd.tolist()
    done = np.minimum(tables.done_by_s, tables.start_by_s).tolist()
    hurried = [(done[lot], -dear[lot], lot) for lot in range(len(dear))]
    dearest = [(-dear[lot], lot) for lot in range(len(dear))]
    return hurried.__getitem__, dearest.__getitem__
