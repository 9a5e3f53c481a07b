"""What a play begins with: machines, arrivals, physics, clouds, and what goes wrong."""

from collections.abc import Sequence
from dataclasses import dataclass

from cloudwhale.model.job import JobSpec
from cloudwhale.model.node import Node
from cloudwhale.model.units import Instant, MicroUsd, Seconds
from cloudwhale.simulation.cloud import Shelf
from cloudwhale.simulation.executing import Physics
from cloudwhale.simulation.faults import Fault


@dataclass(frozen=True, slots=True)
class Arrival:
    """A job that will come, and what only the world knows of it."""

    at: Instant
    job: str
    """Its id."""
    spec: JobSpec
    work_s: Seconds
    """How long it truly runs, alone on the GPU model that its spec has as reference."""
    after: tuple[str, ...] = ()
    """Ids of jobs that must complete first."""


@dataclass(frozen=True, slots=True)
class Offered:
    """A cloud that machines can be rented from."""

    name: str
    """What its provider is called."""
    shelves: Sequence[Shelf]
    seed: int = 0
    """Of which machine is preempted when, and boots how slowly."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a play begins with."""

    nodes: Sequence[Node]
    """Ready ones."""
    arrivals: Sequence[Arrival]
    physics: Physics = Physics()
    at_most_s: Seconds = 30 * 24 * 3600.0
    """The play is broken off then: some jobs can never run."""
    clouds: Sequence[Offered] = ()
    faults: Sequence[Fault] = ()
    budget: MicroUsd | None = None
    """What all jobs together may spend; None: nothing is rented."""
    heartbeat_s: Seconds | None = None
    """How often idle agents are heard. None: every minute where something goes wrong, else never,
    so that nothing happens between the events of a long trace."""
