"""Which machines are rented for the jobs that had better not wait."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from cloudwhale.model.job import Job
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant, MicroUsd, Seconds


@dataclass(frozen=True, slots=True)
class Rentable:
    """A job with the offers that could run it; each with what that is expected to take."""

    job: Job
    runs_s: Mapping[str, Seconds]
    """Expected run time on each offer that fits, by the offer's id, boot left out."""
    costs: Mapping[str, MicroUsd]
    """Expected cost on each of them with a known price, boot and billing minimum included."""


@dataclass(frozen=True, slots=True)
class RentalProblem:
    """All that is to be rented for in one round."""

    now: Instant
    jobs: Sequence[Rentable]
    """In the order of the round: who comes first gets the money first."""
    offers: Mapping[str, Offer]


@dataclass(frozen=True, slots=True)
class Choice:
    """One machine, and the jobs that it is rented for."""

    offer: str
    jobs: tuple[str, ...]
    says: str


class Rent(Protocol):
    """Chooses machines; whether there is money for them is not its question."""

    def choose(self, problem: RentalProblem) -> Sequence[Choice]:
        """Return the machines to rent; a job in none of them waits. Called once a round."""
        ...
