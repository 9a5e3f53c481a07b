"""Who gives way to whom: jobs of a lower class are stopped for one that would wait too long."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, islice

from cloudwhale.model.job import Job, JobState, Placement
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.planning.aging import went_first
from cloudwhale.planning.fit import fit
from cloudwhale.planning.inventory import Free, Reservation
from cloudwhale.planning.needs import spec_of
from cloudwhale.planning.releases import Profile, Start, Whole
from cloudwhale.planning.reserving import clock
from cloudwhale.spi.policy import priority_class

BENEFICIARIES = 4
"""Jobs that others are stopped for in one round; the next round comes at once."""
LOOKED_AT = 8
"""Waiting jobs that are looked at, first first."""
EXACT = 3
"""Victims up to which the cheapest set is found by trying all sets of the cheapest CHEAPEST."""
CHEAPEST = 12
LEAST_S: Seconds = 1.0
"""Nothing is looked at again sooner, when nothing happens."""
CPU_JOB = 0.1
"""Devices that a job without any counts for."""
PAYS = 2.0
"""A stop must save the waiting job this many times what it costs: expectations may be wrong."""
RESTART_S: Seconds = 60.0
"""What stopping, placing and restoring a job costs it, beside the work that is done again."""


@dataclass(frozen=True, slots=True)
class GivesWay:
    """Some jobs of one node are to be stopped for a waiting one."""

    job: Job
    node: str
    victims: tuple[Job, ...]
    cost_s: Seconds
    """Device-seconds that are done again, restarts included."""
    waits_until: Instant | None
    """When the job would start without that; None: nobody can say."""

    @property
    def reason(self) -> Reason:
        """Say to the waiting job what is done for it."""
        names = " and ".join(victim.id for victim in self.victims[:3])
        more = f" and {len(self.victims) - 3} more" if len(self.victims) > 3 else ""
        until = (
            "" if self.waits_until is None else f"; it would wait until {clock(self.waits_until)}"
        )
        verb = "gives" if len(self.victims) == 1 else "give"
        return Reason(
            code=Code.MAKES_ROOM,
            says=f"{names}{more} {verb} way to it on {self.node}: "
            f"{self.cost_s:.0f} device-seconds are spent on that{until}",
            change="they have stopped",
        )

    def told(self, victim: Job, now: Instant) -> Reason:
        """Say to one of the stopped jobs for whom, and what it loses."""
        return Reason(
            code=Code.PREEMPTED,
            says=f"gives way to {self.job.id} (priority {self.job.spec.priority}, its own is "
            f"{victim.spec.priority}): {unsaved_s(victim, now):.0f} s since it last saved",
            change="room for it becomes free",
        )


@dataclass(frozen=True, slots=True)
class Preempting:
    """What a round does to make room, and when time alone would change it."""

    gives_way: tuple[GivesWay, ...] = ()
    look_again_at: Instant | None = None


def who_gives_way(
    waiting: Iterable[Job],
    after_s: Seconds,
    profile: Profile,
    whole: Whole,
    reserved: Mapping[str, Reservation],
) -> Preempting:
    """Return who is stopped for whom, for the first of the jobs that fit nowhere.

    `after_s`: nobody is stopped who has run for less, and for nobody who starts within that time.
    It must save the waiting job PAYS times the device-seconds that it costs.
    `profile`: after the places that this round gives; `reserved`: what is kept for somebody.
    """
    found: list[GivesWay] = []
    closed: set[str] = set()
    again: list[Instant] = []
    above_batch = (job for job in waiting if priority_class(job.spec.priority))
    for job in islice(above_batch, LOOKED_AT):
        nodes = [
            name
            for name in whole.nodes(job)
            if name not in closed and (name not in reserved or reserved[name].job == job.id)
        ]
        soon = profile.earliest(job, profile.changing(nodes, profile.now + after_s))
        if soon is not None and soon.at <= profile.now + after_s:
            again.append(max(soon.at, profile.now + LEAST_S))  # it may not come
            continue
        start = profile.earliest(job, nodes)
        best = _best(job, start, [_Room(profile, name, job, after_s) for name in nodes])
        if best is not None:
            found.append(best)
            closed.add(best.node)
        else:
            again += _grown_up(job, nodes, after_s, profile)
        if len(found) == BENEFICIARIES:
            break
    return Preempting(tuple(found), min(again, default=None))


def _best(job: Job, start: Start | None, rooms: Iterable["_Room"]) -> GivesWay | None:
    """Return the cheapest way to let the job in; None when none pays."""
    best: GivesWay | None = None
    for room in rooms:
        bound_s: Seconds | None = None
        if best is not None:
            bound_s = best.cost_s
        elif start is not None:
            bound_s = (start.at - room.now) * _devices(job) / PAYS
        victims = _cheapest(job, room, bound_s)
        if victims:
            cost_s = sum(cost(victim, room.now) for victim in victims)
            until = None if start is None else start.at
            best = GivesWay(job, room.base.node.id, victims, cost_s, until)
    return best


def _grown_up(
    job: Job, nodes: Iterable[str], after_s: Seconds, profile: Profile
) -> Iterator[Instant]:
    """Yield when jobs that are too young now may be stopped for this one."""
    for node in nodes:
        for other in profile.jobs_on(node):
            if other.started_at is not None and other.started_at + after_s > profile.now:
                if gives_way(other, job, after_s, other.started_at + after_s):
                    yield other.started_at + after_s


class _Room:
    """What could be free on one node for a job, and who would have to go."""

    def __init__(self, profile: Profile, node: str, job: Job, after_s: Seconds) -> None:
        self.now = profile.now
        self.base = profile.free[node]
        self.victims: list[Job] = []
        soon = profile.now + after_s
        for release in profile.releases(node):
            other = release.job
            if other.placement is None:
                continue
            if release.at <= soon:  # it ends by itself: to stop it would be in vain
                self.base = self.base.more(other.wants, other.placement)
            elif gives_way(other, job, after_s, profile.now):
                self.victims.append(other)
        self.victims.sort(key=lambda other: (cost(other, profile.now), other.id))

    def without(self, victims: Iterable[Job]) -> Free:
        """Return what is free when some have gone."""
        free = self.base
        for other in victims:
            if other.placement is not None:
                free = free.more(other.wants, other.placement)
        return free


def _cheapest(job: Job, room: _Room, bound_s: Seconds | None) -> tuple[Job, ...]:
    """Return the cheapest jobs that make the room, cheaper than a bound; empty when none do."""
    spec, now = spec_of(job), room.now

    def suffices(victims: Iterable[Job]) -> bool:
        return isinstance(fit(spec, room.without(victims)), Placement)

    def price(victims: Iterable[Job]) -> float:
        return sum(cost(victim, now) for victim in victims)

    if not room.victims or not suffices(room.victims):
        return ()
    best: tuple[Job, ...] = ()
    least_s = bound_s
    for count in range(1, EXACT + 1):
        for some in combinations(room.victims[:CHEAPEST], count):
            asked_s = price(some)
            if (least_s is None or asked_s < least_s) and suffices(some):
                best, least_s = some, asked_s
    if best:
        return best
    many = _greedy(room, suffices)
    return many if least_s is None or price(many) < least_s else ()


def _greedy(room: _Room, suffices: Callable[[Iterable[Job]], bool]) -> tuple[Job, ...]:
    """Take the cheapest per room made until it suffices, then let go whoever is not needed."""
    some: list[Job] = []
    for victim in sorted(room.victims, key=lambda v: (cost(v, room.now) / _made(v, room), v.id)):
        some.append(victim)
        if suffices(some):
            break
    for victim in sorted(some, key=lambda v: (-cost(v, room.now), v.id)):
        fewer = [other for other in some if other is not victim]
        if suffices(fewer):
            some = fewer
    return tuple(some)


def _made(victim: Job, room: _Room) -> float:
    """Return the part of the node that a job takes, where it takes most; never 0."""
    facts, wants = room.base.node.facts, victim.wants
    gpu = wants.gpu.count * wants.gpu.share / max(1, len(facts.devices))
    return max(wants.cpu / max(facts.cpu, 1e-9), gpu, 1e-9)


def gives_way(victim: Job, job: Job, after_s: Seconds, now: Instant) -> bool:
    """Say whether a running job may be stopped for a waiting one.

    One that got its place because it had waited too long may not: its wait would have no bound.
    """
    return (
        victim.state is JobState.RUNNING
        and victim.wish is None
        and victim.spec.preemptible
        and priority_class(victim.spec.priority) < priority_class(job.spec.priority)
        and victim.started_at is not None
        and now >= victim.started_at + after_s
        and not went_first(victim)
    )


def unsaved_s(job: Job, now: Instant) -> Seconds:
    """Return how much of its work a running job would do again; without checkpoints, all."""
    begun = now if job.started_at is None else job.started_at
    if job.checkpoint is None:
        return max(0.0, now - begun) + max(0.0, job.run_s - job.lost_s)
    return max(0.0, now - max(begun, job.checkpoint.saved_at))


def cost(victim: Job, now: Instant) -> Seconds:
    """Return the device-seconds that are spent on stopping a job and starting it again."""
    return (unsaved_s(victim, now) + RESTART_S) * _devices(victim)


def _devices(job: Job) -> float:
    gpu = job.wants.gpu
    return gpu.count * gpu.share or CPU_JOB
