"""Whether a deadline can be met at all, and with the money that there is."""

import math
from collections.abc import Iterator

from cloudwhale.control.preview_machines import called
from cloudwhale.control.preview_places import Places
from cloudwhale.model.job import Job
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.units import Instant
from cloudwhale.planning.fit import suits
from cloudwhale.planning.needs import spec_of
from cloudwhale.planning.renting import Till
from cloudwhale.planning.speeds import run_s
from cloudwhale.reporting.figures import moment, span


def is_known(places: Places, job: Job) -> bool:
    """Say whether a job has a deadline, and a length that somebody has said or seen.

    A mere guess refuses nothing.
    """
    return job.spec.deadline is not None and places.trial.durations.of(job.spec).source != "nothing"


def too_late(places: Places, job: Job) -> Reason | None:
    """Return why no place at all would have done a job by its deadline; None: some might.

    The earliest end is named, and where.
    """
    deadline = job.spec.deadline
    if deadline is None or not is_known(places, job):
        return None
    soonest = min((*_ends_here(places, job), *_ends_rented(places, job)), default=None)
    if soonest is None or soonest[0] <= deadline:
        return None
    return _late(soonest, deadline, places.now)


def late_here(places: Places, job: Job, node: str, ends_at: Instant) -> Reason | None:
    """Return why an owned node that a job gets now would not be done by its deadline."""
    deadline = job.spec.deadline
    if deadline is None or ends_at <= deadline or not is_known(places, job):
        return None
    reason = too_late(places, job)
    if reason is not None:
        return reason
    says = f"would be done {span(ends_at - deadline)} after its deadline, on {node}"
    sooner = min(_ends_rented(places, job), default=None)
    if sooner is not None and sooner[0] <= deadline:
        says += f"; {sooner[1]} would be in time"
    return Reason(code=Code.TOO_LATE, says=says, change="a later deadline, or a faster machine")


def beyond_means(places: Places, job: Job) -> Reason | None:
    """Return why money and deadline cannot both be kept; None: without the deadline it lacks too.

    Asked of jobs that lack money: a budget goes before a deadline.
    """
    stock = places.stock
    if stock is None or not is_known(places, job):
        return None
    till = Till(places.trial.world, places.trial.durations)
    account = places.trial.world.accounts.get(job.run)
    affordable = any(till.refusal(job, one, account) is None for one in places.options(job))
    if not affordable and not places.homes(job):
        return None
    first = next(places.in_time(stock, job), None)
    if first is None:
        return None
    no = till.refusal(job, first, account)
    if no is None:
        return None
    says = f"{called(first.offer)} is the cheapest that would be in time for its deadline, and"
    return Reason(code=Code.TOO_LATE, says=f"{says} {no.says}", change=f"{no.change}, or wait")


def _late(soonest: tuple[Instant, str], deadline: Instant, now: Instant) -> Reason:
    at, where = soonest
    late = span(at - deadline)
    says = f"the earliest that it could be done is {moment(at, now)}, on {where}: "
    change = f"a deadline {late} later, or a shorter `duration` if it takes less"
    return Reason(code=Code.TOO_LATE, says=f"{says}{late} after its deadline", change=change)


def _ends_here(places: Places, job: Job) -> Iterator[tuple[Instant, str]]:
    """Yield when a job would be done on each owned node that it had to itself at once."""
    spec = spec_of(job)
    for name in places.homes(job):
        devices = [d.device for d in places.trial.empty[name].devices if suits(spec, d.device)]
        models = {device.model for device in devices} if spec.resources.gpu.count else {None}
        for model in sorted(models, key=str):
            yield places.now + run_s(job, model, 0, places.trial.durations), name


def _ends_rented(places: Places, job: Job) -> Iterator[tuple[Instant, str]]:
    """Yield when a job would be done on each kind of machine, as surely as a deadline asks."""
    stock = places.stock
    if stock is None:
        return
    for offer, late_s in zip(stock.offers, stock.late_s(job), strict=True):
        if math.isfinite(late_s):
            yield places.now + offer.boot_s + float(late_s), called(offer)
