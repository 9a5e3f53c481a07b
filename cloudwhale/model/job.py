"""What the user wants run, what became of it, and its attempts."""

from enum import StrEnum
from functools import cached_property
from typing import Literal

from cloudwhale.model.reason import Reason
from cloudwhale.model.resources import GpuRequest as GpuRequest
from cloudwhale.model.resources import Resources as Resources
from cloudwhale.model.resources import Span as Span
from cloudwhale.model.units import GiB, Instant, MicroUsd, Seconds
from cloudwhale.model.value import Value
from cloudwhale.model.where import Where


class CheckpointRule(Value):
    """How the job saves, and how often the agent publishes what it saved."""

    path: str | None = None
    """Folder relative to the working directory; None lets the agent choose one."""
    every_s: Seconds = 600.0
    signal: str = "SIGTERM"
    grace_s: Seconds = 90.0
    keep: int = 3
    """How many published checkpoints stay in the store."""


class RetryCause(StrEnum):
    """What a job may be started again after."""

    PREEMPTION = "preemption"
    NODE_LOSS = "node-loss"
    OOM = "oom"
    ERROR = "error"


class RetryRule(Value):
    """How often, after what and how soon a job is started again."""

    max: int = 3
    on: tuple[RetryCause, ...] = (RetryCause.PREEMPTION, RetryCause.NODE_LOSS)
    backoff_s: Seconds = 30.0


class WhereRule(Value):
    """Hard placement rules."""

    labels: dict[str, str] = {}
    not_on: tuple[str, ...] = ()


class NotifyRule(Value):
    """Whom to tell, and of what."""

    on: tuple[str, ...] = ()
    webhook: str | None = None


class Data(Value):
    """What lies at one of a job's inputs, as its store has said."""

    url: str
    region: str
    """Where it lies."""
    size_bytes: int


Market = Literal["auto", "spot", "on-demand", "local"]

PRIORITY_HIGHEST = 100


class JobSpec(Value):
    """One job as the user wrote it, defaults filled in, units resolved."""

    name: str
    project: str = "default"
    image: str | None = None
    workdir: str | None = None
    """Absolute folder on the submitting host; None sends nothing."""
    setup: str | None = None
    command: str
    env: dict[str, str] = {}
    secrets: tuple[str, ...] = ()
    resources: Resources = Resources()
    mounts: dict[str, str] = {}
    nodes: int = 1
    duration_s: Seconds | None = None
    reference: str | None = None
    max_duration_s: Seconds | None = None
    deadline: Instant | None = None
    priority: int = 50
    preemptible: bool = True
    wait_max_s: Seconds | None = None
    market: Market = "auto"
    checkpoint: CheckpointRule | None = None
    retry: RetryRule = RetryRule()
    budget: MicroUsd | None = None
    inputs: tuple[str, ...] = ()
    data: tuple[Data, ...] = ()
    """What stores have said of inputs at submit; of those that are not here nobody knows."""
    outputs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    """Names as written; `Job.after` holds what they were resolved to."""
    array: dict[str, str] = {}
    """This member's values of the job's array, as strings; also in its environment."""
    where: WhereRule = WhereRule()
    affinity: tuple[str, ...] = ()
    notify: NotifyRule = NotifyRule()
    speeds: dict[str, float] = {}
    value_of_time_usd_h: float | None = None
    auto_size: bool | None = None
    """Ask for what its family was seen to use (`planning/sizing`); None: as the settings say."""
    keep_on_failure_s: Seconds | None = None
    """When it fails on a rented machine, that stays so long for a person to look."""

    @cached_property
    def demand(self) -> str:
        """Return what makes two jobs equal to every hard fact of a place; a string hashes once.

        Asked for every waiting job in every round.
        """
        return self.demand_of(self.resources)

    def demand_of(self, wants: Resources) -> str:
        """Return the same for a job that wants something else."""
        where = (self.where.labels, self.where.not_on, sorted(self.mounts))
        kind = (self.market, self.nodes, self.image is None, bool(self.secrets))
        return f"{wants.model_dump_json()} {where} {kind}"


