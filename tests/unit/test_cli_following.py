"""A follower: what it shows, when it ends, what an interrupt does, how it takes over."""

import io
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from makers import a_job, a_node

from cloudwhale.cli.exits import Bug
from cloudwhale.cli.following import TURN_S, Follower, Outcome, Told, scene
from cloudwhale.cli.interrupts import Interrupts
from cloudwhale.cli.view import PlainView
from cloudwhale.clock import SystemClock
from cloudwhale.control.desk import Desk
from cloudwhale.control.mailboxes import Mailboxes
from cloudwhale.control.store import MemoryStore
from cloudwhale.mailbox.box import log_of, whole_log_key
from cloudwhale.mailbox.objects import StoreObjects, open_objects
from cloudwhale.model import event as e
from cloudwhale.model.job import JobState, Placement, Wish
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.run import Run
from cloudwhale.reporting.tail import look_every_s
from cloudwhale.settings import Settings
from cloudwhale.spi.errors import CloudwhaleError, Fenced, StoreUnusable

RUN = Run(id="run-1", opened_at=0.0, user="ada", folder="/tmp")
HERE = Reason(code=Code.PLACED, says="host scores 1.000")
Act = Callable[[], object]


class FakeHost:
    """A controller that does nothing; `free`: whether the lock can be had."""

    def __init__(self, *, holds: bool = True, free: bool = True) -> None:
        self.holds = holds
        self.free = free
        self.failure: CloudwhaleError | None = None
        self.trouble = ""
        self.tries = 0

    def try_start(self) -> bool:
        self.tries += 1
        self.holds = self.free
        return self.holds

    def stop(self, *, leave_agents: bool) -> None:
        self.holds = False


class Scripted(Interrupts):
    """Waiting does the next act of a script, and fails when the script is over."""

    def __init__(self, *acts: Act) -> None:
        super().__init__()
        self.acts = list(acts)

    def wait(self, for_s: float) -> None:
        self.acts.pop(0)()

    def press(self, number: signal.Signals) -> None:
        self._note(number, None)


class Table:
    """A desk with two jobs of one run, what the follower writes, and ways to make things happen."""

    def __init__(self, *names: str) -> None:
        self.desk = Desk(
            Settings(home=Path("/nowhere"), user="ada"),
            SystemClock(),
            MemoryStore(),
            open_objects("memory://"),
        )
        jobs = [a_job(name) for name in names]
        submitted = [e.Submitted(at=0.0, job=job.id, first=job) for job in jobs]
        node = e.NodeJoined(at=0.0, node=a_node())
        self.desk.store.append([node, e.RunOpened(at=0.0, run=RUN), *submitted])
        self.out = io.StringIO()
        self.host = FakeHost()

    def follower(self, several: bool = False) -> Follower:
        here = scene(self.desk, RUN, 0.0)
        return Follower(self.desk, self.host, PlainView(self.out, several), here)

    def starts(self, job: str) -> None:
        place = Placement(node="host")
        self.desk.store.append(
            [
                e.Placed(at=1.0, job=job, attempt=1, placement=place, reason=HERE),
                e.Started(at=2.0, job=job, attempt=1),
            ]
        )

    def prints(self, job: str, text: bytes) -> None:
        log_of(self.desk.objects, job, 1).post(text, 0)

    def ends(self, job: str) -> None:
        self.desk.store.append([e.Finished(at=9.0, job=job, attempt=1)])

    def fails(self, job: str) -> None:
        reason = Reason(code=Code.COMMAND_FAILED, says="its process ended with 3")
        failed = e.Failed(at=9.0, job=job, attempt=1, exit_code=3, reason=reason)
        self.desk.store.append([failed])

    def lines(self) -> list[str]:
        """What was written, without the times of day."""
        said = self.out.getvalue().splitlines()
        return [line[9:] if line[2:3] == ":" else line for line in said]


def never(number: signal.Signals, stopping: bool) -> Told:
    raise AssertionError("nobody should be asked")


def test_a_job_is_followed_from_its_start_to_its_end() -> None:
    table = Table("a-1")
    acts = Scripted(
        lambda: table.starts("a-1"),
        lambda: table.prints("a-1", b"hello\n"),
        lambda: table.ends("a-1"),
    )
    follower = table.follower()
    assert follower.to_the_end(acts, never) is Outcome.ENDED
    assert table.lines() == [
        "a-1 starting on host", "a-1 running on host", "hello", "a-1 completed",
    ]  # fmt: skip
    assert [job.state for job in follower.jobs] == [JobState.COMPLETED]


