"""Plans whose worst case a budget can bear: cheaper worst cases first, then fewer jobs.

Who comes first in the round gets the money and the quota first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cloudwhale_policies.renting.greedy import Filling, greedy_fleet
from cloudwhale_policies.renting.limits import Limits
from cloudwhale_policies.renting.machine import Machine, Yard
from cloudwhale_policies.renting.plans import Fleet, cost_usd, worst_usd

if TYPE_CHECKING:
    from cloudwhale_policies.renting.arrays import Tables

WEIGHTS = (0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
"""What a dollar of worst case counts beside one of expected cost, tried in turn."""
SHORT_WEIGHTS = (1.0, 100.0)
"""The same when jobs must be left out."""
SLACK_USD = 1e-9


@dataclass(frozen=True, slots=True)
class Start:
    """A fleet that keeps all bounds, and the tables in whose money it was found."""

    tables: Tables
    fleet: Fleet


def keeps_budget(tables: Tables, machines: Sequence[Machine]) -> bool:
    """Return whether all worst cases together stay within the budget."""
    budget = tables.problem.budget_usd
    return budget is None or worst_usd(tables, machines) <= budget + SLACK_USD


def start(tables: Tables) -> Start:
    """Return the greedy fleet; one that costs less at worst, or with fewer jobs, where it must."""
    fleet = greedy_fleet(tables)
    if not fleet.left:
        if keeps_budget(tables, fleet.machines):
            return Start(tables, fleet)
        thrifty = _thrifty(tables)
        if thrifty is not None:
            return thrifty
    return _short(tables)


def _thrifty(tables: Tables) -> Start | None:
    """Return a fleet for all jobs with the least weight that brings the worst case down enough."""
    found: list[Start] = []
    for weight in WEIGHTS:
        weighed = tables.weighed(weight)
        fleet = greedy_fleet(weighed)
        if not fleet.left and keeps_budget(tables, fleet.machines):
            found.append(Start(weighed, fleet))
    return min(found, key=lambda one: cost_usd(tables, one.fleet.machines), default=None)


def _short(tables: Tables) -> Start:
    """Return a fleet for as many jobs as come first, and for those behind that still fit."""
    starts = [_first_come(tables.weighed(weight)) for weight in SHORT_WEIGHTS]
    return max(starts, key=lambda one: (_seated(one), -cost_usd(tables, one.fleet.machines)))


def _seated(one: Start) -> tuple[int, ...]:
    """Return by job in the order of the round whether it has a place."""
    tables = one.tables
    counts = [0] * len(tables.members)
    for machine in one.fleet.machines:
        for lot in machine.lots:
            counts[lot] += 1
    flags = [0] * len(tables.lot_of)
    for lot, rows in enumerate(tables.members):
        for row in rows[: counts[lot]]:
            flags[row] = 1
    return tuple(flags)


def _first_come(tables: Tables) -> Start:
    limits = Limits(tables.problem)

    def keeps(machines: Sequence[Machine]) -> bool:
        return limits.keep(machines) and keeps_budget(tables, machines)

    filling = Filling(tables, Yard(tables), limits)
    hopeful: list[int] = []
    left: list[int] = []
    for row, lot in enumerate(tables.lot_of):
        if np.isfinite(tables.cheapest_usd[lot]):
            if _alone(tables, lot, limits, keeps):
                hopeful.append(row)
            else:
                left.append(lot)
    first, machines = _longest(tables, hopeful, keeps)
    for machine in machines:
        filling.take(machine)
    for row in hopeful[first:]:
        if not filling.add(tables.lot_of[row], keeps):
            left.append(tables.lot_of[row])
    return Start(tables, Fleet(filling.machines, _for_quota(tables, limits, filling, left)))


def _alone(
    tables: Tables, lot: int, limits: Limits, keeps: Callable[[Sequence[Machine]], bool]
) -> bool:
    """Return whether a job could have a machine were it the only one."""
    return Filling(tables, Yard(tables), limits).add(lot, keeps)


def _longest(
    tables: Tables, rows: Sequence[int], keeps: Callable[[Sequence[Machine]], bool]
) -> tuple[int, Sequence[Machine]]:
    """Return how many of those who come first all fit together, found by halving, and where."""
    low, high, best = 0, len(rows) + 1, Fleet(())
    while high - low > 1:
        middle = (low + high) // 2
        fleet = greedy_fleet(tables, rows[:middle])
        if not fleet.left and keeps(fleet.machines):
            low, best = middle, fleet
        else:
            high = middle
    return low, best.machines


def _for_quota(tables: Tables, limits: Limits, filling: Filling, left: Sequence[int]) -> list[int]:
    """Return those of some lots left out for whom there is no machine whatever the money."""
    if not limits.any:
        return []
    out: list[int] = []
    for lot in left:
        room = limits.room(filling.machines, tables.nodes[lot])
        if room is not None and not (np.isfinite(tables.own_usd[lot]) & room).any():
            out.append(lot)
    return out
