"""What `plan` shows of money and machines, at two widths and in a pipe, and what it refuses."""

import io
import sys
from pathlib import Path
from typing import Any

import pytest
from makers import a_spec
from previewing import HOUR, L4, NOW, T4, a_desk, a_gpu_job, looked
from rich.console import Console
from shell import until

from cloudwhale.cli import thinking
from cloudwhale.cli.exits import Exit, for_error
from cloudwhale.cli.plan_keys import plan_keys
from cloudwhale.cli.plan_machines import machine_lines, machines_sheet
from cloudwhale.cli.plan_money import NEEDS_AN_ACCOUNT, money_notes
from cloudwhale.cli.plan_view import by_name, plan_sheet
from cloudwhale.cli.planning import Sheaf, dry_run, exit_of
from cloudwhale.cli.queueing import queued_words
from cloudwhale.cli.refusing import refuse_impossible
from cloudwhale.cli.watching import question
from cloudwhale.control.desk import Desk
from cloudwhale.control.intake import JobFile
from cloudwhale.control.previewed import Later, More, PlannedJob, Preview, PreviewMachine
from cloudwhale.model.job import JobSpec
from cloudwhale.model.run import Run
from cloudwhale.model.units import NOTHING, MicroUsd, micro_usd
from cloudwhale.reporting.drawn import show, show_lines
from cloudwhale.reporting.sheet import plain_lines, text_of
from cloudwhale.spi.errors import DeadlineImpossible, NothingCanRunIt, OverBudget, SpecError

SPECS = [a_gpu_job("train"), a_gpu_job("eval-of-a-rather-long-name"), a_spec("small", duration_s=9)]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return a_desk(tmp_path, rent="greedy")


def a_machine(**fields: Any) -> PreviewMachine:
    """Make a machine that would be rented for an hour."""
    base: dict[str, Any] = {
        "name": "m1", "offer": "l4", "type": "l4", "provider": "aws", "region": "east",
        "zone": "east-a", "market": "on-demand", "price_usd_h": micro_usd(1),
        "cap_usd_h": micro_usd(1), "launched_at": NOW, "ready_at": NOW, "ends_at": NOW + HOUR,
        "cost": micro_usd(1), "worst": micro_usd(2), "jobs": (),
    }  # fmt: skip
    return PreviewMachine(**{**base, **fields})


def shown(made: Preview, specs: list[JobSpec], width: int) -> list[str]:
    console = Console(
        file=io.StringIO(), width=width, height=50, force_terminal=True, color_system=None
    )
    with console.capture() as captured:
        show_lines(console, machine_lines(made, width))
        show(console, plan_sheet(made, specs))
    return captured.get().splitlines()


@pytest.mark.parametrize("width", [80, 140])
def test_no_line_of_a_plan_is_wider_than_the_terminal(desk: Desk, width: int) -> None:
    lines = shown(looked(desk, *SPECS), SPECS, width)
    assert max(len(line.rstrip()) for line in lines) <= width


@pytest.mark.parametrize("width", [80, 140])
def test_every_job_is_drawn_on_its_machine_with_its_times(desk: Desk, width: int) -> None:
    made = looked(desk, *SPECS)
    drawn = [text_of(line) for line in machine_lines(made, width)]
    for name in ("train", "eval-of-a-rather-l"[:17]):
        (line,) = [line for line in drawn if line.startswith(f"  {name}")]
        assert "█" in line and "░" in line and " to " in line


def test_a_pipe_gets_what_came_second_and_what_binds_in_columns_of_their_own(desk: Desk) -> None:
    lines = plain_lines(plan_sheet(looked(desk, *SPECS), SPECS))
    for heading in ("RUNNER-UP", "BOUND BY", "AT WORST", "WHEN"):
        assert heading in lines[0]
    assert "no-such-gpu: needs a GPU, desk has no GPU" in lines[1]
    assert lines[3].startswith("small")


