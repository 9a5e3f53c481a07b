"""Gangs: one attempt on several machines, one rank on each; what they have in common, and its end.

A gang starts, stops and ends as a whole. What its ranks have saved counts as far as all of them
have it: see `common`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from cloudwhale.model import plan as p
from cloudwhale.model.job import Checkpoint, CheckpointRule, Job, JobState, MemberEnd, Peaks, Rank
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.planning.outcome import End

ENDS_TOGETHER_S: Seconds = 60.0
"""So long after rank 0 has ended well the others may go on: what hangs then is stopped."""

Saves = Sequence[Sequence[Checkpoint]]
"""By rank, what each has published, oldest first."""

_UNSPECIFIC = ("exited", "stopped")


# -- the common checkpoint -------------------------------------------------------------------


def common(saves: Saves) -> tuple[Checkpoint, ...]:
    """Return what each rank goes on from: the newest that all who save have published; or nothing.

    Who saves is who has ever published anything. Checkpoints of one attempt with the same name
    belong together. Where several ranks save, a name that one of them has published twice in an
    attempt says nothing about which belong together, and does not count. Newest is by the order
    of the first rank that saves. Ranks that never save get what that rank has.
    """
    savers = [rank for rank, mine in enumerate(saves) if mine]
    if not savers:
        return ()
    first = savers[0]
    of_others = [_by_name(saves[rank]) for rank in savers[1:]]
    lone = _by_name(saves[first])
    for one in sorted(saves[first], key=lambda each: (each.attempt, each.seq), reverse=True):
        key = (one.attempt, one.name)
        if not of_others:
            return (one,) * len(saves)
        if key in lone and all(key in theirs for theirs in of_others):
            found = dict(zip(savers[1:], (theirs[key] for theirs in of_others), strict=True))
            return tuple(found.get(rank, one) for rank in range(len(saves)))
    return ()


def _by_name(mine: Sequence[Checkpoint]) -> Mapping[tuple[int, str], Checkpoint]:
    """Return a rank's checkpoints by attempt and name; those that it has published once."""
    counts = Counter((one.attempt, one.name) for one in mine)
    return {
        (one.attempt, one.name): one for one in mine if counts[one.attempt, one.name] == 1
    }  # fmt: skip


def restored(job: Job, rank: int) -> Checkpoint | None:
    """Return what a rank of a job begins from; None: from nothing."""
    if not job.saves:
        return job.checkpoint
    found = common(job.saves)
    return found[rank] if rank < len(found) else None


def beyond(job: Job) -> tuple[str, ...]:
    """Return the manifests of what a gang keeps no longer: older than its common checkpoint.

    As many as the job asks for are kept of each rank, the common one among them; all that is newer
    may become common yet.
    """
    keep = max(1, (job.spec.checkpoint or CheckpointRule()).keep)
    found = common(job.saves)
    return tuple(
        one.manifest
        for theirs, mine in zip(found, job.saves, strict=False)
        for one in _older(mine, theirs)[: 1 - keep or None]
    )


def _older(mine: Sequence[Checkpoint], than: Checkpoint) -> list[Checkpoint]:
    older = [one for one in mine if (one.attempt, one.seq) < (than.attempt, than.seq)]
    return sorted(older, key=lambda one: (one.attempt, one.seq))


# -- what events change ----------------------------------------------------------------------


def with_rank(job: Job, rank: int, **changes: object) -> dict[str, object]:
    """Return the fields of a gang in which something of one rank is replaced."""
    ranks = tuple(one.but(**changes) if at == rank else one for at, one in enumerate(job.ranks))
    return {
        "ranks": ranks,
        "order_posted": all(one.order_posted or one.end is not None for one in ranks),
        "stop_posted": all(one.stop_posted or one.end is not None for one in ranks),
    }


def with_save(job: Job, checkpoint: Checkpoint, rank: int) -> dict[str, object]:
    """Return the fields of a gang one rank of which has published something."""
    before = job.saves or ((),) * job.spec.nodes
    if any(checkpoint.manifest == one.manifest for mine in before for one in mine):
        return {}
    saves = tuple((*mine, checkpoint) if at == rank else mine for at, mine in enumerate(before))
    found = common(saves)
    newest = found[0] if found else None
    said = {} if newest == job.checkpoint else {"late_said": False}
    return {"saves": saves, "checkpoint": newest, **said}


