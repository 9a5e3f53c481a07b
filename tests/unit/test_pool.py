"""What takes time is done in a pool, where what fails is the failure of one attempt alone."""

import threading
from pathlib import Path

import pytest
from live_agent import CLOCK, a_start, until

from cloudwhale.agent import actions, preparing
from cloudwhale.agent.acting import Acting
from cloudwhale.agent.inputs import Inputs
from cloudwhale.agent.launching import NORMAL
from cloudwhale.agent.logs import LogTail, LogThread
from cloudwhale.agent.place import Place
from cloudwhale.agent.pool import THREADS, Pool
from cloudwhale.agent.poster import Poster
from cloudwhale.agent.publisher import Publisher
from cloudwhale.agent.seen import CannotStart, Dropped, PublishFailed, Seen
from cloudwhale.agent.underway import Attempts, Tools
from cloudwhale.mailbox.bell import Bell
from cloudwhale.mailbox.box import inbox_from
from cloudwhale.mailbox.documents import AttemptEnded
from cloudwhale.mailbox.objects import open_objects


def test_a_pool_is_empty_when_its_last_task_is_done_not_when_it_is_begun() -> None:
    pool, gate = Pool(), threading.Event()
    assert pool.drain(0.0)
    pool.do(lambda: gate.wait(20.0))
    assert not pool.drain(0.05)
    gate.set()
    assert pool.drain(20.0)
    pool.close()


def test_a_task_that_fails_in_an_unforeseen_way_is_told_and_the_pool_goes_on() -> None:
    pool, told, done = Pool(), list[str](), threading.Event()

    def fail() -> None:
        raise RecursionError("too deep")

    def failed(error: Exception) -> None:
        told.append(str(error))
        raise ValueError("even that")

    for _ in range(2 * THREADS):
        pool.do(fail, failed)
    pool.do(done.set)
    assert done.wait(20.0)
    assert pool.drain(20.0)
    assert told == ["too deep"] * 2 * THREADS
    pool.close()


class Working:
    """The tools of an agent that acts on one attempt, and what its duty is told."""

    def __init__(self, tmp_path: Path) -> None:
        self.told: list[Seen] = []
        objects = open_objects("memory:///")
        self.inbox = inbox_from(objects, "host")
        self.tools = Tools(
            agent="host-1", inputs=Inputs(Place(tmp_path, "host")),
            place=Place(tmp_path, "host"), objects=objects, clock=CLOCK, now=CLOCK.now,
            tell=self.told.append, bell=Bell(), pool=Pool(),
            poster=Poster(self.inbox, CLOCK, _hear), logs=LogThread(1.0), groups=None, sizes=NORMAL,
        )  # fmt: skip
        self.order = a_start()
        self.key = (self.order.job, self.order.attempt)
        attempts = Attempts(self.tools)
        self.one = attempts.take(self.order)
        self.acting = Acting(self.tools, attempts)

    def do(self, action: actions.Action) -> Seen:
        """Do something and return what comes of it."""
        self.told.clear()
        self.acting.do(action)
        assert self.tools.pool.drain(20.0)
        [told] = self.told
        return told


def _hear(works: bool, at: float) -> None:
    """Hear whether the store works."""


def fail(*words: object, **more: object) -> None:
    """Fail in a way that nobody has foreseen."""
    raise KeyError("unforeseen")


def test_a_publish_that_fails_in_an_unforeseen_way_is_tried_again_but_not_after_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    working = Working(tmp_path)
    monkeypatch.setattr(Publisher, "publish", fail)
    assert isinstance(working.do(actions.Publish(working.key, 1)), PublishFailed)
    told = working.do(actions.Publish(working.key, 2, last=True))
    assert isinstance(told, Dropped)
    assert "unforeseen" in told.says


def test_a_job_that_cannot_be_prepared_for_an_unforeseen_reason_cannot_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    working = Working(tmp_path)
    monkeypatch.setattr(preparing, "needs_time", lambda order: True)
    monkeypatch.setattr(preparing, "prepare", fail)
    told = working.do(actions.Prepare(working.order))
    assert isinstance(told, CannotStart)
    assert (told.key, told.how) == (working.key, "start-failed")


def test_an_end_is_said_although_its_log_fails_in_an_unforeseen_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    working = Working(tmp_path)
    working.one.started = True
    monkeypatch.setattr(LogTail, "finish", fail)
    job, attempt = working.key
    end = AttemptEnded(
        at=1.0, agent="host-1", job=job, attempt=attempt, how="exited", exit_code=0
    )  # fmt: skip
    working.tools.poster.start()
    working.acting.do(actions.Close(end))
    until(lambda: working.one.folder.ended() == end, "the end is said")
    working.tools.poster.close()
    body = working.inbox.read(1)
    assert body is not None
    assert AttemptEnded.model_validate_json(body).but(at=end.at) == end