def test_many_machines_are_one_row_a_kind(tmp_path: Path) -> None:
    desk = a_desk(tmp_path, rent="one-each")
    specs = [a_gpu_job(f"j{n}") for n in range(30)]
    made = looked(desk, *specs, budget="5000", offers=[T4, L4])
    sheet = machines_sheet(made)
    assert len(made.machines) == 30
    lines = plain_lines(sheet)
    assert len(lines) < 5
    assert "30" in lines[1] and "aws" in lines[1]


# -- words for money -------------------------------------------------------------------------


def said(**changes: Any) -> list[str]:
    base = {"jobs": (), "budget_usd": micro_usd(50), "cost_usd": micro_usd(10)}
    return money_notes(Preview.model_construct(**{**base, **changes}))


def a_plan(desk: Desk, **changes: Any) -> list[str]:
    return money_notes(looked(desk, *SPECS).but(**changes))


def test_a_gap_is_said_in_the_words_of_the_promise(desk: Desk) -> None:
    notes = a_plan(desk, gap=0.0132, bound_usd=micro_usd("0.99"))
    assert "at most 1.3 % above the cheapest possible (lower bound 0.99 USD)" in notes


def test_a_plan_that_is_proven_the_cheapest_says_so(desk: Desk) -> None:
    notes = a_plan(desk, gap=0.0, bound_usd=micro_usd(1))
    assert "no plan for these jobs is cheaper (lower bound 1.00 USD)" in notes


def test_a_simpler_choice_is_said_to_be_one(desk: Desk) -> None:
    assert any("a simpler choice had to do" in note for note in a_plan(desk, is_simpler=True))


def test_what_peers_would_pay_is_said_with_what_is_saved(desk: Desk) -> None:
    notes = a_plan(desk, cost_usd=micro_usd(8), one_each_usd=micro_usd(10))
    assert any("alone would cost 10.00 USD: this is 20 % less" in note for note in notes)


def test_what_is_left_of_the_budget_counts_the_worst_case(desk: Desk) -> None:
    notes = a_plan(desk, worst_case_usd=micro_usd(20))
    assert any(note.startswith("30.00 USD of the budget are left") for note in notes)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (More(added=micro_usd(5), jobs=1, cost=micro_usd(2)),
         "another 5.00 USD would let 1 more job run, for 2.00 USD"),
        (More(added=micro_usd(5), jobs=3, cost=micro_usd(2)), "let 3 more jobs run"),
        (More(added=micro_usd(5), sooner_s=2 * HOUR, cost=micro_usd(1)),
         "another 5.00 USD would finish 2 h 00 min sooner, for 1.00 USD"),
        (More(added=micro_usd(5)), "another 5.00 USD would change nothing"),
        (More(added=micro_usd(5), jobs=1, cost=micro_usd(-2)),
         "would let 1 more job run, and cost 2.00 USD less in all"),
        (More(added=micro_usd(5), cost=micro_usd(-2)), "5.00 USD would cost 2.00 USD less in all"),
        (More(added=micro_usd(5), cost=micro_usd(3)), "5.00 USD would let no more jobs run"),
    ],
)  # fmt: skip
def test_what_five_dollars_more_buy_is_said(more: More, words: str) -> None:
    assert any(words in note for note in said(more=more))


def test_who_waits_for_others_is_said_to_be_left_out_of_the_sums() -> None:
    made = Preview(jobs=(), later=Later(jobs=2, cost=micro_usd("0.4")))
    assert (
        "2 jobs that wait for others are not in these sums: the cheapest machines for them would "
        "cost 0.40 USD"
    ) in money_notes(made)


def test_a_plan_dearer_than_a_machine_for_each_says_that_the_budget_is_why() -> None:
    desk_plan = Preview(
        jobs=(), machines=(a_machine(),), cost_usd=micro_usd("2"), one_each_usd=micro_usd("1.5"),
        budget_usd=micro_usd("3"),
    )  # fmt: skip
    assert (
        "the cheapest machine for each job alone would cost 1.50 USD, if the budget held what they "
        "may cost at worst"
    ) in money_notes(desk_plan)


