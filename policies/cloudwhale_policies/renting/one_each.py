"""One machine for each job: the plain way."""

import math
from collections.abc import Iterator

from cloudwhale.spi.renting import Choice, Kind, RentalPlan, RentalProblem, Seat

DUST = 1e-9
"""Sums of money and of quota units may be off by so much."""


class OneEach:
    """For each job the kind on which it is expected to cost least; what launchers of jobs do."""

    def choose(self, problem: RentalProblem) -> RentalPlan:
        """Return a machine for each job that some kind fits; ties end at the first kind.

        Who comes first takes what it needs of money, quota and supply; where the best kind is
        used up, the next one is tried.
        """
        left = _Left(problem)
        choices: list[Choice] = []
        cost_usd, left_out = 0.0, dict[str, str]()
        for row, job in enumerate(problem.jobs):
            costs = sorted(_costs(problem, row))
            best = next((one for one in costs if left.allows(row, one[1])), None)
            if best is not None:
                left.take(row, best[1])
                choices.append(_choice(problem, row, best[1]))
                cost_usd += best[0]
            elif not costs and any(map(math.isfinite, map(float, problem.runs_s[row]))):
                left_out[job] = "late"
            elif costs:
                left_out[job] = left.lacks(row, [column for _, column in costs])
        return RentalPlan(tuple(choices), cost_usd, left_out=left_out, how="one each")


class _Left:
    """What those who came before have left of money, quotas and supply."""

    def __init__(self, problem: RentalProblem) -> None:
        self._problem = problem
        self._usd = math.inf if problem.budget_usd is None else problem.budget_usd
        self._units = dict(problem.quotas)
        self._machines = [math.inf if k.at_most is None else k.at_most for k in problem.kinds]

    def allows(self, row: int, column: int) -> bool:
        return self._has_room(row, column) and self._worst_usd(row, column) <= self._usd + DUST

    def lacks(self, row: int, columns: list[int]) -> str:
        return "budget" if any(self._has_room(row, column) for column in columns) else "quota"

    def take(self, row: int, column: int) -> None:
        kind, nodes = self._of(row, column)
        self._usd -= self._worst_usd(row, column)
        self._machines[column] -= nodes
        if kind.quota in self._units:
            self._units[kind.quota] -= nodes * kind.quota_units

    def _of(self, row: int, column: int) -> tuple[Kind, int]:
        return self._problem.kinds[column], self._problem.demands[row].nodes

    def _has_room(self, row: int, column: int) -> bool:
        kind, nodes = self._of(row, column)
        units = self._units.get(kind.quota, math.inf) if kind.quota_units else math.inf
        return nodes <= self._machines[column] and nodes * kind.quota_units <= units + DUST

    def _worst_usd(self, row: int, column: int) -> float:
        kind, nodes = self._of(row, column)
        used_s = kind.boot_s + float(self._problem.runs_s[row, column])
        return nodes * self._problem.terms.worst_usd(kind, used_s)


def _choice(problem: RentalProblem, row: int, column: int) -> Choice:
    kind, demand, job = problem.kinds[column], problem.demands[row], problem.jobs[row]
    return Choice(
        offer=kind.offer,
        seats=(Seat(job, kind.boot_s, tuple(range(demand.devices))),),
        used_s=kind.boot_s + float(problem.runs_s[row, column]),
        says=f"the cheapest for {job} alone",
        machines=demand.nodes,
    )


def _costs(problem: RentalProblem, row: int) -> Iterator[tuple[float, int]]:
    """Yield what each kind costs that is in time, with its position."""
    for column, kind in enumerate(problem.kinds):
        runs_s = float(problem.runs_s[row, column])
        late_s = kind.boot_s + float(problem.late_s[row, column])
        used_s = kind.boot_s + runs_s
        if math.isinf(runs_s) or late_s > problem.done_by_s[row] or used_s > problem.horizon_s:
            continue
        cost = problem.demands[row].nodes * kind.cost_usd(used_s)
        yield cost + float(problem.extra_usd[row, column]), column
