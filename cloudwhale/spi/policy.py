"""The seams of taste: what a policy is asked, and what it may know."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from cloudwhale.model.job import Job, Resources
from cloudwhale.model.units import GiB, Instant, Seconds


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


@dataclass(frozen=True, slots=True)
class Queueing:
    """What an order may know beside the jobs that could start."""

    now: Instant
    remaining_s: Callable[[Job], Seconds]
    """How long a job is still expected to run, alone on its reference GPU; never 0."""
    size: Callable[[Job], float]
    """Which part of all machines a job takes, of that resource of which it takes most: 0 to 1."""
    use: Mapping[str, Seconds] = field(default_factory=dict[str, Seconds])
    """Device-seconds that each project has used, fading, those of what runs included."""
    shares: Mapping[str, float] = field(default_factory=dict[str, float])
    """What each project is entitled to, beside the others; one that is not named has 1."""
    devices: float = 1.0
    """Devices there are, or machines where there are none: 1 at least."""
    aged: tuple[Job, ...] = ()
    """Jobs that have waited for so long that they go before all others, first first."""


class Order(Protocol):
    """Who is next."""

    def rank(self, jobs: Sequence[Job], queueing: Queueing) -> Sequence[tuple[Job, ...]]:
        """Return every job once, in classes: first class first, in each class first first.

        A class is matched to places as a whole before the next one is looked at. Called once a
        round; ties end at the job's id.
        """
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
