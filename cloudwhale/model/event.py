"""Everything that can have happened, each with a time."""

from typing import Annotated, Literal

from pydantic import Field

from cloudwhale.model.asked import CancelAsked as CancelAsked
from cloudwhale.model.asked import PauseAsked as PauseAsked
from cloudwhale.model.asked import ResumeAsked as ResumeAsked
from cloudwhale.model.happened import Happened as Happened
from cloudwhale.model.happened import Leaves as Leaves
from cloudwhale.model.happened import OfAttempt as OfAttempt
from cloudwhale.model.happened import OfJob as OfJob
from cloudwhale.model.happened import OfNode as OfNode
from cloudwhale.model.job import Checkpoint, Job, MemberEnd, Placement, Resources
from cloudwhale.model.money import Brought as Brought
from cloudwhale.model.money import BudgetSet as BudgetSet
from cloudwhale.model.money import Charged as Charged
from cloudwhale.model.money import Released as Released
from cloudwhale.model.money import Reserved as Reserved
from cloudwhale.model.money import RunBudgetSet as RunBudgetSet
from cloudwhale.model.night import NightClosed as NightClosed
from cloudwhale.model.node import Node
from cloudwhale.model.notice import Noticed as Noticed
from cloudwhale.model.notice import Notified as Notified
from cloudwhale.model.peak import Sized as Sized
from cloudwhale.model.reason import Reason
from cloudwhale.model.rental import Rental
from cloudwhale.model.requests import StoreUse
from cloudwhale.model.run import Run
from cloudwhale.model.units import Instant, Seconds

# -- what people ask -------------------------------------------------------------------------


class RunOpened(Happened):
    """A run was opened; its jobs follow."""

    kind: Literal["run-opened"] = "run-opened"
    run: Run


class Submitted(OfJob):
    """A job was queued."""

    kind: Literal["submitted"] = "submitted"
    first: Job


# -- what was decided ------------------------------------------------------------------------


class Placed(OfAttempt):
    """The plan gave the job a place; its order is still to be posted."""

    kind: Literal["placed"] = "placed"
    placement: Placement
    reason: Reason
    pace: float = 1.0
    """How fast it is expected to go there beside where its duration holds."""


class Waits(OfJob):
    """The reason why a job waits has changed."""

    kind: Literal["waits"] = "waits"
    reason: Reason


class Held(OfJob):
    """The job waits although it fits somewhere: a better place comes, or this time does."""

    kind: Literal["held"] = "held"
    until: Instant
    reason: Reason


class Parked(OfJob):
    """There is nothing to do for the job until a person acts."""

    kind: Literal["parked"] = "parked"
    reason: Reason


class GaveUp(OfJob):
    """A job that holds no place can never run (its dependency failed, retries are spent)."""

    kind: Literal["gave-up"] = "gave-up"
    reason: Reason


class StopWished(OfAttempt):
    """The plan wants the attempt stopped: for a job of higher priority, or at its time limit."""

    kind: Literal["stop-wished"] = "stop-wished"
    wish: Literal["give-way", "limit"]
    reason: Reason


class CheckpointLate(OfAttempt):
    """The attempt has saved nothing new for twice the interval that its job asked for."""

    kind: Literal["checkpoint-late"] = "checkpoint-late"
    reason: Reason


class DeadlineMissed(OfJob):
    """The job's deadline has passed while it has a place; it goes on."""

    kind: Literal["deadline-missed"] = "deadline-missed"
    reason: Reason


class AttemptLost(OfAttempt):
    """The attempt's node fell silent or is taken away; it may run, so the next attempt waits."""

    kind: Literal["attempt-lost"] = "attempt-lost"
    reason: Reason


class Cleared(OfAttempt):
    """The lost attempt is out for certain; the job may start again."""

    kind: Literal["cleared"] = "cleared"
    lost_s: Seconds = 0.0
    counts: bool = True
    """Whether it counts against `retry.max`: nothing was saved since it began."""


class Noted(Happened):
    """Something worth telling that changes no state."""

    kind: Literal["noted"] = "noted"
    subject: str
    reason: Reason


# -- what was done ---------------------------------------------------------------------------


class OrderPosted(OfAttempt):
    """The attempt's start order lies in the agent's mailbox."""

    kind: Literal["order-posted"] = "order-posted"
    number: int
    rank: int = 0


class StopPosted(OfAttempt):
    """The attempt's stop order lies in the agent's mailbox."""

    kind: Literal["stop-posted"] = "stop-posted"
    number: int
    rank: int = 0


class Unconfirmed(OfAttempt):
    """Nobody can say whether the attempt's order was obeyed: it is to be posted again.

    The agent that came back did not name the attempt, or its node is heard again after a silence.
    """

    kind: Literal["unconfirmed"] = "unconfirmed"
    rank: int = 0


# -- what agents said ------------------------------------------------------------------------


class Started(OfAttempt):
    """The job's process runs."""

    kind: Literal["started"] = "started"
    resumed_from: int | None = None
    """Attempt whose checkpoint was restored, if any."""