def test_jobs_of_one_name_on_a_machine_are_named_once_with_their_count() -> None:
    seats = tuple(
        PlannedJob(name=name, number=n, starts_at=NOW, ends_at=NOW + 9)
        for n, name in enumerate(("s", "s", "t", "s"))
    )
    sheet = machines_sheet(Preview(jobs=(), machines=(a_machine(jobs=seats),), made_at=NOW))
    assert plain_lines(sheet)[1].endswith("s (3 jobs), t")


def test_amounts_in_what_a_job_is_told_are_whole_cents() -> None:
    says = "train#3 needs 0.145406 of the 0.95 USD that are left"
    assert by_name(says) == "train needs 0.15 of the 0.95 USD that are left"


def test_the_budget_that_would_be_enough_can_be_copied() -> None:
    notes = said(least_budget_usd=micro_usd("1234.56"))
    assert "a budget of 1,234.56 USD would be enough: --budget 1234.56" in notes


def test_owned_machines_that_run_it_all_are_said_to(desk: Desk) -> None:
    notes = money_notes(looked(desk, SPECS[2]))
    assert notes[0] == (
        "nothing is rented: 0.00 USD of a budget of 50.00 USD, your own machines run it all"
    )


def test_prices_have_their_date_and_estimates_are_counted(desk: Desk) -> None:
    dated = L4.but(priced_at=NOW, estimated=True)
    notes = money_notes(looked(desk, a_gpu_job(), offers=[dated]))
    assert "prices of 2026-09-21; 1 of them estimated (m1)" in notes


def test_what_the_catalogue_has_to_say_is_said(desk: Desk) -> None:
    notes = money_notes(looked(desk, a_gpu_job(), offers=[], notes=("No price is known.",)))
    assert "No price is known." in notes


def test_what_would_be_needed_to_rent_is_said_once(desk: Desk) -> None:
    assert money_notes(looked(desk, a_gpu_job())).count(NEEDS_AN_ACCOUNT) == 1
    assert NEEDS_AN_ACCOUNT not in money_notes(looked(desk, a_gpu_job(), can_launch=True))


# -- the document ----------------------------------------------------------------------------


def test_the_document_has_each_job_s_place_time_money_rival_and_bound(desk: Desk) -> None:
    keys = plan_keys(looked(desk, *SPECS))
    train, _, small = keys["jobs"]
    assert (train["state"], train["machine"], train["node"]) == ("rented", "m1", None)
    assert train["binding"]["code"] == "no-such-gpu"
    assert train["runner_up"]["offer"] and train["runner_up"]["cost_usd"] > 0
    assert train["starts_at"] < train["ends_at"]
    assert (small["state"], small["node"], small["cost_usd"]) == ("runs-now", "desk", 0)
    assert keys["bound_usd"] is None and keys["gap"] is None
    assert keys["left_usd"] == keys["budget_usd"] - keys["worst_case_usd"]
    assert sum(job["cost_usd"] for job in keys["jobs"]) == keys["cost_usd"]
    machine = keys["machines"][0]
    assert machine["jobs"][0]["name"] in {"train", "eval-of-a-rather-long-name"}
    assert keys["jobs"][machine["jobs"][0]["position"]]["machine"] == machine["name"]


# -- refusals --------------------------------------------------------------------------------


def refused(made: Preview) -> SpecError | None:
    sheaf = Sheaf(Path("jobs.yaml"), JobFile(specs=(), digest=""))
    try:
        refuse_impossible(made, sheaf)
    except SpecError as error:
        return error
    return None


def test_what_nothing_has_ends_with_111(desk: Desk) -> None:
    made = looked(desk, a_gpu_job(count=64))
    error = refused(made)
    assert isinstance(error, NothingCanRunIt)
    assert for_error(error) == exit_of(made) == Exit.NOTHING_CAN_RUN_IT
    assert "train can run nowhere" in str(error) and "short" in str(error)


def test_too_little_money_ends_with_112_and_what_would_be_enough(desk: Desk) -> None:
    made = looked(desk, a_gpu_job(), budget="0.2")
    error = refused(made)
    assert isinstance(error, OverBudget)
    assert for_error(error) == exit_of(made) == Exit.OVER_BUDGET
    assert "would be enough for all jobs" in error.remedy


