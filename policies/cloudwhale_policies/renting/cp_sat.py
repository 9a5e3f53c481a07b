"""Counts of jobs by CP-SAT, then real machines for them: one worker, deterministic time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from cloudwhale_policies.renting.counts import Counting, Part, counted_plan

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel, IntVar, LinearExprT

    from cloudwhale.spi.renting import RentalPlan, RentalProblem
    from cloudwhale_policies.renting.arrays import Floats

EFFORT = 2.0
"""Deterministic time: about seconds on a usual core, the same on any."""
GAP = 1e-3
SECONDS = 3600
"""Hours are counted in seconds, parts of a machine in ten-thousandths, both rounded up."""
PARTS = 10_000
MOST_MACHINES = 10_000
MICRO = 1e6


class CpSat:
    """The same counts as `milp`, by another solver."""

    def choose(self, problem: RentalProblem) -> RentalPlan:
        """Return a plan that keeps all bounds, never dearer than greedy."""
        return counted_plan(problem, by_cp_sat, "cp-sat")


def by_cp_sat(problem: Counting) -> Floats | None:
    """Return how many jobs each pair has; None: CP-SAT found no counts within its effort."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    counts = [
        [model.new_int_var(0, problem.jobs[lot], "") for lot in part.lots] for part in problem.parts
    ]
    for lot, jobs in enumerate(problem.jobs):
        here = [
            column[place]
            for part, column in zip(problem.parts, counts, strict=True)
            for place in np.flatnonzero(part.block.lots == lot).tolist()
        ]
        if here:
            model.add(sum(here) == jobs)
    costs = [
        _cost(model, part, column, sum(problem.jobs))
        for part, column in zip(problem.parts, counts, strict=True)
    ]
    model.minimize(sum(costs))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    solver.parameters.max_deterministic_time = EFFORT
    solver.parameters.relative_gap_limit = GAP
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    return np.array([solver.value(one) for column in counts for one in column], dtype=np.float64)


def _cost(model: CpModel, part: Part, counts: list[IntVar], jobs: int) -> LinearExprT:
    """Add the rows of a part, and return what it costs in millionths of a dollar."""
    most_s = math.ceil(float(part.hours.max(initial=0.0)) * SECONDS * jobs) + 1
    used = model.new_int_var(0, most_s, "")
    machines = model.new_int_var(0, MOST_MACHINES, "")
    seconds = part.hours * SECONDS
    for way in part.block.rows:
        model.add(_sum(counts, part.loose * way * seconds * PARTS) <= PARTS * used)
    for place, one in enumerate(counts):
        rounds = model.new_int_var(0, jobs, "")
        model.add(one <= math.floor(float(part.block.side[place]) + 1e-6) * rounds)
        model.add(math.ceil(float(seconds[place])) * rounds <= used)
        model.add(one <= max(1, math.floor(float(part.most[place]) + 1e-6)) * machines)
    for taken, hours in part.windows:
        model.add(_sum(counts, taken * SECONDS) <= math.floor(hours * SECONDS) * machines)
    usd = sum(
        round(float(one) * MICRO) * count for one, count in zip(part.usd, counts, strict=True)
    )
    second = round(part.usd_h / SECONDS * MICRO)
    return usd + second * used + round(part.start_usd * MICRO) * machines


def _sum(counts: list[IntVar], weights: Floats) -> LinearExprT:
    whole = [math.ceil(weight - 1e-6) for weight in weights.tolist()]
    total: LinearExprT = sum(
        weight * one for weight, one in zip(whole, counts, strict=True) if weight
    )
    return total
