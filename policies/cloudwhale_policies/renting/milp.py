"""Counts of jobs by a mixed-integer programme, then real machines for them: HiGHS, one thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cloudwhale_policies.filling.prices import quiet_solver
from cloudwhale_policies.renting.counts import Counting, Part, counted_plan

if TYPE_CHECKING:
    from cloudwhale.spi.renting import RentalPlan, RentalProblem
    from cloudwhale_policies.renting.arrays import Floats

NODES = 200
"""Of the search tree: effort is counted, never timed."""
GAP = 1e-3


class Milp:
    """Whole counts of jobs by kind, placed kind by kind; greedy where that is better."""

    def choose(self, problem: RentalProblem) -> RentalPlan:
        """Return a plan that keeps all bounds, never dearer than greedy."""
        return counted_plan(problem, by_milp, "milp")


def by_milp(problem: Counting) -> Floats | None:
    """Return how many jobs each pair has; None: HiGHS found no counts within its nodes."""
    import highspy

    solver = quiet_solver()
    for name, value in (
        ("threads", 1), ("mip_rel_gap", GAP), ("mip_max_nodes", NODES), ("random_seed", 0),
    ):  # fmt: skip
        solver.setOptionValue(name, value)
    if solver.passModel(_model(problem)) == highspy.HighsStatus.kError:
        return None
    if solver.run() == highspy.HighsStatus.kError:
        return None
    values = np.array(solver.getSolution().col_value, dtype=np.float64)
    if solver.getInfo().primal_solution_status != 2 or len(values) < problem.pairs:  # 2: feasible
        return None
    return values[: problem.pairs]


def _model(problem: Counting) -> Any:
    """Return the programme; columns: jobs of all pairs, their rounds, machines and hours of parts.

    A round is a time in which as many jobs of a lot as can be side by side run once.
    """
    import highspy

    pairs, parts = problem.pairs, len(problem.parts)
    rows = _Rows()
    for lot, jobs in enumerate(problem.jobs):
        columns = [
            int(at[place])
            for part, at in zip(problem.parts, problem.at, strict=True)
            for place in np.flatnonzero(part.block.lots == lot).tolist()
        ]
        if columns:
            rows.add(columns, [1.0] * len(columns), (float(jobs), float(jobs)))
    for number, (part, at) in enumerate(zip(problem.parts, problem.at, strict=True)):
        _add_part(rows, part, at.tolist(), (pairs, 2 * pairs + 2 * number))
    integer, real = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = 2 * pairs + 2 * parts, len(rows.lower)
    ends = [usd for part in problem.parts for usd in (part.start_usd, part.usd_h)]
    model.col_cost_ = np.concatenate(
        [*(part.usd for part in problem.parts), np.zeros(pairs), np.array(ends)]
    )
    model.col_lower_ = np.zeros(model.num_col_)
    most = [float(problem.jobs[lot]) for part in problem.parts for lot in part.lots]
    model.col_upper_ = np.array([*most, *most, *[np.inf] * (2 * parts)])
    model.integrality_ = [integer] * (2 * pairs) + [integer, real] * parts
    model.row_lower_, model.row_upper_ = np.array(rows.lower), np.array(rows.upper)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.array(rows.starts)
    model.a_matrix_.index_ = np.array(rows.index)
    model.a_matrix_.value_ = np.array(rows.value)
    return model


class _Rows:
    """Rows of a programme as they are added."""

    def __init__(self) -> None:
        self.starts = [0]
        self.index: list[int] = []
        self.value: list[float] = []
        self.lower: list[float] = []
        self.upper: list[float] = []

    def add(self, columns: list[int], values: list[float], within: tuple[float, float]) -> None:
        """Add a row; entries of 0 are left out."""
        kept = [(at, value) for at, value in zip(columns, values, strict=True) if value]
        self.index.extend(at for at, _ in kept)
        self.value.extend(value for _, value in kept)
        self.starts.append(len(self.index))
        self.lower.append(within[0])
        self.upper.append(within[1])


def _add_part(rows: _Rows, part: Part, at: list[int], after: tuple[int, int]) -> None:
    """Add all rows of a part: hours, rounds, links, deadlines."""
    below = (-np.inf, 0.0)
    pairs, machines = after
    for way in part.block.rows:
        rows.add([*at, machines + 1], [*(part.loose * way * part.hours).tolist(), -1.0], below)
    for place, column in enumerate(at):
        rows.add([column, pairs + column], [1.0, -float(part.block.side[place])], below)
        rows.add([pairs + column, machines + 1], [float(part.hours[place]), -1.0], below)
        rows.add([column, machines], [1.0 / float(part.most[place]), -1.0], below)
    for taken, hours in part.windows:
        rows.add([*at, machines], [*taken.tolist(), -hours], below)
