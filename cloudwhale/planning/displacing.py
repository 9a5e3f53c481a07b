"""Who is stopped for whom inside an order: who runs is ranked with who waits."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from cloudwhale.model.job import Job, JobState, Placement
from cloudwhale.model.reason import Code
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.planning.aging import went_first
from cloudwhale.planning.fit import fit
from cloudwhale.planning.inventory import Free, Reservation
from cloudwhale.planning.needs import spec_of
from cloudwhale.planning.preempting import LEAST_S, PAYS, GivesWay
from cloudwhale.planning.queue import earliest
from cloudwhale.planning.releases import Profile, Whole
from cloudwhale.planning.reserving import kept_for
from cloudwhale.planning.rules import Rules
from cloudwhale.spi.policy import Order, Queueing, priority_class

CPU_JOB = 0.1
"""Devices that a job without any counts for."""


@dataclass(frozen=True, slots=True)
class Displaced:
    """What a round does so that nobody runs who stands behind somebody that waits."""

    gives_way: tuple[GivesWay, ...] = ()
    reserved: Mapping[str, Reservation] = field(default_factory=dict[str, Reservation])
    """The room that is being made, by node: it goes to nobody else meanwhile."""
    waits: frozenset[str] = frozenset()
    """Ids of those whose room is being made."""
    look_again_at: Instant | None = None

    def in_earnest(self, placed: Collection[str]) -> tuple[GivesWay, ...]:
        """Return who gives way now that some have a place; `placed`: ids of those jobs.

        The match may find room where the walk along the line found none. Then nobody stops on the
        node: whom the others there wait for is looked at anew, with that job on its place.
        """
        spared = {way.node for way in self.gives_way if way.job.id in placed}
        return tuple(way for way in self.gives_way if way.node not in spared)

    def is_told(self, job: Job) -> bool:
        """Say whether the job knows already that room is being made for it."""
        told = job.reason is not None and job.reason.code is Code.MAKES_ROOM
        return told and job.id in self.waits


@dataclass(frozen=True, slots=True)
class Standing:
    """What decides who stands before whom."""

    order: Order
    known: Queueing
    rules: Rules
    at_last: frozenset[str] = frozenset()
    """Ids of those that a whole node is kept for: nobody else is brought onto that."""


def displaced(line: Iterable[Job], standing: Standing, profile: Profile, whole: Whole) -> Displaced:
    """Return who is stopped for whom; `line`: the waiting jobs, first first.

    Each takes room that is free or becomes free; else the room of running jobs that stand behind
    it in the order, the last of them first and no more than it needs. Shares of projects say who
    of those that wait goes first, and stop nobody. Whoever was stopped stands where it stood, so
    that it comes back for nobody that it gave way to.
    """
    waiting = list(line)
    if not waiting:
        return Displaced()
    walk = _Walk(waiting, standing, profile, whole)
    for job in waiting:
        walk.take(job)
    return Displaced(
        gives_way=tuple(walk.found),
        reserved=walk.reserved(),
        waits=frozenset(job.id for job, _, _ in walk.coming),
        look_again_at=walk.look_again_at() if walk.refused else None,
    )


def may_go(job: Job, rules: Rules, now: Instant) -> bool:
    """Say whether a running job may be stopped for one that stands before it.

    Not one that has run too briefly, and not one that went first by age: its wait has a bound.
    """
    return (
        job.state is JobState.RUNNING
        and job.wish is None
        and job.spec.preemptible
        and job.started_at is not None
        and now >= job.started_at + rules.preempt_after_s
        and not went_first(job)
    )


def may_go_for(victim: Job, job: Job, rules: Rules) -> bool:
    """Say whether a running job that stands behind a waiting one may be stopped for that.

    Not for one of a lower class that only age has put first, unless the order knows no classes.
    """
    if rules.classless:
        return True
    return priority_class(victim.spec.priority) <= priority_class(job.spec.priority)


def lost_s(job: Job, now: Instant) -> Seconds:
    """Return how much of its work a job would do again: nothing when it saves as it is asked."""
    if job.spec.checkpoint is not None:
        return 0.0
    return job.ran_s(now)


class _Walk:
    """The nodes as the jobs of a line take their room, one after another."""

    def __init__(
        self, waiting: Sequence[Job], standing: Standing, profile: Profile, whole: Whole
    ) -> None:
        self.standing, self.profile, self.whole = standing, profile, whole
        self.here: dict[str, Free] = dict(profile.free)
        """Free now, and not taken by a job of the line."""
        self.soon: dict[str, Free] = dict(profile.free)
        """The same when all have gone that stop."""
        self.movable: dict[str, list[Job]] = {}
        for job in profile.running:
            self._enter(job)
        able = list(chain.from_iterable(self.movable.values()))
        self.rank = _ranks([*waiting, *able], standing)
        for jobs in self.movable.values():
            jobs.sort(key=lambda job: self.rank[job.id])
        self.found: list[GivesWay] = []
        self.coming: list[tuple[Job, str, Placement]] = []
        self.drained = ""
        """The node that takes nobody but one who has waited for too long."""
        self.refused: set[tuple[str, int]] = set()
        """Demands, by class, that got nothing: who asks for the same later gets nothing either."""

    def _enter(self, job: Job) -> None:
        place = job.placement
        if place is None or place.node not in self.soon:
            return
        if job.wish is not None:
            self.soon[place.node] = self.soon[place.node].more(job.wants, place)
        elif may_go(job, self.standing.rules, self.profile.now):
            self.movable.setdefault(place.node, []).append(job)

    def take(self, job: Job) -> None:
        """Let a waiting job take room that is or becomes free, else that of others behind it."""
        if _kind(job) in self.refused:
            return
        spec = spec_of(job)
        nodes = [name for name in self.whole.nodes(job) if name != self.drained]
        for name in nodes:
            where = fit(spec, self.here[name])
            if isinstance(where, Placement):
                self._sit(job, name, where)
                self.here[name] = self.here[name].less(job.wants, where)
                return
        for name in nodes:
            where = fit(spec, self.soon[name])
            if isinstance(where, Placement):
                self._comes(job, name, where)
                return
        self._displace(job, nodes)

    def _sit(self, job: Job, node: str, where: Placement) -> None:
        self.soon[node] = self.soon[node].less(job.wants, where)

    def _comes(self, job: Job, node: str, where: Placement) -> None:
        self._sit(job, node, where)
        self.here[node] = self.here[node].within(self.soon[node])
        self.coming.append((job, node, where))

    def _displace(self, job: Job, nodes: Iterable[str]) -> None:
        best: tuple[tuple[int, float, str], tuple[Job, ...]] | None = None
        for name in nodes:
            victims = self._last_that_suffice(job, name)
            if victims:
                highest = min(self.rank[victim.id] for victim in victims)
                key = (-highest, sum(map(self._cost, victims)), name)
                best = (key, victims) if best is None or key < best[0] else best
        if best is None:
            self.refused.add(_kind(job))
            self._drain_for(job)
            return
        (_, cost_s, node), victims = best
        for victim in victims:
            assert victim.placement is not None
            self.soon[node] = self.soon[node].more(victim.wants, victim.placement)
            self.movable[node].remove(victim)
        where = fit(spec_of(job), self.soon[node])
        assert isinstance(where, Placement), "it fits without them"
        self._comes(job, node, where)
        self.found.append(GivesWay(job, node, victims, cost_s, None))

    def _drain_for(self, job: Job) -> None:
        if self.drained or job.id not in self.standing.at_last:
            return
        making = {node for _, node, _ in self.coming}
        kept = kept_for((job,), self.standing.at_last, self.profile, self.whole, making)
        self.drained = "" if kept is None else kept.reservation.node

    def _last_that_suffice(self, job: Job, node: str) -> tuple[Job, ...]:
        """Return the running jobs behind this one whose room it needs; empty: they have too little.

        From the last on until it fits; then whoever stands first stays if it fits all the same.
        """
        rank, rules = self.rank, self.standing.rules
        behind = [
            victim
            for victim in self.movable.get(node, ())
            if rank[victim.id] > rank[job.id] and may_go_for(victim, job, rules)
        ]
        spec = spec_of(job)
        free, gone = self.soon[node], list[Job]()
        while behind:
            victim = behind.pop()
            assert victim.placement is not None
            free = free.more(victim.wants, victim.placement)
            gone.append(victim)
            if isinstance(fit(spec, free), Placement):
                break
        else:
            return ()
        for victim in reversed(gone[:-1]):
            assert victim.placement is not None
            less = free.less(victim.wants, victim.placement)
            if isinstance(fit(spec, less), Placement):
                free = less
                gone.remove(victim)
        return tuple(gone)

    def _cost(self, victim: Job) -> float:
        """Return the device-seconds that are spent on stopping a job and starting it again."""
        gpu = victim.wants.gpu
        again_s = lost_s(victim, self.profile.now) + self.standing.rules.restart_s
        return again_s * (gpu.count * gpu.share or CPU_JOB)

    def reserved(self) -> Mapping[str, Reservation]:
        """Return what is kept on the nodes where room is being made, for the first that waits."""
        found: dict[str, Reservation] = {}
        gone = [(v, way.node) for way in self.found for v in way.victims]
        for job, node, where in self.coming:
            if node in found:
                left = found[node].left.less(job.wants, where)
                found[node] = replace(found[node], left=left)
                continue
            free = self.profile.free[node]
            stopping = [o for o in self.profile.jobs_on(node) if o.wish is not None]
            for other in chain(stopping, (v for v, name in gone if name == node)):
                if other.placement is not None:
                    free = free.more(other.wants, other.placement)
            left = free.less(job.wants, where)
            found[node] = Reservation(node, self.profile.now, job.id, left)
        return found

    def look_again_at(self) -> Instant | None:
        """Return when time alone may change who is stopped: one has run long enough, or sinks."""
        now, rules = self.profile.now, self.standing.rules
        return earliest(*self._changes(now, rules))

    def _changes(self, now: Instant, rules: Rules) -> Iterator[Instant]:
        for job in self.profile.running:
            if job.started_at is None or job.wish is not None or not job.spec.preemptible:
                continue
            old_at = job.started_at + rules.preempt_after_s
            if old_at > now:
                yield max(old_at, now + min(LEAST_S, rules.preempt_after_s))
            change_s = self.standing.order.next_change_s(job, self.standing.known)
            if change_s is not None:
                yield now + max(change_s, 1e-3)


def _kind(job: Job) -> tuple[str, int]:
    return job.demand, priority_class(job.spec.priority)


def _ranks(jobs: Iterable[Job], standing: Standing) -> Mapping[str, int]:
    """Return where each job stands: running ones before where they would, so that a stop pays."""
    known = standing.known
    fair = replace(known, use={}, remaining_s=_as_it_pays(known, standing.rules))
    classes = standing.order.rank(list(jobs), fair)
    return {job.id: rank for rank, job in enumerate(chain.from_iterable(classes))}


def _as_it_pays(known: Queueing, rules: Rules) -> Callable[[Job], Seconds]:
    """Return remaining times by which a stop must save PAYS times what it costs.

    Where a restart costs something, half of what a running job has left is expected to be wrong.
    """

    def remaining_s(job: Job) -> Seconds:
        left_s = known.remaining_s(job)
        if job.state is JobState.PENDING:
            return left_s + (rules.restart_s if job.checkpoint is not None else 0.0)
        cost_s = lost_s(job, known.now) + rules.restart_s
        if cost_s <= 0:
            return left_s
        return max(1e-3, left_s / PAYS - cost_s)

    return remaining_s
