"""Room that is kept for the first job that does not fit: those behind it must not delay it."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

from cloudwhale.model.job import Job
from cloudwhale.model.units import Instant
from cloudwhale.planning.fit import refused
from cloudwhale.planning.inventory import DeviceFree, Free, Reservation
from cloudwhale.planning.needs import spec_of
from cloudwhale.planning.releases import Profile, Start, Whole

HEAD = 16
"""Jobs at the head of the order that are looked at; who stands further back has none to pass."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Room that is kept for a job, and what that is in words."""

    reservation: Reservation
    says: str


def kept_for(
    ranked: Iterable[Job],
    at_last: Collection[str],
    profile: Profile,
    whole: Whole,
    taken: Collection[str],
) -> Kept | None:
    """Return the room for the first job of the order that fits nowhere now; None: all do.

    `at_last`: ids of those that a whole node is kept for. `taken`: nodes that are kept for others.
    """
    for job in islice(ranked, HEAD):
        if _fits_now(job, profile, taken):
            continue
        nodes = [name for name in whole.nodes(job) if name not in taken]
        if nodes:
            kept = _drained if job.id in at_last else _earliest
            return kept(job, nodes, profile)
    return None


def _fits_now(job: Job, profile: Profile, taken: Collection[str]) -> bool:
    spec = spec_of(job)
    return any(
        refused(spec, free) is None for name, free in profile.free.items() if name not in taken
    )


def _earliest(job: Job, nodes: Iterable[str], profile: Profile) -> Kept | None:
    found = profile.earliest(job, nodes)
    if found is None:
        return None
    says = f"is to start on {found.node} about {clock(found.at)}, when {found.after} ends"
    return Kept(reservation_of(job, found), says)


def reservation_of(job: Job, start: Start) -> Reservation:
    """Return the room that a start in the future needs."""
    left = start.free.less(job.wants, start.placement)
    return Reservation(node=start.node, start_at=start.at, job=job.id, left=left)


def _drained(job: Job, nodes: Iterable[str], profile: Profile) -> Kept:
    """Keep the whole of that node whose youngest job is the oldest.

    No expectation takes part in it, and the choice moves only to nodes whose jobs all began
    earlier: what it waits for began before it was the first, so it waits for one run at most.
    """
    node = min(nodes, key=lambda name: (_youngest(profile, name), name))
    reservation = Reservation(
        node=node, start_at=profile.now, job=job.id, left=nothing(profile.free[node])
    )
    waited_h = (profile.now - job.submitted_at) / 3600
    says = f"has waited for {waited_h:.1f} h: {node} takes nobody else until it starts"
    return Kept(reservation, says)


def _youngest(profile: Profile, node: str) -> Instant:
    return max((other.placed_at or 0.0 for other in profile.jobs_on(node)), default=0.0)


def nothing(free: Free) -> Free:
    """Return the same node with nothing left on it."""
    return Free(
        free.node, 0.0, 0.0, 0.0, tuple(DeviceFree(d.device, 0.0, 0.0) for d in free.devices)
    )


def clock(at: Instant) -> str:
    """Return a time of day, to five minutes: a new number in a reason is news to tell."""
    return datetime.fromtimestamp(300 * round(at / 300), UTC).strftime("%H:%M UTC")


def fixed(at: Instant) -> str:
    """Return a time that never moves, such as a deadline, as exactly as a person has set it."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
