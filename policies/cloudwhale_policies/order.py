"""Who is next, one by one: first come first served, or by priority."""

from collections.abc import Sequence

from cloudwhale.model.job import Job
from cloudwhale.spi.policy import Order, Queueing


class Fifo:
    """Whoever came first."""

    ages = False

    def rank(self, jobs: Sequence[Job], queueing: Queueing) -> Sequence[tuple[Job, ...]]:
        """Return the jobs by submission, ties by id; each is a class of its own."""
        return [(job,) for job in sorted(jobs, key=lambda job: (job.submitted_at, job.id))]


class Priority:
    """Whoever matters most; among equals whoever came first."""

    ages = False

    def rank(self, jobs: Sequence[Job], queueing: Queueing) -> Sequence[tuple[Job, ...]]:
        """Return the jobs by falling priority, then by submission, ties by id; one by one."""
        ranked = sorted(jobs, key=lambda job: (-job.spec.priority, job.submitted_at, job.id))
        return [(job,) for job in ranked]


_: tuple[Order, ...] = (Fifo(), Priority())  # checked by the type checkers
