"""Who gets which place in a round: those whom room is kept for first, then class after class."""

from collections.abc import Iterator, Mapping, Sequence
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
from cloudwhale.planning.inventory import free_capacity
from cloudwhale.planning.packing import Packed, Packing, pack
from cloudwhale.planning.policies import Policies
from cloudwhale.planning.preempting import GivesWay, Preempting, who_gives_way
from cloudwhale.planning.promising import Promised, promised
from cloudwhale.planning.queue import earliest
from cloudwhale.planning.refusals import Verdict
from cloudwhale.planning.releases import Profile, Whole
from cloudwhale.planning.reserving import kept_for
from cloudwhale.planning.standing import queueing
from cloudwhale.planning.waiting import Saying, waited
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


def matched(
    world: World, ready: Sequence[Job], policies: Policies, quotes: Mapping[str, Quote]
) -> Matched:
    """Give places, hold back, and say who gives way; `ready` in the order of the world.

    `quotes`: the least that each job could be rented for now, by its id.
    """
    order, rules = policies.order, policies.rules
    before = _profile(world)
    whole = Whole(world.nodes.values(), world.sightings)
    known = queueing(world, before.durations, rules)
    old = Aged()
    if order.ages and rules.age:
        old = aged(ready, before.running, known, whole)
    room = promised(ready, before, whole) if rules.preempt else Promised()
    strict = order.strict or rules.strict
    displaces = rules.preempt and rules.displace
    # Who has waited longest is kept from no node, and a line with rules of its own moves on.
    holds_pay = rules.hold and not (strict or displaces or old.at_last)
    waiting = Holding(ready=tuple(ready))
    if holds_pay:
        waiting = still_held(ready, before, whole, room.reserved)
    classes = _classes(waiting.ready, room.first, order, replace(known, aged=old.first))
    if strict or not rules.match:
        classes = [(job,) for job in chain.from_iterable(classes)]
    reserved = {**waiting.reserved, **room.reserved}
    at_once = frozenset(job.id for job in (*old.first, *room.first))
    said = waited(classes, world, before, whole, Saying(policies, quotes, at_once))
    shown = Displaced()
    if displaces:
        standing = Standing(order, replace(known, aged=old.first), rules)
        shown = displaced(chain.from_iterable(said.classes), standing, before, whole)
        reserved |= shown.reserved
    kept = None
    if rules.reserve and (old.at_last or not said.is_planned):
        kept = kept_for(chain.from_iterable(said.classes), old.at_last, before, whole, reserved)
    if kept is not None:
        reserved[kept.reservation.node] = kept.reservation
    given = Packing(
        now=world.now, free=before.free, running=before.running, score=policies.score,
        durations=before.durations, weights=rules.weights, reserved=reserved, strict=strict,
    )  # fmt: skip
    packed = pack(said.classes, given)
    after = before.with_places(packed.places)
    held: tuple[Hold, ...] = ()
    if holds_pay:
        held = holds(_may_wait(packed, room), _ahead(said.classes, packed), after, whole, reserved)
    made = Preempting()
    if rules.preempt and not displaces:
        nowhere = _nowhere(packed, room)
        made = who_gives_way(nowhere, rules.preempt_after_s, after, whole, reserved)
    return Matched(
        places=_not_held(packed, held),
        holds=held,
        gives_way=(*made.gives_way, *shown.gives_way),
        refused=tuple(
            said.told(*pair)
            for pair in packed.refused
            if pair[0].id not in room.waits and not shown.is_told(pair[0])
        ),
        reserved=None if kept is None else (kept.reservation.job, kept.says),
        first=frozenset(job.id for job in old.first),
        look_again_at=earliest(
            waiting.until, made.look_again_at, said.look_again_at, shown.look_again_at
        ),
        leaving=said.leaving,
        waits=said.waits,
    )


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
