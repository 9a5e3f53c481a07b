"""Follows a run to its end: what happens to its jobs, what they print, who works on it."""

import signal
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Protocol

from cloudwhale.cli.box_watch import box_watch
from cloudwhale.cli.bringing import RESULTS, Bringing, folders_of
from cloudwhale.cli.exits import Bug
from cloudwhale.cli.fleet import Fleet
from cloudwhale.cli.interrupts import Interrupts
from cloudwhale.cli.tries import Tries
from cloudwhale.cli.view import View
from cloudwhale.control.desk import Desk
from cloudwhale.mailbox.objects import Objects
from cloudwhale.model import event as e
from cloudwhale.model.job import HOLDS_A_PLACE, Job, JobState
from cloudwhale.model.run import Run
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.planning.lifecycle import apply
from cloudwhale.reporting.tail import Lines, Tail, look_every_s
from cloudwhale.spi.errors import CloudwhaleError, Fenced, StoreUnusable
from cloudwhale.spi.store import JobQuery

TURN_S: Seconds = 0.1  # soon enough for an eye
TAKE_OVER_S: Seconds = 1.0  # how often it is tried to become the controller
EVENTS_AT_ONCE = 1000
REST_S: Seconds = 30.0  # a store that hangs costs a turn so much; what lies in others is read

LEAVES_ITS_PLACE = (e.Leaves, e.Cleared)


class Told(Enum):
    """What the follower's user wants after an interrupt."""

    GO_ON = auto()
    DETACH = auto()
    STOP_JOBS = auto()


class Outcome(Enum):
    """How following came to an end."""

    ENDED = auto()
    """Every job has ended, or waits for a person."""
    DETACHED = auto()
    """The user went; the jobs run on."""


class Controlling(Protocol):
    """What a follower needs of `control.host.ControllerHost`."""

    failure: CloudwhaleError | None
    trouble: str

    @property
    def holds(self) -> bool:
        """Say whether this process works on the queue."""
        ...

    def try_start(self) -> bool:
        """Begin to, unless another process does."""
        ...

    def stop(self, *, leave_agents: bool) -> None:
        """Let go."""
        ...


Asked = Callable[[signal.Signals, bool], Told]
"""Given the signal and whether the jobs are being stopped already: what now?"""


@dataclass(slots=True)
class Scene:
    """A run's jobs as they were after an event, in the order they were submitted."""

    run: Run
    jobs: dict[str, Job]
    seen: int
    fleet: Fleet
    bringing: Bringing
    has_closed: bool = False
    """Of a night: that it has."""


def scene(desk: Desk, run: Run, now: Instant) -> Scene:
    """Return a run as it is now, as of one event for all its jobs."""
    store = desk.store
    world = store.world(now)
    rows = store.jobs(JobQuery(run=run.id))
    # Whatever the world no longer has had ended by then, and ended jobs never change.
    jobs = {job.id: world.jobs.get(job.id, job) for job in reversed(rows)}
    # Some of these may be newer than the world; what is told of them then is told once more.
    rentals = {rental.id: rental for rental in store.rentals(run.id)}
    folders = folders_of(jobs.values(), Path.cwd() / RESULTS)
    also = " --sandbox" if desk.settings.sandbox else ""
    bringing = Bringing(desk.objects_of, folders, also)
    for job in jobs.values():
        bringing.ended(job)
    fleet = Fleet(run.id, rentals, also, frozenset(desk.settings.clouds))
    now_is = store.run(run.id) or run
    closed = now_is.night is not None and now_is.night.closed_at is not None
    return Scene(run, jobs, world.version, fleet, bringing, closed)


@dataclass(slots=True)
class _Reader:
    """A running attempt's output."""

    attempt: int
    tail: Tail
    lines: Lines
    store: Objects
    """Where it lies."""


class _NotNow(Exception):
    """The database cannot be used at this moment, a server's above all; it may come back."""


@contextmanager
def _put_off() -> Generator[None]:
    try:
        yield
    except StoreUnusable as error:
        raise _NotNow(error.says) from error


