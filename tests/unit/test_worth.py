"""Who of a night gets the money: those worth most a dollar, never above the bound."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from nights_value import drawn, figures

from cloudwhale.planning.worth import chosen


@pytest.mark.parametrize("seed", range(10))
def test_value_per_dollar_lies_between_the_queue_and_the_bound(seed: int) -> None:
    ours, queue, bound = figures(seed, 30.0)
    assert queue < ours <= bound


def test_who_is_chosen_fits_the_money_and_the_others_are_told_why() -> None:
    found = chosen(drawn(0), 30.0)
    assert found is not None
    assert sum(one.may_cost_usd for one in found.first) <= 30.0
    reasons = found.why_not()
    assert {one.job.id for one in found.rest if one.alone_usd <= 30.0} == set(reasons)
    assert all("and could go to none worth more" in one.says for one in reasons.values())


def test_nobody_is_chosen_where_the_money_holds_all() -> None:
    assert chosen(drawn(0), 10_000.0) is None
