"""The room that others have given way for: it goes to nobody but those it was promised to."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from cloudwhale.model.job import Job, Placement
from cloudwhale.model.reason import Code
from cloudwhale.planning.fit import fit
from cloudwhale.planning.inventory import Reservation
from cloudwhale.planning.needs import spec_of
from cloudwhale.planning.releases import Profile, Whole
from cloudwhale.spi.policy import priority_class


@dataclass(frozen=True, slots=True)
class Promised:
    """Waiting jobs that others have given way to."""

    first: tuple[Job, ...] = ()
    """They go before all others."""
    reserved: Mapping[str, Reservation] = field(default_factory=dict[str, Reservation])
    """The room that is still being made, by node."""
    waits: frozenset[str] = frozenset()
    """Ids of those whose room is still being made."""


def promised(ready: Iterable[Job], profile: Profile, whole: Whole) -> Promised:
    """Return the jobs that room was or is being made for; it goes to nobody else."""
    waiting = [j for j in ready if j.reason is not None and j.reason.code is Code.MAKES_ROOM]
    waiting.sort(key=lambda job: (-priority_class(job.spec.priority), job.submitted_at, job.id))
    reserved: dict[str, Reservation] = {}
    first: list[Job] = []
    waits: list[str] = []
    for job in waiting:
        nodes = [name for name in whole.nodes(job) if name not in reserved]
        if any(isinstance(fit(spec_of(job), profile.free[name]), Placement) for name in nodes):
            first.append(job)
            continue
        found = next((r for name in nodes if (r := _coming(job, name, profile)) is not None), None)
        if found is not None:
            reserved[found.node] = found
            first.append(job)
            waits.append(job.id)
    return Promised(tuple(first), reserved, frozenset(waits))


def beside(
    kept: Reservation, room: Promised, profile: Profile, whole: Whole, taken: Collection[str]
) -> Reservation:
    """Return a reservation that lets those in who have been made room for, and go nowhere else.

    Others have stopped for them: they would stop again and again if it kept them out. `taken`:
    nodes that are kept for others.
    """
    free, left = profile.free[kept.node], kept.left
    for job in room.first:
        nodes = whole.nodes(job)
        if job.id in {kept.job, *room.waits} or kept.node not in nodes:
            continue
        spec = spec_of(job)
        elsewhere = (name for name in nodes if name != kept.node and name not in taken)
        if any(isinstance(fit(spec, profile.free[name]), Placement) for name in elsewhere):
            continue
        placement = fit(spec, free)
        if isinstance(placement, Placement):
            free = free.less(job.wants, placement)
            left = left.more(job.wants, placement)
    return replace(kept, left=left)


def _coming(job: Job, node: str, profile: Profile) -> Reservation | None:
    """Return the room that jobs leave which are stopping already, if it suffices."""
    free = profile.free[node]
    for other in profile.jobs_on(node):
        if other.wish is not None and other.placement is not None:
            free = free.more(other.wants, other.placement)
    placement = fit(spec_of(job), free)
    if not isinstance(placement, Placement):
        return None
    left = free.less(job.wants, placement)
    return Reservation(node=node, start_at=profile.now, job=job.id, left=left)
