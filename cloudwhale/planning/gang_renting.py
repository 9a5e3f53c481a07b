"""The machines of a gang as they are rented: how many can be had, and all of them alike."""

from collections.abc import Sequence

from cloudwhale.model import plan as p
from cloudwhale.model.job import Job
from cloudwhale.model.world import World
from cloudwhale.planning.stock import Stock


def most_at_once(world: World, stock: Stock, job: Job) -> int:
    """Return how many machines alike a job could have at once, if nothing else was rented."""
    found = 0
    for offer in (option.offer for option in stock.options(job)):
        most = job.spec.nodes if offer.capacity is None else offer.capacity
        if offer.quota_left is not None and offer.quota_units > 0:
            taken = (one.taken for one in world.rentals.values() if one.ended_at is None)
            ours = sum(one.quota_units for one in taken if one and one.quota == offer.quota)
            most = min(most, int((offer.quota_left + ours) // offer.quota_units))
        found = max(found, most)
    return found


def alike(made: p.Rent, names: Sequence[str]) -> list[p.Rent]:
    """Return the rentals of machines that are alike: one, or all that a gang has."""
    if len(names) == 1:
        return [made]
    many = f"one of {len(names)} of {made.rental.offer} that a gang has together"
    reason = made.reason.but(says=f"{made.reason.says}; {many}: {', '.join(names)}")
    return [
        made.but(
            rental=made.rental.but(id=name, node=name, gang=names[0], gang_size=len(names)),
            reason=reason,
        )
        for name in names
    ]
