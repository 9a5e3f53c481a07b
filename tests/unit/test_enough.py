import math

import pytest
from rental_problems import a_demand, a_kind, a_problem

from cloudwhale.planning.enough import needed_usd
from cloudwhale_policies.renting.one_each import OneEach

HOUR = 3600.0
CHEAP, DEAR = a_kind("cheap", cap_usd_h=2.0), a_kind("dear", cap_usd_h=5.0, usd_h=1.0)


def test_a_budget_that_is_enough_rents_a_machine_for_each() -> None:
    problem = a_problem([a_demand()] * 3, [CHEAP], [HOUR, 2 * HOUR, 0.5 * HOUR])
    enough = needed_usd(problem)
    assert enough is not None
    bounded = a_problem(
        [a_demand()] * 3, [CHEAP], [HOUR, 2 * HOUR, 0.5 * HOUR], budget_usd=enough + 1e-9
    )
    assert not OneEach().choose(bounded).left_out
    poor = a_problem(
        [a_demand()] * 3, [CHEAP], [HOUR, 2 * HOUR, 0.5 * HOUR], budget_usd=enough - 0.02
    )
    assert OneEach().choose(poor).left_out


def test_the_least_worst_case_counts_and_not_the_least_cost() -> None:
    problem = a_problem([a_demand()], [DEAR, CHEAP])
    enough = needed_usd(problem)
    assert enough == pytest.approx(max(problem.terms.worst_usd(CHEAP, 60.0 + HOUR), 0.01))


def test_who_is_too_late_on_a_machine_needs_a_dearer_one() -> None:
    runs = [[3 * HOUR, HOUR]]
    problem = a_problem([a_demand()], [CHEAP, DEAR], runs, done_by_s=(2 * HOUR,))
    assert needed_usd(problem) == pytest.approx(problem.terms.worst_usd(DEAR, 60.0 + HOUR))
    assert needed_usd(a_problem([a_demand()], [CHEAP], runs_s=HOUR, done_by_s=(60.0,))) is None
    assert needed_usd(a_problem([a_demand()], [CHEAP], runs_s=math.inf)) is None


def test_all_but_the_last_machine_stay_below_the_soft_line() -> None:
    problem = a_problem([a_demand()] * 10, [CHEAP])
    each = problem.terms.worst_usd(CHEAP, 60.0 + HOUR)
    assert needed_usd(problem) == pytest.approx(10 * each)
    assert needed_usd(problem, soft_share=0.5) == pytest.approx(9 * each / 0.5 + 0.01)
    assert needed_usd(problem, 7.0) == pytest.approx(10 * each + 7.0)


def test_a_gang_needs_all_of_its_machines() -> None:
    one, four = a_problem([a_demand()], [CHEAP]), a_problem([a_demand(nodes=4)], [CHEAP])
    single, gang = needed_usd(one), needed_usd(four)
    assert single is not None
    assert gang == pytest.approx(4 * single)
