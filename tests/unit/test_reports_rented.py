"""What rented machines say: they stop jobs by themselves, are warned, or belong to nobody."""

import pytest
from keeping_world import BOOTING, DRAINING, NAME, READY, RUNNING, TOLD, world
from makers import a_job, a_node, a_world, placed

from cloudwhale.control.hired import Hired
from cloudwhale.control.hiring import LeaseTold
from cloudwhale.control.reports import Notice, Reading
from cloudwhale.mailbox.documents import (
    AttemptEnded,
    AttemptStarted,
    CheckpointPublished,
    Joined,
    Report,
    Warned,
)
from cloudwhale.model import event as e
from cloudwhale.model.job import Checkpoint, Job, JobState, RetryCause, RetryRule, Wish
from cloudwhale.model.node import Facts
from cloudwhale.model.reason import Code
from cloudwhale.model.rental import RentalState
from cloudwhale.model.world import World
from cloudwhale.planning.lifecycle import apply
from cloudwhale.spi.provider import Machine

NOW = 100.0
FACTS = Facts(cpu=8.0, memory_gib=32.0, disk_gib=100.0)


def stopped(job: Job, says: str = "this machine's lease ends in 60 s") -> AttemptEnded:
    return AttemptEnded(
        at=NOW, agent="a", job=job.id, attempt=1, how="stopped", exit_code=143, says=says,
        unsaved_s=2.0, ran_s=50.0,
    )  # fmt: skip


def read(of: World, node: str, report: Report) -> tuple[Reading, tuple[e.Event, ...]]:
    reading = Reading(of, NOW, lambda name: name == "rent-past")
    return reading, reading.events(node, report.model_dump_json().encode())


def test_a_job_that_its_rented_machine_stops_by_itself_gives_way_and_spends_no_retry() -> None:
    _, (event,) = read(world(READY, RUNNING), NAME, stopped(RUNNING))
    assert isinstance(event, e.GaveWay)
    assert (event.reason.code, event.lost_s, event.ran_s) == (Code.LEASE_ENDS, 2.0, 50.0)
    assert "this machine's lease ends in 60 s" in event.reason.says
    assert event.not_before is None, "another machine may have room"


def test_what_a_machine_lands_before_it_has_run_there_is_not_given_back_at_once() -> None:
    of = world(READY, RUNNING)
    _, (event,) = read(of, NAME, stopped(RUNNING).but(ran_s=0.0, unsaved_s=0.0))
    assert isinstance(event, e.GaveWay)
    after = apply(RUNNING, event)
    assert after.not_before is not None and after.not_before > NOW


def test_one_that_a_person_stops_there_ends_as_that_person_wishes() -> None:
    wished = RUNNING.but(wish=Wish.CANCEL)
    _, (event,) = read(world(READY, wished), NAME, stopped(wished))
    assert isinstance(event, e.Cancelled)


def test_on_an_owned_machine_the_same_is_an_interruption_that_is_tried_again() -> None:
    rule = RetryRule(on=(RetryCause.PREEMPTION,))
    job = placed(a_job("j", retry=rule)).but(state=JobState.RUNNING, started_at=20.0)
    _, (event,) = read(a_world([job], [a_node()]), "host", stopped(job))
    assert isinstance(event, e.Retried)


def test_a_warning_is_kept_for_whoever_knows_the_rental() -> None:
    said = Warned(at=NOW, agent="a", goes_at=220.0, says="terminate")
    reading, events = read(world(READY, RUNNING), NAME, said)
    assert events == () and reading.warned == [Notice(NAME, 220.0, "terminate")]


def test_a_warned_machine_drains_and_one_that_drains_already_is_left_alone() -> None:
    notice = Notice(NAME, 220.0, "terminate")
    hired = Hired(world(READY, RUNNING), NOW)
    kinds = [one.kind for one in hired.warned(notice)]
    assert kinds == ["noted", "rental-changed", "node-drained", "attempt-lost"]
    assert hired.warned(notice) == (), "it is told again, by its provider's list, say"
    assert Hired(world(READY.but(ended_at=5.0)), NOW).warned(notice) == ()
    assert Hired(world(READY), NOW).warned(Notice("other", 220.0, "")) == ()
    booting = Hired(world(BOOTING), NOW).warned(notice)
    assert [one.rental.state for one in booting if isinstance(one, e.RentalChanged)] == [
        RentalState.DRAINING
    ]


def test_an_agent_whose_machine_was_given_back_joins_nothing() -> None:
    said = Joined(at=NOW, agent="again", facts=FACTS, public_key="k")
    reading, events = read(a_world(), "rent-past", said)
    assert events == () and reading.strangers == {"rent-past": "again"}
    _, (event,) = read(a_world(), "by-itself", said)
    assert isinstance(event, e.NodeJoined) and event.node.owned


