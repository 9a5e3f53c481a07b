"""Which jobs have waited so long that they go before all others: what bounds every job's wait."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from cloudwhale.model.job import Job
from cloudwhale.model.reason import Code
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.planning.releases import Whole
from cloudwhale.spi.policy import Queueing, priority_class

LEAST_S: Seconds = 900.0
"""Nobody has waited too long before this."""
MOST_S: Seconds = 14 * 24 * 3600.0
"""Everybody has after this, however much work is here."""
LARGE, SMALL = 0.56, 0.32
"""In between: as long as all machines need for all that is here, what runs from its start, times
this; the second is for jobs that are not large: they are many, and cost the large ones little."""
LARGE_WAITS, SMALL_WAITS = 1.2, 0.7
"""Or as long as they need for what waits, times this, where that is longer."""
LARGE_FROM = 1 / 250
"""The part of all work from which on a job is large."""
PATIENCE = (1.0, 0.75, 0.5)
"""Of the limit, by class: batch, normal, interactive."""


@dataclass(frozen=True, slots=True)
class Aged:
    """The jobs that have waited too long, the longest due first."""

    first: tuple[Job, ...] = ()
    """They go before all others."""
    at_last: frozenset[str] = frozenset()
    """Ids of those that a whole node is kept for: they have waited as long again."""


@dataclass(frozen=True)
class Limits:
    """Which wait is too long for a batch job; they follow the load."""

    here_s: Seconds
    """What all machines need for all that waits and runs, what is done of it included."""
    waits_s: Seconds
    """What they need for what is left of what waits."""

    @cached_property
    def large_s(self) -> Seconds:
        """Return the limit of large jobs: the longest."""
        return _limit(max(LARGE * self.here_s, LARGE_WAITS * self.waits_s))

    @cached_property
    def small_s(self) -> Seconds:
        """Return the limit of the others."""
        return _limit(max(SMALL * self.here_s, SMALL_WAITS * self.waits_s))

    def of(self, job: Job, queueing: Queueing) -> Seconds:
        """Return the limit of a job, by its work."""
        is_large = work_s(job, queueing) >= LARGE_FROM * self.here_s
        return self.large_s if is_large else self.small_s


def aged(ready: Sequence[Job], running: Sequence[Job], queueing: Queueing, whole: Whole) -> Aged:
    """Return the jobs that are due, of those that could run on a machine that takes jobs now.

    A job is due when it has not run for its class's part of the limit, times the part of all
    devices that it could ever have: who has few places to hope for waits less. Parts are 1 at
    most, so whoever was submitted MOST_S after another's due would begin is never before it.
    """
    limits = limits_of(ready, running, queueing)
    rows: list[tuple[Instant, str, Job]] = []
    for job in ready:
        patience = PATIENCE[priority_class(job.spec.priority)]
        limit_s = limits.of(job, queueing) * patience * whole.part(job)
        due_at = job.submitted_at + job.run_s + limit_s
        if due_at <= queueing.now:
            rows.append((due_at, job.id, job))
    due = sorted(rows)
    whole.look(job for *_, job in due)
    able = [(at, job) for at, _, job in due if whole.nodes(job)]
    return Aged(
        first=tuple(job for _, job in able),
        at_last=frozenset(job.id for at, job in able if at + limits.large_s <= queueing.now),
    )


def limits_of(ready: Sequence[Job], running: Sequence[Job], queueing: Queueing) -> Limits:
    """Return the limits of a round: they grow with the work that is here."""
    return Limits(
        here_s=sum(work_s(job, queueing) for job in chain(ready, running)),
        waits_s=sum(queueing.remaining_s(job) * queueing.size(job) for job in ready),
    )


def work_s(job: Job, queueing: Queueing) -> Seconds:
    """Return how long all machines would need for a job, from its start to its end."""
    return queueing.length_s(job) * queueing.size(job)


def _limit(asked_s: Seconds) -> Seconds:
    return min(MOST_S, max(LEAST_S, asked_s))


def went_first(job: Job) -> bool:
    """Say whether the job got its place because it had waited too long."""
    return job.reason is not None and job.reason.code is Code.AGED
