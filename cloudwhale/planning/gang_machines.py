"""The machines of a gang: had together or not at all, kept together, and who sits where on them."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from cloudwhale.model.job import Job, Member, Placement
from cloudwhale.model.node import NodeState
from cloudwhale.model.rental import COMES_OR_IS, Rental, RentalState
from cloudwhale.model.units import NOTHING, MicroUsd
from cloudwhale.model.world import Account, World
from cloudwhale.planning import ledger, projects
from cloudwhale.planning.inventory import Free
from cloudwhale.planning.leasing import held_for, own_left, pledges

Seats = Callable[[Job, Free, Rental], Placement | None]
"""Says which devices a job gets on one machine."""


def siblings(world: World, rental: Rental) -> list[Rental]:
    """Return the machines of a rental's gang, itself among them, in the order of their ranks."""
    if not rental.gang:
        return [rental]
    mine = [one for one in world.rentals.values() if one.gang == rental.gang]
    return sorted(mine, key=lambda one: (len(one.id), one.id))


def is_whole(world: World, rental: Rental) -> bool:
    """Say whether all machines of a gang are on their way or there; true of one that has none."""
    if not rental.gang:
        return True
    mine = siblings(world, rental)
    return len(mine) == rental.gang_size and all(_is_had(one, world) for one in mine)


def _is_had(rental: Rental, world: World) -> bool:
    if rental.ended_at is not None or rental.state not in COMES_OR_IS or rental.boot.has_failed:
        return False
    node = world.nodes.get(rental.node or "")
    is_there = node is not None and node.state is NodeState.READY
    return is_there or rental.state is not RentalState.READY


def is_ready(world: World, rental: Rental) -> bool:
    """Say whether all machines of a gang are there."""
    mine = siblings(world, rental)
    return is_whole(world, rental) and all(one.state is RentalState.READY for one in mine)


def places(
    jobs: Sequence[Job],
    machines: Sequence[tuple[Rental, Free]],
    seats: Seats,
    is_early: Callable[[Job], bool],
) -> Iterator[tuple[Job, Placement]]:
    """Yield where gangs go that find room on all of some machines, first come, first served.

    Before its planned start none passes one that was to start earlier and has no room yet.
    """
    left: list[tuple[Rental, Free]] = list(machines)
    is_behind = False
    for job in jobs:
        if is_behind and is_early(job):
            continue
        found = [seats(job, free, rental) for rental, free in left]
        members = [
            Member(node=place.node, devices=place.devices) for place in found if place is not None
        ]
        if len(members) < len(left):
            is_behind = True
            continue
        yield (
            job,
            Placement(node=members[0].node, devices=members[0].devices, others=tuple(members[1:])),
        )
        left = [
            (rental, free if place is None else free.less(job.wants, place))
            for (rental, free), place in zip(left, found, strict=True)
        ]


# -- longer leases ---------------------------------------------------------------------------


def sharing(
    world: World, rental: Rental, jobs: Sequence[Job], longer: Collection[str]
) -> tuple[World, list[Job]]:
    """Return the world in which one machine of a gang may take its part of the money alone.

    All that have yet to be kept for longer get the same, so that all can be, or none is. What is
    pledged to them they have in common. `longer`: ids of those that are kept for longer already.
    """
    mine = siblings(world, rental)
    many = sum(one.renewal is None and one.id not in longer for one in mine)
    if many <= 1:
        return world, list(jobs)
    others = {one.id for one in mine if one.id != rental.id}
    alone = replace(
        world, rentals={name: one for name, one in world.rentals.items() if name not in others}
    )
    kept = dict(projects.pledges(alone, but=rental.id))
    kept[rental.payer] = pledges(alone, rental.payer, but=rental.id)
    accounts = {
        name: _part(account, kept.get(name, NOTHING), many)
        for name, account in projects.less(world, dict.fromkeys(rental.projects, NOTHING)).items()
    }
    return replace(alone, accounts=accounts), [_bounded(job, world, alone, many) for job in jobs]


def _part(account: Account, pledged: MicroUsd, many: int) -> Account:
    """Return an account that has one of so many parts left of what it has not pledged to others."""
    if account.limit is None:
        return account
    free = max(0, ledger.left(account) - pledged) // many
    return account.but(limit=MicroUsd(account.reserved + account.spent + pledged + free))


def _bounded(job: Job, world: World, alone: World, many: int) -> Job:
    """Return a job of whose own budget one machine has so much as its part."""
    left = own_left(job, held_for(world, job))
    if left is None:
        return job
    budget = MicroUsd(job.spent + held_for(alone, job) + left // many)
    return job.but(spec=job.spec.but(budget=budget))
