"""Whether a deadline can be met at all, and with the money that there is."""

import math
from collections.abc import Iterator, Mapping

from cloudwhale.control.preview_machines import called
from cloudwhale.control.preview_places import Places
from cloudwhale.model.job import Job
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.planning.fit import suits
from cloudwhale.planning.needs import spec_of
from cloudwhale.planning.renting import Till
from cloudwhale.planning.speeds import run_s
from cloudwhale.planning.stock import LONGEST_LEASE_S
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
    return earliest(places, job) if is_known(places, job) else None


def earliest(places: Places, job: Job) -> Reason | None:
    """Return the same of a job whose length may be a mere guess."""
    deadline, soonest = job.spec.deadline, _soonest(places, job)
    if deadline is None or soonest is None or soonest[0] <= deadline:
        return None
    return _late(soonest, deadline, places.now)


def too_long(places: Places, job: Job) -> Reason | None:
    """Return why a job takes longer than any machine is rented for; None: it does not."""
    ends = ((places.ends_at(option), called(option.offer)) for option in places.options(job))
    soonest = min(ends, default=None)
    if soonest is None or soonest[0] - places.now <= LONGEST_LEASE_S:
        return None
    says = (
        f"no machine is rented for longer than {span(LONGEST_LEASE_S)}, and the soonest for it, "
        f"{soonest[1]}, would need {span(soonest[0] - places.now)}"
    )
    return Reason(code=Code.NOTHING_FITS, says=says, change="a shorter `duration`, or a node here")


def late_here(places: Places, job: Job, node: str, ends_at: Instant) -> Reason | None:
    """Return why an owned node that a job gets now would not be done by its deadline."""
    deadline = job.spec.deadline
    if deadline is None or ends_at <= deadline or not is_known(places, job):
        return None
    reason = too_late(places, job)
    if reason is not None:
        return reason
    says = f"would be done {span(ends_at - deadline)} after its deadline, on {node}"
    sooner = min(_ends_rented(places, job, places.now), default=None)
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
    till, world = places.till, places.trial.world
    account = world.accounts.get(job.run)
    # Without the deadline nothing is kept to switch from spot.
    free = Till(world, places.trial.durations)
    affordable = any(free.refusal(job, one, account) is None for one in places.options(job))
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
    late = span(_up(at - deadline))
    says = f"the earliest that it could be done is {moment(at, now)}, on {where}: "
    change = f"a deadline {late} later, or a shorter `duration` if it takes less"
    return Reason(code=Code.TOO_LATE, says=f"{says}{late} after its deadline", change=change)


def _up(length_s: Seconds) -> Seconds:
    """Return a length that is shown as no less than it is: whole seconds, minutes or hours."""
    step_s = 1 if length_s < 3600 else 60 if length_s < 24 * 3600 else 3600
    return -(-length_s // step_s) * step_s


def _soonest(places: Places, job: Job) -> tuple[Instant, str] | None:
    """Return when a job could be done and where, those that it comes after done first."""
    jobs = {one.id: one for one in places.trial.jobs}
    known, asked = places.soonest, [job]
    while asked:
        last = asked[-1]
        first = [jobs[name] for name in last.after if name in jobs and name not in known]
        if first:
            asked += first
            continue
        asked.pop()
        done = [(_done(places, jobs, name), name) for name in last.after if name in jobs]
        begins_at, after = max(done, default=(places.now, ""))
        ends = (*_ends_here(places, last, begins_at), *_ends_rented(places, last, begins_at))
        at, where = min(ends, default=(math.inf, ""))
        once = f", once {jobs[after].spec.name} is done" if begins_at > places.now else ""
        known[last.id] = None if math.isinf(at) else (at, f"{where}{once}")
    return known[job.id]


def _done(places: Places, jobs: Mapping[str, Job], name: str) -> Instant:
    """Return when a job that another comes after is done at the earliest; a guess delays none."""
    soonest = places.soonest.get(name)
    if soonest is None or places.trial.durations.of(jobs[name].spec).source == "nothing":
        return places.now
    return soonest[0]


def _ends_here(places: Places, job: Job, begins_at: Instant) -> Iterator[tuple[Instant, str]]:
    """Yield when a job would be done on each owned node that it had to itself from then on."""
    spec = spec_of(job)
    for name in places.homes(job):
        devices = [d.device for d in places.trial.empty[name].devices if suits(spec, d.device)]
        models = {device.model for device in devices} if spec.resources.gpu.count else {None}
        for model in sorted(models, key=str):
            yield begins_at + run_s(job, model, 0, places.trial.durations), name


def _ends_rented(places: Places, job: Job, begins_at: Instant) -> Iterator[tuple[Instant, str]]:
    """Yield when a job would be done on each kind of machine, as surely as a deadline asks.

    A machine that is to be there when it can begin is launched before.
    """
    stock = places.stock
    if stock is None:
        return
    for offer, late_s in zip(stock.offers, stock.late_s(job), strict=True):
        if math.isfinite(late_s):
            yield max(begins_at, places.now + offer.boot_s) + float(late_s), called(offer)
