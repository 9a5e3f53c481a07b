"""Receipts: times, work lost, money, and the keys that every document uses."""

import json
from datetime import datetime
from decimal import Decimal

import pytest
from billing import books_with, lines_of
from clouding import an_offer
from makers import a_job, a_node, a_world, placed

from cloudwhale.cli.output import emit
from cloudwhale.model import event as e
from cloudwhale.model.job import JobState
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.receipt import RunReceipt
from cloudwhale.model.rental import Egress, Lease, Part, Rental, RentalState
from cloudwhale.model.run import Run
from cloudwhale.model.units import NOTHING, micro_usd
from cloudwhale.model.where import Where
from cloudwhale.planning.costing import so_far
from cloudwhale.reporting.receipt import (
    Bill,
    Books,
    job_keys,
    job_receipt,
    machine_receipt,
    run_keys,
    run_receipt,
)
from cloudwhale.reporting.sentences import headline
from cloudwhale.reporting.sheet import plain_lines
from cloudwhale.reporting.tables import receipt_sheet

KEYS = (
    "id name project state reason attempt node devices provider market region zone price_usd_h "
    "spent_usd reserved_usd budget_usd saved_usd wasted_usd submitted_at started_at ended_at"
).split()


def test_a_job_has_every_key_that_is_the_same_everywhere() -> None:
    assert set(KEYS) <= set(job_keys(job_receipt(a_job(), 0.0)))


def test_a_reason_in_a_document_is_its_code_and_its_sentence() -> None:
    job = a_job().but(reason=Reason(code=Code.CPU, says="needs 4", change="ask for 2"))
    assert job_keys(job_receipt(job, 0.0))["reason"] == {"code": "cpu", "says": "needs 4"}


def test_a_running_job_has_run_until_now() -> None:
    job = placed(a_job()).but(state=JobState.RUNNING, started_at=40.0, first_started_at=20.0)
    receipt = job_receipt(job.but(run_s=10.0), 100.0)
    assert receipt.run_s == 70.0
    assert receipt.wait_s == 20.0


def test_an_ended_job_does_not_age() -> None:
    job = placed(a_job()).but(
        state=JobState.COMPLETED, started_at=40.0, first_started_at=40.0, ended_at=50.0, run_s=10.0
    )
    assert job_receipt(job, 1000.0).run_s == 10.0


def test_a_job_that_never_started_waited_until_it_ended() -> None:
    job = a_job().but(state=JobState.CANCELLED, ended_at=30.0)
    assert job_receipt(job, 1000.0).wait_s == 30.0


def test_an_owned_machine_has_a_provider_a_market_and_no_price() -> None:
    receipt = job_receipt(placed(a_job()), 0.0, Books(nodes={"host": a_node()}))
    assert (receipt.provider, receipt.market, receipt.price_usd_h) == ("local", "local", None)
    assert job_receipt(a_job(), 0.0).market is None


def test_money_that_paid_for_lost_work_for_booting_and_for_nobody_is_wasted() -> None:
    """Of 3,600 s it booted for 600, a quarter of the 2,400 that were held was lost."""
    parts = {"a": Part(lost_s=600.0, family="train")}
    rental = SPOT.but(
        jobs={"a": "default"}, ready_at=700.0, held_s={"a": 2400.0}, parts=parts,
        spent=micro_usd("0.36"),
    )  # fmt: skip
    books = books_with(Bill(rental, {"a": micro_usd("0.36")}))
    receipt = job_receipt(a_job("a"), 1e6, books)
    parts_of_it = receipt.parts
    assert parts_of_it.wasted_boot_usd == Decimal("0.06")
    assert parts_of_it.wasted_lost_work_usd == Decimal("0.06")
    assert parts_of_it.wasted_idle_usd == Decimal("0.06")
    assert parts_of_it.useful_usd == Decimal("0.18")
    assert receipt.wasted_usd == Decimal("0.18")


def test_a_run_adds_up_its_jobs() -> None:
    run = Run(id="run-1", opened_at=0.0, user="", folder="/", budget=micro_usd(50))
    jobs = [a_job("a").but(lost_s=1.5, interruptions=1), a_job("b").but(lost_s=2.0)]
    books = Books(spent={"a": micro_usd(1), "b": micro_usd(2), None: micro_usd("0.5")})
    receipt = run_receipt(run, jobs, 0.0, books)
    assert receipt.spent_usd == Decimal("3.5")
    assert (receipt.lost_work_s, receipt.interruptions) == (3.5, 1)
    assert list(run_keys(receipt)) == [
        "run", "jobs", "spent_usd", "budget_usd", "lost_work_s", "interruptions", "reserved_usd",
        "released_usd", "saved_usd", "planned_usd", "one_each_usd", "machines", "providers",
        "running_usd", "wasted_usd", "parts", "otherwise",
    ]  # fmt: skip


