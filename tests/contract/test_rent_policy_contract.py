"""What every way to rent must do: all that are installed pass the same tests."""

import inspect
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from rental_problems import (
    HOUR,
    a_demand,
    a_kind,
    a_problem,
    a_random_problem,
    faults,
    offers_of,
    seats_of,
    worst_usd,
)

from cloudwhale import plugins
from cloudwhale.control.answers import Answer, as_json, read_json
from cloudwhale.spi.renting import Demand, RentalPlan, RentalProblem

SEEDS = range(24)
ALONE = a_demand(2)
"""Takes the devices of a whole machine."""


@pytest.fixture(params=plugins.names(plugins.RENTS))
def make(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Return what makes a policy, once for each that is installed."""
    made: Callable[..., Any] = plugins.load(plugins.RENTS, request.param)
    return made


@pytest.fixture
def choose(make: Callable[..., Any]) -> Callable[[RentalProblem], RentalPlan]:
    """Return a question to a new policy whose answer has been checked."""

    def chosen(problem: RentalProblem) -> RentalPlan:
        for matrix in (problem.runs_s, problem.late_s, problem.extra_usd):
            matrix.setflags(write=False)  # it belongs to whoever asks
        plan: RentalPlan = make().choose(problem)
        assert faults(problem, plan) == []
        (kept,) = read_json(as_json([Answer("", plan)]))
        assert kept.plan == plan, "what a round keeps of it is all of it"
        return plan

    return chosen


Choose = Callable[[RentalProblem], RentalPlan]


# -- the least that can be asked -------------------------------------------------------------


def test_where_nobody_asks_nothing_is_rented(choose: Choose) -> None:
    for kinds in ((), (a_kind(),)):
        plan = choose(a_problem((), kinds))
        assert (plan.choices, plan.cost_usd, dict(plan.left_out)) == ((), 0.0, {})


def test_where_nothing_is_offered_nothing_is_rented(choose: Choose) -> None:
    assert choose(a_problem([a_demand()], ())).choices == ()


def test_one_job_gets_the_machine_that_costs_least(choose: Choose) -> None:
    kinds = [a_kind("dear", usd_h=9.0), a_kind("cheap", usd_h=1.0), a_kind("mean")]
    plan = choose(a_problem([a_demand()], kinds))
    assert offers_of(plan) == ["cheap"]
    assert plan.cost_usd == pytest.approx(1.0 * (HOUR + 60.0) / HOUR)


def test_the_machine_that_costs_least_may_be_the_dear_one_that_is_quick(choose: Choose) -> None:
    kinds = [a_kind("slow", usd_h=1.0), a_kind("quick", usd_h=4.0)]
    assert offers_of(choose(a_problem([a_demand()], kinds, [[9 * HOUR, HOUR]]))) == ["quick"]


def test_data_that_must_be_brought_count(choose: Choose) -> None:
    kinds = [a_kind("far", usd_h=1.0), a_kind("near", usd_h=2.0)]
    problem = a_problem([a_demand()], kinds)
    problem.extra_usd[0, 0] = 5.0
    assert offers_of(choose(problem)) == ["near"]


def test_a_job_that_nothing_fits_is_in_no_choice_and_keeps_nobody_out(choose: Choose) -> None:
    plan = choose(a_problem([a_demand(16), a_demand(), a_demand(memory_gib=1e6)], [a_kind()]))
    assert set(seats_of(plan)) == {"job-1"} and not plan.left_out


def test_of_kinds_that_differ_in_nothing_the_first_is_taken(choose: Choose) -> None:
    kinds = [a_kind(name) for name in ("c", "a", "b")]
    assert offers_of(choose(a_problem([ALONE], kinds))) == ["c"]


def test_of_jobs_that_differ_in_nothing_the_first_goes_first(choose: Choose) -> None:
    problem = a_problem([ALONE] * 3, [a_kind(at_most=1)], start_by_s=(0.0,) * 3)
    plan = choose(problem)
    assert set(seats_of(plan)) == {"job-0"}
    assert set(plan.left_out) == {"job-1", "job-2"}


# -- what bounds it --------------------------------------------------------------------------


def test_without_money_everybody_is_left_out_for_want_of_it(choose: Choose) -> None:
    plan = choose(a_problem([a_demand()] * 3, [a_kind()], budget_usd=0.0))
    assert plan.choices == ()
    assert dict(plan.left_out) == dict.fromkeys(("job-0", "job-1", "job-2"), "budget")


def test_money_for_one_is_spent_on_who_comes_first(choose: Choose) -> None:
    problem = a_problem([ALONE] * 3, [a_kind()], start_by_s=(0.0,) * 3)
    one = choose(a_problem([ALONE], [a_kind()]))
    plan = choose(replace(problem, budget_usd=worst_usd(problem, one) + 1e-6))
    assert set(seats_of(plan)) == {"job-0"}
    assert dict(plan.left_out) == {"job-1": "budget", "job-2": "budget"}


def test_where_money_is_short_a_dearer_machine_with_a_lower_cap_is_taken(choose: Choose) -> None:
    kinds = [a_kind("spot", usd_h=1.0, cap_usd_h=9.0), a_kind("fixed", usd_h=2.0)]
    plan = choose(a_problem([ALONE], kinds, budget_usd=5.0))
    assert offers_of(plan) == ["fixed"]


def test_a_budget_that_nobody_reaches_changes_nothing(choose: Choose) -> None:
    problem = a_random_problem(5)
    free = replace(problem, budget_usd=None)
    assert choose(replace(problem, budget_usd=1e9)).choices == choose(free).choices


def test_no_more_machines_are_taken_than_a_quota_allows(choose: Choose) -> None:
    kinds = [a_kind(quota="q", quota_units=8.0)]
    problem = a_problem([ALONE] * 3, kinds, start_by_s=(0.0,) * 3, quotas={"q": 17.0})
    plan = choose(problem)
    assert set(seats_of(plan)) == {"job-0", "job-1"}
    assert dict(plan.left_out) == {"job-2": "quota"}


def test_a_quota_that_nobody_knows_is_no_bound(choose: Choose) -> None:
    kinds = [a_kind(quota="q", quota_units=8.0)]
    problem = a_problem([ALONE] * 3, kinds, start_by_s=(0.0,) * 3, quotas={"other": 0.0})
    assert len(seats_of(choose(problem))) == 3


def test_where_a_quota_is_used_up_the_next_best_kind_is_taken(choose: Choose) -> None:
    kinds = [a_kind("best", quota="q", quota_units=8.0), a_kind("next", usd_h=3.0)]
    problem = a_problem([ALONE] * 2, kinds, start_by_s=(0.0,) * 2, quotas={"q": 8.0})
    assert offers_of(choose(problem)) == ["best", "next"]


def test_no_more_machines_of_a_kind_are_taken_than_there_are(choose: Choose) -> None:
    kinds = [
        a_kind("few", at_most=1),
        a_kind("more", usd_h=3.0),
        a_kind("none", at_most=0, usd_h=1),
    ]
    problem = a_problem([ALONE] * 3, kinds, start_by_s=(0.0,) * 3)
    assert offers_of(choose(problem)) == ["few", "more", "more"]


def test_a_gang_gets_its_machines_at_once_and_each_is_paid_for(choose: Choose) -> None:
    plan = choose(a_problem([a_demand(2, nodes=3)], [a_kind()]))
    (choice,) = plan.choices
    assert choice.machines == 3
    assert plan.cost_usd == pytest.approx(3 * 2.0 * (HOUR + 60.0) / HOUR)


def test_a_gang_for_which_there_are_too_few_machines_waits(choose: Choose) -> None:
    plan = choose(a_problem([a_demand(2, nodes=3), a_demand()], [a_kind(at_most=2)]))
    assert set(seats_of(plan)) == {"job-1"}
    assert dict(plan.left_out) == {"job-0": "quota"}


# -- time ------------------------------------------------------------------------------------


def test_who_must_be_done_soon_gets_a_machine_that_is_quick_enough(choose: Choose) -> None:
    kinds = [a_kind("slow", usd_h=0.5), a_kind("quick", usd_h=9.0)]
    runs = [[3 * HOUR, HOUR]]
    assert offers_of(choose(a_problem([a_demand()], kinds, runs))) == ["slow"]
    hurried = a_problem([a_demand()], kinds, runs, done_by_s=(2 * HOUR,))
    assert offers_of(choose(hurried)) == ["quick"]


def test_who_cannot_be_in_time_is_left_out_as_late(choose: Choose) -> None:
    problem = a_problem([a_demand()] * 2, [a_kind()], done_by_s=(HOUR, 2 * HOUR))
    plan = choose(problem)
    assert set(seats_of(plan)) == {"job-1"} and dict(plan.left_out) == {"job-0": "late"}


def test_who_should_have_been_done_long_ago_is_left_out_as_late(choose: Choose) -> None:
    plan = choose(a_problem([a_demand()] * 2, [a_kind()], done_by_s=(-5e5, math.inf)))
    assert set(seats_of(plan)) == {"job-1"} and dict(plan.left_out) == {"job-0": "late"}


@pytest.mark.parametrize("step_s", [0.0, 1.0, 60.0, HOUR])
def test_every_step_that_has_begun_is_paid_and_the_least_in_any_case(
    choose: Choose, step_s: float
) -> None:
    kinds = [a_kind(billing_step_s=step_s, billing_least_s=900.0)]
    for runs_s, billed_s in ((10.0, 900.0), (5000.5, 5060.5)):
        plan = choose(a_problem([a_demand()], kinds, runs_s))
        steps_s = billed_s if not step_s else math.ceil(billed_s / step_s) * step_s
        assert plan.cost_usd == pytest.approx(2.0 * steps_s / HOUR)


def test_a_deadline_is_kept_at_the_quantile_and_not_on_average(choose: Choose) -> None:
    kinds = [a_kind("spot", usd_h=0.5), a_kind("fixed", usd_h=9.0)]
    problem = a_problem([a_demand()], kinds, done_by_s=(2 * HOUR,))
    late = problem.runs_s.copy()
    late[0, 0] = 3 * HOUR
    assert offers_of(choose(replace(problem, late_s=late))) == ["fixed"]


def test_who_has_waited_for_long_enough_starts_when_its_machine_has_booted(choose: Choose) -> None:
    plan = choose(a_problem([a_demand()], [a_kind()], start_by_s=(0.0,)))
    assert seats_of(plan)["job-0"][1].start_s == pytest.approx(60.0)


def test_two_who_may_not_wait_do_not_stand_one_after_another(choose: Choose) -> None:
    plan = choose(a_problem([ALONE] * 2, [a_kind()], start_by_s=(600.0, 600.0)))
    assert offers_of(plan) == ["k", "k"]


def test_no_machine_is_planned_for_longer_than_the_horizon(choose: Choose) -> None:
    plan = choose(a_problem([ALONE] * 4, [a_kind()], horizon_s=2.5 * HOUR))
    assert len(seats_of(plan)) == 4 and len(offers_of(plan)) >= 2
    longer = a_problem([ALONE, a_demand()], [a_kind()], [3 * HOUR, HOUR], horizon_s=2.5 * HOUR)
    plan = choose(longer)
    assert set(seats_of(plan)) == {"job-1"} and set(plan.left_out) == {"job-0"}


@pytest.mark.parametrize("runs_s", [1e-3, 1.0, 1e7, 1e10])
def test_times_may_be_tiny_and_huge(choose: Choose, runs_s: float) -> None:
    plan = choose(a_problem([a_demand(), ALONE, a_demand(0)], [a_kind()], runs_s))
    assert len(seats_of(plan)) == 3
    assert math.isfinite(plan.cost_usd)


# -- room ------------------------------------------------------------------------------------


@pytest.mark.parametrize("devices", [1, 3, 5, 7, 16])
def test_machines_with_any_number_of_devices_are_filled(choose: Choose, devices: int) -> None:
    kind = a_kind(devices=devices, cpu=64.0, memory_gib=512.0, disk_gib=1000.0)
    asks = [a_demand(count) for count in (1, 2, 3, 5) if count <= devices]
    assert len(seats_of(choose(a_problem(asks, [kind])))) == len(asks)


def test_of_thirds_of_a_gpu_no_more_than_three_are_put_on_it(choose: Choose) -> None:
    third = a_demand(share=1 / 3)
    problem = a_problem([third] * 4, [a_kind(devices=1, at_most=1)], start_by_s=(0.0,) * 4)
    assert 1 <= len(seats_of(choose(problem))) <= 3


@pytest.mark.parametrize(
    "small",
    [
        a_demand(cpu=5.0), a_demand(memory_gib=40.0), a_demand(disk_gib=60.0),
        a_demand(share=0.6), a_demand(share=0.25, device_gib=30.0),
    ],
)  # fmt: skip
def test_two_that_do_not_fit_beside_each_other_are_not_put_there(
    choose: Choose, small: Demand
) -> None:
    problem = a_problem([small] * 2, [a_kind(devices=1, at_most=1)], start_by_s=(0.0, 0.0))
    assert len(seats_of(choose(problem))) == 1


def test_jobs_without_gpus_stand_on_machines_without(choose: Choose) -> None:
    kinds = [a_kind("gpus"), a_kind("plain", model="", devices=0, device_gib=0.0, usd_h=0.4)]
    assert set(offers_of(choose(a_problem([a_demand(0)] * 3, kinds)))) == {"plain"}


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_is_asked_a_plan_keeps_all_bounds(choose: Choose, seed: int) -> None:
    problem = a_random_problem(seed)
    told = _told_of(choose(problem))
    assert told.keys() <= set(problem.jobs) and set(told.values()) <= {1}


@pytest.mark.parametrize("seed", range(4))
def test_more_jobs_than_any_hand_could_place_are_placed_within_all_bounds(
    choose: Choose, seed: int
) -> None:
    problem = a_random_problem(seed, jobs=30, kinds=8)
    told = _told_of(choose(problem))
    assert told.keys() <= set(problem.jobs) and set(told.values()) == {1}


def _told_of(plan: RentalPlan) -> Counter[str]:
    """Return how often each job is seated or said to be left out."""
    seated = [seat.job for one in plan.choices for seat in one.seats]
    return Counter([*seated, *plan.left_out])


# -- the same again --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(0, 24, 6))
def test_the_same_problem_gives_the_same_plan(make: Callable[..., Any], seed: int) -> None:
    problem = a_random_problem(seed)
    first, policy = make().choose(problem), make()
    assert policy.choose(problem) == first
    policy.choose(a_random_problem(seed + 1))
    assert policy.choose(problem) == first, "nothing is kept between two questions"


def test_whose_time_is_up_says_so_and_keeps_all_bounds(make: Callable[..., Any]) -> None:
    """Of those that can be stopped: the others are not asked."""
    if "is_over" not in inspect.signature(make).parameters:
        return
    for seed in SEEDS:
        problem = a_random_problem(seed)
        plan = make(is_over=lambda: True).choose(problem)
        assert faults(problem, plan) == []
        assert plan.out_of_effort == make(is_over=lambda: True).choose(problem).out_of_effort
    assert make(is_over=lambda: True).choose(a_random_problem(1, 30, 8)).out_of_effort
    assert not make(is_over=lambda: False).choose(a_random_problem(1, 30, 8)).out_of_effort
