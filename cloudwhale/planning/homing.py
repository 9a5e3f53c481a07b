"""Which jobs on rented machines are brought home to an owned one: where that pays, and seldom.

A job is brought home when the machine can go back so much sooner that this saves PAYS times what
moving costs: the machine while it saves, and the value of the time by which the job ends later.
That is looked at only when it has just saved, at most once in half an hour for a job, one job at a
time, and only while nobody waits who might want the room.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cloudwhale.model import plan as p
from cloudwhale.model.job import Job, JobState, Placement
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Rental, RentalState
from cloudwhale.model.units import Instant, MicroUsd, Seconds, micro_usd, usd
from cloudwhale.model.world import World
from cloudwhale.planning import ledger
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.fit import fit
from cloudwhale.planning.inventory import Free, free_capacity
from cloudwhale.planning.leasing import landing_s, still_s, tenants
from cloudwhale.planning.needs import spec_of
from cloudwhale.planning.next_machines import comes
from cloudwhale.planning.rules import Rules
from cloudwhale.planning.speeds import left_s, model_of, speed

PAYS = 2.0
"""What is saved must be so many times what moving costs: expectations are often wrong by half."""

EVERY_S: Seconds = 1800.0
"""A job that has moved before stays where it is for so long."""

FRESH_S: Seconds = 90.0
"""A checkpoint is fresh for so long: what was done since would be done again."""


def goes_home(job: Job) -> bool:
    """Say whether a waiting job was stopped to go home: the machine that it left waits no more."""
    return job.reason is not None and job.reason.code is Code.BRINGS_HOME


@dataclass(frozen=True, slots=True)
class _Home:
    """A place that is owned and free."""

    node: str
    later_s: Seconds
    """So much later the job would end there, moving included."""


@dataclass(frozen=True, slots=True)
class Homing:
    """What is known when it is asked who could come home."""

    world: World
    durations: Durations
    rules: Rules


def brought_home(known: Homing, steps: Sequence[p.Step]) -> p.AskToStop | None:
    """Return who is asked to come home, or None; `steps`: what the round does already.

    Asked in rounds in which nobody is left waiting for room here.
    """
    world = known.world
    if not known.rules.bring_home or any(_is_coming(job) for job in world.jobs.values()):
        return None
    rentals = [one for _, one in sorted(world.rentals.items()) if _may_shrink(one)]
    asked = {step.job for step in steps if isinstance(step, p.AskToStop)}
    free: Mapping[str, Free] | None = None
    for rental in rentals:
        here = tenants(world, rental)
        if _is_awaited(world, rental):
            continue
        for job in sorted(here, key=lambda job: job.id):
            if job.id in asked or not may_move(job, world.now):
                continue
            free = dict(_free_here(world, steps)) if free is None else free
            reason = _why(known, rental, (job, here), free)
            if reason is not None:
                return p.AskToStop(job=job.id, attempt=job.attempt, wish="give-way", reason=reason)
    return None


def _is_coming(job: Job) -> bool:
    """Say whether a job is on its way home: until it is there nobody else may want its room."""
    stops = job.state is JobState.RUNNING and job.wish is not None
    return goes_home(job) and (stops or job.state is JobState.PENDING)


def _may_shrink(rental: Rental) -> bool:
    return rental.state is RentalState.READY and rental.ended_at is None


def _is_awaited(world: World, rental: Rental) -> bool:
    """Say whether somebody is still to come, for whom the machine is kept anyway."""
    jobs = (world.jobs.get(name) for name in rental.jobs)
    return any(job is not None and comes(job, rental) for job in jobs)


def _free_here(world: World, places: Sequence[p.Step]) -> Iterator[tuple[str, Free]]:
    """Yield what is free on each owned node once the round's places are taken."""
    owned = [node for node in world.nodes.values() if node.owned]
    there = [job for job in world.jobs.values() if job.placement is not None]
    for name, free in sorted(free_capacity(owned, there, world.sightings).items()):
        for step in places:
            if isinstance(step, p.Place) and step.placement.node == name:
                free = free.less(world.jobs[step.job].wants, step.placement)
        yield name, free