LEASE = Lease(number=1, watched_until=900.0, away_until=5000.0, stop_at=5120.0)
SPOT = Rental(
    id="rent-1", node="rent-1", payer="run-1", offer="g5-spot", lease=LEASE,
    reserved=NOTHING, spent=micro_usd("0.4"), state=RentalState.RETURNED,
    taken=an_offer(
        "g5-spot", type="g5.xlarge", market="spot", price_usd_h=micro_usd("0.4"),
        cap_usd_h=micro_usd("1.2"),
    ),
    jobs={"a": "default", "b": "default"}, requested_at=100.0, ended_at=3700.0,
)  # fmt: skip
BILL = Bill(SPOT, {"a": micro_usd("0.3"), "b": micro_usd("0.1")}, micro_usd("1.1"))


def test_a_rented_machine_has_its_time_its_price_and_who_paid() -> None:
    machine = machine_receipt(BILL, 1e6, lines_of(BILL))
    assert (machine.provider, machine.type, machine.market) == ("cloud", "g5.xlarge", "spot")
    assert (machine.billed_s, machine.spent_usd) == (3600.0, Decimal("0.40"))
    assert machine.on_demand_usd == Decimal("1.20")
    assert machine.jobs == {"a": Decimal("0.30"), "b": Decimal("0.10")}


def test_what_was_saved_against_on_demand_is_each_job_s_part() -> None:
    run = Run(id="run-1", opened_at=0.0, user="", folder="/", budget=micro_usd(50))
    books = books_with(BILL, planned=micro_usd("0.6"), one_each=micro_usd("0.9"))
    receipt = run_receipt(run, [a_job("a"), a_job("b"), a_job("c")], 1e6, books)
    assert [job.saved_usd for job in receipt.jobs] == [Decimal("0.60"), Decimal("0.20"), None]
    assert receipt.saved_usd == Decimal("0.80")
    assert (receipt.planned_usd, receipt.one_each_usd) == (Decimal("0.60"), Decimal("0.90"))
    assert (receipt.reserved_usd, receipt.released_usd) == (Decimal(0), Decimal("1.10"))
    total = plain_lines(receipt_sheet(receipt))[-1]
    expected = "planned were 0.60 USD, and 0.90 USD with a machine for each job"
    assert f"0.80 USD less than on demand, {expected}" in total
    assert "0.50" not in total, "what was paid and what was expected are no saving"


def test_a_short_time_is_billed_as_the_least_and_disk_and_address_stand_beside_the_price() -> None:
    run = Run(id="run-1", opened_at=0.0, user="", folder="/", budget=micro_usd(50))
    assert SPOT.taken is not None
    taken = SPOT.taken.but(extras_usd_h=micro_usd("0.03"), billing_least_s=60.0)
    short = SPOT.but(taken=taken, requested_at=100.0, ended_at=107.0)
    books = Books(bills=(Bill(short, {"a": micro_usd("0.01")}, micro_usd("1.1")),))
    lines = plain_lines(receipt_sheet(run_receipt(run, [a_job("a")], 1e6, books)))
    (line,) = [line for line in lines if "USD an hour" in line]
    assert "USD an hour and 0.03 for disk and address, 7.0 s (billed as 1 min 00 s) for" in line


def test_jobs_that_had_a_machine_each_have_saved_nothing_by_sharing() -> None:
    run = Run(id="run-1", opened_at=0.0, user="", folder="/", budget=micro_usd(50))
    alone = Bill(SPOT, {"a": micro_usd("0.4")}, micro_usd("1.1"))
    books = books_with(alone, planned=micro_usd("0.4"), one_each=micro_usd("0.9"))
    total = plain_lines(receipt_sheet(run_receipt(run, [a_job("a")], 1e6, books)))[-1]
    assert "for each job" not in total


def test_a_machine_that_nobody_knows_the_price_of_on_demand_saves_nobody_knows_what() -> None:
    dear = SPOT.but(taken=an_offer("x", market="spot", cap_usd_h=None))
    bill = Bill(dear, BILL.charges)
    assert machine_receipt(bill, 1e6, lines_of(bill)).on_demand_usd is None
    books = books_with(bill)
    assert job_receipt(a_job("a"), 1e6, books).saved_usd is None


