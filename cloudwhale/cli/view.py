"""What a follower shows its jobs on, and the plain one: lines of text for pipes and files."""

from collections.abc import Mapping, Sequence
from typing import Protocol, TextIO

from cloudwhale.cli.fleet import Fleet, Said
from cloudwhale.control.given import as_given_here
from cloudwhale.model import event as e
from cloudwhale.model.job import Job
from cloudwhale.model.units import Instant
from cloudwhale.reporting.figures import clock_time
from cloudwhale.reporting.rented import cut
from cloudwhale.reporting.sentences import headline, reason_of
from cloudwhale.reporting.sheet import clean


class View(Protocol):
    """Something to look at while jobs run."""

    def told(self, job: Job, event: e.OfJob) -> None:
        """Show that something happened to a job, which is given as it is afterwards."""
        ...

    def noted(self, job: Job, event: e.Noted) -> None:
        """Show that something is worth knowing of a job: how far its inputs are, what was lost."""
        ...

    def logged(self, job: Job, lines: Sequence[str], partial: str) -> None:
        """Show finished lines of a job's output; `partial` is the one still being written."""
        ...

    def rented(self, said: Said) -> None:
        """Show that something happened to a rented machine."""
        ...

    def draw(self, jobs: Mapping[str, Job], fleet: Fleet, now: Instant) -> None:
        """Show how things stand; called about ten times a second."""
        ...

    def say(self, text: str) -> None:
        """Show a sentence that is not about one job."""
        ...

    def rest(self) -> None:
        """Leave the screen as it is; the next `draw` takes it up again."""
        ...


class PlainView:
    """One line for everything that happens, and the jobs' output between them."""

    def __init__(self, stream: TextIO, several: bool) -> None:
        self._stream = stream
        self._several = several

    def told(self, job: Job, event: e.OfJob) -> None:
        """See View."""
        said = sentence(job, event)
        if said is not None:
            self._write([f"{clock_time(event.at)} {job.id} {said}"])

    def noted(self, job: Job, event: e.Noted) -> None:
        """See View."""
        self._write([f"{clock_time(event.at)} {job.id} {note(job, event)}"])

    def logged(self, job: Job, lines: Sequence[str], partial: str) -> None:
        """See View."""
        prefix = f"{job.id} | " if self._several else ""
        self._write([prefix + line for line in lines])

    def rented(self, said: Said) -> None:
        """See View."""
        self._write([clean(f"{clock_time(said.at)} {said.machine} {said.says}")])

    def draw(self, jobs: Mapping[str, Job], fleet: Fleet, now: Instant) -> None:
        """See View: everything is shown when it happens."""

    def say(self, text: str) -> None:
        """See View."""
        self._write([clean(as_given_here(text))])

    def rest(self) -> None:
        """See View."""

    def _write(self, lines: Sequence[str]) -> None:
        if lines:
            self._stream.write("".join(f"{line}\n" for line in lines))
            self._stream.flush()


_WITH_REASON = (
    e.Waits,
    e.Held,
    e.Failed,
    e.Retried,
    e.Parked,
    e.GaveUp,
    e.StopWished,
    e.CheckpointLate,
    e.DeadlineMissed,
    e.AttemptLost,
)


def note(job: Job, event: e.Noted) -> str:
    """Say what is worth knowing of a job, with its code."""
    said = headline(event, job.placement) or "something is worth knowing"
    return clean(f"{said}: {as_given_here(event.reason.says)} [{event.reason.code}]")


def sentence(job: Job, event: e.OfJob) -> str | None:
    """Say what happened and, where it matters, why; None for what nobody asks about."""
    said = headline(event, job.placement)
    if said is None or isinstance(event, e.Submitted):
        return None
    reason = reason_of(event)
    if reason is None or not isinstance(event, _WITH_REASON):
        return clean(said)
    return clean(f"{said}: {cut(as_given_here(reason.says))} [{reason.code}]")
