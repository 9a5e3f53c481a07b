"""What becomes of the machines that are rented already: what a round does with all of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from cloudwhale.model import plan as p
from cloudwhale.model.units import Instant, MicroUsd
from cloudwhale.model.world import World
from cloudwhale.planning import projects


@dataclass(frozen=True, slots=True)
class Kept:
    """What is done with the machines that are rented already."""

    steps: tuple[p.Step, ...] = ()
    expected: frozenset[str] = frozenset()
    """Jobs for which a machine is on its way, or ready, and where they go: nowhere else.

    Those that hold a place elsewhere are among them, as long as that place is theirs.
    """
    look_again_at: Instant | None = None
    set_aside: Mapping[str, MicroUsd] = field(default_factory=dict[str, MicroUsd])
    """What its steps set aside, by payer."""

    def paid(self, world: World) -> World:
        """Return the world with what is set aside taken from its accounts, for longer leases."""
        if not self.set_aside:
            return world
        longer = {one.rental.id: one.rental for one in self.steps if isinstance(one, p.Renew)}
        return replace(
            world,
            accounts=projects.less(world, self.set_aside),
            rentals={**world.rentals, **longer},
        )
