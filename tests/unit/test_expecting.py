"""What machines and the queue of a project are expected to cost, beside sums made by hand."""

from typing import Any

import pytest
from clouding import an_offer
from makers import a_job, a_node, a_world, placed, wants

from cloudwhale.model.job import Job, JobState
from cloudwhale.model.offer import Offer
from cloudwhale.model.rental import Egress, Lease, Rental, RentalState
from cloudwhale.model.units import MicroUsd, micro_usd
from cloudwhale.model.world import Account, World
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.expecting import taken
from cloudwhale.planning.outlook import Taken
from cloudwhale.planning.stocking import stocked

MONTH = "2026-11"
ACCOUNT = "project:nlp:2026-11"
NOON = 1_795_953_600.0  # 2026-11-29T12:00Z
HOUR_S = 3600.0
NO_DURATIONS = Durations({})


def a_queued(name: str = "fit", **fields: Any) -> Job:
    """Make a job of an hour for four CPUs, which no machine of ours has."""
    base: dict[str, Any] = {
        "project": "nlp", "resources": wants(cpu=4), "duration_s": HOUR_S, "market": "auto",
    }  # fmt: skip
    return a_job(name, name=name, **(base | fields))


def a_rental(since: float = NOON - HOUR_S, **fields: Any) -> Rental:
    """Make a machine for 3.60 USD an hour that runs since an hour, with 36 USD set aside."""
    lease = Lease(
        number=1, watched_until=NOON, away_until=NOON + 9 * HOUR_S, stop_at=NOON + 9 * HOUR_S
    )
    base: dict[str, Any] = {
        "id": "rent-1", "payer": "run-1", "offer": "big", "lease": lease, "node": "rent-1",
        "state": RentalState.READY, "reserved": micro_usd(36), "requested_at": since,
        "reserved_at": since, "taken": an_offer(), "jobs": {"fit": "nlp"},
        "projects": {ACCOUNT: micro_usd(36)},
    }  # fmt: skip
    return Rental(**(base | fields))


def a_scene(*jobs: Job, rental: Rental | None = None, **fields: Any) -> World:
    rentals = {} if rental is None else {rental.id: rental}
    rented = [a_node("rent-1", cpu=8.0, provider="cloud", owned=False)] if rental else []
    return a_world(jobs=list(jobs), nodes=[a_node(), *rented], now=NOON, rentals=rentals, **fields)


def seen(world: World, *offers: Offer, month: str = MONTH) -> Taken:
    stock = stocked(offers, NO_DURATIONS) if offers else None
    return taken(world, "nlp", month, stock, NO_DURATIONS)


def test_a_job_that_waits_costs_its_time_and_its_machines_boot() -> None:
    found = seen(a_scene(a_queued()), an_offer())
    assert found.queue == micro_usd("3.6") * 3620 // 3600  # an hour, and 20 s of boot
    assert (found.waits, found.at_home, found.unpriced) == (1, 0, 0)


def test_of_two_machines_the_cheaper_counts() -> None:
    dear = an_offer("dear", price_usd_h=micro_usd(9), cap_usd_h=micro_usd(9))
    assert (
        seen(a_scene(a_queued()), dear, an_offer()).queue
        == seen(a_scene(a_queued()), an_offer()).queue
    )


def test_what_fits_on_a_machine_of_ours_or_may_run_there_alone_costs_nothing() -> None:
    jobs = (a_queued("small", resources=wants(cpu=1)), a_queued("stays", market="local"))
    found = seen(a_scene(*jobs), an_offer())
    assert (found.queue, found.waits, found.at_home, found.unpriced) == (0, 2, 2, 0)


def test_what_nothing_suits_is_counted_apart_and_not_as_free() -> None:
    found = seen(a_scene(a_queued(resources=wants(cpu=400))), an_offer())
    assert (found.queue, found.waits, found.at_home, found.unpriced) == (0, 1, 0, 1)
    assert seen(a_scene(a_queued())).unpriced == 1  # no cloud is set up


def test_a_job_that_does_not_say_how_long_it_runs_costs_something() -> None:
    found = seen(a_scene(a_queued(duration_s=None)), an_offer())
    assert found.queue > 0 and found.unpriced == 0


