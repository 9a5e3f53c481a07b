"""The morning report: its numbers, its sentences, its page."""

from decimal import Decimal
from io import StringIO

import pytest
from makers import a_run
from mornings import (
    DONE,
    FAILED,
    HOUR,
    MACHINE,
    NIGHT,
    OPENS,
    RUN,
    WAITS,
    a_night_job,
    the_report,
)
from rich.console import Console

from cloudwhale.model.job import JobState
from cloudwhale.model.morning import Morning
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import RentalState
from cloudwhale.model.units import Instant
from cloudwhale.reporting import drawn
from cloudwhale.reporting.morning import Told, morning
from cloudwhale.reporting.morning_page import morning_page
from cloudwhale.reporting.morning_text import morning_sheets
from cloudwhale.reporting.receipt import Bill, Books
from cloudwhale.reporting.sheet import plain_lines


def text_of(told: Morning) -> str:
    return "\n".join(line for sheet in morning_sheets(told) for line in plain_lines(sheet))


def test_what_was_spent_and_set_aside_is_what_is_not_left_of_the_budget() -> None:
    paid = the_report().money
    assert (paid.budget_usd, paid.spent_usd, paid.left_usd) == (Decimal(8), Decimal(2), Decimal(6))
    assert paid.saved_usd == Decimal(4)


def test_projects_add_up_to_the_night() -> None:
    told = the_report()
    assert [one.project for one in told.projects] == ["nlp", "vision", "speech"]
    assert sum(one.spent_usd for one in told.projects) == told.money.spent_usd
    assert sum(one.jobs for one in told.projects) == len(told.jobs)
    assert [one.left_over for one in told.projects] == [0, 0, 1]


def test_a_failure_is_told_with_its_reason_its_code_its_last_line_and_what_to_do() -> None:
    assert (
        'b (vision): the command failed (exit code 3); its last line: "ValueError: no such file". '
        "Mend the command." in text_of(the_report())
    )


def test_what_a_failure_s_reason_says_already_is_not_said_again() -> None:
    reason = Reason(
        code=Code.COMMAND_FAILED, says="its process ended with 3; it said last: no file"
    )
    told = the_report((FAILED.but(reason=reason),), Told(last_lines={"b": "no file"}))
    (line,) = [line for line in text_of(told).splitlines() if line.startswith("b (vision)")]
    assert line == "b (vision): its process ended with 3; it said last: no file."


def test_why_a_job_is_left_over_is_what_it_was_told_before_its_night_closed() -> None:
    closed = WAITS.but(reason=Reason(code=Code.LEFT_OVER, says="its night has closed"))
    assert WAITS.reason is not None
    told = the_report((closed,), Told({"c": "park"}, {"c": WAITS.reason}))
    assert "c (speech) is parked until you resume it: could cost 9 USD" in text_of(told)


def test_what_is_left_over_is_told_with_what_becomes_of_it_and_why() -> None:
    text = text_of(the_report())
    assert "c (speech) is carried over to the next night: could cost 9 USD" in text
    assert "1 of 3 jobs completed, 1 failed, 1 left over." in text


def test_the_next_night_opens_at_the_same_time_of_day_with_what_was_carried_over() -> None:
    told = the_report()
    assert told.tonight is not None
    assert told.tonight.opens_at == "2026-12-01T22:00:00+01:00"
    assert told.tonight.waiting == ("c",)
    assert "2026-12-01 at 22:00" in text_of(told)


def test_the_next_night_is_on_a_day_on_which_the_file_opens() -> None:
    told = morning(RUN.but(night=NIGHT.but(days=("mon", "thu"))), [], OPENS + 10 * HOUR)
    assert told.tonight is not None
    assert told.tonight.opens_at == "2026-12-03T22:00:00+01:00"


@pytest.mark.parametrize(
    ("opens_at", "later"),
    [
        (1_774_731_600.0, "2026-03-29T22:00:00+02:00"),  # 28 March 2026 22:00 in Berlin
        (1_792_872_000.0, "2026-10-25T22:00:00+01:00"),  # 24 October 2026 22:00 in Berlin
    ],
)
def test_a_day_later_is_the_same_hour_also_when_the_clock_was_changed(
    opens_at: Instant, later: str
) -> None:
    night = NIGHT.but(opens_at=opens_at, closes_at=opens_at + 8 * HOUR)
    told = morning(RUN.but(night=night), [], opens_at)
    assert told.tonight is not None
    assert told.tonight.opens_at == later


def test_a_night_is_not_over_while_a_machine_is_out_or_a_job_is_neither_done_nor_left_over() -> (
    None
):
    assert the_report().is_over
    assert not the_report(told=Told()).is_over
    out = Books(bills=(Bill(MACHINE.but(state=RentalState.READY)),))
    assert not morning(RUN, [DONE], OPENS, out).is_over


def test_a_machine_that_its_provider_took_is_told_so() -> None:
    assert "was taken away" in text_of(the_report())


def test_a_run_that_is_no_night_has_no_report() -> None:
    with pytest.raises(ValueError, match="run-1 is no night"):
        morning(a_run(), [], 0.0)


def test_the_page_has_every_name_escaped_and_the_same_numbers() -> None:
    odd = a_night_job("a", JobState.COMPLETED, project='<b>"&, 🐋')
    page = morning_page(the_report((odd, FAILED, WAITS)))
    assert '<b>"' not in page
    assert "&lt;b&gt;&quot;&amp;, 🐋" in page
    assert "2.00 USD" in page
    assert "no such file" in page
    assert "<script" not in page


def test_a_night_in_which_nothing_ran_is_told_too() -> None:
    told = morning(RUN, [], OPENS)
    assert told.money.spent_usd == 0
    assert "0 of 0 jobs completed" in text_of(told)
    assert "Night of 2026-11-30: burst" in morning_page(told)


LONG = "evaluate-all-of-it-with-a-name-that-is-long-"


@pytest.mark.parametrize("width", [80, 140])
def test_a_terminal_gets_all_of_it_whatever_its_width_and_the_names(width: int) -> None:
    job = a_night_job(LONG, JobState.COMPLETED, project=LONG).but(id="a")
    told = the_report((job, FAILED, WAITS)).but(
        jobs=tuple(one.but(id=f"{LONG}{one.id}") for one in the_report((job, FAILED, WAITS)).jobs)
    )
    paper = Console(file=StringIO(), width=width)
    for sheet in morning_sheets(told):
        drawn.show(paper, sheet)
    assert isinstance(paper.file, StringIO)
    lines = paper.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert "…" not in "".join(lines), "a name is folded, not cut"
    assert {"job", "state", "spent"} <= set(" ".join(lines).split())
