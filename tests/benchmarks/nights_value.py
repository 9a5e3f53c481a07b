"""What a night's money is worth by value per dollar, by the order of the queue, and at most.

Run: python tests/benchmarks/nights_value.py [--nights 20]. The same drawn nights for both orders,
by one greedy choice over the same worst cases; the bound is the fractional knapsack.
"""

import argparse
import random
from collections.abc import Sequence

from cloudwhale.model.job import Job, JobSpec
from cloudwhale.planning.worth import Weighed, bound_usd, chosen


def drawn(seed: int, jobs: int = 40) -> list[Weighed]:
    """Make a night's jobs: prices over two orders of magnitude, worth that hangs on neither."""
    dice = random.Random(f"night-{seed}")
    found: list[Weighed] = []
    for number in range(jobs):
        price = 0.1 * 10 ** dice.uniform(0, 2)
        worst = price * dice.uniform(1.6, 2.4)
        spec = JobSpec(name=f"job-{number}", command="true")
        job = Job(id=spec.name, run="night", spec=spec, submitted_at=float(number))
        worth = dice.choice((5.0, 20.0, 60.0)) * 24 * dice.choice((21, 51, 81)) / 51
        found.append(Weighed(job, worth, price, worst, worst))
    return found


def by_queue(found: Sequence[Weighed], left_usd: float) -> float:
    """Return what is worth whoever comes first, first."""
    worth = 0.0
    for one in found:
        if one.may_cost_usd <= left_usd:
            left_usd -= one.may_cost_usd
            worth += one.worth_usd
    return worth


def figures(seed: int, budget_usd: float) -> tuple[float, float, float]:
    """Return the worth by value per dollar, by queue, and the bound, for one night."""
    found = drawn(seed)
    ours = chosen(found, budget_usd)
    worth = sum(one.worth_usd for one in (found if ours is None else ours.first))
    ordered = sorted(found, key=lambda one: -one.per_usd)
    return worth, by_queue(found, budget_usd), bound_usd(ordered, budget_usd)


def main() -> None:
    """Print the sums over some nights."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--nights", type=int, default=20)
    asked.add_argument("--budget", type=float, default=30.0)
    told = asked.parse_args()
    rows = [figures(seed, told.budget) for seed in range(told.nights)]
    ours, queue, bound = (sum(row[at] for row in rows) for at in range(3))
    print(f"{told.nights} nights of 40 jobs, {told.budget:g} USD each; worth in USD")
    print(f"value per dollar {ours:12,.0f}   {ours / bound:6.1%} of the bound")
    print(f"order of queue   {queue:12,.0f}   {queue / bound:6.1%} of the bound")
    print(f"bound            {bound:12,.0f}")


if __name__ == "__main__":
    main()
