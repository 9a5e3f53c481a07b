"""What a rent policy answered: kept as JSON, found again by the digest of what was asked."""

import math
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rental_problems import a_demand, a_kind, a_problem, a_random_problem

from cloudwhale.control.answers import Answer, Noted, Remembered, as_json, digest_of, read_json
from cloudwhale.spi.errors import StoreUnusable
from cloudwhale.spi.renting import Choice, RentalPlan, RentalProblem, Seat, Terms
from cloudwhale_policies.renting.one_each import OneEach

ANSWER = RentalPlan(
    (Choice("k", (Seat("j", 60.5, (0, 1)), Seat("i", 3600.1)), 7200.3, "a machine", machines=2),),
    cost_usd=0.1 + 0.2, bound_usd=1 / 3, worth_usd={"j": 1e-17, "i": math.inf},
    left_out={"h": "quota"}, how="by hand", out_of_effort=True,
)  # fmt: skip


def test_an_answer_comes_back_as_it_went_in_to_the_last_digit() -> None:
    assert set(fields(ANSWER)) == set(fields(RentalPlan)), "a new field is kept too"
    assert read_json(as_json([Answer("x", ANSWER)])) == [Answer("x", ANSWER)]
    empty = Answer("y", RentalPlan(()))
    assert read_json(as_json([Answer("x", ANSWER), empty]))[1] == empty


def test_where_nothing_was_asked_nothing_is_kept() -> None:
    assert Noted(OneEach()).text() == "" and read_json("") == ()


@pytest.mark.parametrize("text", ["[", "{}", "null", '[{"problem":1}]', '[{"plan":{}}]'])
def test_answers_that_cannot_be_read_are_named(text: str) -> None:
    with pytest.raises(StoreUnusable, match="answers that this program cannot read") as fault:
        read_json(text)
    assert "--resolve" in fault.value.remedy


def test_what_was_answered_is_answered_again_without_asking() -> None:
    problems = [a_random_problem(seed) for seed in range(6)]
    noted = Noted(OneEach())
    plans = [noted.choose(problem) for problem in problems]
    told = Remembered(read_json(noted.text()), never)
    assert [told.choose(a_random_problem(seed)) for seed in range(6)] == plans
    assert told.unknown == []


def never() -> OneEach:
    raise AssertionError("nobody is to be asked")


def test_an_answer_to_something_else_is_not_taken_and_that_is_known() -> None:
    noted = Noted(OneEach())
    noted.choose(a_random_problem(1))
    told = Remembered(read_json(noted.text()), OneEach)
    other = a_random_problem(2)
    assert told.choose(other) == OneEach().choose(other)
    assert told.unknown == [tuple(other.jobs)]


BASE = a_problem(
    [a_demand(), a_demand(2)], [a_kind("a"), a_kind("b")], budget_usd=9.0, quotas={"q": 8.0}
)


def changed(matrix: Any) -> Any:
    copy = matrix.copy()
    copy[0, 0] = copy[0, 0] * 1.001 + 1.0
    return copy


OTHERS: dict[str, Any] = {
    "jobs": ("job-1", "job-0"), "demands": (a_demand(cpu=1.5), a_demand(2)),
    "kinds": (a_kind("a"), a_kind("b", usd_h=2.01)), "runs_s": changed(BASE.runs_s),
    "late_s": changed(BASE.late_s), "extra_usd": changed(BASE.extra_usd),
    "done_by_s": (9e3, math.inf), "start_by_s": (math.inf, 9e3), "horizon_s": 1e6,
    "budget_usd": 9.000001, "quotas": {"q": 9.0}, "terms": Terms(beyond_s=201.0), "seed": 1,
}  # fmt: skip


@pytest.mark.parametrize("name", [field.name for field in fields(RentalProblem)])
def test_whatever_is_asked_otherwise_has_another_digest(name: str) -> None:
    assert digest_of(replace(BASE, **{name: OTHERS[name]})) != digest_of(BASE)


def test_the_last_digits_of_an_exponential_make_no_other_problem() -> None:
    """Machines differ in them: whoever has fused instructions rounds once less."""
    problem = a_random_problem(3)
    for way in (math.inf, -math.inf):
        off = np.nextafter(np.nextafter(problem.runs_s, way), way)
        off = np.where(np.isfinite(problem.runs_s), off, problem.runs_s)
        assert digest_of(replace(problem, runs_s=off)) == digest_of(problem)
    ones = replace(problem, extra_usd=np.ones_like(problem.runs_s))
    below = replace(ones, extra_usd=np.nextafter(ones.extra_usd, 0.0))
    assert digest_of(ones) == digest_of(below), "at a power of two as anywhere else"


def test_a_digest_is_the_same_in_every_process() -> None:
    program = (
        "from rental_problems import a_random_problem\n"
        "from cloudwhale.control.answers import digest_of\n"
        "print(digest_of(a_random_problem(4)))\n"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": str(seed), "PYTHONPATH": str(Path(__file__).parents[1])},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in (1, 2)
    }
    assert told == {digest_of(a_random_problem(4))}