class JobState(StrEnum):
    """Where a job is in its life; edges stand in `planning/lifecycle`."""

    PENDING = "pending"
    STARTING = "starting"
    RUNNING = "running"
    RECOVERING = "recovering"
    PAUSED = "paused"
    PARKED = "parked"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDED = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED})
LIVE = tuple(state for state in JobState if state not in ENDED)
HOLDS_A_PLACE = frozenset({JobState.STARTING, JobState.RUNNING, JobState.RECOVERING})


class Wish(StrEnum):
    """What should become of a job once its attempt has stopped."""

    CANCEL = "cancel"
    PAUSE = "pause"
    GIVE_WAY = "give-way"
    """Stop for a job of higher priority; start again later."""
    LIMIT = "limit"
    """It ran for its `max_duration`."""


class Member(Value):
    """Where one rank of a gang runs."""

    node: str
    devices: tuple[str, ...] = ()


class Placement(Value):
    """Where an attempt runs: a node, and devices by id. Of a gang: those of rank 0."""

    node: str
    devices: tuple[str, ...] = ()
    others: tuple[Member, ...] = ()
    """Of a gang: where its other ranks run, from rank 1 on."""

    @property
    def members(self) -> tuple[Member, ...]:
        """Return where each rank runs; one for a job that is no gang."""
        return (Member.model_construct(node=self.node, devices=self.devices), *self.others)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return the node of each rank."""
        return (self.node, *(one.node for one in self.others))

    def devices_on(self, node: str) -> tuple[str, ...] | None:
        """Return the devices that the attempt has on a node; None where it is not."""
        if node == self.node:
            return self.devices
        return next((one.devices for one in self.others if one.node == node), None)

    def rank_on(self, node: str) -> int | None:
        """Return the rank that runs on a node, 0 of a job that is no gang; None: none does."""
        nodes = self.nodes
        return nodes.index(node) if node in nodes else None


class Checkpoint(Value):
    """A published, whole checkpoint: the place that the next attempt resumes from."""

    attempt: int
    seq: int
    """Counts up within an attempt."""
    name: str
    """Name of the entry in the job's checkpoint folder."""
    size_bytes: int
    saved_at: Instant
    """When the job finished writing it, by the node's clock."""
    manifest: str
    """Key of its manifest in the store."""


Ending = Literal[
    "exited", "stopped", "not-found", "setup-failed", "oom", "disk-full", "shim-lost",
    "restore-failed", "start-failed", "gpu-outgrown", "gpu-oom", "device-lost", "no-gpus",
    "image-refused", "runtime-lost", "inputs-refused",
]  # fmt: skip
"""How an attempt ended, as its agent saw it.

`stopped`: after a stop order; `oom`: out of host memory; `gpu-outgrown`: used more GPU memory than
it had declared and was stopped; `gpu-oom`: the driver refused it GPU memory; `device-lost`: its GPU
is gone; `no-gpus`: its container did not see its GPUs; `image-refused`: there is no such image, or
it needs a login; `runtime-lost`: Docker went away and took the job with it; `inputs-refused`: what
it reads is not there, or may not be read.
"""


class Peaks(Value):
    """The most that an attempt used of each thing; None where nobody could measure it."""

    gpu_gib: GiB | None = None
    """On the device where it used most."""
    sm: float | None = None
    memory_gib: GiB | None = None
    cpu: float | None = None
    disk_io_mb_s: float | None = None
    network_mb_s: float | None = None

    def and_(self, other: "Peaks") -> "Peaks":
        """Return the larger of both in every dimension."""
        mine, theirs = self.model_dump(), other.model_dump()
        both = {
            name: max((v for v in (mine[name], theirs[name]) if v is not None), default=None)
            for name in mine
        }
        return Peaks(**both)


class MemberEnd(Value):
    """How one rank of a gang has ended, as its agent saw it."""

    how: Ending
    exit_code: int | None = None
    says: str = ""
    at: Instant
    """When that was read."""
    ran_s: Seconds | None = None
    peaks: Peaks = Peaks()
    asked: bool = False
    """It was stopped because we wanted it to, not by its machine's own rules."""

    @property
    def is_well(self) -> bool:
        """Say whether it ended by itself with 0."""
        return self.how == "exited" and self.exit_code == 0


