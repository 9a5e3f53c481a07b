"""Next machines: rented, or on their way, for jobs that still hold a place elsewhere.

A job that recovers, because its machine is taken away or was lost, may run there until its end is
known; so nothing of it starts before that. What it is to start on then is looked for at once: it
takes part in renting as it would if it waited, with what is left of its work after what was saved.
"""

from collections.abc import Mapping

from cloudwhale.model.job import HOLDS_A_PLACE, Job, JobState, RetryCause, Wish
from cloudwhale.model.rental import Rental
from cloudwhale.model.units import Instant, Seconds

STAYS = (None, Wish.GIVE_WAY)
"""Wishes after which a job starts again elsewhere: of others nobody needs a next machine."""

OF_MACHINES = frozenset({RetryCause.PREEMPTION, RetryCause.NODE_LOSS})
"""Causes of which a job is interrupted through no fault of its own."""


def has_saved(job: Job) -> bool:
    """Say whether its newest attempt has saved something: then its interruption does not count."""
    return job.checkpoint is not None and job.checkpoint.attempt == job.attempt


def is_spent(job: Job) -> bool:
    """Say whether a job is not started again though its machine is lost: its retries are spent.

    What was saved is progress, and costs none; with `retry.max: 0` it never starts again.
    """
    rule = job.spec.retry
    return job.retries >= rule.max and not (rule.max > 0 and has_saved(job))


def is_retried_on(job: Job, rentals: Mapping[str, Rental]) -> bool:
    """Say whether its file lets a job start again after such a loss of its machine.

    A machine that is taken away is a preemption, and is lost with it: either will do.
    """
    nodes = () if job.placement is None else job.placement.nodes
    there = [rentals[name] for name in nodes if name in rentals]
    is_taken = any(one.interrupted_at is not None for one in there)
    causes = OF_MACHINES if is_taken else {RetryCause.NODE_LOSS}
    return not causes.isdisjoint(job.spec.retry.on)


def seeks(job: Job, rentals: Mapping[str, Rental], now: Instant) -> bool:
    """Say whether a job that holds a place needs a next one as soon as that is known to be free."""
    if job.state is not JobState.RECOVERING or job.wish not in STAYS or is_spent(job):
        return False
    is_in_time = job.spec.deadline is None or now < job.spec.deadline
    return is_in_time and is_retried_on(job, rentals)


def as_waiting(job: Job, now: Instant) -> Job:
    """Return a job that holds a place as it will wait: back at what it has saved, and nowhere.

    What it does after its newest checkpoint counts as lost; it may still be saved.
    """
    ran_s, lost_s = _ran_s(job, now), unsaved_s(job, now)
    return job.but(
        state=JobState.PENDING, wish=None, placement=None, started_at=None, ranks=(),
        not_before=None, held_until=None, run_s=job.run_s + ran_s,
        lost_s=job.lost_s + min(ran_s, lost_s),
        ahead_s=job.ahead_s + (job.pace - 1.0) * max(0.0, ran_s - lost_s),
    )  # fmt: skip


def unsaved_s(job: Job, now: Instant) -> Seconds:
    """Return how much of what its newest attempt has done lies in no checkpoint."""
    begun, saved = job.started_at, job.checkpoint
    if begun is None:
        return 0.0
    since = max(begun, saved.saved_at) if saved is not None and has_saved(job) else begun
    return max(0.0, now - since)


def _ran_s(job: Job, now: Instant) -> Seconds:
    return 0.0 if job.started_at is None else max(0.0, now - job.started_at)


def is_elsewhere(job: Job, rental: Rental) -> bool:
    """Say whether a job holds a place that is not on a rented machine."""
    place = job.placement
    return job.state in HOLDS_A_PLACE and place is not None and rental.node not in place.nodes


def comes(job: Job, rental: Rental) -> bool:
    """Say whether one of those that a machine was rented for is still to start there.

    It waits; or it recovers elsewhere, or is to be moved from there (`Rental.moves`), and the
    machine is its next.
    """
    if job.state is JobState.PENDING:
        return job.wish is None
    if not is_elsewhere(job, rental) or job.wish not in STAYS:
        return False
    return job.state is JobState.RECOVERING or job.id in rental.moves
