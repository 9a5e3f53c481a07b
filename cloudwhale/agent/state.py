"""What an agent knows: frozen, replaced by its duty, rebuilt from its folder after a restart."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from cloudwhale.agent.seen import ExitRecord, Key, StopWish, Tenure, Whole
from cloudwhale.mailbox.documents import StartOrder
from cloudwhale.model.job import Checkpoint, Peaks
from cloudwhale.model.node import Facts, Measured
from cloudwhale.model.units import Instant, Seconds

LEASE_S: Seconds = 600.0  # after so long without the store, jobs are stopped
HEARTBEAT_S: Seconds = 10.0  # how long an agent says nothing at most


class Phase(StrEnum):
    """Where an attempt is in its life on this machine."""

    PREPARING = "preparing"
    STARTING = "starting"
    """Its shim was started; the job's process was not seen yet."""
    RUNNING = "running"
    CLOSING = "closing"
    """No process is left; its last checkpoint is being published."""


class Outputs(StrEnum):
    """How far it is with what a job has left, once its last checkpoint is dealt with."""

    UNASKED = "unasked"
    SAVING = "saving"
    REFUSED = "refused"
    """The store did not take it: it is tried again."""


@dataclass(frozen=True, slots=True)
class Stopping:
    """An attempt that is being stopped."""

    wish: StopWish
    next_at: Instant
    """When the next, harder step is due."""
    signalled: bool = False
    kills: int = 0


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt under way."""

    order: StartOrder
    phase: Phase = Phase.PREPARING
    began_at: Instant | None = None
    """By this machine's wall clock, as is everything that is compared with it."""
    stopping: Stopping | None = None
    seq: int = 0
    published: tuple[Checkpoint, ...] = ()
    stored_at: Instant | None = None
    """When the newest of them was in the store; None: this agent has not seen it."""
    whole: Whole | None = None
    """The newest whole checkpoint that was not published yet."""
    publishing: bool = False
    looked: bool = False
    """What is being published is the last look, after the process has ended."""
    publish_at: Instant = 0.0
    """Nothing is published before this time."""
    exit: ExitRecord | None = None
    give_up_at: Instant = 0.0
    """When a closing attempt stops trying to publish."""
    outputs: Outputs = Outputs.UNASKED
    peaks: Peaks = Peaks()
    kept_peaks: Peaks = Peaks()
    """What its folder remembers of them."""
    peaks_kept_at: Instant = -math.inf

    @property
    def key(self) -> Key:
        """Name the attempt."""
        return (self.order.job, self.order.attempt)


@dataclass(frozen=True, slots=True)
class AgentState:
    """All that decides what an agent does next."""

    node: str
    agent: str
    """Incarnation: another one after every start."""
    lease_s: Seconds = LEASE_S
    heartbeat_s: Seconds = HEARTBEAT_S
    fence: int = 0
    """The highest that was seen; orders with a lower one are refused."""
    attempts: Mapping[Key, Attempt] = field(default_factory=dict[Key, Attempt])
    newest: Mapping[str, int] = field(default_factory=dict[str, int])
    """Newest attempt of every job that was ever accepted here."""
    facts: Facts | None = None
    """What this machine has, as the controller was told; None before it woke."""
    public_key: str = ""
    gone: frozenset[str] = frozenset()
    """GPUs that were here and do not answer any more."""
    measured: Measured | None = None
    """What is really used here now; None until somebody has looked."""
    told: Measured | None = None
    """The same, as the controller was told last."""
    beat_at: Instant = 0.0
    """When it was told so."""
    said_at: Instant = 0.0
    """When it last said anything to the controller."""
    silent_since: Instant | None = None
    """When the store was last heard; None while it answers."""
    idle_since: Instant = 0.0
    orphaned: bool = False
    leaving: bool = False
    """It goes once nothing runs; a later order to start takes that back."""
    land_until: Instant | None = None
    """It goes, starts nothing more, and waits no longer than this for uploads."""
    left: bool = False
    tenure: Tenure | None = None
    """The lease of a rented machine; None: it is not rented."""
    lands: bool = False
    """It stops jobs as its lease ends, and ends once nothing runs; a later one takes that back."""
    goes_at: Instant | None = None
    """When its provider takes the machine, as it has said; None: it has not."""
    goes_why: str = ""
    """In the provider's words."""
    goes_since: Instant | None = None
    """Since when jobs stop and none is taken for that; None: it is far away still."""
