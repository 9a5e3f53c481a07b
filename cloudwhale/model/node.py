"""A machine with devices: what it has, and what is free on it."""

from enum import StrEnum

from cloudwhale.model.units import GiB, Instant
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


class NodeState(StrEnum):
    """Whether a node takes jobs."""

    EXPECTED = "expected"
    """Known by its owner or its provider, its agent was not heard yet."""
    READY = "ready"
    DRAINING = "draining"
    LOST = "lost"
    """Its agent fell silent for longer than its attempt lease."""


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
    joined_at: Instant | None = None
    lost_at: Instant | None = None
