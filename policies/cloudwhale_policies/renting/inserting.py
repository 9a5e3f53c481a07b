"""One job more on a machine, some jobs less, another kind for the same jobs: what each would cost.

A machine never changes, so what was found out about it once is kept with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cloudwhale_policies.renting.machine import Machine, Yard
from cloudwhale_policies.renting.retyping import Retyping, Sums

if TYPE_CHECKING:
    from cloudwhale_policies.renting.arrays import Tables

FREE = 0.02
"""A job that adds no more than this part of its own machine's cost is not worth a repacking."""
LEAST_GAIN_USD = 1e-9


class Insertion(NamedTuple):
    """The best known way to put a job on a machine."""

    usd: float
    """What it adds; infinity: no way is known below `asked_usd`."""
    start_s: float | None
    """Where it is put while nothing else moves; None: `machine` is the whole."""
    machine: Machine | None
    asked_usd: float


class Inserting:
    """Knows the cheapest machines for sets of jobs; `work` counts jobs placed or tried."""

    def __init__(self, tables: Tables, yard: Yard, tries: int = 3) -> None:
        self.tables, self.yard, self._tries = tables, yard, tries
        self.work = 0
        self._retyping = Retyping(tables, yard)
        self._packs: dict[tuple[int, int, tuple[int, ...]], Machine | None] = {}
        self._cheap = tables.cheapest_usd.tolist()
        self._orders = _orders(tables)

    def best(self, machine: Machine, lot: int, below_usd: float) -> Insertion:
        """Return how a job of a lot is best put there, when it adds less than that."""
        known = machine.tries.get(lot)
        if known is not None and (known.usd < below_usd or known.asked_usd >= below_usd):
            return known
        self.work += 1
        found = Insertion(math.inf, None, None, below_usd)
        if self.tables.fits[lot, machine.kind]:
            start = self.yard.earliest(machine, lot)
            if start is not None:
                usd = self.yard.price(machine, lot, start)
                found = Insertion(usd, start, None, below_usd)
        if min(found.usd, below_usd) > FREE * self._cheap[lot]:
            found = self._repacked(machine, lot, found)
        machine.tries[lot] = found
        return found

    def inserted(self, machine: Machine, lot: int, way: Insertion) -> Machine:
        """Return the machine with the job, put there in a way that was found."""
        if way.machine is not None:
            return way.machine
        if way.start_s is None:
            raise ValueError("no way was found to put the job there")
        return self.yard.placed(machine, lot, way.start_s)

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

    def sums(self, machine: Machine) -> Sums:
        """Return what a machine's jobs ask of every kind."""
        if machine.sums is None:
            machine.sums = self._retyping.sums(tuple(sorted(machine.lots)))
        return machine.sums

    def _repacked(self, machine: Machine, lot: int, found: Insertion) -> Insertion:
        below = machine.usd + min(found.usd, found.asked_usd)
        sums = self.sums(machine).with_one(self.tables, lot)
        best = self._cheapest(sums, machine.width, (*machine.lots, lot), below)
        if best is None:
            return found
        return Insertion(best.usd - machine.usd, None, best, found.asked_usd)

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
