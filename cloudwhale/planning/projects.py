"""What projects set aside for a rented machine beside its payer, and what each pays in the end.

Each project that has a job on a machine sets the whole machine aside for its own planned time, as
nobody knows whom of the others it will have beside it. What the machine has cost is split between
its jobs by the time that they held a place, times the part of it that they took; no project pays
more than it had set aside. That is always possible: together they have set aside what the payer
has, at least, from the first day (the one that stays longest has all of it) and with each longer
lease (all who are there set aside what it adds).
"""

from collections.abc import Iterable, Mapping

from cloudwhale.model.job import Job
from cloudwhale.model.reason import Code, Refusal
from cloudwhale.model.rental import Rental
from cloudwhale.model.units import NOTHING, Instant, MicroUsd
from cloudwhale.model.world import Account, World
from cloudwhale.planning import ledger
from cloudwhale.planning.bringing import egress_of
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.leasing import beyond, pledged, staying, worst_cost
from cloudwhale.planning.payers import account_in, account_name, month_of

Amounts = Mapping[str, MicroUsd]
"""Money by the project's account of the month, `project:nlp:2026-11`."""

NO_EGRESS: Mapping[str, MicroUsd] = {}


def account_for(rental: Rental, project: str) -> str:
    """Return the account by which a project pays for a machine, whenever that is."""
    return account_name(project, month_of(rental.reserved_at))


# -- setting aside ---------------------------------------------------------------------------


def for_new(rental: Rental, ends_at: Mapping[str, Instant]) -> dict[str, MicroUsd]:
    """Return what projects set aside for a machine that is rented now.

    `ends_at`: when each of its jobs is planned to end.
    """
    last_at = max(ends_at.values(), default=rental.reserved_at)
    found: dict[str, MicroUsd] = {}
    for job, project in rental.jobs.items():
        shorter_s = last_at - ends_at.get(job, last_at)
        amount = _until(rental, rental.reserved_at, rental.lease.stop_at - shorter_s)
        if job in rental.brings:
            amount = min(rental.reserved, MicroUsd(amount + _for_egress(rental)))
        account = account_for(rental, project)
        found[account] = max(amount, found.get(account, NOTHING))
    return found


def for_joining(rental: Rental, project: str, now: Instant, until: Instant) -> dict[str, MicroUsd]:
    """Return what the project of a job sets aside that joins a machine and stays until then.

    Not beyond the lease: who is there when it is lengthened sets that aside.
    """
    account = account_for(rental, project)
    missing = MicroUsd(rental.reserved - rental.projects.get(account, NOTHING))
    if not rental.projects or missing <= 0:
        return {}
    return {account: min(missing, _until(rental, now, min(until, rental.lease.stop_at)))}


def for_longer(rental: Rental, jobs: Iterable[Job], added: MicroUsd) -> dict[str, MicroUsd]:
    """Return what projects set aside when a lease is lengthened for some jobs: all that it adds."""
    if not rental.projects:  # taken by a program that kept no such accounts
        return {}
    return {account_for(rental, job.spec.project): added for job in jobs}


def _until(rental: Rental, since: Instant, stop_at: Instant) -> MicroUsd:
    if rental.taken is None or stop_at >= rental.lease.stop_at and since <= rental.reserved_at:
        return rental.reserved
    worst = worst_cost(rental.taken, since, stop_at)
    return rental.reserved if worst is None else min(worst, rental.reserved)


def _for_egress(rental: Rental) -> MicroUsd:
    """Return what of a machine's money is for bringing what its jobs have saved elsewhere."""
    whole = None
    if rental.taken is not None:
        whole = worst_cost(rental.taken, rental.reserved_at, rental.lease.stop_at)
    return NOTHING if whole is None else MicroUsd(max(0, rental.reserved - whole))


def with_more(before: Amounts, more: Amounts) -> dict[str, MicroUsd]:
    """Return amounts with more added to each."""
    found = dict(before)
    for payer, amount in more.items():
        found[payer] = MicroUsd(found.get(payer, NOTHING) + amount)
    return found


# -- admission -------------------------------------------------------------------------------


