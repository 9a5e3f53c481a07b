"""What controller and agent say to each other: numbered, created once, never rewritten."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from cloudwhale.model.job import Checkpoint, CheckpointRule, Ending, Peaks
from cloudwhale.model.node import Device, Facts, Measured
from cloudwhale.model.reason import Code
from cloudwhale.model.requests import StoreUse
from cloudwhale.model.units import GiB, Instant, Seconds
from cloudwhale.model.value import Wire

WIRE_VERSION = 1  # readers accept the last two and ignore fields that they do not know


class Document(Wire):
    """What every document carries."""

    v: int = WIRE_VERSION
    at: Instant
    """When it was written, by the writer's clock."""


# -- orders: controller to agent, `orders/<node>/000001.json` --------------------------------


class Order(Document):
    """Something an agent must do. `fence` is the controller's epoch: older ones are refused."""

    fence: int
    request_id: str
    """The same order posted twice has the same id, and is obeyed once."""


class GangSeat(Wire):
    """Which rank of a gang this is, and where rank 0 listens."""

    rank: int
    nodes: int
    address: str
    port: int


class StartOrder(Order):
    """Run an attempt of a job, or one rank of it."""

    kind: Literal["start"] = "start"
    job: str
    attempt: int
    project: str
    name: str
    command: str
    setup: str | None = None
    image: str | None = None
    env: dict[str, str] = {}
    secrets: dict[str, str] = {}
    """Values sealed to the agent's public key, base64."""
    workdir: str | None = None
    """Store key of the packed working directory."""
    devices: tuple[Device, ...] = ()
    share: float = 1.0
    """Compute share per device."""
    gpu_memory_gib: GiB | None = None
    """What it may use of each device before it is stopped; None: all of it."""
    cpu: float
    memory_gib: GiB | None = None
    shm_gib: GiB | None = None
    mounts: dict[str, str] = {}
    checkpoint: CheckpointRule = CheckpointRule()
    restore: Checkpoint | None = None
    """The checkpoint to put into the job's folder before it starts."""
    inputs: tuple[str, ...] = ()
    """URLs of what it reads: fetched before it starts."""
    outputs: tuple[str, ...] = ()
    """What it leaves, relative to its working directory: stored once it has ended by itself."""
    host_network: bool = False
    """Whether its container is in the machine's own network, as a user of its own: gangs only."""
    gang: GangSeat | None = None
    """None: it is no gang."""

    @property
    def rank(self) -> int | None:
        """Return its rank in its gang; None: it is no gang."""
        return None if self.gang is None else self.gang.rank


class StopOrder(Order):
    """Stop an attempt: signal, grace, kill, publish what it saved."""

    kind: Literal["stop"] = "stop"
    job: str
    attempt: int
    signal: str = "SIGTERM"
    grace_s: Seconds


class LeaveOrder(Order):
    """End yourself once no attempt runs."""

    kind: Literal["leave"] = "leave"
    agent: str = ""
    """Incarnation that is meant; empty: whichever reads it. One that starts later stays."""


class IntroduceOrder(Order):
    """Say again who you are; answered whatever the fence: the controller may have lost all."""

    kind: Literal["introduce"] = "introduce"


class LeaseOrder(Order):
    """Until when this rented machine is paid for; a later number takes the place of a lower one.

    Seconds, counted by the machine's boot-time clock from when it reads this: no clock of another
    host is trusted with money.
    """

    kind: Literal["lease"] = "lease"
    number: int
    watched_s: Seconds
    """So long the controller counts as heard; after that no new order is taken."""
    away_s: Seconds
    """So long the machine may go on by itself; then it has landed, and ends itself."""


AnyOrder = Annotated[
    StartOrder | StopOrder | LeaveOrder | IntroduceOrder | LeaseOrder,
    Field(discriminator="kind"),
]


# -- reports: agent to controller, `inbox/<node>/000001.json` --------------------------------


class Report(Document):
    """Something an agent says."""

    agent: str
    """Incarnation of the agent."""


class Joined(Report):
    """The agent is there, first or again."""

    kind: Literal["joined"] = "joined"
    facts: Facts
    public_key: str
    attempts: tuple[tuple[str, int], ...] = ()
    """Attempts that it found running and adopted."""
    fence: int = 0
    """The highest that it has obeyed."""
    lease_s: Seconds | None = None
    """After so long without the store it stops its jobs; None: an older agent, which never says."""


