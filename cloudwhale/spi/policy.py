"""The seams of taste: what a policy is asked, and what it may know."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from cloudwhale.model.job import Job
from cloudwhale.model.units import GiB, Instant, Seconds


@dataclass(frozen=True, slots=True)
class Room:
    """A place that a job could have, or many: then every amount is an array of one for each."""

    wants_cpu: float
    wants_memory_gib: GiB
    wants_disk_gib: GiB
    wants_gpus: float
    """Devices times share."""
    wants_gpu_gib: GiB
    """Memory of all the devices that it would get."""
    wants_disk_io_mb_s: float
    """0: it did not say."""
    wants_network_mb_s: float
    cpu: float
    """What the node has, used or not; so are the next three."""
    memory_gib: GiB
    disk_gib: GiB
    gpus: float
    free_cpu: float
    """What is free there before the job comes; so are the others that are free."""
    free_memory_gib: GiB
    free_disk_gib: GiB
    free_gpus: float
    """Free share of all devices of the node."""
    gpu_gib: GiB
    """Memory of all devices of the node."""
    free_gpu_gib: GiB
    free_disk_io_mb_s: float
    """Infinite where nobody has said what the node can do."""
    free_network_mb_s: float
    done_s: Seconds
    """Until it would be done here, what must be fetched first included."""
    soonest_s: Seconds
    """The same for the best place that it could have on these nodes if they were idle."""
    run_s: Seconds
    """How long it would run here, beside the others."""
    busy_s: Seconds
    """Until the last of those that run here is expected to end; 0 on an idle node."""
    needs: float
    """How many labels, images and inputs it would like to find."""
    found: float
    """How many of them are here."""
    throughput: float
    """Which part of its speed it is expected to keep beside the others on its fullest device."""
    sm: float
    """Share of time in which kernels were seen to run on its fullest device."""
    lost_gpus: float
    """Devices that waiting and usual jobs could use no longer: what it takes and what it spoils."""


def _none(job: Job) -> float:
    """Return 0: nothing has been said."""
    return 0.0


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
    length_s: Callable[[Job], Seconds] = _none
    """How long a job is expected to run from its first start to its end."""
    served: Callable[[Job], float] = _none
    """Device-seconds that a job has had by now, in all its attempts."""


def priority_class(priority: int) -> int:
    """Return the class of a priority: 2 interactive, 1 normal, 0 batch.

    Of two classes the higher goes first and may have jobs of the lower one stopped; inside a class
    priority only weighs.
    """
    return (priority >= NORMAL_FROM) + (priority >= INTERACTIVE_FROM)


# Thirds of 0 to 100; the default of 50 is in the middle one.
NORMAL_FROM, INTERACTIVE_FROM = 34, 67


class Order(Protocol):
    """Who is next."""

    @property
    def ages(self) -> bool:
        """Say whether it puts those first that have waited too long: only then are they named."""
        ...

    @property
    def strict(self) -> bool:
        """Say whether nobody may pass a job that does not fit yet."""
        ...

    @property
    def displaces(self) -> bool:
        """Say whether jobs that run are ranked with those that wait, and stopped for them.

        Then `rank` is asked for both, and who stands behind what fits gives way.
        """
        ...

    def next_change_s(self, job: Job, queueing: Queueing) -> Seconds | None:
        """Return after how long a running job's rank changes by itself; None: it does not."""
        ...

    def rank(self, jobs: Sequence[Job], queueing: Queueing) -> Sequence[tuple[Job, ...]]:
        """Return every job once, in classes: first class first, in each class first first.

        A class is matched to places as a whole before the next one is looked at. Called once a
        round; ties end at the job's id.
        """
        ...


class Score(Protocol):
    """How good a feasible place is."""

    @property
    def weights(self) -> Mapping[str, float]:
        """Return the named scores with what each counts, in order; they sum to 1.

        The setting `weights` goes before it.
        """
        ...

    def score(self, room: Room) -> tuple[float, ...]:
        """Return each named score in [0, 1], in order; their weighted sum decides.

        Called for one place or for many, so formulas use `+ - * / **` and `spi.amounts` alone.
        """
        ...
