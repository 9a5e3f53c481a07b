"""A machine that goes in days is told of, and used until its agent says that it is near."""

from keeping_world import NAME, READY, RUNNING, world

from cloudwhale.control.hired import Hired
from cloudwhale.control.reports import Notice, Reading
from cloudwhale.mailbox.documents import AttemptEnded, Warned
from cloudwhale.model import event as e
from cloudwhale.model.reason import Code

NOW, TOMORROW = 100.0, 86_500.0
WARNED = Warned(at=NOW, agent="a", goes_at=TOMORROW, stops=False, says="it is to be retired")


def test_maintenance_tomorrow_is_told_and_changes_nothing() -> None:
    notice = Notice(NAME, TOMORROW, "it is to be retired", stops=False)
    (noted,) = Hired(world(READY, RUNNING), NOW).warned(notice)
    assert isinstance(noted, e.Noted) and noted.reason.code is Code.TAKEN_AWAY
    assert "in 86400 s: it is to be retired" in noted.reason.says


def test_whether_jobs_stop_for_it_comes_from_the_machine() -> None:
    reading = Reading(world(READY, RUNNING), NOW)
    for stops in (False, True):
        reading.events(NAME, WARNED.but(stops=stops).model_dump_json().encode())
    assert [one.stops for one in reading.warned] == [False, True]


def test_a_job_that_fails_meanwhile_has_not_been_interrupted() -> None:
    reading = Reading(world(READY, RUNNING), NOW)
    reading.events(NAME, WARNED.model_dump_json().encode())
    end = AttemptEnded(
        at=NOW, agent="a", job=RUNNING.id, attempt=RUNNING.attempt, how="exited", exit_code=1,
        says="it crashed",
    )  # fmt: skip
    (event,) = reading.events(NAME, end.model_dump_json().encode())
    reason = getattr(event, "reason", None)
    assert reason is not None and reason.code is not Code.TAKEN_AWAY


def test_an_agent_that_says_nothing_of_it_means_that_jobs_stop() -> None:
    older = WARNED.model_dump(exclude={"stops"})
    assert Warned.model_validate(older).stops
