"""What all events have in common: a time, and what it happened to."""

from cloudwhale.model.job import Peaks
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.model.value import Wire


class Happened(Wire):
    """Something that happened at a time."""

    at: Instant


class OfJob(Happened):
    """Something that happened to a job."""

    job: str


class OfAttempt(OfJob):
    """Something that happened to one attempt of a job."""

    attempt: int


class OfNode(Happened):
    """Something that happened to a node that is known."""

    node: str


class Leaves(OfJob):
    """A job leaves its place, or the queue."""

    ran_s: Seconds | None = None
    """How long the attempt ran, as its agent measured it; None when nobody did."""
    peaks: Peaks = Peaks()
    """The most that the attempt used."""
