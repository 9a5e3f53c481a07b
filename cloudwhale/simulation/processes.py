"""Jobs without processes: what a program does over time, as a formula."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from cloudwhale.agent.seen import ExitRecord
from cloudwhale.model.units import Instant, Seconds

CLOSE = 1e-6  # sums of floats: what is nearer than this has happened
KILLED, STOPPED = 137, 143  # what a shell reports for SIGKILL and SIGTERM


@dataclass(frozen=True, slots=True)
class Program:
    """What a job does: so much work, a checkpoint now and then, an exit code."""

    work_s: Seconds
    """How long it runs alone on a GPU of speed 1."""
    exit_code: int = 0
    saves_every_s: Seconds | None = None
    heeds_signal: bool = True
    """Whether it ends when it is told to."""
    speeds: Mapping[str, float] = field(default_factory=dict[str, float])
    """How fast each GPU model is for it; 1 for one that is not named."""


@dataclass(frozen=True, slots=True)
class Stops:
    """How a program takes its stop signal."""

    after_s: Seconds = 1.0
    """From the signal to its end."""
    saves: bool = True
    """Whether one that saves at all saves what it has done by its signal; else it works on."""


@dataclass(frozen=True, slots=True)
class Process:
    """A program that was started, from a checkpoint or from nothing."""

    program: Program
    began_at: Instant
    done_s: Seconds
    """Work that was done by `since`."""
    since: Instant
    rate: float = 1.0
    """Work per second from `since` on."""
    stops: Stops = Stops()
    saved: tuple[Instant, Seconds] | None = None
    """When it saved last before `since`, and the work that is in it."""
    signalled_at: Instant | None = None
    killed_at: Instant | None = None

    @property
    def ends_at(self) -> Instant:
        """Return when it ends or has ended, as things are."""
        at = self.since + max(0.0, self.program.work_s - self.done_s) / self.rate
        if self.signalled_at is not None and self.program.heeds_signal:
            stopped_at = self.signalled_at + self.stops.after_s
            is_too_late = at <= self.signalled_at
            if not is_too_late:
                at = stopped_at if self._saves_when_stopped else min(at, stopped_at)
        return at if self.killed_at is None else min(at, self.killed_at)

    @property
    def _saves_when_stopped(self) -> bool:
        program = self.program
        return self.stops.saves and program.heeds_signal and program.saves_every_s is not None

    def signalled(self, at: Instant) -> "Process":
        """Return it after its stop signal."""
        return self if self.signalled_at is not None else replace(self, signalled_at=at)

    def killed(self, at: Instant) -> "Process":
        """Return it after SIGKILL."""
        return self if self.killed_at is not None else replace(self, killed_at=at)

    def paced(self, rate: float, at: Instant) -> "Process":
        """Return it as it goes on from now: others have come to its devices, or have left them."""
        if rate == self.rate or at >= self.ends_at:
            return self
        done_s, saved = self.work_done_s(at), self._last_save(at)
        return replace(self, rate=rate, done_s=done_s, since=max(at, self.since), saved=saved)

    def work_done_s(self, at: Instant) -> Seconds:
        """Return how much of the job's work is done at a time, not before `since`."""
        until = self._works_until(at)
        return min(self.program.work_s, self.done_s + self.rate * max(0.0, until - self.since))

    def _works_until(self, at: Instant) -> Instant:
        until = min(at, self.ends_at)
        if self.signalled_at is not None and self._saves_when_stopped:
            until = min(until, self.signalled_at)
        return until

    def newest_save(self, at: Instant) -> tuple[str, Instant] | None:
        """Return name and time of the newest whole checkpoint at a time, if there is one."""
        if self._was_stopped and self._saves_when_stopped and at >= self.ends_at:
            return _name(self.work_done_s(at)), self.ends_at
        saved = self._last_save(at)
        return None if saved is None else (_name(saved[1]), saved[0])

    @property
    def _was_stopped(self) -> bool:
        """Say whether its end is that of its stop, and nothing was quicker."""
        if self.signalled_at is None:
            return False
        return self.ends_at >= self.signalled_at + self.stops.after_s

    def _last_save(self, at: Instant) -> tuple[Instant, Seconds] | None:
        every_s = self.program.saves_every_s
        if every_s is None:
            return None
        count = math.floor((self._works_until(at) - self.began_at) / every_s + CLOSE)
        saved_at = self.began_at + count * every_s
        if count <= 0 or saved_at < self.since - CLOSE:
            return self.saved
        work_s = self.done_s + self.rate * max(0.0, saved_at - self.since)
        return saved_at, min(self.program.work_s, work_s)

    def next_save_at(self, after: Instant) -> Instant | None:
        """Return when the next checkpoint becomes whole, None when it ends before."""
        every_s = self.program.saves_every_s
        if every_s is None or after < self.began_at:
            return None
        count = math.floor((after - self.began_at) / every_s + CLOSE) + 1
        at = self.began_at + count * every_s
        return at if at < self._works_until(math.inf) else None

    def exit(self) -> ExitRecord:
        """Return how it ended; asked for once it has."""
        ends_at = self.ends_at
        work_s = self.program.work_s
        work_is_done = self.work_done_s(ends_at) >= work_s * (1 - CLOSE) - CLOSE
        was_killed = self.killed_at is not None and ends_at >= self.killed_at
        code = KILLED if was_killed else STOPPED
        return ExitRecord(
            how="exited",
            code=self.program.exit_code if work_is_done else code,
            ended_at=ends_at,
            ran_s=ends_at - self.began_at,
            by_itself=work_is_done and not was_killed and not self._was_stopped,
        )


def begun(program: Program, at: Instant, done_s: Seconds, stops: Stops) -> Process:
    """Return a program that starts now; `done_s`: work that the restored checkpoint held."""
    return Process(program, at, done_s, at, stops=stops)


def _name(work_s: Seconds) -> str:
    return f"work-{work_s:.6f}"


def work_in(checkpoint_name: str) -> Seconds:
    """Return the work that a simulated checkpoint holds; its name says it."""
    return float(checkpoint_name.removeprefix("work-"))
