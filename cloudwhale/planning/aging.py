"""Which job has waited so long that it goes before all others: what bounds every job's wait."""

from collections.abc import Sequence

from cloudwhale.model.job import Job
from cloudwhale.model.reason import Code
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.planning.releases import Whole
from cloudwhale.spi.policy import Queueing

LEAST_S: Seconds = 900.0
"""Nobody has waited too long before this."""
MOST_S: Seconds = 24 * 3600.0
"""Everybody has after this, however much work waits."""
BACKLOG = 1.0
"""In between: as long as all machines need for all that waits now, times this."""


def aged(
    ready: Sequence[Job], running: Sequence[Job], queueing: Queueing, whole: Whole
) -> tuple[Job, ...]:
    """Return the job that goes first, if one has waited too long; one at a time, by submission.

    It must be able to run on a machine that takes jobs now. While such jobs run on half of the
    machines, the next one waits: the rest is for those whom class and work put first.
    """
    limit_s = too_long_s(ready, queueing)
    long = [job for job in ready if waited_s(job, queueing.now) >= limit_s]
    if not long or _is_full(running, whole):
        return ()
    for job in sorted(long, key=lambda job: (job.submitted_at, job.id)):
        if whole.nodes(job):
            return (job,)
    return ()


def too_long_s(ready: Sequence[Job], queueing: Queueing) -> Seconds:
    """Return the wait that is too long now: it grows with the work that waits, up to a day."""
    remaining_s, size = queueing.remaining_s, queueing.size
    backlog_s = sum(remaining_s(job) * size(job) for job in ready)
    return min(MOST_S, max(LEAST_S, BACKLOG * backlog_s))


def waited_s(job: Job, now: Instant) -> Seconds:
    """Return how long a waiting job has held no place since it was submitted."""
    return max(0.0, now - job.submitted_at - job.run_s)


def _is_full(running: Sequence[Job], whole: Whole) -> bool:
    held = {job.placement.node for job in running if went_first(job) and job.placement is not None}
    return bool(held) and 2 * len(held) >= whole.count


def went_first(job: Job) -> bool:
    """Say whether the job got its place because it had waited too long."""
    return job.reason is not None and job.reason.code is Code.AGED
