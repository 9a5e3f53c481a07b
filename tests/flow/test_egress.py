"""A job that goes on in another cloud: what its checkpoint costs is set aside, paid and told."""

from decimal import Decimal
from typing import TypeVar

import pytest
from clouding import account_of, rentals_of, settles
from staging import jobs_of
from two_stores import two_clouds

from cloudwhale.cli.books import books_of
from cloudwhale.model import event as e
from cloudwhale.model.job import JobState
from cloudwhale.model.receipt import RunReceipt
from cloudwhale.model.rental import Rental
from cloudwhale.model.units import usd
from cloudwhale.reporting.receipt import run_receipt
from cloudwhale.reporting.sheet import plain_lines
from cloudwhale.reporting.tables import receipt_sheet
from cloudwhale.simulation.stage import Stage

T = TypeVar("T")

DEAR_USD_GB = 500.0
"""A checkpoint of the simulation has a few bytes: so that they cost something at all."""


def happened(stage: Stage, kind: type[T]) -> list[T]:
    told = (one.event for one in stage.scenery.store.since(0, 100_000))
    return [event for event in told if isinstance(event, kind)]


def moved(usd_gb: float | None = DEAR_USD_GB) -> Stage:
    """Play a job whose machine is taken once it has saved; its cloud has no other one then."""
    stage, *_ = two_clouds(["middling"], dry_after_s=40.0, egress_usd_gb=usd_gb)
    stage.raise_controller()
    assert stage.play(lambda: bool(happened(stage, e.CheckpointSaved)), 400)
    (hired,) = stage.scenery.clouds["cloud"].hired.values()
    hired.taken_at = stage.machine_time
    assert settles(stage)
    return stage


@pytest.fixture(scope="module")
def stage() -> Stage:
    return moved()


def machine_in(stage: Stage, cloud: str) -> Rental:
    ends = [story[-1] for story in rentals_of(stage).values()]
    (found,) = [one for one in ends if one.taken is not None and one.taken.provider == cloud]
    return found


def receipt(stage: Stage) -> RunReceipt:
    store, jobs = stage.scenery.store, list(jobs_of(stage).values())
    run = store.world(1e6).runs.get("run-1") or store.run("run-1")
    assert run is not None
    return run_receipt(run, jobs, 1e6, books_of(store, jobs, "run-1"))


def test_what_leaves_a_cloud_is_charged_with_the_machine_that_it_goes_to(stage: Stage) -> None:
    (brought,) = happened(stage, e.Brought)
    there = machine_in(stage, "other")
    assert (brought.rental, brought.left.provider) == (there.id, "cloud")
    assert brought.cost > 0 and there.brings == {brought.job: DEAR_USD_GB}
    bills = sum(cloud.bill() for cloud in stage.scenery.clouds.values())
    account = account_of(stage)
    assert (account.spent, account.reserved) == (bills + brought.cost, 0)
    (job,) = jobs_of(stage).values()
    assert job.state is JobState.COMPLETED


def test_the_money_for_it_was_set_aside_before(stage: Stage) -> None:
    (brought,) = happened(stage, e.Brought)
    for_free = moved(0.0)
    there, cheap = machine_in(stage, "other"), machine_in(for_free, "other")
    before = rentals_of(for_free)[cheap.id][0].reserved
    assert rentals_of(stage)[there.id][0].reserved >= before + brought.cost
    assert cheap.egress[0].cost == 0


def test_the_receipt_splits_by_cloud_and_says_what_left_which(stage: Stage) -> None:
    (brought,) = happened(stage, e.Brought)
    made = receipt(stage)
    by_name = {one.provider: one for one in made.providers}
    assert by_name["cloud"].egress_usd == usd(brought.cost) and by_name["other"].egress_usd == 0
    assert [by_name[name].machines for name in ("cloud", "other")] == [1, 1]
    for name, cloud in stage.scenery.clouds.items():
        assert by_name[name].spent_usd - by_name[name].egress_usd == usd(cloud.bill())
    assert sum((one.spent_usd for one in made.providers), Decimal(0)) == made.spent_usd
    text = "\n".join(plain_lines(receipt_sheet(made)))
    assert "of it for what left it" in text and "for a checkpoint from another cloud" in text
