"""What is known of the machines that some jobs are on, or were: those that went back too."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce

from cloudwhale.model import event as e
from cloudwhale.model import plan as p
from cloudwhale.model.cost import CostLine, CostSum
from cloudwhale.model.job import Job
from cloudwhale.model.rental import Rental, RentalState
from cloudwhale.model.requests import StoreUse
from cloudwhale.model.units import NOTHING, Instant, MicroUsd
from cloudwhale.planning.costing import so_far
from cloudwhale.reporting.receipt import Bill, Books
from cloudwhale.spi.store import CostQuery, Store


def books_of(
    store: Store, jobs: Iterable[Job], run: str | None = None, now: Instant | None = None
) -> Books:
    """Return nodes and rented machines of some jobs, and what was spent on them.

    Of a run, where one is given, its bills too; of its machines that are not back what they have
    come to at `now`, where that is given. Nothing is read of what is owned, but the list of nodes.
    """
    nodes = {node.id: node for node in store.nodes()}
    here = list(jobs)
    rentals = _rentals(store, here, {name for name, node in nodes.items() if node.owned})
    if run is None:
        away = {job.run for job in here if job.placement and job.placement.node in rentals}
        found = [one for name in sorted(away) for one in _by_job(store, name)]
        sums = {one.key[0]: one for one in found}
        spent: dict[str | None, int] = {name: one.spent for name, one in sums.items()}
        return Books(spent=spent, nodes=nodes, rentals=rentals, sums=sums)
    bills = [_bill(store, rental) for rental in store.rentals(run)]
    planned, one_each = _planned(store, bills)
    return Books(
        spent=store.spent(run),
        nodes=nodes,
        rentals=rentals,
        bills=tuple(bills),
        planned=planned,
        one_each=one_each,
        lines=(*store.cost_lines(CostQuery(run=run)), *_running(store, bills, now)),
        sums={one.key[0]: one for one in _by_job(store, run)},
    )


def _by_job(store: Store, run: str) -> Sequence[CostSum]:
    return store.costs(CostQuery(by=("job",), run=run))


def _running(store: Store, bills: Sequence[Bill], now: Instant | None) -> Iterator[CostLine]:
    """Yield what machines that are not back would be charged now; the world is read for them."""
    there = {bill.rental.id for bill in bills if bill.rental.state is not RentalState.RETURNED}
    if not there or now is None:
        return
    world = store.world(now)
    for rental in world.rentals.values():
        if rental.id in there:
            yield from so_far(rental, world)


def _rentals(store: Store, jobs: Iterable[Job], owned: set[str]) -> Mapping[str, Rental]:
    places = {job.placement.node for job in jobs if job.placement is not None}
    found: dict[str, Rental] = {}
    for name in sorted(places - owned):  # a rental has the name of its node
        for told in store.events(name):
            if isinstance(told.event, e.RentalChanged):
                found[name] = told.event.rental
    return found


def _bill(store: Store, rental: Rental) -> Bill:
    """Return what was charged and freed for a machine."""
    charges: dict[str, MicroUsd] = {}
    released = NOTHING
    used: dict[str, StoreUse] = {}
    for told in store.events(rental.id):
        match told.event:
            case e.Charged(job=str(job), amount=amount):
                charges[job] = MicroUsd(charges.get(job, NOTHING) + amount)
            case e.Released(amount=amount):
                released = MicroUsd(released + amount)
            case e.StoreUsed(agent=agent, use=use):
                used[agent] = use  # the newest holds what those before it have said
            case _:
                pass
    return Bill(rental, charges, released, used=reduce(StoreUse.and_, used.values(), StoreUse()))


Expected = tuple[MicroUsd | None, MicroUsd | None]
"""Of machines as they were planned, and of a machine for each job alone; None: nobody knows."""


def _planned(store: Store, bills: Sequence[Bill]) -> Expected:
    """Return what the rounds that rented expected of the same jobs, so and with a machine each.

    Each round counts once, on both sides: a machine that takes the place of one that was taken
    away would have had to be replaced too. Nobody knows where a round has not worked it out, or
    where a machine never came: its jobs are in the next round once more.
    """
    if any(bill.rental.requested_at is None for bill in bills):
        return None, None
    tenders = list(_tenders(store, bills))
    alone = [one.one_each for one in tenders if one.one_each is not None]
    if not tenders or len(alone) < len(tenders):
        return None, None
    return MicroUsd(sum(one.cost for one in tenders)), MicroUsd(sum(alone))


def _tenders(store: Store, bills: Sequence[Bill]) -> Iterator[p.Tender]:
    """Yield the tenders of the rounds that rented machines, each round's once."""
    rounds: set[int] = set()
    for bill in bills:
        rental = bill.rental
        first = next(iter(rental.jobs), None)
        for stored, _ in store.rounds(first) if first is not None else ():
            if stored.number not in rounds and _rents(stored.plan, rental.id):
                rounds.add(stored.number)
                yield from (one for one in stored.plan.tenders if one.payer == rental.payer)


def _rents(plan: p.Plan, rental: str) -> bool:
    return any(isinstance(step, p.Rent) and step.rental.id == rental for step in plan.steps)