def test_a_machine_that_never_came_is_named_without_money() -> None:
    never = SPOT.but(requested_at=None, ended_at=None, spent=NOTHING)
    run = Run(id="run-1", opened_at=0.0, user="", folder="/")
    receipt = run_receipt(run, [], 1e6, Books(bills=(Bill(never),)))
    assert "rent-1: cloud g5.xlarge spot in r-a, never came" in plain_lines(receipt_sheet(receipt))


def test_a_receipt_is_one_json_document_with_numbers_and_iso_times(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = Run(id="run-1", opened_at=0.0, user="", folder="/", budget=micro_usd(50))
    emit(run_keys(run_receipt(run, [a_job()], 0.0)))
    document = json.loads(capsys.readouterr().out)
    assert document["budget_usd"] == 50.0
    submitted = datetime.fromisoformat(document["jobs"][0]["submitted_at"])
    assert submitted.utcoffset() is not None
    assert submitted.timestamp() == 0.0


# -- several clouds --------------------------------------------------------------------------

SNOW = SPOT.but(
    id="rent-2", node="rent-2", spent=micro_usd("1.5"), jobs={"a": "default"},
    taken=an_offer("m", provider="snow", price_usd_h=micro_usd("1.2")),
    egress=(
        Egress(job="a", provider="cloud", region="r", size_bytes=10**9, cost=micro_usd("0.2")),
        Egress(job="a", provider="rain", region="q", size_bytes=10**9, cost=micro_usd("0.1")),
    ),
)  # fmt: skip
BOTH = (BILL, Bill(SNOW, {"a": micro_usd("1.5")}, micro_usd("1")))


def both(*bills: Bill) -> RunReceipt:
    run = Run(id="run-1", opened_at=0.0, user="", folder="/", budget=micro_usd(50))
    spent: dict[str | None, int] = {"a": micro_usd("1.8"), "b": micro_usd("0.1")}
    return run_receipt(run, [a_job("a"), a_job("b")], 1e6, Books(spent=spent, bills=bills))


def test_the_money_is_split_by_cloud_and_what_leaves_one_is_its() -> None:
    receipt = both(*BOTH)
    assert [one.model_dump() for one in receipt.providers] == [
        {"provider": "cloud", "spent_usd": Decimal("0.60"), "machines": 1,
         "egress_usd": Decimal("0.20")},
        {"provider": "rain", "spent_usd": Decimal("0.10"), "machines": 0,
         "egress_usd": Decimal("0.10")},
        {"provider": "snow", "spent_usd": Decimal("1.20"), "machines": 1,
         "egress_usd": Decimal("0.00")},
    ]  # fmt: skip
    assert sum(one.spent_usd for one in receipt.providers) == receipt.spent_usd
    assert [one.egress_usd for one in receipt.machines] == [Decimal(0), Decimal("0.30")]


def test_a_paper_says_it_where_there_is_something_to_say() -> None:
    text = "\n".join(plain_lines(receipt_sheet(both(*BOTH))))
    assert "cloud: 0.60 USD for 1 machine, 0.20 USD of it for what left it" in text
    assert "snow: 1.20 USD for 1 machine\n" in text
    assert "1.50 USD, 0.30 USD of it for a checkpoint from another cloud" in text
    assert "of it for" not in "\n".join(plain_lines(receipt_sheet(both(BILL))))
    assert "cloud: " not in "\n".join(plain_lines(receipt_sheet(both(BILL))))


def test_a_machine_that_runs_has_paid_for_what_was_brought_so_far() -> None:
    now = SNOW.but(
        state=RentalState.READY, spent=NOTHING, reserved=micro_usd(9), ended_at=None,
        requested_at=1e6 - 1800,
    )  # fmt: skip
    machine = machine_receipt(Bill(now), 1e6, so_far(now, a_world(now=1e6)))
    assert (machine.spent_usd, machine.egress_usd) == (Decimal("0.90"), Decimal("0.30"))
    assert machine.on_demand_usd == Decimal("0.90"), "that would have been brought there as well"
    tight = machine_receipt(Bill(now.but(reserved=micro_usd("0.1"))), 1e6)
    assert (tight.spent_usd, tight.egress_usd) == (Decimal("0.10"), Decimal("0.10"))


def test_what_was_brought_is_told() -> None:
    left = Where(provider="rain", region="q")
    event = e.Brought(
        at=1.0, job="a", rental="rent-2", checkpoint="c-7", left=left, size_bytes=10**9,
        cost=micro_usd("0.12"),
    )  # fmt: skip
    said = headline(event, None)
    assert said is not None and said.startswith("its checkpoint c-7 was brought from rain q (")
    assert said.endswith(", 0.12 USD)")
