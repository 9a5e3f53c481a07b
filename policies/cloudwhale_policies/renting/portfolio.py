"""The portfolio: greedy at once, then better machines within an effort; the best is taken."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from cloudwhale_policies.renting.arrays import Tables
from cloudwhale_policies.renting.bounding import FIRM, QUICK, Bound, bound_of
from cloudwhale_policies.renting.budgets import Start, keeps_budget, start
from cloudwhale_policies.renting.counts import counted_fleet
from cloudwhale_policies.renting.exhausting import cheapest_fleet
from cloudwhale_policies.renting.greedy import Filling
from cloudwhale_policies.renting.limits import Limits
from cloudwhale_policies.renting.machine import Machine, Yard
from cloudwhale_policies.renting.milp import by_milp
from cloudwhale_policies.renting.plans import Fleet, plan_of
from cloudwhale_policies.renting.searching import IsOver, Search, never
from cloudwhale_policies.renting.useful import filled_usd, kept_kinds, narrowed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cloudwhale.spi.renting import RentalPlan, RentalProblem
    from cloudwhale_policies.renting.arrays import Flags

Effort = Literal["quick", "thorough"]

TRIES = {"quick": (80, 200), "thorough": (6_000, 600)}
"""Tries to place a job, for each job of a problem of few and of many."""
MOST_TRIES = {"quick": 200_000, "thorough": 600_000}
ROUNDS = {"quick": 1, "thorough": 4}
BOUNDS = {"quick": QUICK, "thorough": FIRM}
NODES = 50
"""Nodes in which a cheaper choice among all machines seen is looked for."""
COVERED = 300
"""With more jobs that takes longer than it gains."""
DISLIKED = 0.5
"""A kind on which the bound runs none of a job counts as if the job were so much dearer there."""
FAINT = 0.02
"""A smaller part of a job on a kind is none."""
ALIKE = 5
"""Jobs of a lot, on average, from which on they are counted rather than placed one by one."""
MANY = 300
"""Fewer jobs are placed one by one whether alike or not."""
FEW = 10
"""With so few jobs all kinds are tried."""


def chosen(problem: RentalProblem, effort: Effort, is_over: IsOver) -> RentalPlan:
    """Return the best plan that was found within the effort; all bounds are kept."""
    tables = Tables(problem)
    begun = start(tables)
    plain = plan_of(begun.tables, begun.fleet, "greedy")
    if not begun.fleet.machines:
        return plain
    count = MANY if _alike(tables) else len(problem.jobs)
    tries = min(TRIES[effort][count > MANY] * count, MOST_TRIES[effort])
    bound = bound_of(tables, BOUNDS[effort])
    better, fleet = improved(begun, bound, Work(tries, ROUNDS[effort]), is_over)
    if is_over():
        return replace(plain, how="greedy, as the time was up", out_of_effort=True)
    how = f"greedy, then {tries} tries to place a job better"
    plan = plan_of(better, fleet, how, tables)
    more = len(plain.left_out) - len(plan.left_out)
    best = plan if more > 0 or (more == 0 and plan.cost_usd < plain.cost_usd) else plain
    return _with_bound(best, problem, bound)


@dataclass(frozen=True, slots=True)
class Work:
    """How much is done to find a better fleet."""

    tries: int
    rounds: int
    """After each the cheapest choice among all machines seen is looked for."""


def improved(
    begun: Start, bound: Bound, work: Work, is_over: IsOver = never
) -> tuple[Tables, Fleet]:
    """Return a fleet for the same jobs, and some of those left out if it has room for them."""
    liked = _liked(begun.tables, bound)
    kept = _kept(begun, liked)
    tables = narrowed(begun.tables, kept)
    place = {kind: column for column, kind in enumerate(kept)}
    yard = Yard(tables)
    machines = [yard.again(one, place[one.kind]) for one in begun.fleet.machines]
    filled = filled_usd(tables)
    worth = filled.min(axis=1)
    search = Search(tables, worth, np.where(liked[:, kept], filled, filled / DISLIKED), is_over)
    limits = Limits(tables.problem)

    def keeps(some: Sequence[Machine]) -> bool:
        return limits.keep(some) and keeps_budget(tables, some)

    machines = _counted(tables, machines, keeps)
    for _ in range(work.rounds):
        machines = search.better(machines, work.tries // work.rounds, keeps)
        if len(tables.lot_of) <= COVERED and not is_over():
            machines = search.covered(machines, NODES, keeps)
    filling = Filling(tables, yard, limits)
    for machine in machines:
        filling.take(machine)
    left = [lot for lot in _unseated(tables, machines) if not filling.add(lot, keeps)]
    exact = None if left else cheapest_fleet(tables, yard)
    if exact is not None and exact.usd < sum(one.usd for one in filling.machines):
        if keeps(exact.machines):
            return tables, exact
    scarce = set(begun.fleet.left)
    return tables, Fleet(filling.machines, [lot for lot in left if lot in scarce])


def _counted(
    tables: Tables, machines: list[Machine], keeps: Callable[[Sequence[Machine]], bool]
) -> list[Machine]:
    """Return a fleet by counts where many jobs are alike and that is cheaper, else the same."""
    if not _alike(tables):
        return machines
    fleet = counted_fleet(tables, by_milp)
    if fleet is None or sum(len(one.lots) for one in machines) < len(tables.lot_of):
        return machines
    cheaper = fleet.usd < sum(one.usd for one in machines)
    allowed = cheaper and not fleet.left and keeps(fleet.machines)
    return list(fleet.machines) if allowed else machines


def _alike(tables: Tables) -> bool:
    """Return whether so many jobs are alike that counts come first, and tries count less."""
    count = len(tables.lot_of)
    return count > MANY and count >= ALIKE * len(tables.members)


def _liked(tables: Tables, bound: Bound) -> Flags:
    """Return on which kinds the programme of the bound ran some of each lot."""
    liked = np.zeros((len(tables.members), len(tables.kinds)), dtype=bool)
    first = [rows[0] for rows in tables.members]
    for kind, part in bound.runs.items():
        liked[:, kind] = part[first] > FAINT
    return liked


def _kept(begun: Start, liked: Flags) -> Sequence[int]:
    """Return the kinds that are tried: all for a few jobs."""
    if len(liked) <= FEW:
        return range(len(begun.tables.kinds))
    used = {machine.kind for machine in begun.fleet.machines}
    return kept_kinds(begun.tables, used | set(np.flatnonzero(liked.any(axis=0)).tolist()))


def _with_bound(plan: RentalPlan, problem: RentalProblem, bound: Bound) -> RentalPlan:
    """Return the plan with what its jobs are worth, which it cannot cost less than."""
    seated = {job for choice in plan.choices for job in choice.jobs}
    worth = {
        job: worth
        for job, worth in zip(problem.jobs, bound.worth.tolist(), strict=True)
        if job in seated
    }
    return replace(plan, bound_usd=min(sum(worth.values()), plan.cost_usd), worth_usd=worth)


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