class Follower:
    """Keeps a scene current and shows it, until nothing more will happen by itself."""

    def __init__(self, desk: Desk, host: Controlling, view: View, scene: Scene) -> None:
        self._desk = desk
        self._host = host
        self._view = view
        self._scene = scene
        self._readers: dict[str, _Reader] = {}
        self._closing: list[tuple[Job, _Reader]] = []
        """Of attempts that are over, until the rest of what they printed was read."""
        self._deaf: dict[int, tuple[str, Instant]] = {}
        """What was said of stores that could not be read, and until when they are left alone."""
        self._rest_s = 0.0 if desk.mailboxes.is_one else REST_S
        self._read_at: Instant = 0.0
        self._tried_at: Instant | None = None
        self._held = host.holds
        self._trouble: str = ""
        self._box = box_watch(desk.settings, desk.clock)
        self._tries = Tries()

    @property
    def jobs(self) -> list[Job]:
        """The jobs as they are now, in the order they were submitted."""
        return list(self._scene.jobs.values())

    def to_the_end(self, interrupts: Interrupts, asked: Asked) -> Outcome:
        """Follow until every job has ended or is parked, or until the user goes."""
        stopping = False
        self._open_readers()
        try:
            while True:
                self._turn()
                if self._is_over():
                    return Outcome.ENDED
                number = interrupts.take()
                if number is not None:
                    answer = asked(number, stopping)
                    if answer is Told.DETACH:
                        return Outcome.DETACHED
                    if answer is Told.STOP_JOBS and not stopping:
                        stopping = True
                        self._cancel()
                interrupts.wait(TURN_S)
        finally:
            self._view.rest()

    # -- one turn ----------------------------------------------------------------------------

    def _turn(self) -> None:
        now = self._desk.clock.now()
        trouble = ""
        try:
            for event in self._news():
                self._happened(event)
            self._keep_a_controller(now)
        except _NotNow as error:
            trouble = str(error)
        self._read_logs(now)
        gone = self._box.trouble()
        self._tell(gone or trouble or self._unread or self._host.trouble)
        for one in (*self._tries.over(now), *self._scene.fleet.long_phases(now)):
            self._view.rented(one)
        for job, event in self._tries.waits():
            self._view.told(job, event)
        lid = self._scene.fleet.lid(now)
        for said in (*([lid] if lid else []), *self._scene.bringing.news(now)):
            self._view.say(said)
        self._view.draw(self._scene.jobs, self._scene.fleet, now)

    def _news(self) -> Iterator[e.OfJob]:
        """Yield what happened to the run's jobs since the last turn; tell of its machines."""
        store = self._desk.store
        while True:
            with _put_off():
                is_news = store.version() > self._scene.seen
                told = store.since(self._scene.seen, EVENTS_AT_ONCE) if is_news else ()
            for item in told:
                event = item.event
                if isinstance(event, e.OfJob):
                    if event.job in self._scene.jobs:
                        yield event
                elif isinstance(event, e.Noted) and event.subject in self._scene.jobs:
                    self._view.noted(self._scene.jobs[event.subject], event)
                elif isinstance(event, e.NightClosed) and event.run == self._scene.run.id:
                    self._scene.has_closed = True
                else:
                    self._tell_of_machines(event)
                self._scene.seen = item.seq
            if not told:
                return

    def _tell_of_machines(self, event: e.Event) -> None:
        fleet = self._scene.fleet
        said = fleet.take(event)
        for one in self._tries.machine(event, fleet.named_in(event), said):
            self._view.rented(one)

    def _happened(self, event: e.OfJob) -> None:
        before = self._scene.jobs[event.job]
        job = apply(before, event)
        if job is before:
            return  # said of an attempt that is no longer the job's
        self._scene.jobs[event.job] = job
        if isinstance(event, LEAVES_ITS_PLACE):
            self._close_reader(before)
        elif isinstance(event, e.Placed):
            self._open_reader(job)
        if not self._tries.holds(job, event):
            self._view.told(job, event)
        if job.ended:
            self._scene.bringing.ended(job)
            for said in self._scene.fleet.ended(job, event.at):
                self._view.rented(said)

    def _is_over(self) -> bool:
        """Say whether all jobs have ended or are parked, with results here and machines back."""
        scene = self._scene
        if scene.run.night is not None:
            rest = scene.has_closed
        else:
            rest = all(job.ended or job.state is JobState.PARKED for job in scene.jobs.values())
        return rest and not scene.fleet.is_waited_for and not scene.bringing.is_busy

    def _cancel(self) -> None:
        now = self._desk.clock.now()
        live = [job for job in self._scene.jobs.values() if not job.ended]
        by = self._desk.settings.user
        self._desk.store.append([e.CancelAsked(at=now, job=job.id, by=by) for job in live])

    # -- what the jobs print -----------------------------------------------------------------

    def _open_readers(self) -> None:
        for job in self._scene.jobs.values():
            if job.state in HOLDS_A_PLACE:
                self._open_reader(job)

    def _open_reader(self, job: Job) -> None:
        store = self._desk.objects_of(job.id, job.attempt)
        tail = Tail(store, job.id, job.attempt)
        self._readers[job.id] = _Reader(job.attempt, tail, Lines(), store)

    def _close_reader(self, job: Job) -> None:
        reader = self._readers.pop(job.id, None)
        if reader is not None:
            self._closing.append((job, reader))
            self._read_rests(self._desk.clock.now())

    def _read_logs(self, now: Instant) -> None:
        every_s = look_every_s(self._desk.objects, TURN_S)
        if abs(now - self._read_at) < every_s / 2:
            return
        self._read_at = now
        self._read_rests(now)
        for job_id, reader in self._readers.items():
            with self._may_be_unread(reader.store, now) as may:
                data = reader.tail.more() if may else b""
                if data:
                    lines = reader.lines.feed(data)
                    self._view.logged(self._scene.jobs[job_id], lines, reader.lines.partial)

    def _read_rests(self, now: Instant) -> None:
        for one in list(self._closing):
            job, reader = one
            with self._may_be_unread(reader.store, now) as may:
                if may:
                    lines = reader.lines.feed(reader.tail.rest()) + reader.lines.end()
                    self._closing.remove(one)
                    self._view.logged(job, lines, "")

    @property
    def _unread(self) -> str:
        """What is said of a store that cannot be read; empty: all can."""
        return next((says for says, _ in self._deaf.values()), "")

    @contextmanager
    def _may_be_unread(self, store: Objects, now: Instant) -> Generator[bool]:
        """Let a store that cannot be read now, as behind a line that is cut, wait for a while.

        Says whether it is to be asked: not again in the same turn, and where there are others not
        for longer, as one that hangs would hold up what lies in those.
        """
        says, until = self._deaf.get(id(store), ("", now))
        if says and 0 <= until - now <= self._rest_s:
            yield False
            return
        try:
            yield True
        except StoreUnusable as error:
            # Each try fails in words of its own, with its milliseconds: the first are told.
            self._deaf[id(store)] = says or error.says, now + self._rest_s
        else:
            self._deaf.pop(id(store), None)

    # -- who works on it ---------------------------------------------------------------------

    def _keep_a_controller(self, now: Instant) -> None:
        """Take over when nobody else holds the lock."""
        if self._host.failure is not None or (self._held and not self._host.holds):
            self._ended_early()
        due = self._tried_at is None or abs(now - self._tried_at) >= TAKE_OVER_S
        if due and not self._host.holds:
            self._tried_at = now
            with _put_off():
                self._held = self._host.try_start()

    def _tell(self, trouble: str) -> None:
        """Say what keeps this command or its controller from working, and when that is over."""
        if trouble != self._trouble:
            self._trouble = trouble
            self._view.say(f"waiting: {trouble}" if trouble else "going on")

    def _ended_early(self) -> None:
        """Judge why our controller has ended: a newer one is followed, all else ends us too."""
        failure, self._host.failure = self._host.failure, None
        self._held = False
        self._host.stop(leave_agents=True)
        if failure is None:
            raise Bug("the controller of this process has died", "The jobs run on.")
        if not isinstance(failure, Fenced):
            raise failure