def test_other_projects_and_jobs_that_have_ended_or_run_are_no_queue() -> None:
    jobs = (
        a_queued("other", project="vision"),
        a_queued("done").but(state=JobState.COMPLETED),
        placed(a_queued("runs"), "elsewhere"),
    )
    assert seen(a_scene(*jobs), an_offer()).waits == 0


def test_a_runs_queue_costs_no_more_than_the_run_may_still_set_aside() -> None:
    jobs = [a_queued(f"fit-{n}") for n in range(3)] + [a_queued("free").but(run="run-2")]
    one = seen(a_scene(a_queued()), an_offer()).queue
    account = Account(payer="run-1", limit=micro_usd(6), spent=micro_usd(1), reserved=micro_usd(1))
    found = seen(a_scene(*jobs, accounts={"run-1": account}), an_offer())
    assert found.queue == micro_usd(4) + one  # of 10.86 USD; the other run has no bound


def test_a_machine_has_cost_its_time_and_will_cost_that_of_its_job() -> None:
    job = placed(a_queued("fit", duration_s=2 * HOUR_S), "rent-1").but(
        state=JobState.RUNNING, started_at=NOON - HOUR_S
    )
    found = seen(a_scene(job, rental=a_rental()))
    assert found.so_far == micro_usd("3.6")
    assert found.running == micro_usd("7.2")
    assert found.waits == 0


def test_a_machine_on_its_way_counts_its_boot_and_those_that_are_to_start_there() -> None:
    rental = a_rental(state=RentalState.RESERVED, requested_at=None, reserved_at=NOON, node=None)
    found = seen(a_scene(a_queued("fit"), rental=rental), an_offer())
    assert found.so_far == 0
    assert found.running == micro_usd("3.6") * 3620 // 3600
    assert (found.queue, found.waits) == (0, 0)  # its job is promised to it, and counts once


def test_what_a_machine_costs_is_never_more_than_is_set_aside_for_it() -> None:
    rental = a_rental(reserved=micro_usd(2), projects={ACCOUNT: micro_usd(2)})
    assert seen(a_scene(rental=rental)).so_far == micro_usd(2)


def test_of_an_unknown_price_all_that_is_set_aside_is_expected() -> None:
    offer = an_offer(price_usd_h=None)
    found = seen(a_scene(rental=a_rental(taken=offer)))
    assert found.so_far == found.running == micro_usd(36)


def test_a_price_that_moved_disks_and_what_was_brought_count() -> None:
    brought = Egress(job="fit", provider="far", region="r", size_bytes=10**9, cost=micro_usd("0.5"))
    rental = a_rental(
        price_usd_h=micro_usd(2), taken=an_offer(extras_usd_h=micro_usd("0.25")), egress=(brought,)
    )
    assert seen(a_scene(rental=rental)).so_far == micro_usd("2.75")


def test_a_machine_that_is_gone_costs_no_more_as_time_goes_on() -> None:
    rental = a_rental(ended_at=NOON - HOUR_S / 2, state=RentalState.DRAINING)
    found = seen(a_scene(rental=rental))
    assert found.so_far == found.running == micro_usd("1.8")


def test_a_machine_over_the_months_end_belongs_to_the_month_of_its_lease() -> None:
    world = a_scene(rental=a_rental())
    assert seen(world, month="2026-12") == Taken()
    assert seen(world).so_far == micro_usd("3.6")


@pytest.mark.parametrize(("project", "part"), [("nlp", "2.7"), ("vision", "0.9")])
def test_two_projects_on_one_machine_pay_by_what_they_held(project: str, part: str) -> None:
    other = "project:vision:2026-11"
    rental = a_rental(
        jobs={"fit": "nlp", "see": "vision"}, held_s={"fit": 2700.0, "see": 900.0},
        projects={ACCOUNT: micro_usd(18), other: micro_usd(18)},
    )  # fmt: skip
    found = taken(a_scene(rental=rental), project, MONTH, None, NO_DURATIONS)
    assert found.so_far == micro_usd(part)


def test_the_account_tells_what_is_spent_and_set_aside() -> None:
    account = Account(payer=ACCOUNT, limit=MicroUsd(0), spent=micro_usd(5), reserved=micro_usd(2))
    found = seen(a_scene(accounts={ACCOUNT: account}))
    assert (found.spent, found.reserved) == (micro_usd(5), micro_usd(2))
