"""Machines that a person must look at: their provider does not end them."""

from cloudwhale.model import event as e
from cloudwhale.model.node import NodeState
from cloudwhale.model.reason import Code
from cloudwhale.model.rental import Rental, RentalState
from cloudwhale.model.units import Instant
from cloudwhale.spi.store import Store


def attention(store: Store, now: Instant) -> list[str]:
    """Return a sentence for each machine that cannot be given back, in its provider's words.

    Looks at all rentals only where a machine is on its way back: most hosts have none.
    """
    going = (NodeState.DRAINING, NodeState.LOST)
    if not any(not node.owned and node.state in going for node in store.nodes()):
        return []
    rentals = store.world(now).rentals.values()
    return [_says(store, one) for one in rentals if one.state is RentalState.NEEDS_ATTENTION]


def _says(store: Store, rental: Rental) -> str:
    told = [one.event for one in store.events(rental.id)]
    said = [
        one.reason
        for one in told
        if isinstance(one, e.Noted) and one.reason.code is Code.NEEDS_ATTENTION
    ]
    if not said:
        return f"{rental.id} needs attention: it cannot be given back."
    return f"{said[-1].says}. {said[-1].change}".replace("..", ".")
