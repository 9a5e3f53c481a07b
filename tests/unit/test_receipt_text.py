"""A receipt in full as a person reads it, at any width, and what `receipt` prints."""

import json
from io import StringIO
from pathlib import Path

import pytest
from billing import books_with
from clouding import an_offer
from makers import a_job, a_run
from rich.console import Console

from cloudwhale.cli import receipts
from cloudwhale.cli.exits import Exit, NotFound
from cloudwhale.control.store import open_store, sqlite_url
from cloudwhale.model import event as e
from cloudwhale.model.job import JobState
from cloudwhale.model.receipt import JobReceipt, Otherwise, RunReceipt, TollReceipt
from cloudwhale.model.rental import Lease, Part, Rental, RentalState
from cloudwhale.model.units import NOTHING, micro_usd, usd
from cloudwhale.reporting.drawn import show
from cloudwhale.reporting.receipt import Bill, Story, run_receipt
from cloudwhale.reporting.receipt_text import job_sheets, otherwise_sheet, run_sheets
from cloudwhale.reporting.sheet import plain_lines

MACHINE = Rental(
    id="rent-1", node="rent-1", payer="run-1", offer="g5-spot",
    lease=Lease(number=1, watched_until=900.0, away_until=5000.0, stop_at=5120.0),
    reserved=NOTHING, spent=micro_usd("0.40"), state=RentalState.RETURNED,
    taken=an_offer(
        "g5-spot", type="g5.xlarge", market="spot", price_usd_h=micro_usd("0.36"),
        cap_usd_h=micro_usd("1.2"), extras_usd_h=micro_usd("0.04"),
    ),
    jobs={"a": "default"}, requested_at=100.0, ready_at=460.0, ended_at=3700.0,
    held_s={"a": 3240.0}, parts={"a": Part(family="train", lost_s=324.0)},
)  # fmt: skip
TOLL = TollReceipt(
    at="2026-11-30T22:00:00+00:00", why="its provider takes the machine", lost_work_s=324.0,
    wasted_usd=usd(micro_usd("0.05")), away_s=95.0,
)  # fmt: skip


def the_receipt(**fields: object) -> RunReceipt:
    books = books_with(
        Bill(MACHINE, {"a": micro_usd("0.40")}), stories={"a": Story(restores=1, tolls=(TOLL,))}
    )
    job = a_job("a").but(state=JobState.COMPLETED, attempt=2, run_s=3240.0)
    return run_receipt(a_run(budget=micro_usd(5)), [job], 1e6, books).but(**fields)


def text_of(receipt: RunReceipt) -> str:
    return "\n".join(line for sheet in run_sheets(receipt) for line in plain_lines(sheet))


def test_each_machine_has_its_seconds_its_price_and_what_of_it_was_boot_and_idle() -> None:
    (row,) = [line for line in text_of(the_receipt()).splitlines() if line.startswith("rent-1")]
    assert row.split() == [
        "rent-1", "cloud", "g5.xlarge", "r-a", "spot", "3,600", "0.40", "0.36", "0.04", "-", "-",
        "1.24", "10", "%", "0", "%", "0.40",
    ]  # fmt: skip


def test_what_a_sum_was_for_adds_up_to_it() -> None:
    text = text_of(the_receipt())
    assert "What 0.40 USD were for" in text
    assert "work that lasted                    81 %  0.324" in text
    assert "booting: billed and not ready yet   10 %   0.04" in text
    assert "work that was done again             9 %  0.036" in text


def test_each_interruption_has_the_work_the_time_and_the_money_it_cost() -> None:
    assert "a    its provider takes the machine  5 min 24 s  1 min 35 s        0.05" in text_of(
        the_receipt()
    )


def test_other_courses_are_said_with_the_difference_and_of_whom_nobody_knows() -> None:
    dearer = Otherwise(
        course="on-demand", jobs=1, rounds=(3,), then_usd=usd(micro_usd("0.5")),
        other_usd=usd(micro_usd("1.5")), bound_usd=usd(micro_usd("1.4")), gap=0.07,
    )  # fmt: skip
    waited = Otherwise(
        course="all-waited", jobs=1, rounds=(3,), then_usd=None, other_usd=usd(NOTHING),
        then_s=3600.0, other_s=None, without=("a",),
    )  # fmt: skip
    lines = plain_lines(otherwise_sheet([dearer, waited]))
    assert any("0.50" in line and "1.50" in line and "+1.00" in line for line in lines)
    assert lines[-1].endswith("nobody knows, as not all could run there: a")
    assert "No machine was rented" in plain_lines(otherwise_sheet([]))[-1]


@pytest.mark.parametrize("width", [80, 140])
def test_nothing_is_wider_than_the_terminal(width: int) -> None:
    receipt = the_receipt()
    console = Console(width=width, record=True, file=StringIO())
    for sheet in (*run_sheets(receipt), *job_sheets(receipt.jobs[0], receipt.machines[0].lines)):
        show(console, sheet)
    drawn = console.export_text().splitlines()
    assert max(map(len, drawn)) <= width
    assert any("disk" in line for line in drawn) == (width >= 100)


def test_a_job_has_its_part_of_each_machine_and_how_often_it_went_on() -> None:
    receipt = the_receipt()
    job: JobReceipt = receipt.jobs[0]
    text = "\n".join(
        line for sheet in job_sheets(job, receipt.machines[0].lines) for line in plain_lines(sheet)
    )
    assert "0.40 USD, 0.84 USD less than on demand" in text
    assert "went on from a checkpoint 1 time." in text


# -- the command -----------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLOUDWHALE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_any_run_it_says_how_to_start_one(here: Path) -> None:
    open_store(sqlite_url(here), may_migrate=True).close()
    with pytest.raises(NotFound, match="no run yet"):
        receipts.receipt(None, False, False)


def test_a_run_and_a_job_are_shown_as_one_document(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = open_store(sqlite_url(here), may_migrate=True)
    job = a_job("train-1")
    store.append([e.RunOpened(at=0.0, run=a_run()), e.Submitted(at=0.0, job=job.id, first=job)])
    store.close()
    assert receipts.receipt(None, True, True) == Exit.DONE
    whole = json.loads(capsys.readouterr().out)
    assert (whole["run"], whole["otherwise"], whole["machines"]) == ("run-1", [], [])
    assert receipts.receipt("train-1", False, True) == Exit.DONE
    assert json.loads(capsys.readouterr().out)["lines"] == []
    assert receipts.receipt("run-1", False, False) == Exit.DONE
    assert capsys.readouterr().out.startswith("receipt of run-1")
