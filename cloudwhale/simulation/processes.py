"""Jobs without processes: what a program does over time, as a formula."""

from dataclasses import dataclass, replace

from cloudwhale.agent.seen import ExitRecord
from cloudwhale.model.units import Instant, Seconds

STOP_TAKES_S: Seconds = 1.0  # a program that heeds its signal saves and ends in this time


@dataclass(frozen=True, slots=True)
class Program:
    """What a job does: so much work, a checkpoint now and then, an exit code."""

    work_s: Seconds
    exit_code: int = 0
    saves_every_s: Seconds | None = None
    heeds_signal: bool = True
    """Whether it saves and ends when it is told to."""


@dataclass(frozen=True, slots=True)
class Process:
    """A program that was started, from a checkpoint or from nothing."""

    program: Program
    began_at: Instant
    done_before_s: Seconds = 0.0
    """Work that the restored checkpoint held."""
    signalled_at: Instant | None = None
    killed_at: Instant | None = None

    @property
    def ends_at(self) -> Instant:
        """Return when it ends or has ended, as things are."""
        times = [self.began_at + self.program.work_s - self.done_before_s]
        if self.signalled_at is not None and self.program.heeds_signal:
            times.append(self.signalled_at + STOP_TAKES_S)
        if self.killed_at is not None:
            times.append(self.killed_at)
        return min(times)

    def signalled(self, at: Instant) -> "Process":
        """Return it after its stop signal."""
        return self if self.signalled_at is not None else replace(self, signalled_at=at)

    def killed(self, at: Instant) -> "Process":
        """Return it after SIGKILL."""
        return self if self.killed_at is not None else replace(self, killed_at=at)

    def work_done_s(self, at: Instant) -> Seconds:
        """Return how much of the job's work is done at a time."""
        return self.done_before_s + max(0.0, min(at, self.ends_at) - self.began_at)

    def newest_save(self, at: Instant) -> tuple[str, Instant] | None:
        """Return name and time of the newest whole checkpoint at a time, if there is one."""
        every_s, until = self.program.saves_every_s, min(at, self.ends_at)
        if every_s is None:
            return None
        stopped_cleanly = self.signalled_at is not None and self.program.heeds_signal
        if stopped_cleanly and self.killed_at is None and at >= self.ends_at:
            return self._save(self.ends_at)
        saves = int((until - self.began_at) / every_s)
        return self._save(self.began_at + saves * every_s) if saves else None

    def next_save_at(self, after: Instant) -> Instant | None:
        """Return when the next checkpoint becomes whole, None when it ends before."""
        every_s = self.program.saves_every_s
        if every_s is None or after < self.began_at:
            return None
        at = self.began_at + (int((after - self.began_at) / every_s) + 1) * every_s
        return at if at < self.ends_at else None

    def exit(self) -> ExitRecord:
        """Return how it ended; asked for once it has."""
        work_is_done = self.work_done_s(self.ends_at) >= self.program.work_s - 1e-6
        code = self.program.exit_code if work_is_done else 137 if self.killed_at else 143
        return ExitRecord(
            how="exited", code=code, ended_at=self.ends_at, ran_s=self.ends_at - self.began_at
        )

    def _save(self, at: Instant) -> tuple[str, Instant]:
        return f"work-{self.work_done_s(at):.3f}", at


def work_in(checkpoint_name: str) -> Seconds:
    """Return the work that a simulated checkpoint holds; its name says it."""
    return float(checkpoint_name.removeprefix("work-"))
