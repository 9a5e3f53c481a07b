"""How a rented machine that is gone, or never came, is paid for."""

from collections.abc import Mapping

from cloudwhale.model import plan as p
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Rental, RentalState
from cloudwhale.model.units import NOTHING, MicroUsd, usd
from cloudwhale.planning import ledger, projects


def settled(rental: Rental) -> p.Settle:
    """Return how a machine that is gone, or never came, is paid for; never above its reserve."""
    billed = _cost(rental)
    machine = min(rental.reserved, billed)
    egress = projects.egress_paid(rental, machine)
    cost = MicroUsd(machine + sum(egress.values()))
    charges: Mapping[str, MicroUsd] = {}
    if cost:
        charges = projects.charges(rental, machine, egress)
    released = MicroUsd(rental.reserved - cost)
    says = f"{rental.id} has cost {usd(cost)} USD; {usd(released)} USD are free again"
    if egress:
        moved = MicroUsd(cost - machine)
        says += f"; {usd(moved)} USD of it are for checkpoints that left other clouds"
    if MicroUsd(billed + sum(one.cost for one in rental.egress)) > cost:
        says += (
            f"; its bill is {usd(billed)} USD, more than was set aside: look at the provider's own"
        )
    return p.Settle(
        rental=rental.but(
            state=RentalState.RETURNED,
            spent=cost,
            reserved=MicroUsd(0),
            renewal=None,
        ),
        charges={name: amount for name, amount in sorted(charges.items()) if amount},
        released=released,
        reason=Reason(code=Code.RETURNED, says=says),
    )


def _cost(rental: Rental) -> MicroUsd:
    offer, since, until = rental.taken, rental.requested_at, rental.ended_at
    if offer is None or since is None or until is None:
        return NOTHING
    price = rental.price_usd_h if rental.price_usd_h is not None else offer.price_usd_h
    if price is None:
        return rental.reserved  # nobody knows better
    return ledger.accrued(
        MicroUsd(price + offer.extras_usd_h),
        until - since,
        step_s=offer.billing_step_s,
        least_s=offer.billing_least_s,
    )
