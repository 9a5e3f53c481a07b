"""Wait or rent: who may start now, who waits for which start, and who had better be rented for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from cloudwhale.model.job import Job
from cloudwhale.model.units import Instant, Seconds


@dataclass(frozen=True, slots=True)
class Quote:
    """The least that a job could be rented for now; floats, as it is weighed and never paid."""

    cost_usd: float
    """Expected until the job is done: boot, billing minimum and restore included."""
    usd_h: float
    done_s: Seconds
    """Expected from now until it would be done there, boot included."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job that could start, as a wait policy sees it."""

    job: Job
    devices: float
    """Devices times share; of a job without GPUs the part of a node's CPUs that it takes."""
    length_s: Seconds | None
    """Expected remaining run time; None: nobody knows anything of it."""
    nodes: tuple[str, ...]
    """Ids of the nodes that could ever run it."""
    fits_now: tuple[str, ...]
    """Those of them that it fits on now, in every dimension."""
    quote: Quote | None
    """None: nothing that can be rented would do, or no money is left for it."""
    start_by: Instant | None
    """`wait.max` or the deadline demand that it has started by then; None: nothing does."""
    usd_h: float
    """What an hour of its waiting is worth."""


@dataclass(frozen=True, slots=True)
class Running:
    """A job that holds a place on a node."""

    job: Job
    node: str
    devices: float
    ran_s: Seconds
    length_s: Seconds | None
    """Expected run time from its start; None: nobody knows anything of it."""


@dataclass(frozen=True, slots=True)
class Waits:
    """All that a wait policy may know."""

    now: Instant
    waiting: Sequence[Waiting]
    """In the order of the round: first first."""
    running: Sequence[Running]
    devices: Mapping[str, float]
    """What each node that takes jobs has, by its id, in the same measure as the jobs."""
    free: Mapping[str, float]
    """What is free of it now."""
    ended_s: Sequence[Seconds] = field(default_factory=tuple[Seconds, ...])
    """How long jobs have run that have ended, by project and name, newest last in each."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a wait policy says of one job."""

    kind: Literal["start", "wait", "rent"]
    """`start`: now, on `node` or wherever it fits. `wait`: not now, even where it fits."""
    says: str
    node: str = ""
    at: Instant | None = None
    """When it is expected to start here, or is to be asked again, if it waits."""
    fixed: bool = False
    """Whether it starts on `node` or not at all now: room elsewhere is planned for others."""


class Wait(Protocol):
    """Decides for all jobs that could start, together."""

    @property
    def needs_quotes(self) -> bool:
        """Say whether it has nothing to say where nothing can be rented; then it is not asked."""
        ...

    def verdicts(self, waits: Waits) -> Mapping[str, Verdict]:
        """Return a verdict for each job, by its id; one that is not named may start if it fits.

        Called once a round. `rent` may only be said of jobs with a quote.
        """
        ...
