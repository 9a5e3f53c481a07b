"""Books of a run whose machines are given: lines and sums as the store would have them."""

from typing import Any

from cloudwhale.model.cost import CostLine
from cloudwhale.model.rental import RentalState
from cloudwhale.model.units import NOTHING
from cloudwhale.planning import costing
from cloudwhale.planning.cost_sums import sums
from cloudwhale.planning.projects import egress_paid
from cloudwhale.reporting.receipt import Bill, Books
from cloudwhale.spi.store import CostQuery


def lines_of(bill: Bill) -> tuple[CostLine, ...]:
    """Return the lines of a machine that is back, for what each of its jobs was charged."""
    rental = bill.rental
    until = rental.requested_at if rental.ended_at is None else rental.ended_at
    egress = egress_paid(rental.but(reserved=rental.spent), NOTHING)
    made = costing.lines(rental, bill.charges, egress, costing.NOTHING_KNOWN, until or 0.0)
    return tuple(made[job] for job in sorted(made))


def books_with(*bills: Bill, **fields: Any) -> Books:
    """Make the books of a run whose machines are back, or never came."""
    back = [bill for bill in bills if bill.rental.state is RentalState.RETURNED]
    lines = tuple(line for bill in back for line in lines_of(bill))
    by_job = sums(lines, CostQuery(by=("job",)))
    of_all: dict[str, Any] = {
        "spent": {one.key[0]: one.spent for one in by_job},
        "sums": {one.key[0]: one for one in by_job},
    }
    return Books(bills=bills, lines=lines, **{**of_all, **fields})
