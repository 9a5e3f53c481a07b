"""What an agent can see happen: the events that its duty reacts to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from cloudwhale.mailbox.documents import AnyOrder, StartOrder
from cloudwhale.model.job import Checkpoint, Ending, Peaks
from cloudwhale.model.node import Device, Facts, Measured
from cloudwhale.model.reason import Code
from cloudwhale.model.units import GiB, Instant, Seconds

ORDERED = "stopped as ordered"
"""Why an attempt is stopped that its controller has asked to."""

Key: TypeAlias = tuple[str, int]
"""A job's id and the number of the attempt."""


@dataclass(frozen=True, slots=True)
class ExitRecord:
    """How an attempt's process ended; times are this machine's wall clock."""

    how: Ending
    code: int | None
    """As a shell shows it: 128 + signal when killed; None when it never ran."""
    ended_at: Instant
    ran_s: Seconds = 0.0
    says: str = ""
    by_itself: bool = False
    """No stop had reached the process before it ended."""


@dataclass(frozen=True, slots=True)
class StopWish:
    """How an attempt is to be stopped, and why."""

    signal: str
    grace_s: Seconds
    why: str
    how: Ending = "stopped"
    """What its end is called: another word when this machine stops it by its own rules."""
    since: Instant | None = None
    """When its stop began, because the machine is taken away; None: that is not why."""
    goes_at: Instant | None = None
    """When the machine goes, then."""

    @property
    def is_ordered(self) -> bool:
        """Say whether the controller wants it, and not this machine by its own rules."""
        return self.why == ORDERED


@dataclass(frozen=True, slots=True)
class Found:
    """An attempt that an earlier incarnation of this agent accepted and did not close."""

    order: StartOrder
    began_at: Instant | None = None
    """When its process began; None when it never did."""
    seq: int = 0
    """Highest checkpoint number that was used."""
    published: tuple[Checkpoint, ...] = ()
    """Checkpoints of this attempt that lie in the store, oldest first."""
    stop: StopWish | None = None
    peaks: Peaks = Peaks()


@dataclass(frozen=True, slots=True)
class Tenure:
    """Until when a rented machine is paid for."""

    number: int
    watched_until: Instant
    """Until then the controller counts as heard."""
    away_until: Instant
    """Then it has landed, and ends itself."""


@dataclass(frozen=True, slots=True)
class Woke:
    """The agent has just started; `found` and `newest` come from its folder."""

    facts: Facts
    public_key: str
    found: tuple[Found, ...] = ()
    newest: Mapping[str, int] = field(default_factory=dict[str, int])
    """Newest attempt of every job that was ever accepted here."""
    fence: int = 0
    tenure: Tenure | None = None
    """The lease that holds; None: the machine is not rented."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """An order was read; `missed` when it was posted to an agent whose memory is gone."""

    order: AnyOrder
    missed: bool = False


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An order cannot be read (a newer controller?); `key` when it is to start an attempt."""

    says: str
    key: Key | None = None


@dataclass(frozen=True, slots=True)
class OfAttempt:
    """Something about one attempt; ignored when that one is not under way."""

    key: Key


@dataclass(frozen=True, slots=True)
class Prepared(OfAttempt):
    """Working directory, checkpoint and secrets are in place."""

    instead: Checkpoint | None = None
    """What was restored, as the one that was ordered could not be."""
    says: str = ""
    fetched: str = ""
    """What it took to fetch its image; empty when none was fetched."""


@dataclass(frozen=True, slots=True)
class CannotStart(OfAttempt):
    """It could not be prepared, or its shim could not be started."""

    how: Ending
    says: str


@dataclass(frozen=True, slots=True)
class Began(OfAttempt):
    """The shim has started the job's process."""

    at: Instant


@dataclass(frozen=True, slots=True)
class Over(OfAttempt):
    """The shim wrote its exit record: no process of the attempt is left."""

    exit: ExitRecord


@dataclass(frozen=True, slots=True)
class Lost(OfAttempt):
    """The shim died without an exit record; what it left behind was killed."""

    at: Instant
    """When it was last known to live."""
    says: str = ""
    """The shim's own last words."""


@dataclass(frozen=True, slots=True)
class Whole(OfAttempt):
    """A new checkpoint became whole; it is the newest."""

    name: str
    saved_at: Instant


@dataclass(frozen=True, slots=True)
class Published(OfAttempt):
    """A publish is through; None: there was nothing new to publish."""

    checkpoint: Checkpoint | None


@dataclass(frozen=True, slots=True)
class Dropped(OfAttempt):
    """A checkpoint changed while it was read, or could not be read: nothing was published."""

    name: str
    says: str


@dataclass(frozen=True, slots=True)
class PublishFailed(OfAttempt):
    """The store did not take it; worth another try."""

    says: str


@dataclass(frozen=True, slots=True)
class OutputsSaved(OfAttempt):
    """What the job left lies in the store, as far as it could be read; `says`: what is missing."""

    says: str = ""


@dataclass(frozen=True, slots=True)
class OutputsFailed(OfAttempt):
    """The store did not take what the job left; worth another try."""

    says: str


@dataclass(frozen=True, slots=True)
class Using:
    """What one attempt uses at a moment."""

    now: Peaks
    gpu_gib: Mapping[str, GiB] = field(default_factory=dict[str, GiB])
    """Memory by device; empty while nobody can see it."""
    shut: tuple[str, ...] = ()
    """GPU files that its container can no longer open."""


@dataclass(frozen=True, slots=True)
class Used:
    """What is really used here; every second while jobs run, else with each heartbeat."""

    measured: Measured
    by: Mapping[Key, Using] = field(default_factory=dict[Key, Using])


@dataclass(frozen=True, slots=True)
class Devices:
    """The GPUs that answer, when they are others than before."""

    devices: tuple[Device, ...]
    links: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Runtimes:
    """How jobs can be run here, when that is another way than before: Docker came, or went."""

    runtimes: tuple[str, ...]
    images: tuple[str, ...] = ()
    """Those that lie here now."""


@dataclass(frozen=True, slots=True)
class Noted:
    """Something about the machine itself that its owner must know; said once."""

    code: Code
    says: str


@dataclass(frozen=True, slots=True)
class Warned:
    """The provider has said to the machine itself that it goes, or may go."""

    goes_at: Instant | None
    """When it goes; None: it may, nobody knows when."""
    says: str
    at_once: bool = False
    """It goes already, whatever `goes_at` says."""


@dataclass(frozen=True, slots=True)
class StoreFailed:
    """The store cannot be reached; `since` is when it was last heard."""

    since: Instant


@dataclass(frozen=True, slots=True)
class StoreWorks:
    """The store answers again."""


@dataclass(frozen=True, slots=True)
class LeaveAsked:
    """The machine's owner wants the agent gone; jobs are landed first."""

    land_s: Seconds
    """At most this long for a job's grace."""
    upload_s: Seconds = 0.0
    """So much longer for what it has saved last."""


@dataclass(frozen=True, slots=True)
class Orphaned:
    """The process that started this agent is gone."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


OfOneAttempt: TypeAlias = (
    Prepared
    | CannotStart
    | Began
    | Over
    | Lost
    | Whole
    | Published
    | Dropped
    | PublishFailed
    | OutputsSaved
    | OutputsFailed
)
Seen: TypeAlias = (
    Woke
    | Ordered
    | Unreadable
    | OfOneAttempt
    | Used
    | Devices
    | Runtimes
    | Noted
    | Warned
    | StoreFailed
    | StoreWorks
    | LeaveAsked
    | Orphaned
    | Tick
)
