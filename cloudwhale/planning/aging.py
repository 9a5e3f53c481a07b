"""Which jobs have waited so long that they go before all others: what bounds every job's wait."""

from collections.abc import Sequence
from dataclasses import dataclass

from cloudwhale.model.job import Job
from cloudwhale.model.reason import Code
from cloudwhale.model.units import Seconds
from cloudwhale.planning.releases import Whole
from cloudwhale.spi.policy import Queueing, priority_class

LEAST_S: Seconds = 900.0
"""Nobody has waited too long before this."""
MOST_S: Seconds = 24 * 3600.0
"""Everybody has after this, however much work waits."""
BACKLOG = 1.5
"""In between: as long as all machines need for all that waits now, times this."""
PATIENCE = (1.0, 0.75, 0.5)
"""Of that, by class: batch, normal, interactive."""


@dataclass(frozen=True, slots=True)
class Aged:
    """The jobs that have waited too long, the longest due first."""

    first: tuple[Job, ...] = ()
    """They go before all others."""
    at_last: frozenset[str] = frozenset()
    """Ids of those that a whole node is kept for: they have waited as long again."""


def aged(ready: Sequence[Job], queueing: Queueing, whole: Whole) -> Aged:
    """Return the jobs that are due, of those that could run on a machine that takes jobs now.

    A job is due after its class's part of the limit, times the part of all devices that it could
    ever have: who has few places to hope for waits less. Parts are 1 at most, so whoever was
    submitted MOST_S later than another is never before it.
    """
    limit_s = too_long_s(ready, queueing)
    rows = [
        (
            job.submitted_at
            + limit_s * PATIENCE[priority_class(job.spec.priority)] * whole.part(job),
            job.id,
            job,
        )
        for job in ready
    ]
    due = sorted(row for row in rows if row[0] <= queueing.now)
    whole.look(job for *_, job in due)
    able = [(at, job) for at, _, job in due if whole.nodes(job)]
    return Aged(
        first=tuple(job for _, job in able),
        at_last=frozenset(job.id for at, job in able if at + limit_s <= queueing.now),
    )


def too_long_s(ready: Sequence[Job], queueing: Queueing) -> Seconds:
    """Return the wait that is too long for a batch job: it grows with the work that waits."""
    remaining_s, size = queueing.remaining_s, queueing.size
    backlog_s = sum(remaining_s(job) * size(job) for job in ready)
    return min(MOST_S, max(LEAST_S, BACKLOG * backlog_s))


def went_first(job: Job) -> bool:
    """Say whether the job got its place because it had waited too long."""
    return job.reason is not None and job.reason.code is Code.AGED
