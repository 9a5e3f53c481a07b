"""Rounds that rented are made again with the answers that were given then, or solved again."""

import json
import re
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from clouding import a_cloudy_stage, an_offer
from staging import pass_by

from cloudwhale.cli import looking
from cloudwhale.cli.exits import Exit
from cloudwhale.clock import SystemClock
from cloudwhale.control.controller import Chosen
from cloudwhale.control.desk import Desk, policies
from cloudwhale.control.replay import ReplayResult, made_again, plan_again, replay
from cloudwhale.control.store import open_store, sqlite_url
from cloudwhale.mailbox.objects import open_objects
from cloudwhale.model.plan import Rent, Round
from cloudwhale.model.reason import Code
from cloudwhale.model.units import micro_usd
from cloudwhale.planning.planner import Policies
from cloudwhale.settings import Settings
from cloudwhale.simulation.cloud import Shelf
from cloudwhale.simulation.stage import Stage
from cloudwhale.spi.errors import SettingsError
from cloudwhale.spi.renting import Rent as RentPolicy
from cloudwhale.spi.renting import RentalPlan, RentalProblem
from cloudwhale.spi.store import Store
from cloudwhale_policies.fits import BestFit
from cloudwhale_policies.order import Priority
from cloudwhale_policies.renting.one_each import OneEach
from cloudwhale_policies.waiting.starburst import NoWait

SHELVES = (
    Shelf(an_offer("cheap", price_usd_h=micro_usd(1), cap_usd_h=micro_usd(1))),
    Shelf(an_offer("dear", boot_s=5.0)),
)


class Spendthrift:
    """Takes the last kind for everybody: what no other policy would answer."""

    def choose(self, problem: RentalProblem) -> RentalPlan:
        last = len(problem.kinds) - 1
        return OneEach().choose(
            replace(
                problem,
                kinds=problem.kinds[last:],
                runs_s=problem.runs_s[:, last:],
                late_s=problem.late_s[:, last:],
                extra_usd=problem.extra_usd[:, last:],
            )
        )


class CutOff(Spendthrift):
    """Is always told that its time is up."""

    def choose(self, problem: RentalProblem) -> RentalPlan:
        return replace(super().choose(problem), out_of_effort=True, how="the time was up")


def rounds_of(stage: Stage) -> list[Round]:
    """Return the rounds that rented, read from their JSON as a database does."""
    found: list[Round] = []
    number = 1
    while (stored := stage.scenery.store.round(number)) is not None:
        if any(isinstance(step, Rent) for step in stored.plan.steps):
            found.append(Round.model_validate_json(stored.model_dump_json()))
        number += 1
    return found


def a_life(
    rent: Callable[[], RentPolicy], store: Store | None = None, name: str = "one-each"
) -> Stage:
    """Let a policy rent under a name: of another, which would choose otherwise, or its own."""
    stage = a_cloudy_stage(("quick", "quick", "saving"), SHELVES, store=store)
    made: Policies = replace(
        stage.scenery.chosen.policies, order=Priority(), score=BestFit(), wait=NoWait(),
        rent=rent(),
    )  # fmt: skip
    chosen = Chosen(made, "priority", "best-fit", wait="no-wait", rent=name)
    stage.scenery = replace(stage.scenery, chosen=chosen)
    stage.raise_controller()
    pass_by(stage, 120.0)
    return stage


@pytest.fixture(params=[OneEach, Spendthrift, CutOff])
def lived(request: pytest.FixtureRequest) -> Stage:
    return a_life(request.param)


def test_a_round_that_rented_is_made_again_from_its_answers_alone(lived: Stage) -> None:
    rounds = rounds_of(lived)
    assert rounds and all(stored.answers for stored in rounds)
    for stored in rounds:
        again = made_again(lived.scenery.store, stored)
        assert again.plan.model_dump_json() == stored.plan.model_dump_json()
        assert again.unknown == ()


def test_an_answer_that_a_clock_cut_off_is_told_in_the_round_and_made_again() -> None:
    stage = a_life(CutOff)
    (stored, *_) = rounds_of(stage)
    assert {tender.code for tender in stored.plan.tenders} == {Code.OUT_OF_EFFORT}
    assert plan_again(stage.scenery.store, stored).tenders == stored.plan.tenders


def test_who_is_cut_off_by_a_real_clock_takes_what_greedy_has_and_is_made_again() -> None:
    settings = Settings(home=Path("/nowhere"), rent="whale-rent", rent_patience_s=1e-9)
    hurried = policies(settings, SystemClock()).rent
    assert hurried is not None
    stage = a_life(lambda: hurried, name="whale-rent")
    rounds = rounds_of(stage)
    tenders = [tender for stored in rounds for tender in stored.plan.tenders]
    assert {tender.code for tender in tenders} == {Code.OUT_OF_EFFORT}
    assert all("time was up" in tender.how for tender in tenders)
    for stored in rounds:
        again = made_again(stage.scenery.store, stored)
        assert (again.plan, again.unknown) == (stored.plan, ())
    resolved = made_again(stage.scenery.store, rounds[0], resolve=True)
    assert {tender.code for tender in resolved.plan.tenders} == {None}, "nobody hurries a replay"


