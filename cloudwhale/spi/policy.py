"""The seams of taste: what a policy is asked, and what it may know."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cloudwhale.model.job import Job, Resources
from cloudwhale.model.units import GiB, Instant


@dataclass(frozen=True, slots=True)
class DeviceRoom:
    """What is free on one device after all that is promised."""

    id: str
    model: str
    memory_gib: GiB
    """Nominal memory."""
    free_gib: GiB
    free_share: float


@dataclass(frozen=True, slots=True)
class Room:
    """A feasible place: what is free on a node, and the devices the job would get there."""

    node: str
    cpu: float
    memory_gib: GiB
    disk_gib: GiB
    free_cpu: float
    free_memory_gib: GiB
    free_disk_gib: GiB
    devices: tuple[DeviceRoom, ...]
    """Every device of the node."""
    chosen: tuple[str, ...]
    """Ids of the devices that the job would get."""


class Order(Protocol):
    """Who is next."""

    def rank(self, jobs: Sequence[Job], now: Instant) -> Sequence[Job]:
        """Return the jobs, first first; called once a round; ties end at the job's id."""
        ...


class Score(Protocol):
    """How good a feasible place is."""

    @property
    def names(self) -> tuple[str, ...]:
        """Name the scores that `score` gives, in order."""
        ...

    def score(self, wants: Resources, rooms: Sequence[Room]) -> Sequence[tuple[float, ...]]:
        """Score every place, each named score in [0, 1]; their mean decides.

        Called for every class of equal jobs in a round, with every feasible place at once.
        """
        ...
