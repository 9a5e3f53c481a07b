"""Who sits where on a rented machine."""

from dataclasses import replace

from cloudwhale.model import plan as p
from cloudwhale.model.job import Job, Placement
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Rental
from cloudwhale.planning.fit import fit
from cloudwhale.planning.inventory import Free
from cloudwhale.planning.needs import spec_of


def seated(job: Job, free: Free, rental: Rental) -> Placement | None:
    """Return a job's place on a machine: the devices it was planned for, else any that do."""
    found = planned_seat(job, free, rental) or fit(spec_of(job), free)
    return found if isinstance(found, Placement) else None


def planned_seat(job: Job, free: Free, rental: Rental) -> Placement | None:
    """Return the place on the devices that it was planned for, where these have room for it.

    Others would do now, but then those to come might find no device whole.
    """
    seat = rental.seats.get(job.id)
    if not seat or max(seat) >= len(free.devices):
        return None
    there = replace(free, devices=tuple(free.devices[at] for at in seat))
    found = fit(spec_of(job), there)
    return found if isinstance(found, Placement) else None


def place_step(job: Job, place: Placement, rental: Rental) -> p.Place:
    """Return the step that starts a job on a machine, or on machines, rented for it."""
    devices = f" on {', '.join(place.devices)}" if place.devices else ""
    says = f"{place.node}{devices} was rented for it ({rental.offer})"
    if place.others:
        says = f"{', '.join(place.nodes)} were rented for its gang ({rental.offer})"
    code = Code.PLACED
    if job.checkpoint is not None:
        code, says = Code.RESUMES, f"{says}; resumes from {job.checkpoint.name}"
    reason = Reason(code=code, says=says)
    return p.Place(job=job.id, attempt=job.attempt + 1, placement=place, reason=reason)
