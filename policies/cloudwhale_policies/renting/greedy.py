"""Dearest job first: into a gap, at the end of a machine, or on a new one; always valid."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cloudwhale_policies.renting.arrays import Tables
from cloudwhale_policies.renting.limits import Limits
from cloudwhale_policies.renting.machine import Machine, Yard
from cloudwhale_policies.renting.plans import Fleet, plan_of
from cloudwhale_policies.renting.retyping import Retyping

if TYPE_CHECKING:
    from cloudwhale.spi.renting import RentalPlan, RentalProblem
    from cloudwhale_policies.renting.arrays import Floats

    Keeps = Callable[[Sequence[Machine]], bool]


class Greedy:
    """Best fit by falling cost of a machine of its own, then the cheapest kind for each machine."""

    def choose(self, problem: RentalProblem) -> RentalPlan:
        """Return a plan that keeps all bounds; jobs that it finds no room for are left out."""
        from cloudwhale_policies.renting.budgets import start

        found = start(Tables(problem))
        return plan_of(found.tables, found.fleet, "greedy")


def greedy_fleet(tables: Tables, rows: Iterable[int] | None = None) -> Fleet:
    """Return machines for the jobs of some rows, all by default; the budget is not asked."""
    yard, limits = Yard(tables), Limits(tables.problem)
    filling = Filling(tables, yard, limits)
    lots = [tables.lot_of[row] for row in (range(len(tables.lot_of)) if rows is None else rows)]
    falling = sorted(
        (lot for lot in lots if np.isfinite(tables.cheapest_usd[lot])),
        key=lambda lot: (-tables.cheapest_usd[lot], lot),
    )
    left = [lot for lot in falling if not filling.add(lot)]
    return Fleet(shrunk(filling.machines, tables, yard, limits), left)


class Filling:
    """Open machines as columns, so that most of them are ruled out at once for a job."""

    def __init__(self, tables: Tables, yard: Yard, limits: Limits) -> None:
        self._tables, self._yard, self._limits = tables, yard, limits
        self.machines: list[Machine] = []
        size = len(tables.lot_of) or 1
        self._kinds = np.zeros(size, dtype=np.int64)
        self._widths = np.zeros(size, dtype=np.int64)
        self._end_s = np.zeros(size)
        self._rates = np.zeros(size)
        self._used = np.zeros((3, size))
        """Machine seconds that are used of devices, CPU and memory."""
        self._usd_s = np.array([kind.usd_h for kind in tables.kinds]) / 3600.0

    def add(self, lot: int, keeps: Keeps | None = None) -> bool:
        """Put a job of a lot where it adds least.

        False, and nothing is changed: no kind that it could have is left, or what it adds is more
        than `keeps` lets the machines be.
        """
        tables, room = self._tables, self._limits.room(self.machines, self._tables.nodes[lot])
        own = tables.own_usd[lot] if room is None else np.where(room, tables.own_usd[lot], np.inf)
        kind = int(own.argmin())
        place = self._best(lot, float(own[kind]))
        if place is None and not np.isfinite(own[kind]):
            return False
        if place is not None:
            at, start = place
            old, new = self.machines[at], self._yard.placed(self.machines[at], lot, start)
            if keeps is not None and not keeps(
                [*self.machines[:at], new, *self.machines[at + 1 :]]
            ):
                return False
            self._note(at, new, new.lots[len(old.lots) :])
            return True
        empty = self._yard.empty(kind, tables.nodes[lot])
        new = self._yard.placed(empty, lot, empty.times[0])
        if keeps is not None and not keeps([*self.machines, new]):
            return False
        self.take(new)
        return True

    def take(self, machine: Machine) -> None:
        """Add a machine with its jobs."""
        self.machines.append(machine)
        self._note(len(self.machines) - 1, machine, machine.lots)

    def _best(self, lot: int, own_usd: float) -> tuple[int, float] | None:
        """Return the open machine where it adds least and less than that, and when it starts."""
        least = self._least(lot)
        near = np.flatnonzero(least < own_usd)
        best: tuple[int, float] | None = None
        places: list[int] = near[np.argsort(least[near], kind="stable")].tolist()
        for at in places:
            if least[at] >= own_usd:
                break
            machine = self.machines[at]
            start = self._yard.earliest(machine, lot)
            if start is None:
                continue
            usd = self._yard.price(machine, lot, start)
            if usd < own_usd:
                best, own_usd = (at, start), usd
        return best

    def _least(self, lot: int) -> Floats:
        """Return the least that a job could add to each open machine."""
        tables, count = self._tables, len(self.machines)
        kinds = self._kinds[:count]
        runs = np.where(tables.fits[lot, kinds], tables.runs_s[lot, kinds], 0.0)
        boots = tables.boot_s[kinds]
        able = (tables.latest_s[lot, kinds] >= boots) & (self._widths[:count] == tables.nodes[lot])
        used = self._used[:, :count] + tables.parts(lot)[:, kinds] * runs
        longer = np.maximum(used.max(axis=0, initial=0.0), runs) + boots - self._end_s[:count]
        least = tables.extra_usd[lot, kinds] + self._rates[:count] * np.maximum(longer, 0.0)
        return np.where(able, least, np.inf)

    def _note(self, at: int, machine: Machine, added: Sequence[int]) -> None:
        self.machines[at] = machine
        tables, kind = self._tables, machine.kind
        self._kinds[at], self._widths[at], self._end_s[at] = kind, machine.width, machine.end_s
        self._rates[at] = self._usd_s[kind] * machine.width
        for lot in added:
            self._used[:, at] += tables.parts(lot)[:, kind] * tables.runs_s[lot, kind]


def shrunk(
    machines: Iterable[Machine], tables: Tables, yard: Yard, limits: Limits
) -> list[Machine]:
    """Return each machine as the cheapest kind that holds its jobs, as far as limits let it."""
    retyping = Retyping(tables, yard)
    fleet = list(machines)
    for at, machine in enumerate(fleet):
        others = [*fleet[:at], *fleet[at + 1 :]] if limits.any else []
        room = limits.room(others, machine.width)
        fleet[at] = retyping.cheapest(machine.lots, machine.width, machine.usd, room) or machine
    return fleet