def test_a_deadline_that_nothing_meets_ends_with_113_and_the_earliest(desk: Desk) -> None:
    made = looked(desk, a_gpu_job(deadline=NOW + 60.0))
    error = refused(made)
    assert isinstance(error, DeadlineImpossible)
    assert for_error(error) == exit_of(made) == Exit.DEADLINE
    assert "the earliest that it could be done" in str(error)


def test_where_no_budget_of_the_run_is_enough_each_job_is_told_what_would_be(desk: Desk) -> None:
    spec = a_gpu_job(budget=micro_usd("0.2"))
    (line,) = plain_lines(plan_sheet(looked(desk, spec, offers=[L4]), [spec]))[1:2]
    assert "its budget is 0.20 USD; raise its budget by " in line


def test_a_run_that_nobody_can_rent_for_is_refused_and_says_what_it_would_take(
    desk: Desk,
) -> None:
    error = refused(looked(desk, a_gpu_job()))
    assert isinstance(error, NothingCanRunIt)
    assert "would do, for" in str(error) and "account" in error.remedy
    assert refused(looked(desk, a_gpu_job(), can_launch=True)) is None


def test_a_plan_of_it_is_no_failure(desk: Desk) -> None:
    assert exit_of(looked(desk, a_gpu_job())) is Exit.DONE


def test_what_runs_or_waits_here_is_not_refused(desk: Desk) -> None:
    assert refused(looked(desk, SPECS[2])) is None


@pytest.mark.parametrize(("budget", "state"), [(micro_usd(50), "rented"), (None, "waits")])
def test_who_is_asked_is_told_what_is_rented_for_jobs_that_wait_for_want_of_nodes(
    tmp_path: Path, budget: MicroUsd | None, state: str
) -> None:
    clouds = {"aws": {"regions": ["us-east-1"]}}
    desk = a_desk(tmp_path, rent="greedy", takes_jobs=False, clouds=clouds)
    file = JobFile(specs=(a_gpu_job(),), digest="", budget=budget)
    made = dry_run(desk, Sheaf(Path("a.yaml"), file))
    assert [job.state for job in made.jobs] == [state]
    assert len(made.machines) == (1 if budget else 0)


def test_who_only_queues_is_told_what_will_be_rented(desk: Desk) -> None:
    run = Run(id="run-1", opened_at=NOW, user="ada", folder="/")
    sheaf = Sheaf(Path("a.yaml"), JobFile(specs=(a_gpu_job(),), digest=""))
    made = looked(desk, a_gpu_job(), offers=[L4], can_launch=True)
    said = queued_words(run, sheaf, made)
    assert said.startswith("run-1: queued 1 job of a.yaml; rents 1 machine for ")
    assert said.endswith(" at worst of a budget of 50.00 USD")
    here = looked(desk, SPECS[2])
    assert queued_words(run, sheaf, here) == "run-1: queued 1 job of a.yaml"


# -- the question ----------------------------------------------------------------------------


def test_the_question_names_what_it_costs_at_most(desk: Desk) -> None:
    made = looked(desk, a_gpu_job(), a_gpu_job("b"), offers=[L4])
    asked = question(made)
    assert asked.startswith("Run these 2 jobs for ") and asked.endswith(" of 50.00 USD?")
    assert "at most" in asked


def test_where_nothing_is_rented_no_money_is_asked_about(desk: Desk) -> None:
    assert question(looked(desk, SPECS[2])) == "Run this job?"
    assert looked(desk, SPECS[2]).worst_case_usd == NOTHING


# -- while it thinks -------------------------------------------------------------------------


def test_short_work_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with thinking.Thinking("planning 3 jobs"):
        pass
    assert capsys.readouterr() == ("", "")


def test_long_work_says_on_standard_error_what_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(thinking, "QUIET_S", 0.0)
    with thinking.Thinking("planning 3 jobs"):
        until("the line", lambda: "planning 3 jobs" in stream.getvalue())


def test_work_that_breaks_off_ends_the_telling() -> None:
    with pytest.raises(KeyboardInterrupt), thinking.Thinking("planning") as told:
        raise KeyboardInterrupt
    assert not told._thread.is_alive()