def test_a_lease_that_was_told_is_known_and_one_that_grew_meanwhile_is_told_next() -> None:
    lease = READY.lease.but(watched_until=950.0)
    hired = Hired(world(READY.but(told=None)), NOW)
    (event,) = hired.told(NAME, LeaseTold(lease))
    assert isinstance(event, e.RentalChanged)
    assert event.rental.told == event.rental.lease == lease
    longer = READY.but(lease=READY.lease.but(number=2, away_until=2000.0))
    (event,) = Hired(world(longer), NOW).told(NAME, LeaseTold(lease))
    assert isinstance(event, e.RentalChanged)
    assert event.rental.lease == longer.lease and event.rental.told == lease
    assert Hired(world(BOOTING), NOW).told(NAME, LeaseTold(TOLD)) == ()


# -- attempts on what is taken away ----------------------------------------------------------

GOING = DRAINING.but(interrupted_at=95.0)
RECOVERING = RUNNING.but(state=JobState.RECOVERING)
NOTICE = Notice(NAME, 220.0, "terminate")
LISTED = Machine(id="m-1", node=NAME, state="stopping", owned=False, billed_from=0.0)


@pytest.mark.parametrize("state", [JobState.STARTING, JobState.RUNNING])
@pytest.mark.parametrize("wish", [None, *Wish])
def test_each_attempt_on_a_machine_that_is_taken_recovers_at_once(
    state: JobState, wish: Wish | None
) -> None:
    job = RUNNING.but(state=state, wish=wish)
    events = Hired(world(READY, job), NOW).warned(NOTICE)
    (lost,) = (one for one in events if isinstance(one, e.AttemptLost))
    assert (lost.job, lost.attempt, lost.reason.code) == ("j", 1, Code.TAKEN_AWAY)
    assert "in 120 s: terminate" in lost.reason.says
    after = apply(job, lost)
    assert (after.state, after.wish, after.placement) == (JobState.RECOVERING, wish, job.placement)


def test_an_attempt_that_recovers_already_is_not_lost_twice() -> None:
    events = Hired(world(READY, RECOVERING), NOW).warned(NOTICE)
    assert not any(isinstance(one, e.AttemptLost) for one in events)


def test_one_of_whom_the_provider_alone_tells_is_asked_to_save_as_well() -> None:
    events = Hired(world(READY, RUNNING), NOW).seen("cloud", [LISTED])
    kinds = [one.kind for one in events]
    assert kinds[-2:] == ["stop-wished", "attempt-lost"]
    stopping = RUNNING.but(wish=Wish.CANCEL)
    kinds = [one.kind for one in Hired(world(READY, stopping), NOW).seen("cloud", [LISTED])]
    assert "stop-wished" not in kinds and kinds[-1] == "attempt-lost"


def test_what_was_read_in_the_same_breath_is_known_when_the_notice_is_worked_out() -> None:
    of = world(READY, RUNNING)
    reading, _ = read(of, NAME, stopped(RUNNING))
    events = Hired(of, NOW, reading.jobs).warned(NOTICE)
    assert not any(isinstance(one, e.AttemptLost) for one in events), "it has ended already"


def test_an_agent_that_says_started_again_brings_no_attempt_back() -> None:
    said = AttemptStarted(at=NOW, agent="a", job="j", attempt=1)
    _, events = read(world(GOING, RECOVERING), NAME, said)
    assert [one.kind for one in events] == ["started", "attempt-lost"]
    job = RECOVERING
    for one in events:
        assert isinstance(one, e.OfJob)
        job = apply(job, one)
    assert job.state is JobState.RECOVERING
    _, (only,) = read(world(READY, RECOVERING), NAME, said)
    assert isinstance(only, e.Started), "one that was silent is back"


@pytest.mark.parametrize("is_saved", [False, True])
def test_the_end_of_an_attempt_there_means_what_was_saved(is_saved: bool) -> None:
    reading = Reading(world(READY, RUNNING), NOW)
    warned = Warned(at=NOW, agent="a", goes_at=220.0, says="terminate")
    reading.events(NAME, warned.model_dump_json().encode())
    if is_saved:
        kept = Checkpoint(attempt=1, seq=1, name="c", size_bytes=1, saved_at=99.0, manifest="m")
        said = CheckpointPublished(at=NOW, agent="a", job="j", attempt=1, checkpoint=kept)
        reading.events(NAME, said.model_dump_json().encode())
    (event,) = reading.events(NAME, stopped(RUNNING).model_dump_json().encode())
    assert isinstance(event, e.GaveWay if is_saved else e.Retried)
    assert event.reason is not None and event.reason.code is Code.TAKEN_AWAY
    assert event.lost_s == 2.0


def test_a_rebalance_alone_moves_nobody() -> None:
    reading, events = read(world(READY, RUNNING), NAME, Warned(at=NOW, agent="a", says="may go"))
    found = Hired(world(READY, RUNNING), NOW).warned(reading.warned[0])
    assert events == () and [one.kind for one in found] == ["noted"]
    (event,) = reading.events(NAME, stopped(RUNNING).model_dump_json().encode())
    assert isinstance(event, e.GaveWay) and event.reason.code is Code.LEASE_ENDS