class Heartbeat(Report):
    """The agent is still there; every 10 s."""

    kind: Literal["heartbeat"] = "heartbeat"
    measured: Measured | None = None
    store: StoreUse | None = None
    """By this incarnation until now; None: the store is a folder."""


class AttemptReport(Report):
    """Something about one attempt."""

    job: str
    attempt: int


class AttemptStarted(AttemptReport):
    """The job's process runs."""

    kind: Literal["started"] = "started"
    resumed_from: int | None = None


class CheckpointPublished(AttemptReport):
    """A whole checkpoint lies in the store."""

    kind: Literal["checkpoint"] = "checkpoint"
    checkpoint: Checkpoint


class AttemptEnded(AttemptReport):
    """The attempt is over: no process of it is left, nothing more will be published."""

    kind: Literal["ended"] = "ended"
    how: Ending
    """`stopped`: it ended after a stop order, whatever its code."""
    asked: bool = False
    """Whether a stop order had come, and the machine did not stop it by its own rules."""
    exit_code: int | None
    """As a shell shows it: 128 + signal when killed; None when it never ran."""
    says: str = ""
    unsaved_s: Seconds = 0.0
    """Run time since its last published checkpoint (or its start)."""
    ran_s: Seconds = 0.0
    peaks: Peaks = Peaks()
    store: StoreUse | None = None
    """By the whole incarnation of the agent until now; None: the store is a folder."""


class OrderRefused(AttemptReport):
    """The agent will not do it: an older fence, or an attempt that is not the newest."""

    kind: Literal["refused"] = "refused"
    code: Code
    says: str
    fence: int = 0
    """The highest that the agent has obeyed."""


class Remark(AttemptReport):
    """Something worth telling: a checkpoint dropped, the middle of a log dropped."""

    kind: Literal["remark"] = "remark"
    code: Code
    says: str


class Noticed(Report):
    """Something worth telling of the machine itself: it cannot see its GPUs, one is gone."""

    kind: Literal["noticed"] = "noticed"
    code: Code
    says: str


class Warned(Report):
    """The machine will be taken away: its provider said so to the machine itself."""

    kind: Literal["warned"] = "warned"
    goes_at: Instant | None = None
    """When it goes, by the provider; None: it may go, nobody knows when (a rebalance)."""
    stops: bool = True
    """Whether its jobs stop for that now; False: it goes in hours or days, and is told again."""
    says: str = ""


class Left(Report):
    """The agent ends itself."""

    kind: Literal["left"] = "left"
    store: StoreUse | None = None
    """All of it by this incarnation; None: the store is a folder."""


AnyReport = Annotated[
    Joined
    | Heartbeat
    | AttemptStarted
    | CheckpointPublished
    | AttemptEnded
    | OrderRefused
    | Remark
    | Noticed
    | Warned
    | Left,
    Field(discriminator="kind"),
]


# -- first boot: machine to controller, `boots/<node>/000001.json` ---------------------------


class BootTold(Document):
    """How far the first boot of a rented machine is; `at` by the machine's own clock.

    Written by `agent/boot`, which knows no pydantic: these are the names of its JSON.
    """

    phase: str
    """`watchdog`, `bundle`, `driver`, `docker`, `toolkit`, `gpus`, `agent`, in this order."""
    state: Literal["begun", "done", "failed"]
    took_s: Seconds | None = None
    """How long the phase took, by the machine's boot-time clock; None while it goes on."""
    says: str = ""
    """What was found or done, or why it failed; one line."""


# -- checkpoint manifests: `checkpoints/<job>/<attempt>-<seq>/manifest.json` -----------------


class ManifestFile(Wire):
    """One file of a published checkpoint."""

    path: str
    """Relative to the job's checkpoint folder."""
    key: str
    size_bytes: int
    sha256: str
    mode: int = 0o644


class Manifest(Document):
    """A published checkpoint is whole when its manifest exists."""

    job: str
    attempt: int
    seq: int
    name: str
    files: tuple[ManifestFile, ...]


# Built when first used: an agent reads orders, a controller reports, and commands neither.
_LATER = ConfigDict(defer_build=True)
ORDERS: TypeAdapter[AnyOrder] = TypeAdapter(AnyOrder, config=_LATER)
REPORTS: TypeAdapter[AnyReport] = TypeAdapter(AnyReport, config=_LATER)
