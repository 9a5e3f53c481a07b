"""How fast pretended machines are: neighbours, starts, stops."""

from dataclasses import dataclass

from cloudwhale.model.gpus import speed
from cloudwhale.model.job import JobSpec
from cloudwhale.model.units import Seconds
from cloudwhale.simulation.processes import Stops


@dataclass(frozen=True, slots=True)
class Physics:
    """How the pretended machines behave."""

    neighbour: float = 0.95
    """Throughput that is left for each other job on the same device; measured ones: 0.65 to 1."""
    start_s: Seconds = 1.0
    """From the order to the first instruction."""
    restore_s: Seconds = 30.0
    """What a resumed attempt needs on top before it goes on."""
    stop_s: Seconds = 10.0
    """From the order to stop to the end: signal, save, end."""
    saves_on_stop: bool = True
    """Whether a job that saves now and then also saves when it is told to stop, as it is asked to.
    Otherwise it works on for `stop_s`, and goes back to its last checkpoint."""

    @property
    def stops(self) -> Stops:
        """Return how programs take their stop signal."""
        return Stops(self.stop_s, self.saves_on_stop)


def true_speed(spec: JobSpec, model: str) -> float:
    """Return how fast a GPU model is for a job beside its reference; 1 when nobody knows."""
    said = spec.speeds.get(model)
    if said is not None:
        return said
    known = speed(model, spec.reference) if spec.reference is not None else None
    return 1.0 if known is None else known
