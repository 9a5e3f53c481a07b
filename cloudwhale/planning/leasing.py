"""How long a machine is leased, what that can cost, and what is still needed of it."""

from collections.abc import Iterable, Sequence

from cloudwhale.model.job import CheckpointRule, Job
from cloudwhale.model.offer import Offer
from cloudwhale.model.reason import Code, Refusal
from cloudwhale.model.rental import COMES_OR_IS, Lease, Rental
from cloudwhale.model.terms import SAVING_S, WATCHED_S
from cloudwhale.model.units import NOTHING, Instant, MicroUsd, Seconds, usd
from cloudwhale.model.world import Account, World
from cloudwhale.planning import ledger, nights
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.speeds import left_s, model_of, run_s

STOP_AFTER_S: Seconds = 120.0  # from the planned end to the stop that the provider enforces
LEAST_LEASE_S: Seconds = 300.0  # shorter ones would be renewed before anything has happened
LONGER = 1.25  # expectations are short of the truth as often as not; an extension costs a call
LATE = 1.5  # nine in ten jobs end within this times what is still expected of them

DEFAULT_RULE = CheckpointRule()


def landing_s(jobs: Iterable[Job]) -> Seconds:
    """Return how long it takes to stop jobs so that what they have done is kept."""
    graces = [(job.spec.checkpoint or DEFAULT_RULE).grace_s for job in jobs]
    return max(graces, default=0.0) + SAVING_S


def longer_for(offer: Offer) -> float:
    """Return how many times what is expected of a machine it is leased for.

    Where its stop cannot be moved, at once for as long as those there may be late: no longer lease
    can come. What is set aside and pledged is the same in all, and what is not used is released.
    """
    return LONGER if offer.stop_moves else LATE


def is_fixed(rental: Rental) -> bool:
    """Say whether a machine's stop cannot be moved: so was it offered, or so its provider said."""
    return rental.is_fixed or (rental.taken is not None and not rental.taken.stop_moves)


def lease_until(
    number: int, now: Instant, needed_s: Seconds, landing: Seconds, longer: float = LONGER
) -> Lease:
    """Return a lease of a machine that is needed for so long, boot included, from now."""
    away_until = now + longer / LONGER * max(LEAST_LEASE_S, needed_s * LONGER) + landing
    return Lease(
        number=number,
        watched_until=now + WATCHED_S,
        away_until=away_until,
        stop_at=away_until + STOP_AFTER_S,
    )


def worst_cost(offer: Offer, begins_at: Instant, stop_at: Instant) -> MicroUsd | None:
    """Return the most that a lease can cost; None when nobody knows the highest price."""
    cap = offer.cap_usd_h
    if cap is None:
        return None
    return ledger.worst_case(
        ledger.LeaseTerms(
            cap_usd_h=cap,
            disk_usd_h=offer.extras_usd_h,
            begins_at=begins_at,
            stop_at=stop_at,
            failed_boot_s=offer.boot_s,
            billing_step_s=offer.billing_step_s,
            billing_least_s=offer.billing_least_s,
        )
    )


def worst_case(
    offer: Offer, needed_s: Seconds, jobs: Iterable[Job], now: Instant
) -> MicroUsd | None:
    """Return the most that the lease of a machine can cost that is needed for so long, from now."""
    lease = lease_until(1, now, needed_s, landing_s(jobs), longer_for(offer))
    return worst_cost(offer, now, lease.stop_at)


def late_until(begins_at: Instant, needed_s: Seconds, landing: Seconds) -> Instant:
    """Return until when those on a machine may need it that is needed for so long from a time."""
    return begins_at + LATE / LONGER * max(LEAST_LEASE_S, LONGER * needed_s) + landing


def tail(offer: Offer, needed_s: Seconds) -> MicroUsd:
    """Return what a machine that is needed for so long, boot included, may need beyond its lease.

    Whoever starts there is started work then, whose forecast the money must hold too.
    """
    if not offer.stop_moves:
        return NOTHING  # it is all in its lease
    held_s = max(LEAST_LEASE_S, LONGER * needed_s)
    return ledger.cost(offer.most_usd_h or NOTHING, (LATE / LONGER - 1) * held_s)


def pledged(rental: Rental) -> MicroUsd:
    """Return what its payers keep for a machine beyond its lease: promised when it was rented.

    It gets less with each longer lease, and the promise is kept: nothing is admitted, anew or for
    longer, that leaves less than what is pledged to all others. So whoever ends before its
    machine's `late_until` is never landed for want of money.
    """
    most_usd_h = None if rental.taken is None else rental.taken.most_usd_h
    if most_usd_h is None or _goes(rental):
        return NOTHING
    return ledger.cost(most_usd_h, rental.late_until - _away_until(rental))


def _goes(rental: Rental) -> bool:
    """Say whether nobody needs a machine beyond its lease: it is gone, or on its way back."""
    return rental.ended_at is not None or rental.state not in COMES_OR_IS


