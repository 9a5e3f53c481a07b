"""One machine for each job: the plain way."""

import math
from collections.abc import Iterator

from cloudwhale.spi.renting import Choice, RentalPlan, RentalProblem, Seat


class OneEach:
    """For each job the kind on which it is expected to cost least; what launchers of jobs do."""

    def choose(self, problem: RentalProblem) -> RentalPlan:
        """Return a machine for each job that some kind fits; ties end at the first kind.

        Budget and quotas are not its question: whoever carries it out stops at the first refusal.
        """
        choices = tuple(_choices(problem))
        return RentalPlan(choices, sum(_cost(problem, one) for one in choices), how="one each")


def _choices(problem: RentalProblem) -> Iterator[Choice]:
    for row, job in enumerate(problem.jobs):
        best = min(_costs(problem, row), default=None)
        if best is None:
            continue
        kind = problem.kinds[best[1]]
        nodes = problem.demands[row].nodes
        yield Choice(
            offer=kind.offer,
            seats=(Seat(job, kind.boot_s, tuple(range(problem.demands[row].devices))),),
            used_s=kind.boot_s + float(problem.runs_s[row, best[1]]),
            says=f"the cheapest for {job} alone",
            machines=nodes,
        )


def _costs(problem: RentalProblem, row: int) -> Iterator[tuple[float, int]]:
    """Yield what each kind costs that is in time, with its position."""
    for column, kind in enumerate(problem.kinds):
        runs_s = float(problem.runs_s[row, column])
        late_s = kind.boot_s + float(problem.late_s[row, column])
        if math.isinf(runs_s) or late_s > problem.done_by_s[row]:
            continue
        nodes = problem.demands[row].nodes
        cost = nodes * kind.cost_usd(kind.boot_s + runs_s)
        yield cost + float(problem.extra_usd[row, column]), column


def _cost(problem: RentalProblem, choice: Choice) -> float:
    kind = next(one for one in problem.kinds if one.offer == choice.offer)
    row = problem.jobs.index(choice.seats[0].job)
    extra = problem.extra_usd[row, problem.kinds.index(kind)]
    return choice.machines * kind.cost_usd(choice.used_s) + float(extra)
