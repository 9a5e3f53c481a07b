"""What a round does with the machines that are rented already, and the world without these."""

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

    @property
    def returned(self) -> frozenset[str]:
        """Return the ids of the machines that are given back."""
        return frozenset(step.rental.id for step in self.steps if isinstance(step, p.Return))

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


def at_home(world: World) -> World:
    """Return the world without rented machines and what runs on them; itself without any."""
    away = {name for name, node in world.nodes.items() if not node.owned}
    if not away:
        return world
    return replace(
        world,
        nodes={name: node for name, node in world.nodes.items() if name not in away},
        jobs={
            name: job
            for name, job in world.jobs.items()
            if job.placement is None or job.placement.node not in away
        },
    )
