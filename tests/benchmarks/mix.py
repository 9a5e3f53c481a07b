"""The seed's workload: 200 jobs of three kinds and priorities, on four small nodes."""

from cloudwhale.model.node import Node
from cloudwhale.simulation.playing import Arrival
from cloudwhale.simulation.traces import synthetic

JOBS = 200
HOURS = 12.0
"""Over which the jobs arrive."""
NOISE = 2.0
"""What a file says of its job's length is off by up to this factor, either way."""


def nodes() -> list[Node]:
    """Return four small nodes: six GPUs of four models."""
    return synthetic.small_nodes()


def arrivals(seed: int, noise: float = NOISE) -> list[Arrival]:
    """Return the jobs of one seed, by arrival."""
    return synthetic.mixed(seed, synthetic.Mix(JOBS, HOURS, noise))


def load(jobs: list[Arrival]) -> float:
    """Return the work asked for beside what all devices could do while jobs arrive."""
    return synthetic.load(jobs, HOURS)