class Rank(Value):
    """How far one rank of a gang's newest attempt is."""

    order_posted: bool = False
    stop_posted: bool = False
    has_started: bool = False
    end: MemberEnd | None = None


class Job(Value):
    """What became of a job."""

    id: str
    run: str
    spec: JobSpec
    state: JobState = JobState.PENDING
    submitted_at: Instant
    after: tuple[str, ...] = ()
    """Ids of the jobs that must be completed first."""
    workdir_key: str | None = None
    """Store key of its packed working directory."""
    attempt: int = 0
    """Number of the newest attempt; 0 before the first."""
    placement: Placement | None = None
    order_posted: bool = False
    """Whether the newest attempt's order is known to lie in the agent's mailbox."""
    stop_posted: bool = False
    ranks: tuple[Rank, ...] = ()
    """Of a gang: how far each rank of the newest attempt is."""
    saves: tuple[tuple[Checkpoint, ...], ...] = ()
    """Of a gang: what each rank has published and the store still keeps, oldest first."""
    placed_at: Instant | None = None
    started_at: Instant | None = None
    """Start of the newest attempt."""
    first_started_at: Instant | None = None
    ended_at: Instant | None = None
    exit_code: int | None = None
    wish: Wish | None = None
    reason: Reason | None = None
    """The newest reason: why it waits, where it was placed, why it ended."""
    checkpoint: Checkpoint | None = None
    saved_from: Where | None = None
    """In whose cloud it was saved, or brought to, or will be; None: on a machine of ours."""
    late_said: bool = False
    """Whether `checkpoint-late` was reported since the last checkpoint."""
    deadline_said: bool = False
    """Whether it was told that its deadline has passed while it has a place."""
    retries: int = 0
    grown: Resources | None = None
    """What it needs after it has outgrown what its file says."""
    sized: Resources | None = None
    """What it asks for by what its family was seen to use."""
    grows: int = 0
    """How often it has outgrown what it had."""
    held_until: Instant | None = None
    """No placement is held back for it after this time; None: none was since it last ran."""
    peaks: Peaks = Peaks()
    """The most that its ended attempts have used."""
    not_before: Instant | None = None
    run_s: Seconds = 0.0
    """Time that attempts have run, the current one excluded."""
    lost_s: Seconds = 0.0
    """Work that was done and lost because an attempt ended after its last checkpoint."""
    pace: float = 1.0
    """How fast its newest place is expected to be beside where its duration holds."""
    ahead_s: Seconds = 0.0
    """By so much is the work that ended attempts have kept more than the time that it took them:
    their places were faster than where its duration holds. Less than 0: slower."""
    interruptions: int = 0
    spent: MicroUsd = MicroUsd(0)
    """Its parts of rented machines that are gone and paid for."""

    @property
    def wants(self) -> Resources:
        """Return what one node of it needs now: what its file says, its family, or its growth."""
        return self.grown or self.sized or self.spec.resources

    @property
    def demand(self) -> str:
        """Return what makes two jobs equal to every hard fact of a place."""
        own = self.grown or self.sized
        return self.spec.demand if own is None else self.spec.demand_of(own)

    @property
    def ended(self) -> bool:
        """Say whether nothing more can happen to it."""
        return self.state in ENDED

    def ran_s(self, now: Instant) -> Seconds:
        """Return how long its attempts have run, all together, the current one included."""
        if self.ended or self.started_at is None:
            return self.run_s
        return self.run_s + max(0.0, now - self.started_at)

    @property
    def kept_s(self) -> Seconds:
        """Return the work that its ended attempts have done and kept, where its duration holds."""
        return max(0.0, self.run_s - self.lost_s + self.ahead_s)

    @property
    def family(self) -> tuple[str, str]:
        """Project and name: jobs that share history."""
        return (self.spec.project, self.spec.name)