def pledges(world: World, payer: str, but: str) -> MicroUsd:
    """Return what a run keeps for its machines beyond their leases, one of them left out."""
    mine = (one for one in world.rentals.values() if one.payer == payer and one.id != but)
    return MicroUsd(sum(map(pledged, mine)))


def finishing(world: World, payer: str, durations: Durations) -> MicroUsd:
    """Return the forecast of what finishing a run's started work costs beyond its leases."""
    total = NOTHING
    for rental in world.rentals.values():
        if rental.payer == payer:
            here = staying(world, rental)
            total = MicroUsd(total + beyond(world, rental, here, durations))
    return total


def beyond(world: World, rental: Rental, here: Sequence[Job], durations: Durations) -> MicroUsd:
    """Return the forecast of what some of those on a machine need of it beyond its lease.

    It grows when they run late; what was pledged to them at least. Nobody needs it after its night.
    """
    most_usd_h = None if rental.taken is None else rental.taken.most_usd_h
    if most_usd_h is None or _goes(rental) or not here:
        return pledged(rental)
    needed_s = LATE * still_s(here, rental, durations, world.now) + landing_s(here)
    until = min(world.now + needed_s, nights.ends_at(world, rental.payer))
    return max(pledged(rental), ledger.cost(most_usd_h, until - _away_until(rental)))


def _away_until(rental: Rental) -> Instant:
    """Return until when a machine is paid for; a longer lease is, once it is asked for."""
    renewal = rental.renewal
    return rental.lease.away_until if renewal is None else renewal.lease.away_until


def tenants(world: World, rental: Rental) -> list[Job]:
    """Return the jobs that hold a place on a rented machine."""
    # Whoever is there is among those it was rented for: nobody else is put there.
    jobs = (world.jobs.get(name) for name in rental.jobs)
    return [
        job
        for job in jobs
        if job is not None and job.placement is not None and rental.node in job.placement.nodes
    ]


def staying(world: World, rental: Rental) -> list[Job]:
    """Return its tenants without those that have a next machine, as its own stop is fixed."""
    here = tenants(world, rental)
    if not here or not is_fixed(rental):
        return here
    others = [one for one in world.rentals.values() if one.moves and not _goes(one)]
    return [job for job in here if not any(job.id in one.moves for one in others if one != rental)]


def still_s(jobs: Iterable[Job], rental: Rental, durations: Durations, now: Instant) -> Seconds:
    """Return how much longer the last of some tenants is expected to run."""
    devices = rental.taken.facts.devices if rental.taken else ()  # of a gang all are alike
    models = ((job, model_of(job.placement, devices)) for job in jobs)
    return max((left_s(job, model, 0, durations, now) for job, model in models), default=0.0)


def coming_s(jobs: Iterable[Job], rental: Rental, durations: Durations) -> Seconds:
    """Return how long the longest of those is expected to run that have yet to start there."""
    devices = rental.taken.facts.devices if rental.taken is not None else ()
    model = devices[0].model if devices else None
    return max((run_s(job, model, 0, durations) for job in jobs), default=0.0)


def admitted(
    account: Account | None, payer: str, worst: MicroUsd, forecast: MicroUsd, *, anew: bool
) -> Refusal | None:
    """Return why money is not set aside, or None; past the soft line nothing is rented anew."""
    found = ledger.refusal(account or Account(payer=payer), worst, forecast)
    if found is not None and found.code is Code.SOFT_LINE and not anew:
        return None
    return found


def held_for(world: World, job: Job, but: str = "") -> MicroUsd:
    """Return what is set aside for a job's machines that are not paid for yet, one left out."""
    mine = (one for one in world.rentals.values() if job.id in one.jobs and one.id != but)
    return MicroUsd(sum(one.reserved for one in mine))


def own_left(job: Job, held: MicroUsd = NOTHING) -> MicroUsd | None:
    """Return what is left of a job's own budget, which bounds all its machines; None: it has none.

    `held`: what is set aside for those that are not paid for yet.
    """
    budget = job.spec.budget
    return None if budget is None else MicroUsd(max(0, budget - job.spent - held))


def bounded(job: Job, worst: MicroUsd, held: MicroUsd = NOTHING) -> Refusal | None:
    """Return why a job's own budget does not allow a machine, or None; see `own_left`."""
    budget, left = job.spec.budget, own_left(job, held)
    if budget is None or left is None or worst <= left:
        return None
    whole = f"its budget is {usd(budget)} USD"
    if left < budget:
        whole = f"{usd(left)} of its own budget of {usd(budget)} USD are left"
    return Refusal(
        code=Code.OVER_BUDGET,
        says=f"could cost {usd(worst)} USD, {whole}",
        can_wait=True,
        change=f"raise its budget by {usd(MicroUsd(worst - left))} USD",
    )
