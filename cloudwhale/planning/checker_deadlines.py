"""The checker's rules about deadlines: nobody idles or stays on spot past the last safe moment.

Moments and worst cases are worked out here anew, from what jobs and offers say. Where the planner
may have had a reason that is not looked at here (a length that nobody said, a budget that is nearly
spent, a quota), no fault is found.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cloudwhale.model import gpus
from cloudwhale.model import plan as p
from cloudwhale.model.job import Job
from cloudwhale.model.node import Device, Node
from cloudwhale.model.offer import Offer
from cloudwhale.model.rental import Rental
from cloudwhale.model.world import World
from cloudwhale.planning.checker_waits import takes
from cloudwhale.planning.fault import Fault, Rule
from cloudwhale.planning.rules import Rules

CONTROLLER_S = 30.0  # README, "deadline": what the controller's own part may take, together
RESTORE_S = 60.0
RESTORES_BYTES_S = 1e8
SAVES_WITHIN_S = 30.0
LATE = 1.5  # of what is expected is the most that has to be paid for
BESIDE_S = 600.0  # a landing, the provider's stop, what is billed at least
ENOUGH = 2.0  # with so many times the worst case left, money is no reason
CLOSE_S = 1.0
HOPS_BEFORE_S = 120.0  # a landing, and the controller's own part, on top of the boot
OPEN = ("reserved", "requested", "booting", "ready")
EXCUSES = frozenset({"quota", "no-capacity", "too-late", "circuit-open", "boot-failed"})


@dataclass(frozen=True, slots=True)
class _Way:
    """On-demand, asked for now."""

    offer: Offer
    takes_s: float
    """From the call to the end of the work."""


def last_safe_moment(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """Who has a deadline is rented for on-demand at its last safe moment, or is looked at then."""
    helped = _helped(plan)
    for job in world.jobs.values():
        deadline = job.spec.deadline
        if deadline is None or not _is_at_risk(job, world) or job.id in helped:
            continue
        ways = [way for way in _ways(job, world) if world.now + way.takes_s <= deadline]
        if not ways or _is_excused(job, plan) or not _is_paid_for(job, ways, plan, world):
            continue
        last_at = max(deadline - way.takes_s for way in ways) - CONTROLLER_S
        if world.now > last_at + CLOSE_S:
            says = f"{job.id} is {job.state} past its last safe moment, {last_at:.0f}"
            yield Fault("last-safe-moment", f"{says}, and {ways[0].offer.id} would do")
        elif plan.look_again_at is None or plan.look_again_at > last_at + CLOSE_S:
            if not _changes_soon(plan):
                yield Fault("last-safe-moment", f"{job.id} is not looked at by {last_at:.0f}")


def _changes_soon(plan: p.Plan) -> bool:
    """Say whether the plan itself leads to another round at once."""
    return any(not isinstance(step, p.Explain | p.TellLease | p.Extend) for step in plan.steps)


def _helped(plan: p.Plan) -> set[str]:
    """Return who gets a place or an on-demand machine, or is through, in this round."""
    found: set[str] = set()
    for step in plan.steps:
        if isinstance(step, p.Rent):
            taken = step.rental.taken
            found |= set(step.rental.jobs) if taken and taken.market == "on-demand" else set()
        elif isinstance(
            step, p.Place | p.Join | p.Park | p.GiveUp | p.Drop | p.AskToStop | p.Clear
        ):
            found.add(step.job)
        elif isinstance(step, p.DeclareLost):
            found |= {job for job, _ in step.attempts}
    return found


def _is_at_risk(job: Job, world: World) -> bool:
    """Say whether a job idles, recovers or is on spot, with nothing sure on its way."""
    spec, wish = job.spec, None if job.wish is None else job.wish.value
    if spec.market not in ("auto", "on-demand") or spec.nodes != 1 or spec.duration_s is None:
        return False
    if wish not in (None, "give-way") or any(other in world.jobs for other in job.after):
        return False
    mine = [one for one in world.rentals.values() if job.id in one.jobs and _is_sure(one)]
    if mine:
        return False
    if job.state.value == "recovering":
        return job.retries < spec.retry.max and {"preemption", "node-loss"} <= set(spec.retry.on)
    if job.state.value == "pending":
        return True
    there = _there(job, world)
    is_spot = there is not None and there.taken is not None and there.taken.market == "spot"
    return job.state.value in ("starting", "running") and is_spot


def _is_sure(rental: Rental) -> bool:
    is_open = rental.state.value in OPEN and rental.ended_at is None
    return is_open and rental.taken is not None and rental.taken.market == "on-demand"


def _there(job: Job, world: World) -> Rental | None:
    return None if job.placement is None else world.rentals.get(job.placement.node)


def _ways(job: Job, world: World) -> Iterator[_Way]:
    left_s, beside_s = _left_s(job), _beside_s(job, world)
    for offer in world.offers:
        facts = offer.facts.but(devices=_counted_on(offer.facts.devices))
        node = Node(id=offer.id, facts=facts, owned=False)
        alone = job.but(spec=job.spec.but(market="auto"))
        is_had = offer.market == "on-demand" and offer.capacity != 0 and _is_in_quota(offer)
        is_priced = offer.price_usd_h is not None and offer.cap_usd_h is not None
        if is_had and is_priced and takes(node, alone, []):
            speed = min((_speed(job, one.model) for one in _taking(offer, job)), default=1.0)
            yield _Way(offer, offer.boot_s + beside_s + left_s / speed)


def _counted_on(devices: Sequence[Device]) -> tuple[Device, ...]:
    """Return the devices of the model of which there are most: nobody is rented a mixture."""
    names = [(one.model, one.memory_gib) for one in devices]
    most = max(names, default=None, key=lambda name: (names.count(name), name[1]))
    return tuple(one for one, name in zip(devices, names, strict=True) if name == most)


def _taking(offer: Offer, job: Job) -> Iterator[Device]:
    """Yield the devices that a job may get there, whatever was counted on."""
    wants = job.wants.gpu
    for one in offer.facts.devices:
        parts = one.model.split("-")
        names = {"-".join(parts[:n]) for n in range(1, len(parts) + 1)}
        if wants.memory_gib.holds(one.memory_gib) and not names.isdisjoint(wants.models or names):
            yield one


def _is_in_quota(offer: Offer) -> bool:
    return offer.quota_left is None or offer.quota_left >= 2 * offer.quota_units


def _left_s(job: Job) -> float:
    """Return the work left from the newest checkpoint; of what should be done a tenth of it all."""
    whole_s, saved, begun = job.spec.duration_s or 0.0, job.checkpoint, job.started_at
    if saved is None:
        return whole_s
    kept_s = max(0.0, job.run_s - job.lost_s + job.ahead_s)
    if begun is not None and saved.attempt == job.attempt:
        kept_s += job.pace * max(0.0, saved.saved_at - begun)
    return whole_s - kept_s if kept_s < whole_s else 0.1 * whole_s


def _beside_s(job: Job, world: World) -> float:
    size = 0 if job.checkpoint is None else job.checkpoint.size_bytes
    restore_s = RESTORE_S + size / RESTORES_BYTES_S
    if job.placement is None:
        return restore_s
    grace_s, there = _grace_s(job), _there(job, world)
    notice_s = 0.0 if there is None or there.taken is None else there.taken.notice_s
    return restore_s + max(grace_s + SAVES_WITHIN_S, notice_s)


def _speed(job: Job, model: str) -> float:
    said, reference = job.spec.speeds.get(model), job.spec.reference
    if said:
        return said
    return (gpus.speed(model, reference) if reference is not None else None) or 1.0


def _is_excused(job: Job, plan: p.Plan) -> bool:
    """Say whether it is told why it gets nothing, for no want of money."""
    told = [
        step.reason.code.value
        for step in plan.steps
        if isinstance(step, p.Explain) and step.job == job.id
    ]
    told += [] if job.reason is None else [job.reason.code.value]
    left_out = any(job.id in tender.left_out for tender in plan.tenders)
    return left_out or not EXCUSES.isdisjoint(told)


def _is_paid_for(job: Job, ways: list[_Way], plan: p.Plan, world: World) -> bool:
    """Say whether there is money for an on-demand machine beyond any doubt."""
    account = world.accounts.get(job.run)
    if account is None or account.limit is None or job.spec.project in world.budgets:
        return False
    taken = account.spent + account.reserved
    for step in plan.steps:
        if isinstance(step, p.Rent) and step.rental.payer == job.run:
            taken += 2 * step.rental.reserved
        elif isinstance(step, p.Renew) and step.rental.renewal is not None:
            taken += step.rental.renewal.reserved
    # What others that run, or may have to switch, can need as well.
    taken += sum(2 * one.reserved for one in world.rentals.values() if one.payer == job.run)
    others = [one for one in world.jobs.values() if one.spec.deadline and one.run == job.run]
    needs = max(_worst(way) for way in ways)
    own = job.spec.budget
    held = sum(2 * one.reserved for one in world.rentals.values() if job.id in one.jobs)
    if own is not None and own - job.spent - held < ENOUGH * needs:
        return False
    if taken >= account.soft * account.limit:
        return False  # past the soft line nothing is rented
    return account.limit - taken >= ENOUGH * needs * max(1, len(others))


def _worst(way: _Way) -> float:
    most = (way.offer.cap_usd_h or 0) + way.offer.extras_usd_h
    return float(most) * (LATE * way.takes_s + way.offer.boot_s + BESIDE_S) / 3600


def moved_for_a_deadline(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """Who is stopped to switch runs on spot, has a deadline, and its on-demand machine is ready."""
    seen: set[str] = set()
    goes_back = {step.rental.id for step in plan.steps if isinstance(step, p.Return)}
    for step in plan.steps:
        if not isinstance(step, p.AskToStop) or step.reason.code.value != "switches":
            continue
        job = world.jobs.get(step.job)
        there = None if job is None else _there(job, world)
        ready = [
            one
            for one in world.rentals.values()
            if step.job in one.moves and _is_sure(one) and one.state.value == "ready"
            if one.id not in goes_back
        ]
        broken = {
            "it is asked twice": step.job in seen,
            "it has no deadline": job is None or job.spec.deadline is None,
            "it stops already": job is not None and job.wish is not None,
            "it does not run": job is None or job.state.value not in ("starting", "running"),
            "it is on no spot machine": there is None
            or there.taken is None
            or there.taken.market != "spot",
            "no machine is ready for it": not ready,
        }
        seen.add(step.job)
        for why in (why for why, is_broken in broken.items() if is_broken):
            yield Fault("moved-for-a-deadline", f"{step.job} is stopped to switch although {why}")


def moves_are_due(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """A next machine of one that runs on spot is on-demand, and its deadline is to come.

    Or the machine that it has ends soon, and its stop cannot be moved.
    """
    for step in plan.steps:
        if not isinstance(step, p.Rent):
            continue
        taken = step.rental.taken
        for name in step.rental.moves:
            job = world.jobs.get(name)
            deadline = None if job is None else job.spec.deadline
            hops = job is not None and _must_hop(job, world)
            broken = {
                "nobody asked for that": not hops and (deadline is None or deadline <= world.now),
                "it is not on-demand": not hops and (taken is None or taken.market != "on-demand"),
                "it is not rented for it": name not in step.rental.jobs,
            }
            for why in (why for why, is_broken in broken.items() if is_broken):
                yield Fault("moves-are-due", f"{name} is to move to {step.rental.id}: {why}")


def _must_hop(job: Job, world: World) -> bool:
    there = _there(job, world)
    if there is None or there.taken is None or job.spec.nodes > 1:
        return False
    left_s = there.lease.away_until - world.now
    # All on a machine land at once, so that whoever needs longest has the time.
    beside = [one for one in world.jobs.values() if _there(one, world) is there]
    grace_s = max(map(_grace_s, beside))
    is_near = left_s <= there.taken.boot_s + HOPS_BEFORE_S + grace_s
    return is_near and (there.is_fixed or not there.taken.stop_moves)


def _grace_s(job: Job) -> float:
    return 90.0 if job.spec.checkpoint is None else job.spec.checkpoint.grace_s


def moved_to_hop(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """Who is stopped to hop leaves a machine that ends soon for one of its that is ready."""
    goes_back = {step.rental.id for step in plan.steps if isinstance(step, p.Return)}
    for step in plan.steps:
        if not isinstance(step, p.AskToStop) or step.reason.code.value != "hops":
            continue
        job = world.jobs.get(step.job)
        ready = [
            one
            for one in world.rentals.values()
            if step.job in one.moves and one.state.value == "ready" and one.ended_at is None
            if one.id not in goes_back
        ]
        broken = {
            "its machine does not end soon": job is None or not _must_hop(job, world),
            "it stops already": job is not None and job.wish is not None,
            "it does not run": job is None or job.state.value not in ("starting", "running"),
            "no machine is ready for it": not ready,
        }
        for why in (why for why, is_broken in broken.items() if is_broken):
            yield Fault("moved-to-hop", f"{step.job} is stopped to hop although {why}")


RULES: tuple[Rule, ...] = (
    last_safe_moment,
    moved_for_a_deadline,
    moves_are_due,
    moved_to_hop,
)