def without(job: Job, manifests: Sequence[str]) -> dict[str, object]:
    """Return the fields of a gang some of whose checkpoints are gone."""
    gone = set(manifests)
    return {
        "saves": tuple(tuple(one for one in mine if one.manifest not in gone) for mine in job.saves)
    }


def fresh(many: int) -> tuple[Rank, ...]:
    """Return the ranks of a new attempt; none of a job that is no gang."""
    return (Rank(),) * many if many > 1 else ()


# -- how far it is ---------------------------------------------------------------------------


def is_breaking(job: Job) -> bool:
    """Say whether the attempt ends, so that all its ranks are stopped."""
    if job.wish is not None or job.state is JobState.RECOVERING:
        return True
    return any(one.end is not None and not one.end.is_well for one in job.ranks)


def have_started(job: Job) -> bool:
    """Say whether all ranks run, or have run, and none has ended badly."""
    return all(one.has_started for one in job.ranks) and not is_breaking(job)


def have_ended(job: Job) -> bool:
    """Say whether all ranks have said how they ended."""
    return bool(job.ranks) and all(one.end is not None for one in job.ranks)


def stopped_at(job: Job) -> Instant | None:
    """Return when those are stopped who outlast rank 0, which has ended well; None: it has not."""
    end = job.ranks[0].end if job.ranks else None
    if end is None or not end.is_well or have_ended(job):
        return None
    return end.at + ENDS_TOGETHER_S


def orders(job: Job, now: Instant) -> Iterator[p.Step]:
    """Yield the orders that the ranks of a gang have yet to get.

    A stop is safe without a start: an agent never starts what it was told to stop.
    """
    at = stopped_at(job)
    stops = is_breaking(job) or (at is not None and now >= at)
    for rank, one in enumerate(job.ranks):
        if one.end is not None:
            continue
        if stops and not one.stop_posted:
            yield p.PostStop(job=job.id, attempt=job.attempt, rank=rank)
        elif not stops and not one.order_posted:
            yield p.PostStart(job=job.id, attempt=job.attempt, rank=rank)


# -- its end ---------------------------------------------------------------------------------


def end_of(job: Job) -> End:
    """Return how the attempt of a gang ended, all of whose ranks have.

    It ended well when all did; also when rank 0 did, and the others had to be stopped after that.
    What one rank ends with tells others to stop, or makes them fail: what can be a cause alone
    counts before what may have followed from it.
    """
    ends = [(rank, one.end) for rank, one in enumerate(job.ranks) if one.end is not None]
    bad = [(rank, end) for rank, end in ends if not end.is_well]
    causes = [one for one in bad if not _follows(one[1])]
    ran_s = max((end.ran_s or 0.0 for _, end in ends), default=0.0)
    peaks = Peaks()
    for _, end in ends:
        peaks = peaks.and_(end.peaks)
    first = ends[0][1] if ends else None
    if first is not None and first.is_well and not causes:
        return End(job.attempt, "exited", 0, "", 0.0, ran_s, peaks)
    rank, end = min(causes or bad or ends, key=lambda one: (_weight(one[1]), one[1].at, one[0]))
    says = f"rank {rank}: {end.says or f'its process ended with {end.exit_code}'}"
    return End(job.attempt, end.how, end.exit_code, says, unsaved_s(job, ran_s), ran_s, peaks)


def _follows(end: MemberEnd) -> bool:
    """Say whether a rank ended because we wanted it to."""
    return end.how == "stopped" and end.asked


def _weight(end: MemberEnd) -> int:
    """Return where an end stands among causes: a failing process may have missed another."""
    if end.how == "stopped":
        return 0 if not end.asked else 3
    return 2 if end.how in _UNSPECIFIC else 1


def unsaved_s(job: Job, ran_s: Seconds) -> Seconds:
    """Return the run time since the common checkpoint, or since the start."""
    saved, begun = job.checkpoint, job.started_at
    if saved is None or begun is None or saved.attempt != job.attempt:
        return ran_s
    return min(ran_s, max(0.0, begun + ran_s - saved.saved_at))