def refusal(world: World, needs: Amounts, started: Amounts, *, anew: bool = True) -> Refusal | None:
    """Return why projects do not admit a lease, or None: the ledger's rule for each of them.

    What this round has set aside already is in the world's accounts. `started`: the forecast of
    finishing what has started. Past the soft line nothing is rented anew; what has started goes on.
    """
    found: list[Refusal] = []
    for payer, amount in sorted(needs.items()):
        no = ledger.refusal(account_in(world, payer), amount, started.get(payer, NOTHING))
        if no is not None and (anew or no.code is not Code.SOFT_LINE):
            found.append(no)
    return ledger.together(*found)


def less(world: World, needs: Amounts) -> Mapping[str, Account]:
    """Return the world's accounts after these have set something aside."""
    found = dict(world.accounts)
    for payer, amount in needs.items():
        account = account_in(world, payer)
        found[payer] = account.but(reserved=MicroUsd(account.reserved + amount))
    return found


def forecasts(world: World, durations: Durations) -> Amounts:
    """Return what finishing each project's started work costs beyond the leases it runs under.

    As `leasing.finishing`, of each project's own jobs.
    """
    found: dict[str, MicroUsd] = {}
    for rental in world.rentals.values():
        here = staying(world, rental)
        for account in _needing(world, rental):
            mine = [job for job in here if account_for(rental, job.spec.project) == account]
            more = beyond(world, rental, mine, durations)
            found[account] = MicroUsd(found.get(account, NOTHING) + more)
    return found


def pledges(world: World, but: str) -> Amounts:
    """Return what each project keeps for its machines beyond their leases, one left out."""
    found: dict[str, MicroUsd] = {}
    for rental in world.rentals.values():
        if rental.id != but:
            theirs = dict.fromkeys(_needing(world, rental), pledged(rental))
            found = with_more(found, theirs)
    return found


def _needing(world: World, rental: Rental) -> list[str]:
    """Return the accounts of those for whom a machine is still kept."""
    alive = (world.jobs[name] for name in rental.jobs if name in world.jobs)
    needed = {account_for(rental, job.spec.project) for job in alive}
    return [account for account in rental.projects if account in needed]


# -- paying ----------------------------------------------------------------------------------


def charges(
    rental: Rental, cost: MicroUsd, egress: Mapping[str, MicroUsd] = NO_EGRESS
) -> Mapping[str, MicroUsd]:
    """Return what each job pays of a machine that is gone; the parts add up to its cost.

    Where nobody ever held a place, all for whom it was rented pay alike. `egress`: what each pays
    besides, for what it brought there; it is in the parts, and not in the cost.
    """
    held_s = {job: rental.held_s.get(job, 0.0) for job in rental.jobs}
    weights = held_s if any(held_s.values()) else dict.fromkeys(rental.jobs, 1.0)
    members: dict[str, list[str]] = {}
    for job, project in rental.jobs.items():
        members.setdefault(account_for(rental, project), []).append(job)
    of_account = {name: sum(weights[job] for job in jobs) for name, jobs in members.items()}
    taken = {name: sum(egress.get(job, 0) for job in jobs) for name, jobs in members.items()}
    most = {name: MicroUsd(has - taken.get(name, 0)) for name, has in rental.projects.items()}
    parts = ledger.split_below(cost, of_account, most)
    found: dict[str, MicroUsd] = {}
    for name, jobs in members.items():
        found.update(ledger.split(parts[name], {job: weights[job] for job in jobs}))
    return {job: MicroUsd(paid + egress.get(job, 0)) for job, paid in found.items()}


def egress_paid(rental: Rental, cost: MicroUsd) -> dict[str, MicroUsd]:
    """Return what each job pays for what it brought to a machine of some cost: as is set aside."""
    left, found = MicroUsd(rental.reserved - cost), dict[str, MicroUsd]()
    has = dict(rental.projects)
    for job, amount in sorted(egress_of(rental).items()):
        account = account_for(rental, rental.jobs.get(job, ""))
        paid = min(amount, left, has.get(account, amount))
        left = MicroUsd(left - paid)
        if account in has:
            has[account] = MicroUsd(has[account] - paid)
        if paid and job in rental.jobs:
            found[job] = paid
    return found


def unused(rental: Rental, charged: Mapping[str, MicroUsd]) -> dict[str, MicroUsd]:
    """Return what of each project's money is free again after its jobs have paid."""
    left = dict(rental.projects)
    for job, amount in charged.items():
        account = account_for(rental, rental.jobs[job])
        if account in left:
            left[account] = MicroUsd(left[account] - amount)
    return {account: amount for account, amount in left.items() if amount}
