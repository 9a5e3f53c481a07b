"""A machine with devices: what it has, and what is free on it."""

from enum import StrEnum
from functools import cached_property

from cloudwhale.model.units import GiB, Instant, Seconds
from cloudwhale.model.value import Value


class Device(Value):
    """One GPU."""

    id: str
    """UUID, or `declared-N` for a stand-in from the settings."""
    model: str
    """Canonical model name, `A100-80GB`."""
    memory_gib: GiB
    """Nominal memory of the model."""
    declared: bool = False
    usable_gib: GiB | None = None
    """What the driver reports: what can be packed. None: the nominal memory."""

    @property
    def packs_gib(self) -> GiB:
        """Return how much memory can be given away."""
        return self.memory_gib if self.usable_gib is None else self.usable_gib


class Facts(Value):
    """What a machine has, used or not."""

    cpu: float
    memory_gib: GiB
    disk_gib: GiB
    """Free disk where the agent keeps jobs, as it was when the agent joined."""
    devices: tuple[Device, ...] = ()
    labels: dict[str, str] = {}
    mounts: tuple[str, ...] = ()
    """Host paths that jobs may mount; `/` means any that exists."""
    runtimes: tuple[str, ...] = ("process",)
    """`process` always; `container` where Docker answers."""
    disk_io_mb_s: float | None = None
    """What its disk can do; None: nobody has said."""
    network_mb_s: float | None = None
    links: tuple[tuple[str, str], ...] = ()
    """Pairs of devices, by id, that NVLink joins."""
    images: tuple[str, ...] = ()
    """Container images that lie here, as their owners write them."""
    version: str = ""
    """Of the agent."""
    address: str = ""
    """By which others of its network reach it; empty: nobody has said."""

    @cached_property
    def positions(self) -> dict[str, int]:
        """Return where each device stands in `devices`, by its id; asked for every job here."""
        return {device.id: position for position, device in enumerate(self.devices)}


class DeviceUse(Value):
    """What is really used of one device."""

    used_gib: GiB
    """By everybody."""
    foreign_gib: GiB = 0.0
    """By processes that are no job of ours, the driver's own share included."""
    sm: float | None = None
    """Share of time in [0, 1] in which a kernel ran; None where the driver does not say."""
    jobs: dict[str, GiB] = {}
    """By our jobs, by id."""


class Measured(Value):
    """What is really used of a machine, as its agent saw it last."""

    devices: dict[str, DeviceUse] = {}
    cpu: float | None = None
    """Cores that are busy."""
    memory_gib: GiB | None = None
    disk_io_mb_s: float | None = None
    network_mb_s: float | None = None


class NodeState(StrEnum):
    """Whether a node takes jobs."""

    EXPECTED = "expected"
    """Known by its owner or its provider, its agent was not heard yet."""
    READY = "ready"
    DRAINING = "draining"
    LOST = "lost"
    """Its agent fell silent for longer than its attempt lease."""
    REMOVED = "removed"
    """Nobody counts on it any more; it is in no world."""


class Node(Value):
    """A machine that jobs can run on, owned or rented."""

    id: str
    facts: Facts
    state: NodeState = NodeState.EXPECTED
    owned: bool = True
    provider: str = "local"
    agent: str = ""
    """Incarnation of the agent that was last heard."""
    public_key: str = ""
    """Base64 key that secrets in orders to this node are sealed with."""
    lease_s: Seconds | None = None
    """After so long without the store its agent stops its jobs; None: it has not said."""
    cached: tuple[str, ...] = ()
    """What jobs have left here, newest last: `label:llama-7b`, `image:…`, `input:…`."""
    drained: bool = False
    """Somebody wants it to take no new jobs, also when it comes back after a silence."""
    joined_at: Instant | None = None
    lost_at: Instant | None = None
