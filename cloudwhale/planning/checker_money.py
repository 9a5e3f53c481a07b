"""The checker's rules about money: what may be rented, for whom, how long, and how it is paid for.

Worst cases, lengths and sums are worked out here anew: nothing of the ledger's own is asked.
"""

from collections import Counter
from collections.abc import Iterator

from cloudwhale.model import gpus
from cloudwhale.model import plan as p
from cloudwhale.model.job import Job
from cloudwhale.model.node import Node
from cloudwhale.model.offer import Offer
from cloudwhale.model.rental import Rental
from cloudwhale.model.world import World
from cloudwhale.planning.checker_nights import goes_on
from cloudwhale.planning.checker_waits import takes
from cloudwhale.planning.fault import Fault, Rule
from cloudwhale.planning.rules import Rules

LEAST_EXTRA_S = 150.0  # a minute that is billed at least, and 90 s until a bill ends
HEARD_S = 900.0  # a quarter of an hour without a word, and a machine takes no new orders
CLOSE_S = 1e-3  # a time of today as a float is not exact to the microsecond
HOLDS_PLACE = ("starting", "running", "recovering")
TAKES_JOBS = ("reserved", "requested", "booting", "ready")


def _rents(plan: p.Plan) -> list[Rental]:
    return [step.rental for step in plan.steps if isinstance(step, p.Rent)]


def _renews(plan: p.Plan) -> list[Rental]:
    return [step.rental for step in plan.steps if isinstance(step, p.Renew)]


def _here(node: str | None, world: World) -> list[Job]:
    return [
        job
        for job in world.jobs.values()
        if job.placement is not None
        and node in job.placement.nodes
        and job.state.value in HOLDS_PLACE
    ]


