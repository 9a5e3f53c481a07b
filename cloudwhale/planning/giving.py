"""Who gets which place in a round: those whom room is kept for first, then class after class."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from cloudwhale.model.job import HOLDS_A_PLACE, Job
from cloudwhale.model.plan import Decision
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.units import Instant
from cloudwhale.model.world import World
from cloudwhale.planning.aging import Aged, aged
from cloudwhale.planning.displacing import Displaced, Standing, displaced
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.holding import HEAD, Hold, Holding, holds, still_held
from cloudwhale.planning.inventory import Reservation, free_capacity
from cloudwhale.planning.packing import Packed, Packing, pack
from cloudwhale.planning.policies import Policies
from cloudwhale.planning.preempting import GivesWay, Preempting, who_gives_way
from cloudwhale.planning.promising import Promised, beside, promised
from cloudwhale.planning.queue import earliest
from cloudwhale.planning.refusals import Verdict
from cloudwhale.planning.releases import Profile, Whole
from cloudwhale.planning.reserving import Kept, kept_for
from cloudwhale.planning.standing import queueing
from cloudwhale.planning.waiting import Saying, Waited, waited
from cloudwhale.spi.policy import Order, Queueing
from cloudwhale.spi.waiting import Quote


@dataclass(frozen=True, slots=True)
class Matched:
    """What a round does with the jobs that could start."""

    places: tuple[tuple[Job, Decision], ...]
    holds: tuple[Hold, ...]
    gives_way: tuple[GivesWay, ...]
    refused: tuple[tuple[Job, Verdict], ...]
    """Those that got nothing, first first; not those for whom others are stopping already."""
    reserved: tuple[str, str] | None
    """Id of the job for which room is kept until it can start, and what it is told of that."""
    first: frozenset[str]
    """Ids of those that went before all others because they had waited for too long."""
    look_again_at: Instant | None
    """When a hold ends, or somebody may be stopped for another."""
    leaving: tuple[tuple[Job, Reason], ...] = ()
    """Those that had better be rented for than wait, first first, and why."""
    waits: tuple[tuple[Job, Reason], ...] = ()
    """Those that fit somewhere and do not start: what they would take is kept for others."""

    def without(self, jobs: Collection[str]) -> "Matched":
        """Return the same without some of those that leave: they are seen to otherwise."""
        if not jobs:
            return self
        return replace(self, leaving=tuple(one for one in self.leaving if one[0].id not in jobs))


@dataclass(frozen=True, slots=True)
class _Line:
    """What is settled before anybody gets a place."""

    before: Profile
    whole: Whole
    old: Aged
    room: Promised
    held_before: Holding
    said: Waited
    """What the wait policy says: those who may get a place are left in its classes."""
    shown: Displaced
    reserved: Mapping[str, Reservation]
    strict: bool
    displaces: bool
    holds_pay: bool


def matched(
    world: World,
    ready: Sequence[Job],
    policies: Policies,
    quotes: Mapping[str, Quote],
    seeking: Sequence[Job] = (),
) -> Matched:
    """Give places, hold back, and say who gives way; `ready` in the order of the world.

    `quotes`: the least that each job could be rented for now, by its id. `seeking`: those that hold
    a place elsewhere until their attempt's end is known. It is asked whether they had better be
    rented for, and what they would take is kept for them; they get nothing yet, and nobody stops
    or is held back for them.
    """
    soon = frozenset(job.id for job in seeking)
    rules, line = policies.rules, _line(world, ready, seeking, policies, quotes)
    before, whole, room, said = line.before, line.whole, line.room, line.said
    keeps_room = rules.reserve and bool(line.old.at_last or not said.is_planned)
    kept = _room_kept(line, soon) if keeps_room else None
    reserved = dict(line.reserved)
    if kept is not None:
        reserved |= _with_kept(kept, line)
    packed = _without(soon, _packed(world.now, line, soon, reserved, policies))
    after = before
    if line.holds_pay or rules.preempt:
        after = before.with_places(packed.places)
    held: tuple[Hold, ...] = ()
    if line.holds_pay:
        held = holds(_may_wait(packed, room), _ahead(said.classes, packed), after, whole, reserved)
    made = Preempting()
    if rules.preempt and not line.displaces:
        nowhere = _nowhere(packed, room)
        made = who_gives_way(nowhere, rules.preempt_after_s, after, whole, reserved)
    displacing = line.shown.in_earnest({job.id for job, _ in packed.places})
    return Matched(
        places=_not_held(packed, held),
        holds=held,
        gives_way=(*made.gives_way, *displacing),
        refused=tuple(_refused(packed, line)),
        reserved=None if kept is None else (kept.reservation.job, kept.says),
        first=frozenset(job.id for job in line.old.first),
        look_again_at=earliest(
            line.held_before.until, made.look_again_at, said.look_again_at,
            line.shown.look_again_at, _kept_next(packed, kept, world.now) if keeps_room else None,
        ),
        leaving=said.leaving,
        waits=tuple(one for one in said.waits if one[0].id not in soon),
    )  # fmt: skip


def _room_kept(line: _Line, soon: Collection[str]) -> Kept | None:
    """Return the room that is kept for the first who fits nowhere now."""
    first = _but(soon, chain.from_iterable(line.said.classes))
    return kept_for(first, line.old.at_last, line.before, line.whole, dict(line.reserved))


def _with_kept(kept: Kept, line: _Line) -> dict[str, Reservation]:
    keeps = kept.reservation
    if line.displaces:
        keeps = beside(keeps, line.room, line.before, line.whole, dict(line.reserved))
    return {keeps.node: keeps}


def _packed(
    now: Instant,
    line: _Line,
    soon: Collection[str],
    reserved: Mapping[str, Reservation],
    policies: Policies,
) -> Packed:
    """Give places to all in line, those who seek a next one included: their room is theirs."""
    before, classes = line.before, line.said.classes
    given = Packing(
        now=now, free=before.free, running=before.running, score=policies.score,
        durations=before.durations, weights=policies.rules.weights, reserved=reserved,
        there=line.said.there, strict=line.strict,
    )  # fmt: skip
    if soon and line.strict:  # nobody stands behind who has not lost its place yet
        classes = [tuple(_but(soon, some)) for some in classes]
    return pack(classes, given)


def _but(left_out: Collection[str], jobs: Iterable[Job]) -> Iterator[Job]:
    return (job for job in jobs if job.id not in left_out)


def _without(left_out: Collection[str], packed: Packed) -> Packed:
    if not left_out:
        return packed
    return Packed(
        tuple(one for one in packed.places if one[0].id not in left_out),
        tuple(one for one in packed.refused if one[0].id not in left_out),
    )


def _kept_next(packed: Packed, kept: Kept | None, now: Instant) -> Instant | None:
    """Return when to look again: at once for who fitted until others got their places.

    No room is kept for that one yet, and nothing else may happen that would have it kept.
    """
    return now if kept is None and packed.places and packed.refused else None


def _line(
    world: World,
    ready: Sequence[Job],
    seeking: Sequence[Job],
    policies: Policies,
    quotes: Mapping[str, Quote],
) -> _Line:
    order, rules = policies.order, policies.rules
    before, whole = _profile(world), Whole(world.nodes.values(), world.sightings)
    known = queueing(world, before.durations, rules)
    old = Aged()
    if order.ages and rules.age:
        old = aged(ready, before.running, known, whole)
    known = replace(known, aged=old.first)
    room = promised(ready, before, whole) if rules.preempt else Promised()
    strict, displaces = order.strict or rules.strict, rules.preempt and rules.displace
    # Who has waited longest is kept from no node, and a line with rules of its own moves on.
    holds_pay = rules.hold and not (strict or displaces or old.at_last)
    waiting = Holding(ready=tuple(ready))
    if holds_pay:
        waiting = still_held(ready, before, whole, room.reserved)
    in_line = waiting.ready
    if seeking:
        in_line = tuple(sorted((*in_line, *seeking), key=lambda job: job.id))
    classes = _classes(in_line, room.first, order, known)
    if strict or not rules.match:
        classes = [(job,) for job in chain.from_iterable(classes)]
    at_once = frozenset(job.id for job in (*old.first, *room.first))
    said = waited(classes, world, before, whole, Saying(policies, quotes, at_once))
    shown = Displaced()
    if displaces:
        standing = Standing(order, known, rules, old.at_last)
        soon = {job.id for job in seeking}
        first = _but(soon, chain.from_iterable(said.classes))
        shown = displaced(first, standing, before, whole)
    reserved = {**waiting.reserved, **room.reserved, **shown.reserved}
    return _Line(
        before, whole, old, room, waiting, said, shown, reserved, strict, displaces, holds_pay
    )


def _refused(packed: Packed, line: _Line) -> Iterator[tuple[Job, Verdict]]:
    """Yield those that got nothing, but for those that others stop for already."""
    for job, verdict in packed.refused:
        if job.id not in line.room.waits and not line.shown.is_told(job):
            yield line.said.told(job, verdict)


def _profile(world: World) -> Profile:
    running = tuple(job for job in world.jobs.values() if job.state in HOLDS_A_PLACE)
    free = free_capacity(world.nodes.values(), running, world.sightings)
    return Profile(world.now, free, running, Durations(world.durations))


def _not_held(packed: Packed, held: Sequence[Hold]) -> tuple[tuple[Job, Decision], ...]:
    waits = {hold.job.id for hold in held}
    return tuple(pair for pair in packed.places if pair[0].id not in waits)


def _classes(
    ready: Sequence[Job], first: Sequence[Job], order: Order, known: Queueing
) -> Sequence[tuple[Job, ...]]:
    """Return the classes of the order, those before them that others have given way to."""
    ahead = {job.id for job in first}
    rest = [job for job in ready if job.id not in ahead] if first else ready
    here = {job.id for job in rest}
    behind = replace(known, aged=tuple(job for job in known.aged if job.id in here))
    return [*((job,) for job in first), *order.rank(rest, behind)]


def _ahead(classes: Sequence[tuple[Job, ...]], packed: Packed) -> Mapping[str, Sequence[Job]]:
    """Return, for the first places that were given, which jobs without one come before each."""
    first = {job.id for job, _ in packed.places[:HEAD]}
    without = {job.id for job, _ in packed.refused}
    found: dict[str, Sequence[Job]] = {}
    passed: list[Job] = []
    for job in chain.from_iterable(classes):
        if job.id in without:
            passed.append(job)
        elif job.id in first:
            found[job.id] = passed[: HEAD + 1]
        if len(found) == len(first):
            break
    return found


def _may_wait(packed: Packed, room: Promised) -> Iterator[tuple[Job, Decision]]:
    """Yield the places that may be held back: not of those for whom others have given way."""
    theirs = {job.id for job in room.first}
    return (pair for pair in packed.places if pair[0].id not in theirs)


def _nowhere(packed: Packed, room: Promised) -> Iterator[Job]:
    """Yield the jobs that fit nowhere now and for whom nobody gives way yet, first first."""
    for job, verdict in packed.refused:
        if verdict.code is Code.NO_ROOM_NOW and job.id not in room.waits:
            yield job
