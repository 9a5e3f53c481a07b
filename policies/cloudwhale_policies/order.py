"""Who is next, one by one: the plain orders beside the whale."""

from collections.abc import Callable, Sequence

from cloudwhale.model.job import Job
from cloudwhale.model.units import Seconds
from cloudwhale.spi.policy import Order, Queueing


class OneByOne:
    """An order of jobs that are never compared with one another's places; ties end at the id."""

    ages = False
    strict = False
    displaces = False

    def rank(self, jobs: Sequence[Job], queueing: Queueing) -> Sequence[tuple[Job, ...]]:
        """Return the jobs by their key, then by submission, ties by id; each is a class."""
        key = self.key(queueing)
        return [(job,) for job in sorted(jobs, key=lambda j: (key(j), j.submitted_at, j.id))]

    def key(self, queueing: Queueing) -> Callable[[Job], float]:
        """Return what the jobs are sorted by: the least is first."""
        return lambda job: job.submitted_at

    def next_change_s(self, job: Job, queueing: Queueing) -> Seconds | None:
        """Return None: nobody's rank beside the others changes while it runs."""
        return None


class Fifo(OneByOne):
    """Whoever came first; the setting `strict` says whether others may pass."""


class Priority(OneByOne):
    """Whoever matters most; among equals whoever came first."""

    def key(self, queueing: Queueing) -> Callable[[Job], float]:
        """Sort by falling priority."""
        return lambda job: -job.spec.priority


class Sjf(OneByOne):
    """Shortest job first; nobody passes one that does not fit, and nobody is stopped."""

    strict = True

    def key(self, queueing: Queueing) -> Callable[[Job], float]:
        """Sort by expected length."""
        return queueing.length_s


class Sgf(OneByOne):
    """Smallest GPU-time first: length times the part of all machines; strict, nobody is stopped."""

    strict = True

    def key(self, queueing: Queueing) -> Callable[[Job], float]:
        """Sort by expected length times size."""
        return lambda job: queueing.length_s(job) * queueing.size(job)


class Srtf(OneByOne):
    """Shortest remaining time first: who runs is stopped for whoever is done sooner."""

    displaces = True

    def key(self, queueing: Queueing) -> Callable[[Job], float]:
        """Sort by expected remaining time."""
        return queueing.remaining_s


class Srsf(OneByOne):
    """Shortest remaining service first: remaining time times the part of all machines."""

    displaces = True

    def key(self, queueing: Queueing) -> Callable[[Job], float]:
        """Sort by expected remaining time times size."""
        return lambda job: queueing.remaining_s(job) * queueing.size(job)


class Las(OneByOne):
    """Least attained service in two dimensions: GPUs times time (Tiresias, NSDI'19).

    Jobs sink through queues as they are served; within a queue whoever came first. No expectation
    takes part. A waiting job is promoted to the first queue when it has waited `promote` times as
    long as it has run; 0: never.
    """

    displaces = True

    def __init__(self, gpu_hours: Sequence[float] = (8.0,), promote: float = 0.0) -> None:
        self.levels_s = tuple(3600.0 * hours for hours in gpu_hours)
        self.promote = promote

    def key(self, queueing: Queueing) -> Callable[[Job], float]:
        """Sort by the number of thresholds that were passed."""
        return lambda job: self._queue(job, queueing)

    def _queue(self, job: Job, queueing: Queueing) -> int:
        ran_s = job.ran_s(queueing.now)
        if self.promote and queueing.now - job.submitted_at - ran_s > self.promote * ran_s > 0:
            return 0
        served = queueing.served(job)
        return sum(served >= level_s - CLOSE for level_s in self.levels_s)

    def next_change_s(self, job: Job, queueing: Queueing) -> Seconds | None:
        """Return when a running job will sink, if it runs on."""
        served = queueing.served(job)
        above = [level_s for level_s in self.levels_s if served < level_s - CLOSE]
        gpu = job.wants.gpu
        return (above[0] - served) / (gpu.count * gpu.share or 1.0) if above else None


CLOSE = 1e-6

_: tuple[Order, ...] = (Fifo(), Priority(), Sjf(), Sgf(), Srtf(), Srsf(), Las())  # for the checkers
