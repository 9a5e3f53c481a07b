"""Small problems of renting of which the cheapest plan is known: bounds lie below, plans above."""

from dataclasses import replace

import numpy as np
import pytest
from rental_checks import a_random_problem, faults
from rental_optimum import optimum_usd

from cloudwhale.spi.renting import RentalPlan, RentalProblem
from cloudwhale_policies.renting.bounding import QUICK, THOROUGH, bounded
from cloudwhale_policies.renting.cp_sat import CpSat
from cloudwhale_policies.renting.greedy import Greedy
from cloudwhale_policies.renting.milp import Milp
from cloudwhale_policies.renting.whale_rent import WhaleRent

BLOCKS, EACH = 20, 10
NEAR = 1e-6


def a_small_problem(seed: int) -> RentalProblem:
    """Make a problem of 2 to 5 jobs and 2 to 4 kinds of which there are enough."""
    drawn = np.random.default_rng(seed)
    jobs, kinds = int(drawn.integers(2, 6)), int(drawn.integers(2, 5))
    number = seed
    while True:  # what is drawn has some other size: the next one will do
        found = a_random_problem(number, most_jobs=5)
        if len(found.jobs) == jobs and len(found.kinds) >= kinds:
            break
        number += 100_000
    made = [replace(kind, at_most=None, quota="") for kind in found.kinds[:kinds]]
    return replace(
        found, kinds=made, runs_s=found.runs_s[:, :kinds], late_s=found.late_s[:, :kinds],
        extra_usd=found.extra_usd[:, :kinds],
    )  # fmt: skip


def seeds(block: int) -> range:
    return range(block * EACH, (block + 1) * EACH)


def is_at_least(usd: float, other: float) -> bool:
    return usd >= other - NEAR * max(1.0, other)


@pytest.mark.parametrize("block", range(BLOCKS))
def test_no_bound_is_above_the_cheapest_plan(block: int) -> None:
    for seed in seeds(block):
        problem = a_small_problem(seed)
        least = optimum_usd(problem)
        for effort in (QUICK, THOROUGH) if seed % 2 else (QUICK,):
            bound = bounded(problem, effort)
            assert is_at_least(least, bound.usd), (seed, effort.name, bound.usd, least)
            assert bound.worth.sum() == pytest.approx(bound.usd)


@pytest.mark.parametrize("block", range(BLOCKS))
def test_whole_counts_are_never_cheaper_than_the_cheapest_nor_dearer_than_greedy(
    block: int,
) -> None:
    for seed in seeds(block):
        problem = a_small_problem(seed)
        least, greedy = optimum_usd(problem), Greedy().choose(problem)
        for policy in (Milp(), CpSat()):
            plan: RentalPlan = policy.choose(problem)
            assert (seed, faults(problem, plan)) == (seed, [])
            assert is_at_least(plan.cost_usd, least), seed
            assert plan.cost_usd <= greedy.cost_usd + NEAR


@pytest.mark.parametrize("block", range(BLOCKS))
def test_whale_rent_finds_the_cheapest_plan(block: int) -> None:
    for seed in seeds(block):
        problem = a_small_problem(seed)
        plan, least = WhaleRent().choose(problem), optimum_usd(problem)
        assert is_at_least(least, plan.cost_usd), (seed, plan.cost_usd, least)
        assert is_at_least(plan.cost_usd, least), (seed, plan.cost_usd, least)


@pytest.mark.parametrize("seed", range(40))
def test_a_bound_is_below_every_plan_for_all_jobs(seed: int) -> None:
    problem = a_random_problem(seed, most_jobs=14 if seed % 10 == 0 else 40)
    bound = bounded(problem, QUICK if seed % 10 else THOROUGH)
    for policy in (Greedy(), Milp(), WhaleRent()):
        plan = policy.choose(problem)
        if all(why == "late" for why in plan.left_out.values()):
            assert is_at_least(plan.cost_usd, bound.usd), seed


def test_jobs_that_are_alike_are_worth_the_same() -> None:
    problem = a_random_problem(3, most_jobs=5)
    twice = replace(
        problem,
        jobs=[*problem.jobs, *(f"{job}-again" for job in problem.jobs)],
        demands=[*problem.demands, *problem.demands],
        runs_s=np.vstack((problem.runs_s, problem.runs_s)),
        late_s=np.vstack((problem.late_s, problem.late_s)),
        extra_usd=np.vstack((problem.extra_usd, problem.extra_usd)),
        done_by_s=[*problem.done_by_s, *problem.done_by_s],
        start_by_s=[*problem.start_by_s, *problem.start_by_s],
    )
    worth = bounded(twice, QUICK).worth
    half = len(problem.jobs)
    assert worth[:half] == pytest.approx(worth[half:])


def test_nothing_to_rent_for_is_bounded_by_nothing() -> None:
    problem = a_random_problem(1)
    empty = replace(
        problem, jobs=[], demands=[], done_by_s=[], start_by_s=[], runs_s=problem.runs_s[:0],
        late_s=problem.late_s[:0], extra_usd=problem.extra_usd[:0],
    )  # fmt: skip
    assert bounded(empty).usd == 0.0
