"""What is known of the machines that some jobs are on, or were: those that went back too."""

from collections.abc import Iterable, Mapping

from cloudwhale.model.event import RentalChanged
from cloudwhale.model.job import Job
from cloudwhale.model.rental import Rental
from cloudwhale.reporting.receipt import Books
from cloudwhale.spi.store import Store


def books_of(store: Store, jobs: Iterable[Job], run: str | None = None) -> Books:
    """Return nodes and rented machines of some jobs, and what a run has spent where one is given.

    Nothing is read of what is owned, but the list of nodes.
    """
    nodes = {node.id: node for node in store.nodes()}
    return Books(
        spent={} if run is None else store.spent(run),
        nodes=nodes,
        rentals=_rentals(store, jobs, {name for name, node in nodes.items() if node.owned}),
    )


def _rentals(store: Store, jobs: Iterable[Job], owned: set[str]) -> Mapping[str, Rental]:
    places = {job.placement.node for job in jobs if job.placement is not None}
    found: dict[str, Rental] = {}
    for name in sorted(places - owned):  # a rental has the name of its node
        for told in store.events(name):
            if isinstance(told.event, RentalChanged):
                found[name] = told.event.rental
    return found