class CheckpointSaved(OfAttempt):
    """A whole checkpoint was published."""

    kind: Literal["checkpoint-saved"] = "checkpoint-saved"
    checkpoint: Checkpoint
    rank: int = 0


class MemberStarted(OfAttempt):
    """The process of one rank of a gang runs; `Started` follows when all do."""

    kind: Literal["member-started"] = "member-started"
    rank: int


class MemberEnded(OfAttempt):
    """One rank of a gang has ended; how the attempt has, is told once all have."""

    kind: Literal["member-ended"] = "member-ended"
    rank: int
    end: MemberEnd


class SavesForgotten(OfAttempt):
    """Checkpoints of a gang that lie beyond its common one are kept no longer."""

    kind: Literal["saves-forgotten"] = "saves-forgotten"
    manifests: tuple[str, ...]


class Finished(OfAttempt, Leaves):
    """The job's process ended with 0."""

    kind: Literal["finished"] = "finished"
    exit_code: int = 0


class Failed(OfAttempt, Leaves):
    """The attempt ended badly and the job is not started again."""

    kind: Literal["failed"] = "failed"
    exit_code: int | None
    reason: Reason


class Retried(OfAttempt, Leaves):
    """The attempt ended badly and the job goes back to the queue."""

    kind: Literal["retried"] = "retried"
    exit_code: int | None
    reason: Reason
    not_before: Instant
    lost_s: Seconds = 0.0
    counts: bool = True
    """Whether it counts against `retry.max`; an interruption does not when something was saved."""
    grown: Resources | None = None
    """What its next attempt needs, when this one has outgrown what it had."""


class Cancelled(Leaves):
    """The job is gone, as somebody asked."""

    kind: Literal["cancelled"] = "cancelled"
    reason: Reason


class Paused(Leaves):
    """The job has stopped and waits to be resumed by a person."""

    kind: Literal["paused"] = "paused"
    reason: Reason


class GaveWay(OfAttempt, Leaves):
    """The attempt stopped for a job of higher priority; the job is back in the queue."""

    kind: Literal["gave-way"] = "gave-way"
    reason: Reason
    lost_s: Seconds = 0.0
    not_before: Instant | None = None
    """When it is tried again at the earliest; None: at once."""


class NodeJoined(Happened):
    """An agent reported for work; what it said of itself replaces what was known."""

    kind: Literal["node-joined"] = "node-joined"
    node: Node


class NodeLost(OfNode):
    """A node's agent was silent for longer than its attempt lease."""

    kind: Literal["node-lost"] = "node-lost"
    silent_s: Seconds


class NodeDrained(OfNode):
    """A node takes no new jobs."""

    kind: Literal["node-drained"] = "node-drained"


class NodeResumed(OfNode):
    """A node that drained takes jobs again."""

    kind: Literal["node-resumed"] = "node-resumed"


class NodeRemoved(OfNode):
    """Nobody counts on the node any more; an agent that joins under its name makes a new one."""

    kind: Literal["node-removed"] = "node-removed"


class Read(Happened):
    """The controller has read a node's inbox up to a number; stored with what it read."""

    kind: Literal["read"] = "read"
    node: str
    number: int


class StoreUsed(Happened):
    """An agent on a rented machine has said what it has asked of the store until then."""

    kind: Literal["store-used"] = "store-used"
    node: str
    agent: str
    """Incarnation: each counts anew."""
    use: StoreUse


class BootTold(Happened):
    """A rented machine has told how far its first boot is; read under a number, folded once."""

    kind: Literal["boot-told"] = "boot-told"
    rental: str
    number: int
    """Of the document, from 1 on."""
    phase: str
    state: Literal["begun", "done", "failed", "unreadable"]
    """`unreadable`: what lies under that number says nothing that anybody understands."""
    since: Instant
    """Since when it is so, as near as can be told without trusting the machine's clock."""
    took_s: Seconds | None = None
    """How long the phase took, by the machine; None: it goes on, or nobody has said."""
    says: str = ""


# -- money -----------------------------------------------------------------------------------


class RentalChanged(Happened):
    """A rental was made or has moved on."""

    kind: Literal["rental-changed"] = "rental-changed"
    rental: Rental


Event = Annotated[
    RunOpened
    | Submitted
    | CancelAsked
    | PauseAsked
    | ResumeAsked
    | Placed
    | Waits
    | Held
    | Sized
    | Parked
    | GaveUp
    | StopWished
    | CheckpointLate
    | DeadlineMissed
    | AttemptLost
    | Cleared
    | Noted
    | OrderPosted
    | StopPosted
    | Unconfirmed
    | Started
    | CheckpointSaved
    | MemberStarted
    | MemberEnded
    | SavesForgotten
    | Finished
    | Failed
    | Retried
    | Cancelled
    | Paused
    | GaveWay
    | NodeJoined
    | NodeLost
    | NodeDrained
    | NodeResumed
    | NodeRemoved
    | Read
    | StoreUsed
    | BootTold
    | RentalChanged
    | BudgetSet
    | RunBudgetSet
    | NightClosed
    | Noticed
    | Notified
    | Brought
    | Reserved
    | Charged
    | Released,
    Field(discriminator="kind"),
]
