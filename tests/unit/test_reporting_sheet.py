"""Tables for pipes and for terminals of two widths."""

import pytest
from makers import a_job, placed
from rich.console import Console

from cloudwhale.cli.view import sentence
from cloudwhale.model import event as e
from cloudwhale.model.job import JobState
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.run import Run
from cloudwhale.reporting.drawn import show
from cloudwhale.reporting.explain import story
from cloudwhale.reporting.receipt import run_receipt
from cloudwhale.reporting.sheet import Column, Sheet, cells, meant_for, plain_lines, text_of
from cloudwhale.reporting.story_text import story_lines
from cloudwhale.reporting.tables import checks_sheet, jobs_sheet, receipt_sheet
from cloudwhale.spi.provider import Check

LONG = "needs 4 CPUs, the most that any node has is 2; " * 3


def drawn(sheet: Sheet, width: int) -> str:
    console = Console(width=width, force_terminal=True, color_system=None)
    with console.capture() as captured:
        show(console, sheet)
    return captured.get()


def a_sheet() -> Sheet:
    columns = (Column("job"), Column("empty"), Column("ran", right=True))
    return Sheet(columns, (cells("a", "-", "1:02"), cells("longer", "-", "9:00:01")))


def test_plain_columns_are_aligned_and_nothing_is_cut() -> None:
    assert plain_lines(a_sheet()) == [
        "JOB     EMPTY      RAN",
        "a       -         1:02",
        "longer  -      9:00:01",
    ]


def test_a_cell_of_several_lines_stays_one_row_in_a_pipe() -> None:
    sheet = Sheet((Column("why"),), (cells("two\nlines"),))
    assert plain_lines(sheet) == ["WHY", "two lines"]


def test_a_column_that_says_nothing_is_not_shown_to_a_person() -> None:
    assert [column.name for column in meant_for(a_sheet(), "terminal").columns] == ["job", "ran"]


def test_a_program_gets_node_and_devices_apart_and_a_person_together() -> None:
    job = placed(a_job("a-1"), "host", "gpu-0").but(state=JobState.RUNNING, started_at=0.0)
    sheet = jobs_sheet([job], 1.0)
    assert plain_lines(sheet)[1].split()[:4] == ["a-1", "running", "host", "gpu-0"]
    assert "on host (gpu-0)" in drawn(sheet, 80)


def test_a_sheet_without_rows_is_its_notes() -> None:
    assert plain_lines(Sheet((Column("job"),), (), notes=("No jobs yet.",))) == ["No jobs yet."]


@pytest.mark.parametrize("width", [80, 140])
def test_a_table_of_jobs_never_is_wider_than_the_terminal(width: int) -> None:
    waiting = a_job("train-with-a-long-name-3f2a").but(
        reason=Reason(code=Code.NO_ROOM_NOW, says=LONG)
    )
    running = placed(a_job("sweep-1"), "host", "gpu-0").but(state=JobState.RUNNING, started_at=10.0)
    text = drawn(jobs_sheet([waiting, running], 100.0), width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "train-with-a-long-name-3f2a" in text
    assert "1:30" in text


def test_a_wide_terminal_sees_more_columns() -> None:
    job = a_job("train-1", project="nlp")
    assert "nlp" not in drawn(jobs_sheet([job], 10.0), 80)
    assert "nlp" in drawn(jobs_sheet([job], 10.0), 140)


def test_a_receipt_says_what_was_spent_lost_and_why_a_job_failed() -> None:
    run = Run(id="run-1", opened_at=0.0, user="", folder="/", budget=None)
    bad = placed(a_job("a"), "host").but(
        state=JobState.FAILED,
        exit_code=3,
        ended_at=9.0,
        reason=Reason(code=Code.COMMAND_FAILED, says="its process ended with 3"),
    )
    lines = plain_lines(receipt_sheet(run_receipt(run, [bad], 10.0)))
    assert "its process ended with 3" in lines[2]
    assert lines[-1].startswith("0 of 1 job completed, spent 0.00 USD")


def test_a_long_receipt_shows_what_did_not_complete_and_counts_the_rest() -> None:
    run = Run(id="run-1", opened_at=0.0, user="", folder="/")
    good = [
        a_job(f"ok-{number}").but(state=JobState.COMPLETED, ended_at=5.0) for number in range(200)
    ]
    bad = a_job("broken").but(state=JobState.FAILED, ended_at=5.0, exit_code=1)
    text = "\n".join(plain_lines(receipt_sheet(run_receipt(run, [*good, bad], 10.0))))
    assert "broken" in text
    assert "ok-7" not in text
    assert "200 more completed" in text
    assert "200 of 201 jobs completed" in text


def test_a_failed_check_comes_with_its_remedy() -> None:
    rows = [
        Check(name="disk", state="failed", says="0.2 GiB free", remedy="Free some space."),
        Check(name="cpu", state="ok", says="2 CPUs", remedy="never shown"),
    ]
    text = "\n".join(plain_lines(checks_sheet(rows)))
    assert "0.2 GiB free. Free some space." in text
    assert "never shown" not in text


BELL = "\a\x1b]0;owned\x07\x1b[2J\x9b\r"


def test_no_text_of_a_job_commands_the_terminal() -> None:
    reason = Reason(code=Code.OVER_BUDGET, says=BELL, change=BELL)
    job = a_job("a", project=BELL[:3]).but(state=JobState.PARKED, reason=reason)
    receipt = run_receipt(Run(id="run-1", opened_at=0.0, user="", folder="/"), [job], 1.0)
    shown = [
        *plain_lines(jobs_sheet([job], 1.0, [BELL])),
        *plain_lines(receipt_sheet(receipt)),
        *map(text_of, story_lines(story(job, [], []), 1.0, 80)),
        sentence(job, e.Parked(at=1.0, job="a", reason=reason)) or "",
    ]
    assert "owned" in "".join(shown)
    assert not [line for line in shown if set(line) & set(BELL[:2] + "\x9b\r")]
    for sheet in (jobs_sheet([job], 1.0, [BELL]), receipt_sheet(receipt)):
        assert not set(drawn(sheet, 200)) & set("\a\x9b\r")
        assert "\x1b]" not in drawn(sheet, 200)