def within_budget(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """Nobody's plan sets more aside than the budget leaves, in all."""
    wanted: Counter[str] = Counter()
    for rental in _rents(plan):
        wanted[rental.payer] += rental.reserved
    for rental in _renews(plan):
        wanted[rental.payer] += rental.renewal.reserved if rental.renewal is not None else 0
    for payer, amount in sorted(wanted.items()):
        account = world.accounts.get(payer)
        limit = 0 if account is None or account.limit is None else account.limit
        taken = 0 if account is None else account.reserved + account.spent
        if taken + amount > limit:
            yield Fault("within-budget", f"{payer} would have {taken + amount} taken of {limit}")
    for rental in [*_rents(plan), *_renews(plan)]:
        for job in (world.jobs[name] for name in rental.jobs if name in world.jobs):
            others = [one for one in world.rentals.values() if job.id in one.jobs]
            others += [one for one in _rents(plan) if one.gang and one.gang == rental.gang]
            held = sum(one.reserved for one in others if one.id != rental.id)
            if job.spec.budget is not None and job.spent + held + rental.reserved > job.spec.budget:
                yield Fault("within-budget", f"{job.id} may cost {job.spec.budget} at most")


def known_price(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """Only what is offered now is rented, at the price it is offered for, which has a cap."""
    offered = {offer.id: offer for offer in world.offers}
    for rental in _rents(plan):
        offer = offered.get(rental.offer)
        taken = rental.taken
        if offer is None or taken is None or taken.id != rental.offer:
            yield Fault("known-price", f"{rental.id} is of {rental.offer}, which nobody offers")
        elif offer.price_usd_h is None or offer.cap_usd_h is None:
            yield Fault("known-price", f"{offer.id} has no price, or no highest one")
        elif offer.price_usd_h > offer.cap_usd_h:
            yield Fault("known-price", f"{offer.id} costs more than its highest price")
        elif (offer.price_usd_h, offer.cap_usd_h) != (taken.price_usd_h, taken.cap_usd_h):
            yield Fault("known-price", f"{rental.id} counts on another price than {offer.id} has")


def set_aside(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """The money of a lease covers its time to the provider's own stop, at the highest price."""
    for rental in _rents(plan):
        cap = _most(rental.taken)
        needs = _cost(cap, rental.lease.stop_at - world.now + LEAST_EXTRA_S)
        mine = (world.jobs[name] for name in rental.jobs if name in world.jobs)
        needs += sum(_egress(job, rental) for job in mine)
        if rental.reserved < needs:
            yield Fault("set-aside", f"{rental.id} sets {rental.reserved} aside, needs {needs:.0f}")
    for rental in _renews(plan):
        renewal, old = rental.renewal, world.rentals.get(rental.id)
        if renewal is None or old is None:
            yield Fault("set-aside", f"{rental.id} is renewed and has no lease")
            continue
        cap = _most(rental.taken)
        needs = _cost(cap, renewal.lease.stop_at - old.lease.stop_at)
        if renewal.reserved < needs or rental.reserved != old.reserved + renewal.reserved:
            yield Fault("set-aside", f"{rental.id} sets {renewal.reserved} more aside: too little")


def _egress(job: Job, rental: Rental) -> float:
    """Return what that costs at least which leaves another cloud for a machine, as it is said."""
    left, saved, taken = job.saved_from, job.checkpoint, rental.taken
    if left is None or saved is None or taken is None or left.provider == taken.provider:
        return 0.0
    return saved.size_bytes / 1e3 * (left.egress_usd_gb or 0.0)


def _most(offer: Offer | None) -> int:
    return 0 if offer is None else (offer.cap_usd_h or 0) + offer.extras_usd_h


def _cost(cap: int, seconds: float) -> float:
    # A micro-dollar less is a sum of floats that was rounded the other way.
    return cap * max(0.0, seconds) / 3600 - 1


def lease_covers(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """A lease holds for the boot and for what its jobs say they need; a renewed one is longer."""
    for rental in _rents(plan):
        lease, offer = rental.lease, rental.taken
        boot_s = 0.0 if offer is None else offer.boot_s
        for job in (world.jobs[name] for name in rental.jobs if name in world.jobs):
            least_s = 0.0 if goes_on(job, world) else _least_s(job, offer)
            if world.now + boot_s + least_s > lease.away_until:
                yield Fault("lease-covers", f"{rental.id} ends before {job.id} can")
        if lease.stop_at < lease.away_until:
            yield Fault("lease-covers", f"{rental.id} is stopped before its lease ends")
    for rental in _renews(plan):
        renewal = rental.renewal
        if renewal is not None and renewal.lease.away_until <= rental.lease.away_until:
            yield Fault("lease-covers", f"{rental.id} is renewed for less than it has")
    for step in plan.steps:
        for node in step.placement.nodes if isinstance(step, p.Place) else ():
            there = world.rentals.get(node)
            if there is not None and world.now >= there.lease.away_until:
                yield Fault("lease-covers", f"a place on {there.id}, whose lease is over")


def _least_s(job: Job, offer: Offer | None) -> float:
    """Return the least that a job needs by its own word; 0 when it resumes or has not said."""
    length_s = job.spec.duration_s
    if length_s is None or job.checkpoint is not None or offer is None:
        return 0.0
    speeds = [_speed(job, device.model) for device in offer.facts.devices] or [1.0]
    return length_s / max(speeds)


def _speed(job: Job, model: str) -> float:
    said, reference = job.spec.speeds.get(model), job.spec.reference
    if said:
        return said
    return (gpus.speed(model, reference) if reference is not None else None) or 1.0


def one_rental(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """A job is rented for once, while it waits for a place and none is on its way to it."""
    placed = {step.job for step in plan.steps if isinstance(step, p.Place | p.Join)}
    goes_back = {step.rental.id for step in plan.steps if isinstance(step, p.Return)}
    fills = {step.placement.node for step in plan.steps if isinstance(step, p.Place)}
    open_for = {
        (job, _is_unanswered(rental))
        for rental in world.rentals.values()
        if rental.state.value in TAKES_JOBS and rental.ended_at is None
        if rental.id not in goes_back
        and not _is_in_pieces(rental, world)
        and not (
            rental.state.value == "ready" and (rental.node in fills or _is_used(rental, world))
        )
        for job in rental.jobs
    }
    seen: dict[str, str] = {}
    for rental in _rents(plan):
        if rental.id in world.rentals or rental.node in world.nodes:
            yield Fault("one-rental", f"{rental.id} is there already")
        for name in rental.jobs:
            job = world.jobs.get(name)
            broken = {
                "nobody knows it": job is None,
                "it does not wait, nor will": job is not None and not _will_wait(job, rental),
                "somebody wants it to stop": job is not None and _is_stopped(job),
                "it gets a place": name in placed,
                "a machine is rented for it": (name, False) in open_for
                or ((name, True) in open_for and not _switches_to(rental, job)),
                "it is rented for twice": seen.get(name, rental.gang) != rental.gang
                or (not rental.gang and name in seen),
            }
            seen[name] = rental.gang
            for why in (why for why, is_broken in broken.items() if is_broken):
                yield Fault("one-rental", f"{rental.id} is for {name} although {why}")


def _is_unanswered(rental: Rental) -> bool:
    """Say whether a spot machine was asked for and nobody has said whether there is one.

    It cannot be given back before; if it comes after all, it is.
    """
    market = "" if rental.taken is None else rental.taken.market
    return rental.state.value == "reserved" and market == "spot"


def _switches_to(rental: Rental, job: Job | None) -> bool:
    """Say whether a machine may be one that a job goes to for its deadline."""
    market = "" if rental.taken is None else rental.taken.market
    return job is not None and job.spec.deadline is not None and market == "on-demand"


def _is_in_pieces(rental: Rental, world: World) -> bool:
    """Say whether a machine is of a gang whose others are gone or go: nobody starts there."""
    others = [one for one in world.rentals.values() if one.gang == rental.gang]
    return bool(rental.gang) and sum(_is_had(one, world) for one in others) < rental.gang_size


def _is_had(rental: Rental, world: World) -> bool:
    node = world.nodes.get(rental.node or "")
    is_there = node is not None and node.state.value == "ready"
    if rental.ended_at is not None or rental.boot.has_failed:
        return False
    return rental.state.value in TAKES_JOBS and (is_there or rental.state.value != "ready")


def _will_wait(job: Job, rental: Rental) -> bool:
    """Say whether a job waits, or will: it recovers, or it is to be moved from where it runs."""
    state, place = job.state.value, job.placement
    if state == "pending":
        return True
    is_elsewhere = place is not None and rental.node not in place.nodes
    return is_elsewhere and (state == "recovering" or job.id in rental.moves)


def _is_stopped(job: Job) -> bool:
    """Say whether somebody wants a job to stop, and not to start again at once."""
    wish = None if job.wish is None else job.wish.value
    return wish is not None and (wish != "give-way" or job.state.value == "pending")


def _is_used(rental: Rental, world: World) -> bool:
    """Say whether others run on a machine, or its agent is silent: it need not take one more."""
    node = world.nodes.get(rental.node or "")
    return node is None or node.state.value != "ready" or bool(_here(rental.node, world))


def suitable_machine(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """A machine is of the market and has the room that its jobs ask for, and one payer."""
    for rental in _rents(plan):
        offer = rental.taken
        for job in (world.jobs[name] for name in rental.jobs if name in world.jobs):
            if job.run != rental.payer:
                yield Fault("suitable-machine", f"{rental.payer} pays for {job.id} of {job.run}")
            if offer is None:
                continue
            node = Node(id=rental.id, facts=offer.facts, owned=False)
            if job.spec.market not in ("auto", offer.market) or not takes(node, job, []):
                yield Fault("suitable-machine", f"{offer.id} does not do for {job.id}")
        if not rental.jobs:
            yield Fault("suitable-machine", f"{rental.id} is rented for nobody")


def rented_for_them(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """On a rented machine only those are placed that it was rented for, and it stays for them."""
    for step in plan.steps:
        if isinstance(step, p.Place):
            for node in step.placement.nodes:
                yield from _of_others(step.job, node, world)
        elif isinstance(step, p.Return):
            rental = step.rental
            gets = [
                other.job
                for other in plan.steps
                if isinstance(other, p.Place) and rental.node in other.placement.nodes
            ]
            for name in [job.id for job in _here(rental.node, world)] + gets:
                yield Fault("rented-for-them", f"{rental.id} goes back although {name} is there")


def _of_others(job: str, name: str, world: World) -> Iterator[Fault]:
    there, rental = world.nodes.get(name), world.rentals.get(name)
    if there is not None and not there.owned and rental is None:
        yield Fault("rented-for-them", f"{job} on {there.id}, which nobody pays for")
    elif rental is not None and job not in rental.jobs:
        yield Fault("rented-for-them", f"{job} on {rental.id} of others")


def paid_in_full(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """What was set aside is spent or free again, to the last micro-dollar, after the machine."""
    seen: set[str] = set()
    for step in plan.steps:
        if not isinstance(step, p.Settle):
            continue
        name, old = step.rental.id, world.rentals.get(step.rental.id)
        if old is None or old.ended_at is None:
            yield Fault("paid-in-full", f"{name} is paid for and not gone")
            continue
        charged = sum(step.charges.values())
        broken = {
            "it is paid for twice": name in seen,
            "the sum is not what was set aside": charged + step.released != old.reserved,
            "an amount is negative": min([*step.charges.values(), step.released]) < 0,
            "it has jobs": bool(_here(old.node, world)),
            "its time is not paid for": charged < min(old.reserved, _billed(old)),
            "others pay": not step.charges.keys() <= old.jobs.keys(),
        }
        seen.add(name)
        for why in (why for why, is_broken in broken.items() if is_broken):
            yield Fault("paid-in-full", f"{name} is settled although {why}")


def _billed(rental: Rental) -> float:
    """Return the least that its time costs: what is begun of a step and a minimum left out."""
    offer, since, until = rental.taken, rental.requested_at, rental.ended_at
    price = rental.price_usd_h
    if price is None and offer is not None:
        price = offer.price_usd_h
    if price is None or since is None or until is None:
        return 0.0
    extras = 0 if offer is None else offer.extras_usd_h
    return _cost(price + extras, until - since)


def joins_its_own(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """A job joins a machine of its payer that is ready, suits it, and whose lease can be paid."""
    goes_back = {step.rental.id for step in plan.steps if isinstance(step, p.Return)}
    latest = dict(world.rentals)
    for step in plan.steps:
        if isinstance(step, p.Renew):
            latest[step.rental.id] = step.rental
        if not isinstance(step, p.Join):
            continue
        last = latest.get(step.rental.id)
        latest[step.rental.id] = step.rental
        old, job = world.rentals.get(step.rental.id), world.jobs.get(step.job)
        if old is None or job is None:
            yield Fault("joins-its-own", f"{step.job} joins {step.rental.id}: one is not there")
            continue
        node = world.nodes.get(old.node or "")
        market = "" if old.taken is None else old.taken.market
        broken = {
            "another pays": job.run != old.payer,
            "the machine is not ready": old.state.value != "ready" or old.ended_at is not None,
            "the machine goes back": old.id in goes_back,
            "its market is another": job.spec.market not in ("auto", market),
            "it is too small": node is None or not takes(node, job, []),
            "it does not wait, nor will": not _will_wait(job, step.rental),
            "somebody wants it to stop": _is_stopped(job),
            "others are gone from it": not (last or old).jobs.keys() <= step.rental.jobs.keys(),
            "its lease is another then": _term(step.rental) != _term(last or old),
            "it is not among its jobs": step.job not in step.rental.jobs,
        }
        for why in (why for why, is_broken in broken.items() if is_broken):
            yield Fault("joins-its-own", f"{step.job} joins {old.id} although {why}")


def told_what_is_paid(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """An agent is told of the lease that is paid for, and that we are heard not for too long."""
    goes_back = {step.rental.id for step in plan.steps if isinstance(step, p.Return)}
    for step in plan.steps:
        if not isinstance(step, p.TellLease):
            continue
        told, old = step.rental.lease, world.rentals.get(step.rental.id)
        if old is None:
            yield Fault("told-what-is-paid", f"{step.rental.id} is told, which nobody rents")
            continue
        heard_s = told.watched_until - world.now
        broken = {
            "its lease is another": told.number != old.lease.number,
            "it is paid for otherwise": told.away_until != old.lease.away_until,
            "it is not ready": old.state.value != "ready" or old.ended_at is not None,
            "it goes back": old.id in goes_back,
            f"we count as heard for {heard_s:g} s": not 0 < heard_s <= HEARD_S + CLOSE_S,
        }
        for why in (why for why, is_broken in broken.items() if is_broken):
            yield Fault("told-what-is-paid", f"{old.id} is told of a lease although {why}")


def _term(rental: Rental) -> object:
    """Return until when a machine is had, and for which money: no step for a job changes that."""
    return (rental.lease, rental.renewal, rental.reserved)


RULES: tuple[Rule, ...] = (
    within_budget,
    known_price,
    set_aside,
    lease_covers,
    one_rental,
    suitable_machine,
    rented_for_them,
    joins_its_own,
    told_what_is_paid,
    paid_in_full,
)
