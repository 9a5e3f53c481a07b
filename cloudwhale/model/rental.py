"""A rented machine from reservation to return, and the lease that bounds it."""

from enum import StrEnum
from typing import Literal

from cloudwhale.model.offer import Offer
from cloudwhale.model.units import GiB, Instant, MicroUsd, Seconds
from cloudwhale.model.value import Value


class RentalState(StrEnum):
    """Where a rental is in its life; edges stand in `planning/lifecycle`."""

    RESERVED = "reserved"
    REQUESTED = "requested"
    BOOTING = "booting"
    READY = "ready"
    DRAINING = "draining"
    RETURNED = "returned"
    LOST = "lost"
    NEEDS_ATTENTION = "needs-attention"


SETTLED = frozenset({RentalState.RETURNED, RentalState.NEEDS_ATTENTION})
"""A run ends though a machine is so: it is back, or nobody knows when it will be."""


class Lease(Value):
    """The times to which a machine's money is reserved."""

    number: int
    watched_until: Instant
    """Holds while the controller is heard."""
    away_until: Instant
    """Planned end of the machine's orders plus landing; its money is reserved in full."""
    stop_at: Instant
    """The earliest stop that the provider itself enforces."""


class Renewal(Value):
    """A longer lease whose money is set aside, before the provider has moved its stop."""

    lease: Lease
    reserved: MicroUsd
    """On top of what the lease that holds has reserved; it is in the rental's sum already."""
    projects: dict[str, MicroUsd] = {}
    """The same for its projects, by account; in the rental's sums already."""


class Boot(Value):
    """How far the first boot of a machine is, as far as the machine itself has told it."""

    read: int = 0
    """Number of the newest document of it that was read."""
    phase: str = ""
    """What was told of last; empty: nothing yet."""
    state: Literal["", "begun", "done", "failed"] = ""
    """How that is; `failed` is the end of a boot."""
    since: Instant = 0.0
    """Since when it is so, by the controller's clock."""
    says: str = ""
    """What the machine said of it."""
    took_s: dict[str, Seconds] = {}
    """How long each phase took that is over, in their order."""

    @property
    def under_way(self) -> str:
        """Return the phase that goes on; empty between two, and before the first."""
        return self.phase if self.state == "begun" else ""

    @property
    def has_failed(self) -> bool:
        """Say whether the machine itself has said that it will not come up."""
        return self.state == "failed"


class Egress(Value):
    """What has left a cloud for a machine: a checkpoint that one of its jobs goes on from."""

    job: str
    provider: str
    """Whose cloud it left, which bills it."""
    region: str
    size_bytes: int
    cost: MicroUsd


class Part(Value):
    """What a job has made of the places that it held on a machine; seconds as in `held_s`."""

    family: str = ""
    """The job's name."""
    lost_s: Seconds = 0.0
    """Of attempts that were interrupted: no checkpoint held it."""
    failed_s: Seconds = 0.0
    """Of attempts that ended in a failure of the job's own."""
    smaller_gib: GiB | None = None
    """The size of GPU, smaller than the job asked for, that would have held all that its attempts
    there used; 0: there is none, or nobody knows. None: none of them has ended."""


class Rental(Value):
    """A machine that somebody else owns and we pay for."""

    id: str
    """Also the name of its node, and what its launch is asked for under."""
    payer: str
    offer: str
    state: RentalState = RentalState.RESERVED
    lease: Lease
    reserved: MicroUsd
    spent: MicroUsd = MicroUsd(0)
    node: str | None = None
    requested_at: Instant | None = None
    """When its bill began, by its provider's clock."""
    launched_at: Instant | None = None
    """When we heard of it first, by our own clock: what it takes to come up counts from here."""
    ended_at: Instant | None = None
    """When the machine was gone, and its bill with it."""
    interrupted_at: Instant | None = None
    """When its provider took it, or said that it would, though nobody had asked; None: never."""
    goes_at: Instant | None = None
    """Until when it stays then, as its provider told the machine; None: nobody has been told."""
    taken: Offer | None = None
    """The offer as it was when it was taken."""
    jobs: dict[str, str] = {}
    """Those that it was rented for, by id, each with its project."""
    moves: tuple[str, ...] = ()
    """Ids of those of them that run elsewhere, and are to be moved here once it is ready."""
    starts_at: dict[str, Instant] = {}
    """When each of them is to start, as it was planned; absent: as soon as the machine is there."""
    seats: dict[str, tuple[int, ...]] = {}
    """Which of its devices each of them is to have, by position, as it was planned."""
    reserved_at: Instant = 0.0
    machine: str = ""
    """What its provider calls it, once there is one."""
    door: str = ""
    """Who it is to the mailbox's store: its folders there lie behind it; empty: it has none."""
    price_usd_h: MicroUsd | None = None
    """What its provider says that it is billed at; None: as it was offered."""
    renewal: Renewal | None = None
    """Asked for and not answered yet."""
    is_fixed: bool = False
    """Its provider does not move its stop."""
    late_until: Instant = 0.0
    """Its payers keep money for it until then, beyond its lease: those there may run late."""
    projects: dict[str, MicroUsd] = {}
    """What each of its projects has set aside for it, by the project's account of the month.

    It stays as it is when the machine is paid for, so that one sees what was set aside.
    """
    told: Lease | None = None
    """The newest lease that its agent was told of; None: that of its launch."""
    kept_until: Instant = 0.0
    """So long it stays though nothing runs there: a job has failed, and a person may look."""
    kept_for: str = ""
    """Id of that job."""
    brings: dict[str, float] = {}
    """By job, what a GB costs of a checkpoint that it brings from another cloud, in dollars."""
    egress: tuple[Egress, ...] = ()
    """What was brought so far: charged with the machine, out of what is set aside for it."""
    held_s: dict[str, float] = {}
    """Seconds that each job has held a place there, times the part of the machine that it took."""
    parts: dict[str, Part] = {}
    """What each job has made of that."""
    ready_at: Instant | None = None
    """When its agent had joined; None: it has not."""
    gang: str = ""
    """What is the same for all machines of a gang; empty: it is of none."""
    gang_size: int = 1
    """How many machines the gang is of."""
    boot: Boot = Boot()
    """As it stays once its agent has joined, or it goes back."""


ON_ITS_WAY = frozenset({RentalState.RESERVED, RentalState.REQUESTED, RentalState.BOOTING})
COMES_OR_IS = frozenset({*ON_ITS_WAY, RentalState.READY})
"""All but those that are lost, or on their way back."""