def may_move(job: Job, now: Instant) -> bool:
    """Say whether a job on a rented machine could be stopped at all, by what it is and was."""
    saved, started = job.checkpoint, job.started_at
    if job.state is not JobState.RUNNING or job.wish is not None or not job.spec.preemptible:
        return False
    if saved is None or saved.attempt != job.attempt or started is None:
        return False
    has_rested = not job.interruptions or now >= started + EVERY_S
    return has_rested and now - saved.saved_at <= FRESH_S


def may_come_home(job: Job, world: World, rules: Rules) -> bool:
    """Say whether a round could bring a job home that has just saved, if nobody else came there.

    All that a round does beside takes room, and nobody is brought home who is asked to stop.
    """
    place = job.placement
    rental = None if place is None else world.rentals.get(place.node)
    if not rules.bring_home or rental is None or not _may_shrink(rental):
        return False
    if not may_move(job, world.now) or _is_awaited(world, rental):
        return False
    if any(_is_coming(one) for one in world.jobs.values()):
        return False
    known = Homing(world, Durations(world.durations), rules)
    here = tenants(world, rental)
    return _why(known, rental, (job, here), dict(_free_here(world, ()))) is not None


def _why(
    known: Homing, rental: Rental, whose: tuple[Job, Sequence[Job]], free: Mapping[str, Free]
) -> Reason | None:
    """Return why it pays to bring a job home, or None; `whose`: it, and all there."""
    job, here = whose
    offer, now = rental.taken, known.world.now
    if offer is None or offer.usd_h is None:
        return None
    moving_s = landing_s([job])
    others = [one for one in here if one is not job]
    sooner_s = still_s(here, rental, known.durations, now)
    sooner_s -= still_s(others, rental, known.durations, now)
    if sooner_s <= moving_s:
        return None  # it ends before it could move, or others keep the machine in any case
    home = _best_home(known, rental, job, free)
    if home is None:
        return None
    price = rental.price_usd_h
    usd_h = offer.usd_h if price is None else MicroUsd(price + offer.extras_usd_h)
    value = job.spec.value_of_time_usd_h
    worth_usd_h = micro_usd(str(known.rules.value_usd_h if value is None else value))
    saves = ledger.cost(usd_h, sooner_s - moving_s)
    costs = MicroUsd(ledger.cost(usd_h, moving_s) + ledger.cost(worth_usd_h, home.later_s))
    return None if saves < PAYS * costs else _reason(home, rental, saves, costs)


def _reason(home: _Home, rental: Rental, saves: MicroUsd, costs: MicroUsd) -> Reason:
    return Reason(
        code=Code.BRINGS_HOME,
        says=(
            f"stops, checkpoint first, to go on on {home.node}, which is ours and free: "
            f"{rental.id} can go back so much sooner that this saves {usd(saves)} USD, and moving "
            f"costs {usd(costs)} USD of money and time"
        ),
        change="`bring_home = false` leaves jobs where they are",
    )


def _best_home(known: Homing, rental: Rental, job: Job, free: Mapping[str, Free]) -> _Home | None:
    """Return the owned place where it would end first; None: it suits none that is free."""
    devices = () if rental.taken is None else rental.taken.facts.devices
    there = model_of(job.placement, devices)
    here_s = left_s(job, there, 0, known.durations, known.world.now)
    work_s = here_s * speed(job.spec, there)
    best: _Home | None = None
    for name in sorted(free):
        place = fit(spec_of(job), free[name])
        if not isinstance(place, Placement):
            continue
        home_s = work_s / speed(job.spec, model_of(place, free[name].node.facts.devices))
        moves_s = landing_s([job]) + known.rules.restart_s
        later_s = moves_s + max(0.0, home_s - here_s)
        deadline = job.spec.deadline
        if deadline is not None and known.world.now + moves_s + home_s > deadline:
            continue
        if best is None or later_s < best.later_s:
            best = _Home(name, later_s)
    return best
