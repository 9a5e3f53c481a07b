"""A home of its own for one rehearsal, with a real controller and agent; nothing of it is left."""

import logging
import shutil
import signal
import tempfile
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from cloudwhale.agent.attempts import AttemptFolder
from cloudwhale.cli.interrupts import Interrupts
from cloudwhale.cli.queueing import new_id
from cloudwhale.cli.rehearse_eyes import Log, Reads, Saves
from cloudwhale.clock import told
from cloudwhale.control import desk as desks
from cloudwhale.control.host import ControllerHost, wake_local_agent
from cloudwhale.control.submission import Origin, submit
from cloudwhale.model import event as e
from cloudwhale.model.job import HOLDS_A_PLACE, CheckpointRule, Job, JobSpec, JobState
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.reporting.rehearsed import Act
from cloudwhale.reporting.tail import Tail
from cloudwhale.settings import Settings
from cloudwhale.spi.store import JobQuery

LOOK_S: Seconds = 0.1
GOES_WITHIN_S: Seconds = 15.0
"""How long an agent that was told to go is waited for before its processes are killed."""
KILLED = 137
NOBODY_KILLED_S: Seconds = 0.5
"""By so much sooner than its grace a job has ended by itself."""


class Interrupted(Exception):
    """The user does not want to wait for the rest."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(number.name)
        self.number = number


@dataclass
class Watched:
    """An attempt that is being watched."""

    job: str
    number: int
    folder: AttemptFolder
    log: Log
    reads: Reads
    saves: Saves
    asked_at: Instant | None = None


class Trial:
    """Holds the trial's controller and desk; use it in a `with`, after which all of it is gone."""

    def __init__(self, settings: Settings, folder: Path, interrupts: Interrupts) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="cloudwhale-rehearsal-"))
        self._folder = folder
        self._interrupts = interrupts
        self.settings = settings.but(
            home=self._home, database="", mailbox="", clouds={}, sandbox=False, takes_jobs=True
        )
        logging.getLogger("cloudwhale").addHandler(logging.NullHandler())  # what ends it is raised
        self._host = ControllerHost(self.settings)
        self._desk: desks.Desk | None = None

    @property
    def desk(self) -> desks.Desk:
        """The trial's store and mailbox."""
        if self._desk is None:
            self._desk = desks.open_desk(self.settings, may_migrate=True)
        return self._desk

    def __enter__(self) -> Self:
        try:
            self._host.try_start()
            wake_local_agent(self.settings)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    # -- verbs -------------------------------------------------------------------------------

    def submit(self, spec: JobSpec, environment: dict[str, str]) -> str:
        """Queue a job; return its id."""
        desk = self.desk
        origin = Origin(
            at=desk.clock.now(), folder=self._folder, files=(), digest="", budget=None,
            soft_share=1.0, user="rehearsal", environment=environment,
            key=desk.key if spec.secrets else b"", leave_out=(self._home,),
        )  # fmt: skip
        run = submit(desk.store, desk.objects, origin, [spec], new_id)
        (job,) = desk.store.jobs(JobQuery(run=run.id))
        return job.id

    def watch(
        self, job: str, number: int, rule: CheckpointRule, old: Collection[str] | None = None
    ) -> Watched:
        """Begin to watch an attempt, before it starts; `old`: what will lie there before it."""
        node = desks.node_name(self.settings)
        folder = AttemptFolder(self._home / "nodes" / node / "attempts", (job, number))
        where = folder.path / "checkpoints" if rule.path is None else folder.work / rule.path
        reads = Reads(folder, where)
        reads.start()
        return Watched(
            job, number, folder, Log(folder.log), reads, Saves(folder, where, old, reads)
        )

    def go_on(self, job: str) -> None:
        """Let a preempted job start again."""
        self._append(e.ResumeAsked(at=self.desk.clock.now(), job=job, by="rehearsal"))

    def preempt(self, watched: Watched) -> None:
        """Ask for a job to be stopped as when its machine goes: its signal, then its grace."""
        watched.asked_at = self.desk.clock.now()
        self._append(e.PauseAsked(at=watched.asked_at, job=watched.job, by="rehearsal"))

    def stop(self, watched: Watched, *, hard: bool) -> None:
        """Stop a job for good; `hard`: without a grace."""
        watched.asked_at = self.desk.clock.now()
        self._append(e.CancelAsked(at=watched.asked_at, job=watched.job, by="rehearsal"))
        if hard:
            watched.folder.tell_shim("kill")

    def turn(self, watched: Watched) -> Job:
        """Look once at what an attempt does, wait a moment, return the job; raise Interrupted."""
        if self._interrupts.pending is not None:
            raise Interrupted(self._interrupts.pending)
        if self._host.failure is not None:
            raise self._host.failure
        watched.log.look(self.desk.clock.now())
        watched.saves.look()
        self._interrupts.wait(LOOK_S)
        return self.job(watched.job)

    def until(
        self, watched: Watched, holds: Callable[[Job], bool], at_most_s: Seconds | None = None
    ) -> Job:
        """Watch until something holds of the job, or for so long; return it as it is then."""
        clock = self.desk.clock
        began = clock.steady()
        while True:
            job = self.turn(watched)
            if holds(job):
                return job
            if at_most_s is not None and clock.steady() - began >= at_most_s:
                return job

    def job(self, name: str) -> Job:
        """Return a job as it is now."""
        (found,) = self.desk.store.jobs(JobQuery(names_or_ids=(name,), limit=1))
        return found

    def events(self) -> list[e.Event]:
        """Return all that has happened."""
        return [one.event for one in self.desk.store.since(0, 100_000)]

    def ended(self, watched: Watched, rule: CheckpointRule) -> Act:
        """Watch an attempt's end out and return what was seen of it."""
        stored = Tail(
            self.desk.objects_of(watched.job, watched.number), watched.job, watched.number
        ).rest()
        watched.log.end(stored, self.desk.clock.now())
        watched.saves.look()
        watched.saves.look()  # an entry counts when two looks find it the same
        watched.reads.close()
        folder, exit = watched.folder, watched.folder.exit()
        now = self.desk.clock.now()
        ended_at = now if exit is None else exit.ended_at
        asked_at = None if exit is not None and exit.by_itself else _asked(watched)
        stop_s = 0.0 if asked_at is None else ended_at - asked_at
        pids = folder.pids()
        code = None if exit is None else exit.code
        killed = code == KILLED and stop_s >= rule.grace_s - NOBODY_KILLED_S
        return Act(
            began_at=ended_at if pids is None else pids.began_at,
            ended_at=ended_at,
            lines=tuple(watched.log.lines),
            saves=tuple(watched.saves.saves),
            how="start-failed" if exit is None else exit.how,
            exit_code=code,
            says=self._why(watched) if exit is None else exit.says,
            asked_at=asked_at,
            killed=killed,
            writing=watched.saves.being_written(asked_at) if asked_at and killed else (),
        )

    def _why(self, watched: Watched) -> str:
        reason = self.job(watched.job).reason
        return "" if reason is None else reason.says

    def _append(self, event: e.Event) -> None:
        self.desk.store.append([event])

    # -- the end -----------------------------------------------------------------------------

    def _end(self) -> None:
        """Stop what runs, let the agent go, remove the home; kill what does not go by itself."""
        try:
            self._stop_all()
        finally:
            self._host.stop(leave_agents=False)
            if self._desk is not None:
                self._desk.close()
            self._sweep()
            shutil.rmtree(self._home, ignore_errors=True)

    def _stop_all(self) -> None:
        if self._host.failure is not None or not self._host.holds:
            return
        desk = self.desk
        live = [job for job in desk.store.jobs(JobQuery()) if not job.ended]
        for job in live:
            self._append(e.CancelAsked(at=desk.clock.now(), job=job.id, by="rehearsal"))
        attempts = self._home / "nodes" / desks.node_name(self.settings) / "attempts"
        end = desk.clock.steady() + GOES_WITHIN_S
        while desk.clock.steady() < end:
            left = [job for job in (self.job(job.id) for job in live) if not job.ended]
            if not left:
                return
            for job in left:
                if job.state in HOLDS_A_PLACE:
                    AttemptFolder(attempts, (job.id, job.attempt)).tell_shim("kill")
            self._interrupts.take()
            self._interrupts.wait(LOOK_S)

    def _sweep(self) -> None:
        """Wait for the agent and its shims to go; kill what is still there."""
        left = self._processes()
        _, alive = psutil.wait_procs(left, timeout=GOES_WITHIN_S)
        while alive:
            for process in alive:
                try:
                    process.kill()
                except psutil.NoSuchProcess:
                    continue
            psutil.wait_procs(alive, timeout=1.0)
            alive = self._processes()

    def _processes(self) -> list[psutil.Process]:
        return [each for each in psutil.process_iter() if _is_of(each, str(self._home))]


def _is_of(process: psutil.Process, home: str) -> bool:
    """Say whether a process works in a home: an agent, a shim, or a job that saves there."""
    try:
        if process.pid == psutil.Process().pid or process.status() == psutil.STATUS_ZOMBIE:
            return False
        if any(home in word for word in process.cmdline()):
            return True
        return process.environ().get("CLOUDWHALE_CHECKPOINT_DIR", "").startswith(f"{home}/")
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


def _asked(watched: Watched) -> Instant | None:
    """Return when the agent was told to stop it, as well as that is known."""
    try:
        return told((watched.folder.path / "stop.json").stat().st_mtime)
    except OSError:
        return watched.asked_at


def is_over(job: Job) -> bool:
    """Say whether no attempt of a job holds a place, and none will without being asked."""
    return job.ended or job.state in (JobState.PAUSED, JobState.PARKED)
