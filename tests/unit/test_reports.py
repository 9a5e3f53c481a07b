from clouding import an_offer
from makers import a_job, a_node, a_world, placed

from cloudwhale.control.reports import Reading
from cloudwhale.mailbox import documents as d
from cloudwhale.model import event as e
from cloudwhale.model.job import Checkpoint, JobState
from cloudwhale.model.node import Facts, NodeState
from cloudwhale.model.reason import Code
from cloudwhale.model.rental import Lease, Rental
from cloudwhale.model.units import MicroUsd

FACTS = Facts(cpu=4.0, memory_gib=8.0, disk_gib=50.0)
JOB = placed(a_job("j"))


def started(attempt: int = 1) -> bytes:
    report = d.AttemptStarted(at=1.0, agent="a", job="j", attempt=attempt)
    return report.model_dump_json().encode()


def ended(code: int = 0, attempt: int = 1) -> bytes:
    report = d.AttemptEnded(
        at=2.0, agent="a", job="j", attempt=attempt, how="exited", exit_code=code
    )
    return report.model_dump_json().encode()


def test_start_and_end_told_in_one_breath_are_two_events_in_order() -> None:
    reading = Reading(a_world([JOB]), 5.0)
    (first,) = reading.events("host", started())
    (second,) = reading.events("host", ended())
    assert isinstance(first, e.Started)
    assert isinstance(second, e.Finished)


def test_an_end_that_is_told_twice_counts_once() -> None:
    reading = Reading(a_world([JOB]), 5.0)
    reading.events("host", ended())
    again = reading.events("host", ended())
    assert [type(event) for event in again] == [e.Noted]


def test_a_stale_attempt_is_noted_and_changes_nothing() -> None:
    newer = JOB.but(attempt=2)
    checkpoint = Checkpoint(attempt=1, seq=9, name="late", size_bytes=1, saved_at=1.0, manifest="m")
    report = d.CheckpointPublished(at=1.0, agent="a", job="j", attempt=1, checkpoint=checkpoint)
    (event,) = Reading(a_world([newer]), 5.0).events("host", report.model_dump_json().encode())
    assert isinstance(event, e.Noted)
    assert event.reason.code is Code.STALE_ATTEMPT
    assert "attempt 2 is the newest" in event.reason.says


def test_a_report_from_a_node_that_the_job_is_not_on_is_stale() -> None:
    (event,) = Reading(a_world([JOB]), 5.0).events("elsewhere", started())
    assert isinstance(event, e.Noted)


def test_what_is_said_of_a_job_that_has_ended_means_nothing() -> None:
    assert Reading(a_world([]), 5.0).events("host", ended()) == ()


def test_an_agent_that_joins_makes_its_node_ready() -> None:
    report = d.Joined(at=1.0, agent="a-2", facts=FACTS, public_key="k", lease_s=900.0)
    (event,) = Reading(a_world([], []), 5.0).events("host", report.model_dump_json().encode())
    assert isinstance(event, e.NodeJoined)
    node = event.node
    assert (node.state, node.agent, node.lease_s) == (NodeState.READY, "a-2", 900.0)


def test_an_agent_on_a_rented_machine_that_joins_before_its_launch_is_answered_is_not_ours() -> (
    None
):
    lease = Lease(number=1, watched_until=900.0, away_until=1000.0, stop_at=1120.0)
    rental = Rental(
        id="rent-1-1", node="rent-1-1", payer="run-1", offer="big", lease=lease,
        reserved=MicroUsd(1), taken=an_offer(),
    )  # fmt: skip
    report = d.Joined(at=1.0, agent="a", facts=FACTS, public_key="k").model_dump_json().encode()
    (event,) = Reading(a_world([], [], rentals={"rent-1-1": rental}), 5.0).events(
        "rent-1-1", report
    )
    assert isinstance(event, e.NodeJoined)
    assert (event.node.owned, event.node.provider) == (False, "cloud")


def test_a_heartbeat_says_nothing_and_whatever_is_said_brings_a_lost_node_back() -> None:
    beat = d.Heartbeat(at=1.0, agent="a").model_dump_json().encode()
    assert Reading(a_world([]), 5.0).events("host", beat) == ()
    recovering = JOB.but(state=JobState.RECOVERING, order_posted=True)
    for body, more in ((beat, []), (started(), [e.Started])):
        reading = Reading(a_world([recovering], [a_node(state=NodeState.LOST)]), 5.0)
        joined, asked, *rest = reading.events("host", body)
        assert isinstance(joined, e.NodeJoined)
        assert joined.node.state is NodeState.READY
        assert isinstance(asked, e.Unconfirmed)
        assert [type(event) for event in rest] == more


def test_an_agent_that_does_not_name_an_attempt_is_asked_about_it() -> None:
    posted = JOB.but(order_posted=True)
    for attempts, kinds in (((("j", 1),), []), ((), [e.Unconfirmed])):
        report = d.Joined(at=1.0, agent="a", facts=FACTS, public_key="k", attempts=attempts)
        reading = Reading(a_world([posted], [a_node(agent="a-1")]), 5.0)
        _, *doubts = reading.events("host", report.model_dump_json().encode())
        assert [type(event) for event in doubts] == kinds


def test_an_agent_that_joins_for_the_first_time_has_not_read_its_orders_yet() -> None:
    report = d.Joined(at=1.0, agent="a", facts=FACTS, public_key="k").model_dump_json().encode()
    posted = JOB.but(order_posted=True)
    assert len(Reading(a_world([posted], [a_node()]), 5.0).events("host", report)) == 1


def test_a_draining_node_that_joins_again_still_drains() -> None:
    report = d.Joined(at=1.0, agent="a", facts=FACTS, public_key="k").model_dump_json().encode()
    draining = a_world([], [a_node(state=NodeState.DRAINING)])
    (event,) = Reading(draining, 5.0).events("host", report)
    assert isinstance(event, e.NodeJoined)
    assert event.node.state is NodeState.DRAINING


def test_an_unreadable_report_is_noted_and_skipped() -> None:
    (event,) = Reading(a_world([]), 5.0).events("host", b"{not json")
    assert isinstance(event, e.Noted)
    assert "unreadable" in event.reason.says


def test_a_recovering_job_whose_agent_is_heard_again_runs_on() -> None:
    job = JOB.but(state=JobState.RECOVERING)
    (event,) = Reading(a_world([job]), 5.0).events("host", started())
    assert isinstance(event, e.Started)
