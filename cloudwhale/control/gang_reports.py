"""What one rank of a gang has said, as events; and what comes of it once all have said it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from cloudwhale.mailbox import documents as d
from cloudwhale.model import event as e
from cloudwhale.model.job import Job, MemberEnd
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.planning import ganging
from cloudwhale.planning.lifecycle import apply
from cloudwhale.planning.outcome import End, meaning

LANDED_BRIEFLY_S: Seconds = 10.0


def gang_told(
    job: Job, rank: int, report: d.AttemptReport, now: Instant, *, is_taken: bool
) -> Iterator[e.Event]:
    """Yield the events that the report of one rank of a gang leads to; none if it was told before.

    The gang has started when all have, and ends when all have ended. `is_taken`: whether one of its
    machines is taken away by its provider.
    """
    known = job.ranks[rank]
    match report:
        case d.AttemptStarted() if known.end is None:
            began = e.MemberStarted(at=now, job=job.id, attempt=job.attempt, rank=rank)
            yield began
            if job.started_at is None and ganging.have_started(apply(job, began)):
                yield e.Started(
                    at=now, job=job.id, attempt=job.attempt, resumed_from=report.resumed_from
                )
        case d.CheckpointPublished():
            yield e.CheckpointSaved(
                at=now, job=job.id, attempt=job.attempt, checkpoint=report.checkpoint, rank=rank
            )
        case d.AttemptEnded() | d.OrderRefused() if known.end is None:
            end = _end(report, now)
            ended = e.MemberEnded(at=now, job=job.id, attempt=job.attempt, rank=rank, end=end)
            yield ended
            after = apply(job, ended)
            if ganging.have_ended(after):
                yield _meaning(after, now, is_taken=is_taken)
        case _:
            return


def _end(report: d.AttemptEnded | d.OrderRefused, now: Instant) -> MemberEnd:
    if isinstance(report, d.OrderRefused):
        return MemberEnd(how="start-failed", says=report.says, at=now)
    return MemberEnd(
        how=report.how, exit_code=report.exit_code, says=report.says, at=now,
        ran_s=report.ran_s, peaks=report.peaks, asked=report.asked,
    )  # fmt: skip


def _meaning(job: Job, now: Instant, *, is_taken: bool) -> e.Event:
    """Return what it means that all ranks have ended."""
    end = replace(ganging.end_of(job), is_taken=is_taken)
    if job.wish is None and end.how == "stopped" and not is_taken:
        return landed(job, end, now)
    return cast(e.Event, meaning(job, end, now))


def landed(job: Job, end: End, now: Instant) -> e.GaveWay:
    """Return the end of an attempt that a rented machine stopped by itself; no retry is spent.

    A machine whose clock is ahead of ours lands what it is given as often as it is given it:
    what has hardly run there waits for a moment.
    """
    ran_briefly = end.ran_s is not None and end.ran_s < LANDED_BRIEFLY_S
    not_before = now + LANDED_BRIEFLY_S if ran_briefly else None
    reason = Reason(
        code=Code.LEASE_ENDS,
        says=f"its machine stopped it, checkpoint first: {end.says or 'its lease ends'}",
        change="it starts elsewhere, or on the same machine while that is paid for",
    )
    return e.GaveWay(
        at=now, job=job.id, attempt=end.attempt, reason=reason, lost_s=end.unsaved_s,
        ran_s=end.ran_s, peaks=end.peaks, not_before=not_before,
    )  # fmt: skip
