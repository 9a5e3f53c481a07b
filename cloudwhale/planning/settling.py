"""How a rented machine that is gone, or never came, is paid for."""

from collections.abc import Mapping

from cloudwhale.model import plan as p
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Rental, RentalState
from cloudwhale.model.units import MicroUsd, usd
from cloudwhale.model.world import World
from cloudwhale.planning import costing, projects


def settled(rental: Rental, world: World | None = None) -> p.Settle:
    """Return how a machine that is gone, or never came, is paid for; never above its reserve.

    `world`: what is known beside it; None: nothing.
    """
    billed = costing.billed(rental, rental.ended_at)
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
    charges = {name: amount for name, amount in sorted(charges.items()) if amount}
    returned = rental.but(
        state=RentalState.RETURNED, spent=cost, reserved=MicroUsd(0), renewal=None
    )
    known = costing.NOTHING_KNOWN if world is None else costing.known_of(rental, world)
    until = rental.reserved_at if rental.ended_at is None else rental.ended_at
    return p.Settle(
        rental=returned,
        charges=charges,
        lines=costing.lines(returned, charges, egress, known, until),
        released=released,
        reason=Reason(code=Code.RETURNED, says=says),
    )
