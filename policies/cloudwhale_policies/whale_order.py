"""The Whale order: class, then share of the project, then least work first, older jobs sooner."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from math import floor, log2

from cloudwhale.model.job import Job
from cloudwhale.model.units import Seconds
from cloudwhale.spi.policy import Order, Queueing, priority_class

Key = tuple[int, int, int, float, float, str]

PRIORITY_STEP = 8.0
"""Points of priority that weigh, inside a class, like half of the work."""
BAND = 2.0
"""Doublings of work that are matched together: twice and four times the work are one class."""
AGE = 0.3
"""A second of waiting counts like this much of a second of length, when work is weighed."""
EVEN_S: Seconds = 3600.0
"""Projects are not told apart by less than this of all machines' time."""
NO_SHARE = 99
"""Level of a project that is entitled to nothing: behind all others of its class."""


class Whale:
    """Class by priority; then who has used least of its share; then who is done soonest."""

    ages = True
    strict = False
    displaces = False

    def rank(self, jobs: Sequence[Job], queueing: Queueing) -> Sequence[tuple[Job, ...]]:
        """Return those that have waited too long one by one, then classes of about equal work.

        The work of a job is what it is expected to take of all machines, times its remaining time;
        it counts for less the longer the job has waited beside its length.
        """
        first = {job.id for job in queueing.aged}
        behind = _levels(jobs, queueing)
        rest = sorted((_key(job, queueing, behind), job) for job in jobs if job.id not in first)
        classes: list[tuple[Job, ...]] = [(job,) for job in queueing.aged]
        for _, members in groupby(rest, key=lambda pair: pair[0][:3]):
            classes.append(tuple(job for _, job in members))
        return classes

    def next_change_s(self, job: Job, queueing: Queueing) -> Seconds | None:
        """Return None: a running job only becomes shorter, and is stopped where that pays."""
        return None


def _key(job: Job, queueing: Queueing, behind: Mapping[str, int]) -> Key:
    """Return what a job is sorted by; the first three parts are its class."""
    spec = job.spec
    length_s = queueing.remaining_s(job)
    waited_s = max(0.0, queueing.now - job.submitted_at - job.ran_s(queueing.now))
    work = length_s * queueing.size(job) * length_s / (length_s + AGE * waited_s)
    bits = log2(max(work, 1e-9)) - spec.priority / PRIORITY_STEP
    band = floor(bits / BAND)
    return (
        -priority_class(spec.priority), behind[spec.project], band,
        bits, job.submitted_at, job.id,
    )  # fmt: skip


def _levels(jobs: Iterable[Job], queueing: Queueing) -> Mapping[str, int]:
    """Return how often each waiting project's use, by its share, doubles that of the least served.

    An hour of all machines, split by the shares, is given to each before, so that little use of
    a young project does not outweigh anything.
    """
    shares = {job.spec.project: queueing.shares.get(job.spec.project, 1.0) for job in jobs}
    entitled = sum(share for share in shares.values() if share > 0)
    if entitled <= 0:
        return dict.fromkeys(shares, NO_SHARE)
    even = EVEN_S * queueing.devices / entitled
    served = {
        project: queueing.use.get(project, 0.0) / share + even
        for project, share in shares.items()
        if share > 0
    }
    least = min(served.values())
    return {
        project: floor(log2(served[project] / least)) if project in served else NO_SHARE
        for project in shares
    }


_: Order = Whale()  # checked by the type checkers
