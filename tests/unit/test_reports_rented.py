"""What rented machines say: they stop jobs by themselves, are warned, or belong to nobody."""

from keeping_world import BOOTING, NAME, READY, RUNNING, TOLD, world
from makers import a_job, a_node, a_world, placed

from cloudwhale.control.hired import Hired
from cloudwhale.control.hiring import LeaseTold
from cloudwhale.control.reports import Notice, Reading
from cloudwhale.mailbox.documents import AttemptEnded, Joined, Report, Warned
from cloudwhale.model import event as e
from cloudwhale.model.job import Job, JobState, RetryCause, RetryRule, Wish
from cloudwhale.model.node import Facts
from cloudwhale.model.reason import Code
from cloudwhale.model.rental import RentalState
from cloudwhale.model.world import World

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
