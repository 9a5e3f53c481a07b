"""How the deadline of a job is kept that would start on a machine which may be taken away."""

from collections.abc import Mapping
from typing import Any

from cloudwhale.control.preview_places import Places
from cloudwhale.model.job import Job
from cloudwhale.model.offer import Offer
from cloudwhale.planning.stock import SURE
from cloudwhale.planning.switching import MAY_SWITCH, from_spot
from cloudwhale.reporting.figures import cents, hour, percent


def switch_fields(places: Places, job: Job, offer: Offer) -> Mapping[str, Any]:
    """Return what a job's line says of its deadline; nothing without one, or not on spot."""
    if offer.market != "spot" or job.spec.deadline is None:
        return {}
    is_gang = job.spec.nodes > 1
    if is_gang or job.spec.market not in MAY_SWITCH:
        says = (
            f"it {'is a gang' if is_gang else 'wants spot alone'}: its deadline is kept with "
            f"{percent(SURE)}, and nothing switches to on-demand for it"
        )
        return {"deadline_says": says}
    known = places.switches.known.get(job.id)
    if known is None:
        return {}
    found = from_spot(known, offer)
    says = (
        f"switches to on-demand at {hour(found.at, places.now)} at the latest, for up to "
        f"{cents(found.may_cost)} USD"
    )
    return {"switches_at": found.at, "switch_worst": found.may_cost, "deadline_says": says}
