"""The portfolio: greedy at once, then better machines within an effort; the best is taken."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from cloudwhale_policies.renting.arrays import Tables
from cloudwhale_policies.renting.budgets import Start, keeps_budget, start
from cloudwhale_policies.renting.greedy import Filling
from cloudwhale_policies.renting.limits import Limits
from cloudwhale_policies.renting.machine import Machine, Yard
from cloudwhale_policies.renting.plans import Fleet, plan_of
from cloudwhale_policies.renting.searching import IsOver, Search, never
from cloudwhale_policies.renting.useful import filled_usd, kept_kinds, narrowed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudwhale.spi.renting import RentalPlan, RentalProblem
    from cloudwhale_policies.renting.arrays import Floats

Effort = Literal["quick", "thorough"]

TRIES = {"quick": 300, "thorough": 8_000}
"""Tries to place a job, for each job of the problem."""
MOST_TRIES = {"quick": 200_000, "thorough": 3_000_000}


class WhaleRent:
    """Never dearer than greedy; the same problem gives the same plan."""

    def __init__(self, effort: Effort = "quick", is_over: IsOver = never) -> None:
        """`is_over`: asked all the while whether the time is up; then greedy has to do."""
        self._effort: Effort = effort
        self._is_over = is_over

    def choose(self, problem: RentalProblem) -> RentalPlan:
        """Return the best plan that was found within the effort; all bounds are kept."""
        tables = Tables(problem)
        begun = start(tables)
        plain = plan_of(begun.tables, begun.fleet, "greedy")
        if not begun.fleet.machines:
            return plain
        count = len(problem.jobs)
        tries = min(TRIES[self._effort] * count, MOST_TRIES[self._effort])
        better, fleet = improved(begun, tries, self._is_over)
        if self._is_over():
            return replace(plain, how="greedy, as the time was up", out_of_effort=True)
        how = f"greedy, then {tries} tries to place a job better"
        plan = plan_of(better, fleet, how, tables)
        more = len(plain.left_out) - len(plan.left_out)
        return plan if more > 0 or (more == 0 and plan.cost_usd < plain.cost_usd) else plain


def improved(
    begun: Start, tries: int, is_over: IsOver = never, worth: Floats | None = None
) -> tuple[Tables, Fleet]:
    """Return a fleet for the same jobs, and some of those left out if it has room for them."""
    used = {machine.kind for machine in begun.fleet.machines}
    kept = kept_kinds(begun.tables, used)
    tables = narrowed(begun.tables, kept)
    place = {kind: column for column, kind in enumerate(kept)}
    machines = [replace(one, kind=place[one.kind], tries={}) for one in begun.fleet.machines]
    filled = filled_usd(tables)
    search = Search(tables, filled.min(axis=1) if worth is None else worth, filled, is_over)
    limits = Limits(tables.problem)

    def keeps(some: Sequence[Machine]) -> bool:
        return limits.keep(some) and keeps_budget(tables, some)

    machines = search.better(machines, tries, keeps)
    filling = Filling(tables, Yard(tables), limits)
    for machine in machines:
        filling.take(machine)
    left = [lot for lot in _unseated(tables, machines) if not filling.add(lot, keeps)]
    scarce = set(begun.fleet.left)
    return tables, Fleet(filling.machines, [lot for lot in left if lot in scarce])


def _unseated(tables: Tables, machines: Sequence[Machine]) -> list[int]:
    """Return the lots of jobs without a machine that could have one, who comes first first."""
    seated = [0] * len(tables.members)
    for machine in machines:
        for lot in machine.lots:
            seated[lot] += 1
    rows = sorted(
        row
        for lot, members in enumerate(tables.members)
        if np.isfinite(tables.cheapest_usd[lot])
        for row in members[seated[lot] :]
    )
    return [tables.lot_of[row] for row in rows]
