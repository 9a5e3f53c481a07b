"""Which waiting jobs could start now, why the others cannot yet, and who will wait soon."""

from collections.abc import Mapping
from dataclasses import dataclass

from cloudwhale.model.job import Job, JobState
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.units import Instant
from cloudwhale.model.world import World
from cloudwhale.planning.next_machines import as_waiting, seeks


@dataclass(frozen=True, slots=True)
class Queue:
    """The waiting jobs of a round."""

    ready: tuple[Job, ...]
    """Could start now if there were room; in the order of the world."""
    held: Mapping[str, Reason]
    """Job id → why it cannot start yet, whatever room there is."""
    doomed: Mapping[str, Reason]
    """Job id → why it can never start: what it waits for has failed."""
    expired: Mapping[str, Reason]
    """Job id → why only a person can help: its deadline has passed."""
    look_again_at: Instant | None
    """When the next held job's wait is over by time alone, or a deadline passes."""
    seeking: tuple[Job, ...] = ()
    """Those that recover, as they will wait once their places are free: each needs a next one."""


def waiting(world: World) -> Queue:
    """Sort the world's pending jobs into ready, held, doomed and expired."""
    ready: list[Job] = []
    held: dict[str, Reason] = {}
    doomed: dict[str, Reason] = {}
    expired: dict[str, Reason] = {}
    look_again_at: Instant | None = None
    seeking: list[Job] = []
    for job in world.jobs.values():
        if job.state is not JobState.PENDING or job.wish is not None:
            if seeks(job, world.rentals, world.now):
                seeking.append(as_waiting(job, world.now))
            continue
        if not job.after and job.spec.deadline is None and job.not_before is None:
            ready.append(job)  # most of them: nothing holds it
            continue
        if (reason := _never_by_dependency(job, world)) is not None:
            doomed[job.id] = reason
        elif (reason := _too_late(job, world.now)) is not None:
            expired[job.id] = reason
        elif (reason := _not_yet(job, world)) is not None:
            held[job.id] = reason
        else:
            ready.append(job)
        look_again_at = earliest(look_again_at, _next_time(job, world.now))
    return Queue(tuple(ready), held, doomed, expired, look_again_at, tuple(seeking))


def earliest(*times: Instant | None) -> Instant | None:
    """Return the first of some times; None stands for never."""
    return min((at for at in times if at is not None), default=None)


def _never_by_dependency(job: Job, world: World) -> Reason | None:
    for other in job.after:
        state = world.ended.get(other)
        if state in (JobState.FAILED, JobState.CANCELLED):
            return Reason(
                code=Code.DEPENDENCY_FAILED,
                says=f"waits for {other}, which was {state}",
                change=f"submit it again without `after`, or after {other} has completed",
            )
    return None


def _too_late(job: Job, now: Instant) -> Reason | None:
    deadline = job.spec.deadline
    if deadline is None or now < deadline:
        return None
    so_far = "waits to go on" if job.attempt else "has not started"
    return Reason(
        code=Code.DEADLINE_PASSED,
        says=f"its deadline passed {now - deadline:.0f} s ago and it {so_far}",
        change="submit it again with a later deadline, or cancel it",
    )


def _not_yet(job: Job, world: World) -> Reason | None:
    unmet = [other for other in job.after if other in world.jobs]
    if unmet:
        others = f" and {len(unmet) - 1} more" if len(unmet) > 1 else ""
        return Reason(
            code=Code.WAITS_FOR_JOB,
            says=f"waits for {unmet[0]}{others} to complete",
            change=f"{unmet[0]} completes",
        )
    if job.not_before is not None and world.now < job.not_before:
        return Reason(
            code=Code.BACKOFF,
            says=f"tried {_times(job.attempt)}, retry {job.retries} of {job.spec.retry.max}; "
            f"waits {job.spec.retry.backoff_s:g} s between tries",
            change="the wait ends",
        )
    return None


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _next_time(job: Job, now: Instant) -> Instant | None:
    times = (job.not_before, job.spec.deadline)
    return earliest(*(at for at in times if at is not None and at > now))
