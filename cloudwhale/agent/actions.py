"""What an agent can do: the actions that its duty asks the rim for, in order."""

from dataclasses import dataclass
from typing import TypeAlias

from cloudwhale.agent.seen import Key, StopWish, Tenure
from cloudwhale.mailbox.documents import AnyReport, AttemptEnded, StartOrder
from cloudwhale.model.job import Checkpoint, Peaks


@dataclass(frozen=True, slots=True)
class Prepare:
    """Keep the order, then unpack, restore and unseal; answered by Prepared or CannotStart."""

    order: StartOrder


@dataclass(frozen=True, slots=True)
class StartShim:
    """Start the shim; answered by Began, Over, Lost or CannotStart."""

    key: Key


@dataclass(frozen=True, slots=True)
class KeepStop:
    """Remember in the attempt's folder that it is to be stopped, and how."""

    key: Key
    wish: StopWish


@dataclass(frozen=True, slots=True)
class KeepPeaks:
    """Remember in the attempt's folder the most that it has used."""

    key: Key
    peaks: Peaks


@dataclass(frozen=True, slots=True)
class Signal:
    """Send the signal; the shim kills what is left after the grace, even if this agent dies."""

    key: Key
    wish: StopWish


@dataclass(frozen=True, slots=True)
class Kill:
    """Kill everything of the attempt; `hard`: the shim too, as it does not react."""

    key: Key
    hard: bool = False


@dataclass(frozen=True, slots=True)
class Publish:
    """Publish the newest whole checkpoint, under this number or the next one that is free.

    `last`: no process is left, so nothing changes any more. Answered by Published, Dropped or
    PublishFailed.
    """

    key: Key
    seq: int
    last: bool = False


@dataclass(frozen=True, slots=True)
class SaveOutputs:
    """Store what the job has left; answered by OutputsSaved or OutputsFailed."""

    key: Key


@dataclass(frozen=True, slots=True)
class Forget:
    """Delete checkpoints from the store, after everything posted before was taken by it."""

    key: Key
    checkpoints: tuple[Checkpoint, ...]


@dataclass(frozen=True, slots=True)
class Post:
    """Say something to the controller; reports are posted in order, again until taken."""

    report: AnyReport


@dataclass(frozen=True, slots=True)
class Close:
    """Merge the log, post the report, mark the attempt as ended: it never starts here again."""

    report: AttemptEnded


@dataclass(frozen=True, slots=True)
class Repeat:
    """Post again how an attempt ended, if that is known here and was posted before."""

    key: Key


@dataclass(frozen=True, slots=True)
class KeepTenure:
    """Remember until when this rented machine is paid for, and set its watchdog to it."""

    tenure: Tenure


@dataclass(frozen=True, slots=True)
class Leave:
    """Say goodbye and end the agent."""

    ends_machine: bool = False
    """The machine ends with it: it is rented, and has nothing more to do or no more time."""


Action: TypeAlias = (
    Prepare
    | StartShim
    | KeepStop
    | KeepPeaks
    | Signal
    | Kill
    | Publish
    | SaveOutputs
    | Forget
    | Post
    | Close
    | Repeat
    | KeepTenure
    | Leave
)
