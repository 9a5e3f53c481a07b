"""What was chosen for one payer, and how good that is: the tender of a plan."""

import math

from cloudwhale.model import plan as p
from cloudwhale.model.reason import Code
from cloudwhale.model.units import MICRO_PER_USD, MicroUsd
from cloudwhale.spi.renting import RentalPlan, RentalProblem


def tender(payer: str, problem: RentalProblem, found: RentalPlan) -> p.Tender:
    """Return how good a choice of machines is."""
    kinds = {kind.offer: kind for kind in problem.kinds}
    worst_usd = sum(
        problem.terms.worst_usd(kinds[one.offer], one.used_s) * one.machines
        for one in found.choices
        if one.offer in kinds
    )
    chosen = {name for choice in found.choices for name in choice.jobs}
    return p.Tender(
        payer=payer,
        jobs=tuple(problem.jobs),
        cost=micro(found.cost_usd),
        worst=micro(worst_usd),
        bound=None if found.bound_usd is None else MicroUsd(math.floor(found.bound_usd * 10**6)),
        one_each=_one_each(problem, chosen),
        left_out=dict(found.left_out),
        how=found.how,
        code=Code.OUT_OF_EFFORT if found.out_of_effort else None,
    )


def _one_each(problem: RentalProblem, chosen: frozenset[str] | set[str]) -> MicroUsd | None:
    """Return what a machine for each of the jobs would cost; None when one has none in time."""
    total = 0.0
    for row, job in enumerate(problem.jobs):
        if job not in chosen:
            continue
        costs = [
            problem.demands[row].nodes * kind.cost_usd(kind.boot_s + float(runs_s))
            for kind, runs_s, late_s in zip(
                problem.kinds, problem.runs_s[row], problem.late_s[row], strict=True
            )
            if math.isfinite(runs_s) and kind.boot_s + float(late_s) <= problem.done_by_s[row]
        ]
        if not costs:
            return None
        total += min(costs)
    return micro(total)


def micro(amount_usd: float) -> MicroUsd:
    """Return dollars in micro-dollars, rounded up."""
    return MicroUsd(math.ceil(amount_usd * MICRO_PER_USD - 1e-6))
