"""What is paid for while nothing runs: next to nothing, but where somebody wants to look."""

import random
from collections.abc import Mapping, Sequence

import pytest
from clouding import (
    RENTING,
    a_cloudy_stage,
    account_of,
    adds_up,
    an_offer,
    is_settled,
    rentals_of,
    settles,
)
from makers import a_node, a_spec, wants
from staging import jobs_of

from cloudwhale.control.controller import Chosen
from cloudwhale.model import event as e
from cloudwhale.model.job import CheckpointRule, JobState
from cloudwhale.model.rental import Rental, RentalState
from cloudwhale.model.units import micro_usd
from cloudwhale.simulation.cloud import Shelf
from cloudwhale.simulation.playing import Arrival, Played, play, told
from cloudwhale.simulation.setting import Offered, Setting

IDLE_MOST_S = 60.0
DAYS_S = 2 * 24 * 3600.0


def days(seed: int) -> Played:
    """Play two days in which jobs that no machine here can run come now and then."""
    drawn = random.Random(f"days-{seed}")
    arrivals: list[Arrival] = []
    at = 0.0
    while at < DAYS_S:
        for _ in range(drawn.choice((1, 1, 2, 4))):
            work_s = drawn.choice((30.0, 300.0, 2500.0))
            spec = a_spec(
                resources=wants(cpu=4), duration_s=work_s * drawn.choice((0.5, 1.0, 2.0)),
                checkpoint=CheckpointRule(every_s=60.0, grace_s=10.0),
            )  # fmt: skip
            arrivals.append(Arrival(at, f"j-{len(arrivals)}", spec, work_s))
        at += drawn.expovariate(1 / 2400.0)
    shelves = [
        Shelf(an_offer("steady", boot_s=drawn.choice((10.0, 60.0, 180.0)))),
        Shelf(an_offer("spot", market="spot", price_usd_h=micro_usd("1.2"), boot_s=60.0,
                       notice_s=120.0, hazard_per_h=0.5)),
    ]  # fmt: skip
    setting = Setting(
        [a_node("tiny", cpu=1.0)], arrivals, clouds=[Offered("cloud", shelves, seed)],
        budget=micro_usd(500),
    )  # fmt: skip
    return play(setting, Chosen(RENTING, order="priority", score="best-fit"))


def occupied(played: Played) -> Mapping[str, list[tuple[float, float]]]:
    """Return the spans of time in which jobs held a place, by node."""
    spans: dict[str, list[tuple[float, float]]] = {}
    at: dict[str, tuple[str, float]] = {}
    for one in told(played.store):
        event = one.event
        if isinstance(event, e.Placed):
            at[event.job] = (event.placement.node, event.at)
        elif isinstance(event, e.Leaves | e.Cleared) and event.job in at:
            node, since = at.pop(event.job)
            spans.setdefault(node, []).append((since, event.at))
    return spans


def idle_s(rental: Rental, ready_at: float, spans: Sequence[tuple[float, float]]) -> float:
    """Return for how long a machine was billed though it was ready and nothing ran there.

    What is billed at least in any case is not counted.
    """
    assert rental.requested_at is not None and rental.ended_at is not None
    idle, at = 0.0, ready_at
    for since, until in sorted(spans):
        idle, at = idle + max(0.0, since - at), max(at, until)
    idle += max(0.0, rental.ended_at - at)
    least_s = 0.0 if rental.taken is None else rental.taken.billing_least_s
    return min(idle, max(0.0, rental.ended_at - rental.requested_at - least_s))


@pytest.mark.parametrize("seed", range(2))
def test_over_days_next_to_nothing_is_paid_for_machines_that_idle(seed: int) -> None:
    played = days(seed)
    spans, ready = occupied(played), dict[str, float]()
    for one in told(played.store):
        if isinstance(one.event, e.RentalChanged):
            if one.event.rental.state is RentalState.READY:
                ready.setdefault(one.event.rental.id, one.event.at)
    idle = {
        rental.id: idle_s(rental, ready[rental.id], spans.get(rental.id, []))
        for rental in played.rentals
        if rental.id in ready and rental.ended_at is not None
    }
    assert len(idle) > 40
    assert max(idle.values()) <= IDLE_MOST_S, idle
    assert sum(idle.values()) <= 0.1 * IDLE_MOST_S * len(idle), "and mostly far less"
    assert {one.job.state for one in played.jobs.values()} == {JobState.COMPLETED}


# -- kept for a look -------------------------------------------------------------------------


def test_a_machine_on_which_a_job_failed_is_kept_and_then_returned() -> None:
    stage = a_cloudy_stage(("failing",), keep_on_failure_s=100.0)
    stage.raise_controller()
    assert settles(stage)
    adds_up(stage)
    (story,) = rentals_of(stage).values()
    (job,) = jobs_of(stage).values()
    assert job.ended_at is not None and story[-1].ended_at is not None
    assert 99.0 <= story[-1].ended_at - job.ended_at <= 115.0


def test_it_is_kept_within_what_is_reserved_however_long_was_asked_for() -> None:
    stage = a_cloudy_stage(("failing",), keep_on_failure_s=1e6)
    stage.raise_controller()
    assert settles(stage)
    adds_up(stage)
    (story,) = rentals_of(stage).values()
    first = story[0]
    assert story[-1].ended_at is not None
    assert story[-1].ended_at <= first.lease.away_until
    assert account_of(stage).spent <= first.reserved
    assert max(rental.lease.number for rental in story) == 1, "no lease is lengthened for a look"


def test_cancelling_the_failed_job_gives_its_machine_back_at_once() -> None:
    stage = a_cloudy_stage(("failing",), keep_on_failure_s=1e6)
    stage.raise_controller()
    store, clock = stage.scenery.store, stage.scenery.clock
    assert stage.play(lambda: not store.world(clock.now()).jobs, 600.0)
    assert stage.play(lambda: False, 30.0) is False
    assert not is_settled(stage), "it is kept"
    now = clock.now()
    store.append([e.CancelAsked(at=now, job="failing-0")])
    assert settles(stage, 60.0)
    (story,) = rentals_of(stage).values()
    assert story[-1].ended_at is not None and story[-1].ended_at - now <= 15.0
