"""Who is next: first come first served, or by priority."""

from collections.abc import Sequence

from cloudwhale.model.job import Job
from cloudwhale.model.units import Instant


class Fifo:
    """Whoever came first."""

    def rank(self, jobs: Sequence[Job], now: Instant) -> Sequence[Job]:
        """Return the jobs by submission, ties by id."""
        return sorted(jobs, key=lambda job: (job.submitted_at, job.id))


class Priority:
    """Whoever matters most; among equals whoever came first."""

    def rank(self, jobs: Sequence[Job], now: Instant) -> Sequence[Job]:
        """Return the jobs by falling priority, then by submission, ties by id."""
        return sorted(jobs, key=lambda job: (-job.spec.priority, job.submitted_at, job.id))
