"""After which saves somebody plans: only where what a job has saved may decide something."""

from typing import Any

import pytest
from clouding import RENTING, an_offer
from keeping_world import LEASE, NAME
from makers import a_job, a_node, a_run, a_world, placed, wants

from cloudwhale.model import event as e
from cloudwhale.model.job import Checkpoint, CheckpointRule, Job, JobState, Wish
from cloudwhale.model.night import Night
from cloudwhale.model.rental import Rental, RentalState
from cloudwhale.model.units import micro_usd
from cloudwhale.model.world import World
from cloudwhale.planning.stirring import judged_at, stir

NOW = 5000.0
SAVED = Checkpoint(attempt=1, seq=7, name="c", size_bytes=10, saved_at=NOW - 1.0, manifest="m")
EVENTS = [e.CheckpointSaved(at=NOW, job="j", attempt=1, checkpoint=SAVED)]
LONG = LEASE.but(away_until=9 * NOW, stop_at=9 * NOW + 120, watched_until=NOW + 900)


def running(node: str = "host", **fields: Any) -> Job:
    """Make a job that runs, and has just saved."""
    said: dict[str, Any] = {"resources": wants(cpu=2), "checkpoint": CheckpointRule(every_s=60.0)}
    names = [name for name in ("wish", "state", "checkpoint") if name in fields]
    state: dict[str, Any] = {name: fields.pop(name) for name in names}
    usual: dict[str, Any] = {"state": JobState.RUNNING, "started_at": 0.0, "order_posted": True}
    usual |= {"attempt": 1, "checkpoint": SAVED}
    return placed(a_job("j", **{**said, **fields}), node).but(**{**usual, **state})


def world(job: Job, *others: Job, cpu: float = 2.0, **of_rental: Any) -> World:
    """Make a world of an owned node and a rented one; by default somebody waits for room here."""
    rental = Rental(
        id=NAME, node=NAME, payer="run-1", offer="big", lease=LONG, reserved=micro_usd(9),
        taken=an_offer(), state=RentalState.READY, machine="m-1", requested_at=0.0, told=LONG,
    ).but(**of_rental)  # fmt: skip
    nodes = [a_node(cpu=cpu), a_node(NAME, cpu=8.0, owned=False, provider="cloud")]
    waits = others or (a_job("waits", resources=wants(cpu=2)),)
    return a_world([job, *waits], nodes, now=NOW, rentals={NAME: rental})


def test_what_a_job_saves_that_simply_runs_on_stirs_nobody() -> None:
    assert not stir(EVENTS, world(running()), RENTING)
    assert not stir(EVENTS, world(running(NAME), cpu=1.0), RENTING)


URGENT = a_job("urgent", resources=wants(cpu=2), priority=90)
FIXED = an_offer(stop_moves=False)
LONG_JOB = {"duration_s": 9 * 3600.0, "value_of_time_usd_h": 0.01}
"""Long enough for its machine to be given back sooner by much, and in no hurry."""


@pytest.mark.parametrize(
    "of",
    [
        pytest.param(world(running(wish=Wish.GIVE_WAY)), id="it is to stop"),
        pytest.param(world(running(state=JobState.STARTING)), id="its start is not told yet"),
        pytest.param(world(running(deadline=NOW + 9000)), id="it has a deadline"),
        pytest.param(world(running(NAME), cpu=1.0, moves=("j",)), id="it is to move"),
        pytest.param(world(running(NAME), cpu=1.0, taken=FIXED), id="its machine ends by itself"),
        pytest.param(world(running(), URGENT), id="it could be stopped for one that waits"),
        pytest.param(
            world(running(NAME, **LONG_JOB), cpu=4.0, jobs=("j",)), id="it could come home"
        ),
        pytest.param(
            world(running(checkpoint=SAVED.but(saved_at=NOW - 120.0))), id="it saves too seldom"
        ),
    ],
)
def test_what_is_saved_stirs_where_it_may_decide(of: World) -> None:
    assert stir(EVENTS, of, RENTING)


def test_nobody_is_stopped_who_may_not_be() -> None:
    assert not stir(EVENTS, world(running(preemptible=False), URGENT), RENTING)
    young = running().but(started_at=NOW - 1.0)
    assert not stir(EVENTS, world(young, URGENT), RENTING), "it is looked at when it is older"
    rented = world(running(NAME), URGENT, cpu=1.0)
    assert not stir(EVENTS, rented, RENTING), "who waits for room waits for it here"


def test_nobody_comes_home_where_that_does_not_pay() -> None:
    hurried = running(NAME, **{**LONG_JOB, "value_of_time_usd_h": 900.0})
    assert not stir(EVENTS, world(hurried, cpu=4.0, jobs=("j",)), RENTING)


def test_the_first_save_of_a_later_attempt_tells_how_much_is_left() -> None:
    later = running().but(attempt=2, checkpoint=SAVED.but(attempt=2, seq=1))
    assert stir(EVENTS, world(later), RENTING)
    assert not stir(EVENTS, world(later.but(checkpoint=SAVED.but(attempt=2))), RENTING)


def test_after_a_save_it_is_looked_at_when_the_next_is_late() -> None:
    assert judged_at(EVENTS, world(running())) == SAVED.saved_at + 2 * 60.0


def test_the_end_of_the_last_job_of_a_night_stirs_as_the_night_is_to_be_closed() -> None:
    night = Night(name="lab", date="2026-12-01", zone="UTC", opens_at=0.0, closes_at=9e9)
    done = [e.Finished(at=1.0, job="j", attempt=1)]
    opened = a_world([], now=2.0, runs={"run-1": a_run(night=night)})
    closed = a_world([], now=2.0, runs={"run-1": a_run(night=night.but(closed_at=1.0))})
    assert stir(done, opened, RENTING) and not stir(done, closed, RENTING)
