"""For how much longer a rented machine can be had, as far as its payers' money goes."""

from collections.abc import Sequence

from cloudwhale.model import plan as p
from cloudwhale.model.job import Job
from cloudwhale.model.offer import Offer
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Lease, Renewal, Rental
from cloudwhale.model.terms import WATCHED_S
from cloudwhale.model.units import NOTHING, MicroUsd, Seconds, usd
from cloudwhale.model.world import World
from cloudwhale.planning import ledger, nights, projects
from cloudwhale.planning.leasing import (
    admitted,
    bounded,
    held_for,
    lease_until,
    own_left,
    pledges,
    worst_cost,
)
from cloudwhale.planning.payers import account_in

PARTS = (1.0, 0.5, 0.25)  # of the time that is wanted, where money for all of it is lacking
SHORTEST_S: Seconds = 60.0  # at last as far as the money goes; for less than this only when kept


def longest(
    world: World, rental: Rental, jobs: Sequence[Job], wanted_s: Seconds, landing: Seconds
) -> Renewal | None:
    """Return the longest lease for some jobs that is wanted and paid for; None: no longer one.

    What this round has set aside already is in the world's accounts.
    """
    offer = rental.taken
    if offer is None:
        return None
    purse, number = _Purse(world, rental, jobs), rental.lease.number + 1
    leases = [lease_until(number, world.now, wanted_s * part, landing) for part in PARTS]
    affords_s = purse.affords_s(offer)
    until = rental.lease.away_until
    keeps_promise = until < rental.late_until <= until + affords_s
    if affords_s >= SHORTEST_S or keeps_promise:
        leases.append(_longer(rental.lease, affords_s, world))
    before = worst_cost(offer, rental.reserved_at, rental.lease.stop_at)
    ends_at = nights.ends_at(world, rental.payer)
    for lease in (nights.capped(one, ends_at) for one in leases):
        after = worst_cost(offer, rental.reserved_at, lease.stop_at)
        if before is None or after is None or after <= before:
            continue
        added = MicroUsd(after - before)
        beside = purse.pays(added)
        if beside is not None:
            return Renewal(lease=lease, reserved=added, projects=beside)
    return None


class _Purse:
    """What the payers of a machine can set aside for a longer lease of it.

    All that is not pledged to their other machines: all who have started have equal rights.
    """

    def __init__(self, world: World, rental: Rental, jobs: Sequence[Job]) -> None:
        self._world, self._rental, self._jobs = world, rental, jobs
        self._run = pledges(world, rental.payer, but=rental.id)
        self._projects = projects.pledges(world, but=rental.id)

    def pays(self, added: MicroUsd) -> dict[str, MicroUsd] | None:
        """Return what projects set aside for so much more; None when somebody cannot pay it."""
        rental, world = self._rental, self._world
        whole = MicroUsd(rental.reserved + added)
        for job in self._jobs:
            if bounded(job, whole, held_for(world, job, but=rental.id)) is not None:
                return None
        beside = projects.for_longer(rental, self._jobs, added)
        account = world.accounts.get(rental.payer)
        if admitted(account, rental.payer, added, self._run, anew=False) is not None:
            return None
        if projects.refusal(world, beside, self._projects, anew=False) is not None:
            return None
        return beside

    def affords_s(self, offer: Offer) -> Seconds:
        """Return for how much longer there is money at the highest price."""
        most_usd_h, account = offer.most_usd_h, self._world.accounts.get(self._rental.payer)
        if not most_usd_h or account is None:
            return 0.0
        left = [ledger.left(account) - self._run]
        for payer in projects.for_longer(self._rental, self._jobs, NOTHING):
            theirs = account_in(self._world, payer)
            if theirs.limit is not None:
                left.append(ledger.left(theirs) - self._projects.get(payer, NOTHING))
        for job in self._jobs:
            own = own_left(job, held_for(self._world, job, but=self._rental.id))
            if own is not None:
                left.append(own - self._rental.reserved)
        return float(max(0, min(left))) * 3600.0 / most_usd_h


def _longer(lease: Lease, seconds: Seconds, world: World) -> Lease:
    """Return a lease that ends so much later."""
    # Less a second: sums are rounded up to the micro-dollar.
    until = lease.away_until + seconds - 1.0
    return Lease(
        number=lease.number + 1,
        watched_until=world.now + WATCHED_S,
        away_until=until,
        stop_at=lease.stop_at + seconds - 1.0,
    )


def renewed(rental: Rental, renewal: Renewal) -> p.Renew:
    """Return the step that sets the money for a longer lease aside and asks for it."""
    reserved = MicroUsd(rental.reserved + renewal.reserved)
    longer_s = renewal.lease.away_until - rental.lease.away_until
    says = (
        f"{rental.id} is needed for longer: {longer_s:.0f} s more, "
        f"{usd(renewal.reserved)} USD more are set aside"
    )
    beside = projects.with_more(rental.projects, renewal.projects)
    return p.Renew(
        rental=rental.but(renewal=renewal, reserved=reserved, projects=beside),
        reason=Reason(code=Code.RENTED, says=says),
    )
