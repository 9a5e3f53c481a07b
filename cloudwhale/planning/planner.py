"""One planning round: reconcile, order, fit, score, pack, say why."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from cloudwhale.model import plan as p
from cloudwhale.model.job import Job, JobState
from cloudwhale.model.plan import Decision, Plan
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.world import World
from cloudwhale.planning import cycles, hopping, nights, projects, switching
from cloudwhale.planning.deadlines import missed
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.giving import Matched, matched
from cloudwhale.planning.homing import Homing, brought_home
from cloudwhale.planning.hopping import Hops, hops_of
from cloudwhale.planning.joining import joins
from cloudwhale.planning.keeping import Kept, at_home, keeping
from cloudwhale.planning.moving import moves
from cloudwhale.planning.night_parts import NO_PARTS, Parts, parts
from cloudwhale.planning.policies import Policies as Policies
from cloudwhale.planning.preempting import GivesWay
from cloudwhale.planning.queue import Queue, earliest, waiting
from cloudwhale.planning.reconcile import differences
from cloudwhale.planning.refusals import Verdict
from cloudwhale.planning.renting import quotes, unaffordable
from cloudwhale.planning.speeds import pace
from cloudwhale.planning.started import Started
from cloudwhale.planning.stock import Stock
from cloudwhale.planning.stocking import stocked
from cloudwhale.planning.switching import Switches
from cloudwhale.planning.tendering import Rented, rentals
from cloudwhale.spi.waiting import Quote

STARTING, RUNNING = JobState.STARTING, JobState.RUNNING
PLACED = (Code.PLACED, Code.RESUMES, Code.AGED)

# The numbers in the reason of a waiting job move with every job that ends. For the head of the
# queue they are kept current; further back only a changed code is worth an event.
HEAD_OF_QUEUE = 20


def plan(world: World, policies: Policies) -> Plan:
    """Return what should happen now; called on every change of the world, and pure."""
    with cycles.unsought():
        return _plan(_in_order(world), policies, {})


def _plan(world: World, policies: Policies, lost: Mapping[str, Reason]) -> Plan:
    """Return the plan; `lost`: who is due to switch to on-demand and cannot be rented for."""
    seen = differences(world, policies.rules.patience)
    queue = nights.held(waiting(world), world)
    durations = Durations(world.durations)
    switches = _switches(world, policies, durations).without(lost)
    with_less = switching.with_less(world, switches)
    kept = keeping(with_less, durations, {*queue.doomed, *queue.expired, *switches.due})
    hops = _hops(world, policies, durations, switches)
    known = _Known(durations, kept, switches, hops)
    supplied = _supplied(kept.paid(with_less), queue, policies, known)
    if supplied.lost:
        return _plan(world, policies, {**lost, **supplied.lost})
    found, rented = supplied.found, supplied.rented
    moved, move_at = moves(world, durations, kept.returned)
    late, late_at = missed(world)
    steps = (
        *seen.steps,
        *(p.GiveUp(job=job, reason=reason) for job, reason in queue.doomed.items()),
        *(p.Park(job=job, reason=reason) for job, reason in queue.expired.items()),
        *(_place(job, decision, found.first) for job, decision in found.places),
        *(p.Hold(job=h.job.id, until=h.until, reason=h.reason) for h in found.holds),
        *chain.from_iterable(_room_made(one, world) for one in found.gives_way),
        *_changed_reasons(world, queue, found),
        *kept.steps,
        *(supplied.tonight.told(step, world, durations) for step in supplied.joined),
        *(_rented(step, supplied, world, known) for step in rented.steps),
        *_not_rented(found, rented),
        *switching.explained(switches, world),
        *moved,
        *late,
    )
    if supplied.nobody_waits:
        home = brought_home(Homing(world, durations, policies.rules), steps)
        steps = steps if home is None else (*steps, home)
    steps = _possible((*steps, *nights.closings(world, queue, steps)))
    return Plan.model_construct(
        version=world.version,
        steps=tuple(_paced(step, world) if isinstance(step, p.Place) else step for step in steps),
        decisions=(*(decision for _, decision in found.places), *_undecided(steps, found)),
        tenders=rented.tenders,
        look_again_at=earliest(
            seen.look_again_at, queue.look_again_at, found.look_again_at, kept.look_again_at,
            switches.look_again_at, hops.look_again_at, move_at, late_at,
            nights.look_again_at(world),
        ),
    )  # fmt: skip


def _possible(steps: tuple[p.Step, ...]) -> tuple[p.Step, ...]:
    """Return steps without stops for whom the same plan declares lost: nobody hears them."""
    lost = {job for step in steps if isinstance(step, p.DeclareLost) for job, _ in step.attempts}
    if not lost:
        return steps
    return tuple(one for one in steps if not (isinstance(one, p.AskToStop) and one.job in lost))


@dataclass(frozen=True, slots=True)
class _Known:
    """What is settled before anybody gets a place."""

    durations: Durations
    kept: Kept
    switches: Switches
    hops: Hops


@dataclass(frozen=True, slots=True)
class _Supplied:
    """Who gets a place or a machine, of those that wait or will."""

    found: Matched
    joined: Sequence[p.Join] = ()
    rented: Rented = Rented()
    lost: Mapping[str, Reason] = field(default_factory=dict[str, Reason])
    """Who is due to switch and gets nothing after all, and why."""
    is_sought: bool = False
    """Whether somebody who still holds a place seeks another."""
    tonight: Parts = NO_PARTS
    """What is rented for although its night closes before it is done."""

    @property
    def nobody_waits(self) -> bool:
        """Say whether there is nobody left who might want room here."""
        found = self.found
        return not (found.refused or found.holds or found.leaving or found.waits or self.is_sought)


def _supplied(paid: World, queue: Queue, policies: Policies, known: _Known) -> _Supplied:
    """Match who waits to what is ours, and rent for those that had better leave."""
    kept, switches, durations = known.kept, known.switches, known.durations
    ready = tuple(job for job in queue.ready if job.id not in kept.expected)
    ready = tuple(hopping.longer_than_thought(job, paid, durations) for job in ready)
    seeking = tuple(job for job in queue.seeking if job.id not in kept.expected)
    hop = known.hops.jobs
    stock = _stock(paid, policies, (*ready, *seeking, *switches.due, *hop), durations)
    quoted: Mapping[str, Quote] = {}
    tonight = NO_PARTS
    started = Started(paid, durations)
    if stock is not None:
        stock = stock.keeping(switches.keeps, switches.due | hop, switches.promised | hop)
        quoted = quotes(paid, (*ready, *seeking), durations, stock, started)
        unquoted = [job for job in (*ready, *seeking) if job.id not in quoted]
        tonight = parts(paid, unquoted, durations, stock, started)
        quoted = {**quoted, **tonight.quotes}
        ready, seeking, stock.shares = tonight.of(ready), tonight.of(seeking), tonight.shares
    # Whoever still holds a place is asked about only where it could be rented for.
    seeking = tuple(job for job in seeking if job.id in quoted)
    found = matched(at_home(paid), ready, policies, quoted, seeking)
    found = switching.settled(found, switches, paid, durations)
    found = hopping.settled(found, known.hops) if stock is not None else found
    if stock is None or policies.rent is None:
        return _Supplied(found, is_sought=bool(seeking))
    joined = joins(paid, _joining(found, paid), durations, stock, started)
    found = found.without({step.job for step in joined})
    for step in joined:
        accounts = projects.less(paid, step.projects)
        kept_longer = {**paid.rentals, step.rental.id: step.rental}
        paid = replace(paid, accounts=accounts, rentals=kept_longer)
    rented = rentals(paid, found.leaving, policies.rent, durations, stock)
    gets = {*rented.jobs, *(one.job for one in joined), *(job.id for job, _ in found.places)}
    lost = switching.not_had(switches, gets, rented.refused)
    if policies.wait is not None:
        started = Started(paid, durations) if joined else started
        found = _with_prices(found, stock, durations, started)
    return _Supplied(found, joined, rented, lost, bool(seeking), tonight)


def _rented(step: p.Rent, supplied: _Supplied, world: World, known: _Known) -> p.Step:
    """Return a step that rents, with all that is told of why, and what it is for."""
    told = switching.told(hopping.told(step, known.hops, world.jobs), known.switches)
    return supplied.tonight.told(told, world, known.durations)


def _joining(found: Matched, world: World) -> Sequence[Job]:
    """Return who of those that leave may go onto a machine that is there: not who runs."""
    jobs = (job for job, _ in found.leaving)
    return [job for job in jobs if world.jobs[job.id].state not in (STARTING, RUNNING)]


def _switches(world: World, policies: Policies, durations: Durations) -> Switches:
    return Switches() if policies.rent is None else switching.switches_of(world, durations)


def _hops(world: World, policies: Policies, durations: Durations, switches: Switches) -> Hops:
    return Hops() if policies.rent is None else hops_of(world, durations, switches.due)


def _stock(
    world: World, policies: Policies, jobs: Collection[object], durations: Durations
) -> Stock | None:
    """Return what can be rented; None where nothing is offered, or nobody asks: most rounds."""
    asks = policies.rent is not None and world.offers and jobs
    if not asks:
        return None
    found = stocked(world.offers, durations)
    found.value_usd_h = policies.rules.value_usd_h
    return found


def _in_order(world: World) -> World:
    """Return the same world in one fixed order, so that a replay does not depend on history."""
    return replace(
        world, jobs=dict(sorted(world.jobs.items())), nodes=dict(sorted(world.nodes.items()))
    )


def _room_made(way: GivesWay, world: World) -> Iterator[p.Step]:
    """Yield the stops of those that give way, and what is told to the job they do it for."""
    for victim in way.victims:
        reason = way.told(victim, world.now)
        yield p.AskToStop(job=victim.id, attempt=victim.attempt, wish="give-way", reason=reason)
    yield p.Explain(job=way.job.id, reason=way.reason)


def _place(job: Job, decision: Decision, first: Collection[str]) -> p.Place:
    chosen = decision.chosen
    assert chosen is not None
    where = chosen.placement
    devices = f" on {', '.join(where.devices)}" if where.devices else ""
    says = f"{where.node}{devices} scores {chosen.total:.3f}"
    if decision.rivals:
        rival = decision.rivals[0]
        says += f", next best {rival.placement.node} with {rival.total:.3f}"
    if job.checkpoint is not None:
        says += f"; resumes from {job.checkpoint.name}"
    code = Code.PLACED if job.checkpoint is None else Code.RESUMES
    if job.id in first:
        code, says = Code.AGED, f"{says}; went before all others, it had waited for too long"
    reason = Reason(code=code, says=says)
    return p.Place(job=job.id, attempt=job.attempt + 1, placement=where, reason=reason)


def _paced(step: p.Place, world: World) -> p.Place:
    """Return a place with how fast its job goes there: what it keeps is counted by that."""
    node, spec = world.nodes.get(step.placement.node), world.jobs[step.job].spec
    there = 1.0 if node is None else pace(spec, step.placement, node.facts.devices)
    return step if there == step.pace else step.model_copy(update={"pace": there})


def _changed_reasons(world: World, queue: Queue, found: Matched) -> Iterator[p.Explain]:
    for job_id, reason in queue.held.items():
        if _is_news(world.jobs[job_id], reason, keep_numbers=False):
            yield p.Explain(job=job_id, reason=reason)
    yield from _refused(found)
    for job, reason in found.waits:
        if _is_news(job, reason, keep_numbers=len(found.waits) <= HEAD_OF_QUEUE):
            yield p.Explain(job=job.id, reason=reason)
    for job in world.jobs.values():
        if job.state is JobState.RECOVERING and _recovering_is_news(job):
            yield p.Explain(job=job.id, reason=_RECOVERING)


def _refused(found: Matched) -> Iterator[p.Explain]:
    told = {way.job.id for way in found.gives_way}
    for position, (job, verdict) in enumerate(found.refused):
        keep_numbers = position < HEAD_OF_QUEUE
        if not (keep_numbers or _is_other(job, verdict.code)):
            continue  # no news, whatever the words: most of a long queue
        if verdict.code in NOWHERE and _waits_for_supply(job):
            continue  # that it can run nowhere here is why it is rented for
        reason = verdict.reason
        if found.reserved is not None and job.id == found.reserved[0]:
            reason = reason.but(says=f"{reason.says}; {found.reserved[1]}")
        if job.id not in told and _is_news(job, reason, keep_numbers=keep_numbers):
            yield p.Explain(job=job.id, reason=reason)


NOWHERE = frozenset({Code.NOTHING_FITS, Code.NO_NODES})
NOT_HAD = frozenset({Code.NO_CAPACITY, Code.QUOTA, Code.BOOT_FAILED, Code.CIRCUIT_OPEN})


def _waits_for_supply(job: Job) -> bool:
    """Say whether a job was told that what it was to be rented cannot be had at the moment."""
    return job.reason is not None and job.reason.code in NOT_HAD


def _with_prices(found: Matched, stock: Stock, durations: Durations, started: Started) -> Matched:
    """Return what was found, where those that can run nowhere here are told of what they lack.

    Only where something could be rented for them, if there were money.
    """
    nowhere = [job for job, verdict in found.refused if verdict.code in NOWHERE]
    told = unaffordable(started.world, nowhere, durations, stock, started)
    if not told:
        return found
    refused = tuple(
        (job, verdict.because(told[job.id]) if job.id in told else verdict)
        for job, verdict in found.refused
    )
    return replace(found, refused=refused)


def _not_rented(found: Matched, rented: Rented) -> Iterator[p.Explain]:
    """Yield why those that leave are not rented for, where that is news."""
    for job, reason in found.leaving:
        told = rented.refused.get(job.id, reason)
        if job.id not in rented.jobs and _is_news(job, told, keep_numbers=False):
            yield p.Explain(job=job.id, reason=told)


_RECOVERING = Reason(
    code=Code.RECOVERING,
    says="its node fell silent; the next attempt starts once the old one is out for certain",
    change="the node is heard again, or its attempt lease and the clock skew have passed",
)


def _recovering_is_news(job: Job) -> bool:
    """Say whether a job was told nothing since its place that it has lost."""
    return job.reason is None or job.reason.code in PLACED


def _is_news(job: Job, reason: Reason, *, keep_numbers: bool) -> bool:
    return _is_other(job, reason.code) or (keep_numbers and job.reason != reason)


def _is_other(job: Job, code: Code) -> bool:
    return job.reason is None or job.reason.code is not code


def _undecided(steps: tuple[p.Step, ...], found: Matched) -> Iterator[Decision]:
    """Keep the count of refusals and the nearest miss of every job whose reason changed."""
    explained = {step.job for step in steps if isinstance(step, p.Explain)}
    return (_kept(job, verdict) for job, verdict in found.refused if job.id in explained)


def _kept(job: Job, verdict: Verdict) -> Decision:
    return Decision.model_construct(
        job=job.id,
        chosen=None,
        rivals=(),
        refused=dict(verdict.refused),
        nearest=verdict.nearest,
        nearest_node=verdict.nearest_node,
    )
