"""What a rented machine's bill was for: its lines, one for each job that pays; pure."""

from cloudwhale.model import event as e
from cloudwhale.model.cost import CostLine, Items, Purposes
from cloudwhale.model.job import Job
from cloudwhale.model.rental import Rental
from cloudwhale.model.run import Run


def of_charge(
    event: e.Charged, rental: Rental | None, job: Job | None, run: Run | None
) -> CostLine:
    """Return the line of a charge: as it was frozen, or what is known of one without a line."""
    if event.line is not None:
        return event.line
    offer = None if rental is None else rental.taken
    began_at = event.at if rental is None or rental.requested_at is None else rental.requested_at
    return CostLine(
        rental=event.rental,
        run=event.payer,
        user="" if run is None else run.user,
        project=event.project,
        job=event.job,
        family="" if job is None else job.spec.name,
        provider="" if offer is None else offer.provider,
        market="" if offer is None else offer.market,
        region="" if offer is None else offer.region,
        zone="" if offer is None else offer.zone,
        type="" if offer is None else offer.type or offer.id,
        gpu="" if offer is None or not offer.facts.devices else offer.facts.devices[0].model,
        began_at=began_at,
        ended_at=event.at if rental is None or rental.ended_at is None else rental.ended_at,
        spent=event.amount,
        items=Items(machine=event.amount),
        purposes=Purposes(useful=event.amount),
        on_demand=None,
        gpu_s=0.0,
    )
