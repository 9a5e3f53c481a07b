"""What one node of a job needs: devices, memory, cores, disk."""

from cloudwhale.model.units import GiB
from cloudwhale.model.value import Value


class Span(Value):
    """A range with open ends; both ends belong to it."""

    least: float = 0.0
    most: float | None = None

    def holds(self, amount: float) -> bool:
        """Say whether an amount lies in the range."""
        return amount >= self.least and (self.most is None or amount <= self.most)


class GpuRequest(Value):
    """GPUs asked for, per node of the job."""

    count: int = 0
    count_most: int | None = None
    """Upper end of a count range (`1..2`); the planner may give any count between."""
    memory_gib: Span = Span()
    """Nominal memory of the model asked for, and the least that must be free for packing."""
    models: tuple[str, ...] = ()
    """Canonical names; empty means any."""
    share: float = 1.0
    """Compute share per device, in (0, 1]."""


class Resources(Value):
    """What one node of the job needs."""

    gpu: GpuRequest = GpuRequest()
    cpu: float = 1.0
    memory_gib: GiB | None = None
    disk_gib: GiB | None = None
    shm_gib: GiB | None = None
    disk_io_mb_s: float | None = None
    network_mb_s: float | None = None