def test_output_that_came_with_the_end_is_shown_before_it() -> None:
    table = Table("a-1")

    def last_words() -> None:
        table.desk.objects.create(whole_log_key("a-1", 1), b"one\nlast words")
        table.fails("a-1")

    acts = Scripted(lambda: table.starts("a-1"), last_words)
    table.follower().to_the_end(acts, never)
    assert table.lines()[-3:] == [
        "one", "last words",
        "a-1 failed with exit code 3: its process ended with 3 [command-failed]",
    ]  # fmt: skip


class Line(StoreObjects):
    """A store behind a line that can be cut."""

    cut = False
    tries = 0

    def get(self, key: str) -> bytes | None:
        if self.cut:
            self.tries += 1
            raise StoreUnusable(f"cannot read {key}: the line is cut, try {self.tries}")
        return super().get(key)


def test_a_store_that_cannot_be_read_for_a_while_ends_nobodys_following(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = Table("a-1", "b-1")
    monkeypatch.setattr(table.desk.objects, "__class__", Line)
    line = table.desk.objects
    assert isinstance(line, Line)

    def cuts() -> None:
        table.prints("a-1", b"before the end\n")
        line.cut = True
        table.ends("a-1")

    def mends() -> None:
        line.cut = False

    def start() -> None:
        table.starts("a-1")
        table.starts("b-1")

    acts = Scripted(
        start,
        cuts,
        *[lambda: threading.Event().wait(look_every_s(line, TURN_S))] * 2,
        mends,
        lambda: table.ends("b-1"),
    )
    assert table.follower().to_the_end(acts, never) is Outcome.ENDED
    said = table.lines()
    cut = next(number for number, one in enumerate(said) if one.startswith("waiting: cannot read"))
    assert line.tries > 1
    assert said[cut + 1] == "before the end"
    assert set(said[cut + 2 :]) == {"going on", "b-1 completed"}


def test_of_a_store_that_is_away_others_know_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table("a-1", "b-1")
    far = open_objects("memory://")
    monkeypatch.setattr(far, "__class__", Line)
    assert isinstance(far, Line)
    mailboxes = Mailboxes(table.desk.objects, {"far": lambda: far})
    monkeypatch.setitem(table.desk.__dict__, "mailboxes", mailboxes)
    by_job = {"a-1": far, "b-1": table.desk.objects}

    def objects_of(desk: Desk, job: str, attempt: int) -> StoreObjects:
        return by_job[job]

    monkeypatch.setattr(Desk, "objects_of", objects_of)

    def cuts() -> None:
        far.cut = True
        for job in ("a-1", "b-1"):
            log_of(by_job[job], job, 1).post(f"of {job}\n".encode(), 0)
            table.ends(job)

    starts = [lambda: table.starts("a-1"), lambda: table.starts("b-1")]
    table.follower(several=True).to_the_end(Scripted(*starts, cuts), never)
    assert any("of b-1" in line for line in table.lines())
    assert far.tries <= 2  # it is left alone for a while


def test_lines_of_several_jobs_say_whose_they_are() -> None:
    table = Table("a-1", "b-1")

    def run_all() -> None:
        for job in ("a-1", "b-1"):
            table.starts(job)
            table.prints(job, b"hello\n")

    acts = Scripted(run_all, lambda: table.ends("a-1"), lambda: table.ends("b-1"))
    table.follower(several=True).to_the_end(acts, never)
    assert {"a-1 | hello", "b-1 | hello"} <= set(table.lines())


def test_a_parked_job_is_not_waited_for() -> None:
    table = Table("a-1")
    late = Reason(code=Code.DEADLINE_PASSED, says="its deadline passed 3 s ago")
    acts = Scripted(lambda: table.desk.store.append([e.Parked(at=1.0, job="a-1", reason=late)]))
    assert table.follower().to_the_end(acts, never) is Outcome.ENDED
    assert "a-1 parked until a person acts: its deadline passed 3 s ago" in table.lines()[0]


def test_jobs_of_other_runs_are_not_shown() -> None:
    table = Table("a-1")
    other = a_job("x-1").but(run="run-2")
    opened = e.RunOpened(at=0.0, run=RUN.but(id="run-2"))
    acts = Scripted(
        lambda: table.desk.store.append([opened, e.Submitted(at=0.0, job="x-1", first=other)]),
        lambda: table.starts("x-1"),
        lambda: table.starts("a-1"),
        lambda: table.ends("a-1"),
    )
    table.follower().to_the_end(acts, never)
    assert not [line for line in table.lines() if "x-1" in line]


def test_detaching_leaves_the_jobs_as_they_are() -> None:
    table = Table("a-1")
    acts = Scripted(lambda: table.starts("a-1"), lambda: acts.press(signal.SIGTERM))
    outcome = table.follower().to_the_end(acts, lambda number, stopping: Told.DETACH)
    assert outcome is Outcome.DETACHED
    job = table.desk.store.world(0.0).jobs["a-1"]
    assert (job.state, job.wish) == (JobState.RUNNING, None)


def test_stopping_asks_for_every_live_job_to_be_cancelled_and_follows_on() -> None:
    table = Table("a-1", "b-1")
    asked: list[bool] = []

    def answer(number: signal.Signals, stopping: bool) -> Told:
        asked.append(stopping)
        return Told.STOP_JOBS if not stopping else Told.DETACH

    acts = Scripted(
        lambda: table.starts("a-1"),
        lambda: table.ends("a-1"),
        lambda: acts.press(signal.SIGINT),
        lambda: acts.press(signal.SIGINT),
    )
    assert table.follower(several=True).to_the_end(acts, answer) is Outcome.DETACHED
    assert asked == [False, True]
    assert table.desk.store.world(0.0).jobs["b-1"].wish is Wish.CANCEL
    told = [item.event for item in table.desk.store.events("a-1")]
    assert not any(isinstance(event, e.CancelAsked) for event in told)


def test_going_on_after_an_interrupt_changes_nothing() -> None:
    table = Table("a-1")
    acts = Scripted(
        lambda: acts.press(signal.SIGINT), lambda: table.starts("a-1"), lambda: table.ends("a-1")
    )
    outcome = table.follower().to_the_end(acts, lambda number, stopping: Told.GO_ON)
    assert outcome is Outcome.ENDED


def test_a_follower_takes_over_when_the_holder_goes() -> None:
    table = Table("a-1")
    table.host = FakeHost(holds=False, free=True)
    acts = Scripted(lambda: table.starts("a-1"), lambda: table.ends("a-1"))
    table.follower().to_the_end(acts, never)
    assert table.host.holds


def test_a_follower_that_was_fenced_follows_the_new_controller() -> None:
    table = Table("a-1")

    def fenced() -> None:
        table.host.holds, table.host.free = False, False
        table.host.failure = Fenced("a newer controller has taken over")

    acts = Scripted(fenced, lambda: table.starts("a-1"), lambda: table.ends("a-1"))
    assert table.follower().to_the_end(acts, never) is Outcome.ENDED


@pytest.mark.parametrize(
    ("failure", "raised"),
    [(StoreUnusable("the disk is full"), StoreUnusable), (None, Bug)],
)
def test_what_ended_the_controller_ends_the_follower(
    failure: CloudwhaleError | None, raised: type[CloudwhaleError]
) -> None:
    table = Table("a-1")

    def dies() -> None:
        table.host.holds, table.host.failure = False, failure

    with pytest.raises(raised):
        table.follower().to_the_end(Scripted(dies), never)


def test_trouble_is_said_once_and_so_is_its_end() -> None:
    table = Table("a-1")

    def trouble(says: str) -> Act:
        return lambda: setattr(table.host, "trouble", says)

    acts = Scripted(
        trouble("the database is locked"), lambda: None, trouble(""),
        lambda: table.starts("a-1"), lambda: table.ends("a-1"),
    )  # fmt: skip
    table.follower().to_the_end(acts, never)
    said = table.out.getvalue().splitlines()
    assert said[:2] == ["waiting: the database is locked", "going on"]


def test_a_scene_has_the_jobs_in_the_order_they_were_submitted() -> None:
    table = Table("c-1", "a-1", "b-1")
    table.starts("a-1")
    table.ends("a-1")
    here = scene(table.desk, RUN, 0.0)
    assert list(here.jobs) == ["c-1", "a-1", "b-1"]
    assert here.jobs["a-1"].state is JobState.COMPLETED
    assert here.seen == table.desk.store.version()


def test_what_is_worth_knowing_of_a_job_is_told_and_of_others_not() -> None:
    table = Table("a-1")

    def noted(subject: str) -> Act:
        reason = Reason(code=Code.INPUTS_FETCHED, says="1.0 GiB of 4.0 GiB, 80.0 MiB/s")
        event = e.Noted(at=3.0, subject=subject, reason=reason)
        return lambda: table.desk.store.append([event])

    acts = Scripted(
        lambda: table.starts("a-1"), noted("a-1"), noted("b-1"), lambda: table.ends("a-1")
    )
    table.follower().to_the_end(acts, never)
    assert [line for line in table.lines() if "GiB" in line] == [
        "a-1 its inputs come: 1.0 GiB of 4.0 GiB, 80.0 MiB/s [inputs-fetched]"
    ]
