"""Random problems of renting: a plan breaks no bound, and searching makes none dearer."""

import math
from dataclasses import replace

import numpy as np
import pytest
from rental_checks import a_random_problem, faults, worst_usd

from cloudwhale.spi.renting import RentalPlan, RentalProblem
from cloudwhale_policies.renting.greedy import Greedy
from cloudwhale_policies.renting.whale_rent import WhaleRent

BLOCKS = 10


def seeds(block: int, count: int) -> range:
    return range(block * count, (block + 1) * count)


def no_dearer(plan: RentalPlan, other: RentalPlan) -> bool:
    """Return whether a plan has no fewer jobs and, with as many, costs no more."""
    mine, others = len(plan.left_out), len(other.left_out)
    return mine < others or (mine == others and plan.cost_usd <= other.cost_usd + 1e-9)


def squeezed(problem: RentalProblem, part: float) -> RentalProblem:
    """Return the problem with a quota, and a part of greedy's worst case as its budget."""
    worst = worst_usd(problem, Greedy().choose(problem))
    return replace(problem, budget_usd=part * worst, quotas={"group": 5.0})


@pytest.mark.parametrize("block", range(BLOCKS))
def test_no_plan_breaks_a_bound_and_none_is_dearer_than_greedy(block: int) -> None:
    for seed in seeds(block, 50):
        problem = a_random_problem(seed)
        greedy, whale = Greedy().choose(problem), WhaleRent().choose(problem)
        assert (seed, faults(problem, greedy)) == (seed, [])
        assert (seed, faults(problem, whale)) == (seed, [])
        assert no_dearer(whale, greedy), seed


@pytest.mark.parametrize("block", range(BLOCKS))
def test_a_tight_budget_and_a_quota_are_kept(block: int) -> None:
    rng = np.random.default_rng(block)
    for seed in seeds(block, 15):
        problem = squeezed(a_random_problem(seed), float(rng.choice([0.0, 0.3, 0.6, 0.9, 1.0])))
        greedy, whale = Greedy().choose(problem), WhaleRent().choose(problem)
        assert (seed, faults(problem, greedy)) == (seed, [])
        assert (seed, faults(problem, whale)) == (seed, [])
        assert no_dearer(whale, greedy), seed


@pytest.mark.parametrize("seed", range(5))
def test_the_same_problem_gives_the_same_plan_ten_times(seed: int) -> None:
    problem = a_random_problem(seed, most_jobs=20)
    plans = [WhaleRent().choose(problem) for _ in range(10)]
    assert all(plan == plans[0] for plan in plans)


@pytest.mark.parametrize("seed", range(20))
def test_without_any_bound_every_job_that_can_be_in_time_has_a_machine(seed: int) -> None:
    plain = a_random_problem(seed)
    kinds = [replace(kind, at_most=None, quota="") for kind in plain.kinds]
    problem = replace(plain, kinds=kinds, done_by_s=[math.inf] * len(plain.jobs))
    for policy in (Greedy(), WhaleRent()):
        plan = policy.choose(problem)
        assert faults(problem, plan) == []
        assert set(plan.left_out.values()) <= {"late"}
