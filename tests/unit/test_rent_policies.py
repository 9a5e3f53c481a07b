"""Greedy and whale-rent on problems whose answer is plain to see."""

import subprocess
import sys

from rental_checks import a_demand, a_kind, a_problem, faults

from cloudwhale.spi.renting import RentalProblem
from cloudwhale_policies.renting.greedy import Greedy
from cloudwhale_policies.renting.whale_rent import WhaleRent

HOUR = 3600.0
POLICIES = (Greedy(), WhaleRent())


def two_halves(**fields: object) -> RentalProblem:
    return a_problem([a_demand(share=0.5)] * 2, [a_kind()], HOUR, **fields)


def test_two_halves_share_one_machine() -> None:
    for policy in POLICIES:
        (choice,) = policy.choose(two_halves()).choices
        assert [seat.start_s for seat in choice.seats] == [100.0, 100.0]


def test_jobs_without_a_deadline_wait_for_each_other_rather_than_pay_two_boots() -> None:
    problem = a_problem([a_demand()] * 2, [a_kind()], HOUR)
    for policy in POLICIES:
        assert len(policy.choose(problem).choices) == 1


def test_a_machine_is_shrunk_to_the_cheapest_kind_that_holds_its_jobs() -> None:
    kinds = [a_kind("large", devices=4, usd_h=4.0), a_kind("small", usd_h=1.0)]
    for policy in POLICIES:
        plan = policy.choose(a_problem([a_demand()], kinds, HOUR))
        assert [choice.offer for choice in plan.choices] == ["small"]


def test_a_gang_gets_its_machines_of_one_offer_at_once() -> None:
    problem = a_problem([a_demand(nodes=3)], [a_kind()], HOUR)
    for policy in POLICIES:
        plan = policy.choose(problem)
        assert [choice.machines for choice in plan.choices] == [3]
        assert faults(problem, plan) == []


def test_a_job_that_no_kind_does_in_time_is_late_and_one_that_fits_nowhere_is_not_named() -> None:
    demands = [a_demand(), a_demand(4), a_demand()]
    problem = a_problem(demands, [a_kind()], HOUR, done_by_s=[60.0, 1e9, 1e9])
    for policy in POLICIES:
        plan = policy.choose(problem)
        assert plan.left_out == {"job-0": "late"}
        assert [choice.jobs for choice in plan.choices] == [("job-2",)]


def test_who_comes_last_is_left_out_where_the_budget_ends() -> None:
    problem = a_problem([a_demand()] * 3, [a_kind(boot_s=0.0)], HOUR, budget_usd=2.6)
    for policy in POLICIES:
        assert policy.choose(problem).left_out == {"job-2": "budget"}


def test_a_lower_worst_case_is_taken_where_the_budget_asks_for_it() -> None:
    kinds = [a_kind("spot", usd_h=0.5, cap_usd_h=5.0), a_kind("steady", usd_h=1.0)]
    free = a_problem([a_demand()], kinds, HOUR)
    bound = a_problem([a_demand()], kinds, HOUR, budget_usd=2.0)
    for policy in POLICIES:
        assert [choice.offer for choice in policy.choose(free).choices] == ["spot"]
        assert [choice.offer for choice in policy.choose(bound).choices] == ["steady"]


def test_a_quota_is_kept_and_named() -> None:
    kinds = [a_kind(quota="gpus", quota_units=1.0)]
    problem = a_problem(
        [a_demand()] * 2, kinds, HOUR, quotas={"gpus": 1.0}, done_by_s=[HOUR + 200.0] * 2
    )
    for policy in POLICIES:
        assert policy.choose(problem).left_out == {"job-1": "quota"}


def test_nothing_to_rent_for_and_nothing_to_rent_are_answered() -> None:
    empty = a_problem([], [a_kind()], [])
    bare = a_problem([a_demand()], [], HOUR)
    for policy in POLICIES:
        assert policy.choose(empty).choices == ()
        assert policy.choose(bare).choices == ()


def test_a_small_problem_needs_no_constraint_solver() -> None:
    code = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "from rental_checks import a_random_problem\n"
        "from cloudwhale_policies.renting.whale_rent import WhaleRent\n"
        "WhaleRent().choose(a_random_problem(1, most_jobs=10))\n"
        "assert 'ortools' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
