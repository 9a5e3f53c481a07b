"""The checker's rules about nights: nothing is rented or kept outside of a night's hours."""

from collections.abc import Iterator

from cloudwhale.model import gpus
from cloudwhale.model import plan as p
from cloudwhale.model.job import Job
from cloudwhale.model.night import Night
from cloudwhale.model.offer import Offer
from cloudwhale.model.rental import Rental
from cloudwhale.model.terms import SAVING_S
from cloudwhale.model.world import World
from cloudwhale.planning.fault import Fault, Rule
from cloudwhale.planning.rules import Rules

CLOSE_S = 1e-3  # a time of today as a float is not exact to the microsecond
RESTORE_S = 60.0
HOLDS_PLACE = ("starting", "running", "recovering")


def _night(world: World, run: str) -> Night | None:
    return world.runs[run].night if run in world.runs else None


def in_its_hours(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """For a night's jobs machines are rented, joined and started on while it is open alone."""
    for step in plan.steps:
        payer = ""
        if isinstance(step, p.Rent | p.Join):
            payer = step.rental.payer
        elif isinstance(step, p.Place) and step.placement.node in world.rentals:
            payer = world.rentals[step.placement.node].payer
        night = _night(world, payer)
        if night is None:
            continue
        if world.now < night.opens_at:
            yield Fault("in-its-hours", f"{step.kind} for {payer} before its night opens")
        elif world.now >= night.closes_at or night.closed_at is not None:
            yield Fault("in-its-hours", f"{step.kind} for {payer} after its night has closed")


def away_by_morning(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """No lease goes beyond the end of its payer's night, and no idle machine is kept beyond it."""
    going = {step.rental.id for step in plan.steps if isinstance(step, p.Return | p.Settle)}
    for step in plan.steps:
        if not isinstance(step, p.Rent | p.Renew):
            continue
        rental, night = step.rental, _night(world, step.rental.payer)
        lease = rental.lease
        if isinstance(step, p.Renew) and rental.renewal is not None:
            lease = rental.renewal.lease
        if night is not None and lease.away_until > night.closes_at + CLOSE_S:
            over_s = lease.away_until - night.closes_at
            yield Fault("away-by-morning", f"{rental.id} is leased for {over_s:.0f} s too long")
    for rental in world.rentals.values():
        night = _night(world, rental.payer)
        is_over = night is not None and world.now >= night.closes_at
        if not is_over or rental.id in going or rental.ended_at is not None:
            continue
        here = [
            job.id
            for job in world.jobs.values()
            if job.placement is not None and rental.node in job.placement.nodes
        ]
        if rental.state.value in ("booting", "ready") and not here:
            yield Fault("away-by-morning", f"{rental.id} is kept although its night is over")


def closed_once(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """A night is closed once, with all that is left over, and when nothing rented runs for it."""
    seen: set[str] = set()
    ends = {step.job for step in plan.steps if step.kind == "give-up"} | {
        step.job for step in plan.steps if isinstance(step, p.Drop) and step.wish == "cancel"
    }
    for step in plan.steps:
        if not isinstance(step, p.CloseNight):
            continue
        night = _night(world, step.run)
        left = {job.id: job for job in world.jobs.values() if job.run == step.run}
        there = [
            job.id
            for job in left.values()
            if job.placement is not None and job.state.value in HOLDS_PLACE
            if any(node in world.rentals for node in job.placement.nodes)
        ]
        broken = {
            "it is no night": night is None,
            "it is closed already": step.run in seen
            or (night is not None and night.closed_at is not None),
            "it does not say who is left over": set(step.unfinished) != left.keys() - ends,
            f"{', '.join(there)} run on rented machines": bool(there),
        }
        seen.add(step.run)
        for why in (why for why, is_broken in broken.items() if is_broken):
            yield Fault("closed-once", f"{step.run} is closed although {why}")


def stops_in_the_morning(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """Nobody is stopped for the sake of a night that goes on, or that lets jobs run on at home."""
    for step in plan.steps:
        if not isinstance(step, p.AskToStop) or step.reason.code.value != "night":
            continue
        job = world.jobs.get(step.job)
        night = None if job is None else _night(world, job.run)
        if night is None or world.now < night.closes_at or night.unfinished == "continue":
            yield Fault("stops-in-the-morning", f"{step.job} is stopped for no night that ends")


def goes_on(job: Job, world: World) -> bool:
    """Say whether the next night goes on with a job where this one ends, and nothing is lost."""
    night, deadline = _night(world, job.run), job.spec.deadline
    if night is None or night.unfinished != "carry-over" or job.spec.checkpoint is None:
        return False
    return deadline is None or deadline > night.closes_at


def parts_pay(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """Who cannot be done in its night is begun only where it goes on, and most of it is work."""
    for step in plan.steps:
        if isinstance(step, p.Rent):
            for name in step.rental.jobs:
                yield from _pays(name, step.rental, step.rental.lease.away_until, world)
        elif isinstance(step, p.Join) and (night := _night(world, step.rental.payer)) is not None:
            yield from _pays(step.job, step.rental, night.closes_at, world)


def _pays(name: str, rental: Rental, ends_at: float, world: World) -> Iterator[Fault]:
    """Yield what is wrong with one job's start; of a machine that is there, it need not boot."""
    job, offer, night = world.jobs.get(name), rental.taken, _night(world, rental.payer)
    if job is None or offer is None or night is None:
        return
    boot_s = 0.0 if rental.id in world.rentals else offer.boot_s
    if _least_s(job, offer) <= night.closes_at - world.now - boot_s:
        return
    rule = job.spec.checkpoint
    if rule is None or not goes_on(job, world):
        yield Fault("parts-pay", f"{job.id} is begun, and what it does is lost")
        return
    works_s = ends_at - SAVING_S - rule.grace_s - world.now - boot_s - RESTORE_S
    if works_s + CLOSE_S < boot_s + RESTORE_S + rule.every_s:
        yield Fault("parts-pay", f"{job.id} is begun for {works_s:.0f} s of work")


def _least_s(job: Job, offer: Offer) -> float:
    """Return what is left of a job by its own word, on the fastest there; 0: it has not said."""
    left_s = (job.spec.duration_s or 0.0) - (0.0 if job.checkpoint is None else job.kept_s)
    said, reference = job.spec.speeds, job.spec.reference
    models = [device.model for device in offer.facts.devices]
    known = [said.get(one) or (gpus.speed(one, reference) if reference else None) for one in models]
    return left_s / max((one or 1.0 for one in known), default=1.0)


RULES: tuple[Rule, ...] = (
    in_its_hours, away_by_morning, closed_once, stops_in_the_morning, parts_pay,
)  # fmt: skip