def test_a_round_without_answers_is_solved_again() -> None:
    stage = a_life(OneEach)
    for stored in rounds_of(stage):
        old = stored.but(answers="")
        again = plan_again(stage.scenery.store, old)
        assert again.model_dump_json() == stored.plan.model_dump_json()
    stage = a_life(Spendthrift)
    (stored, *_) = rounds_of(stage)
    assert plan_again(stage.scenery.store, stored.but(answers="")) != stored.plan


def test_a_policy_that_is_gone_is_needed_only_where_it_is_asked_again() -> None:
    stage = a_life(OneEach)
    (stored, *_) = rounds_of(stage)
    gone = stored.but(rent="sold")
    assert plan_again(stage.scenery.store, gone) == stored.plan
    with pytest.raises(SettingsError, match="no rent called 'sold'"):
        made_again(stage.scenery.store, gone, resolve=True)


def replayed(tmp_path: Path, rent: Callable[[], RentPolicy], *, resolve: bool) -> ReplayResult:
    """Rent on a database, and run the first round that did again."""
    with open_desk(tmp_path) as desk:
        stage = a_life(rent, desk.store)
        (stored, *_) = rounds_of(stage)
        return replay(desk, stored.number, resolve=resolve)


def open_desk(folder: Path) -> Desk:
    settings = Settings(home=folder)
    store = open_store(sqlite_url(folder), may_migrate=True)
    return Desk(settings, SystemClock(), store, open_objects("memory://"))


def test_solved_again_it_says_what_differs(tmp_path: Path) -> None:
    result = replayed(tmp_path, Spendthrift, resolve=True)
    assert not result.agrees and result.differences
    (one,) = result.solved
    assert (one.then.machines, one.now.machines) == ({"dear": 2}, {"cheap": 2})
    assert one.then.cost is not None and one.now.cost is not None
    assert one.now.cost < one.then.cost and not one.is_same
    assert one.says.startswith("run-1: ") and " on 2 dear then; " in one.says


def test_solved_again_the_same_way_it_says_that_nothing_differs(tmp_path: Path) -> None:
    result = replayed(tmp_path, OneEach, resolve=True)
    assert result.agrees and not result.differences
    assert [one.is_same for one in result.solved] == [True]
    assert "the same again" in result.solved[0].says


def test_taken_from_its_answers_it_says_nothing_of_what_could_be_chosen(tmp_path: Path) -> None:
    result = replayed(tmp_path, Spendthrift, resolve=False)
    assert (result.agrees, result.solved, result.notes) == (True, (), ())


@pytest.fixture
def spent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the number of a round in which too much was spent, of the installation here."""
    monkeypatch.setenv("CLOUDWHALE_HOME", str(tmp_path))
    with open_desk(tmp_path) as desk:
        (stored, *_) = rounds_of(a_life(Spendthrift, desk.store))
    return stored.number


def test_the_command_takes_the_answers_and_is_content(
    spent: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert looking.replay(spent, False, False) == Exit.DONE
    assert capsys.readouterr().out == f"Round {spent}: the same world gives the same plan.\n"


def test_the_command_solves_again_and_says_what_differs(
    spent: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert looking.replay(spent, True, False) == Exit.TROUBLE
    first, second, *others = capsys.readouterr().out.splitlines()
    assert first == f"Round {spent}: the plan differs from the one that was stored."
    assert re.fullmatch(r"  run-1: 0\.\d+ USD on 2 dear then; 0\.\d+ USD on 2 cheap now", second), (
        second
    )
    assert others and all(line.startswith("  only ") for line in others)


def test_the_document_has_both_sides(spent: int, capsys: pytest.CaptureFixture[str]) -> None:
    looking.replay(spent, True, True)
    told = json.loads(capsys.readouterr().out)
    assert (told["round"], told["agrees"], told["notes"]) == (spent, False, [])
    (one,) = told["solved"]
    assert (one["payer"], one["same"]) == ("run-1", False)
    assert one["then"]["machines"] == {"dear": 2} and one["now"]["machines"] == {"cheap": 2}
    assert 0 < one["now"]["cost_usd"] < one["then"]["cost_usd"]
    assert one["now"]["bound_usd"] is None
    looking.replay(spent, False, True)
    assert json.loads(capsys.readouterr().out)["solved"] == []


def test_an_answer_that_belongs_to_another_problem_is_said_so(tmp_path: Path) -> None:
    with open_desk(tmp_path) as desk:
        stage = a_life(Spendthrift, desk.store)
        (stored, *_) = rounds_of(stage)
        swapped = stored.but(answers=stored.answers.replace('"problem":"', '"problem":"0'))
        again = made_again(desk.store, swapped)
        assert again.unknown and again.plan != stored.plan
        with sqlite3.connect(tmp_path / "cloudwhale.db") as connection:
            connection.execute(
                "UPDATE rounds SET body = ? WHERE number = ?",
                (swapped.model_dump_json(), stored.number),
            )
        connection.close()
        result = replay(desk, stored.number)
    assert not result.agrees
    (note,) = result.notes
    assert "no stored answer belongs to the problem of renting for quick-0, quick-1" in note
