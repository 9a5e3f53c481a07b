"""What was seen of a job that was rehearsed: run, preempted, resumed, and started afresh."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cloudwhale.model.job import Checkpoint, CheckpointRule
from cloudwhale.model.units import Instant, Seconds


@dataclass(frozen=True, slots=True)
class Printed:
    """One line of a job's output."""

    at: Instant
    """When it was read, a moment after it was written."""
    text: str


@dataclass(frozen=True, slots=True)
class Save:
    """One state of an entry of the checkpoint folder, written by this attempt."""

    name: str
    at: Instant
    """When its newest file was written."""
    size_bytes: int
    digest: str = ""
    """Of its bytes; empty when it was too large, or gone, before they could be read."""
    numbers: Mapping[str, float] = field(default_factory=dict[str, float])
    """Numbers that stand in it, by the name that they have there: `global_step`."""


@dataclass(frozen=True, slots=True)
class Act:
    """One attempt, from its start to its end."""

    began_at: Instant
    ended_at: Instant
    lines: tuple[Printed, ...] = ()
    saves: tuple[Save, ...] = ()
    """Oldest first; what was restored for it is none of them."""
    how: str = "stopped"
    """How it ended, as the agent calls it."""
    exit_code: int | None = None
    says: str = ""
    asked_at: Instant | None = None
    """When it was told to stop; None: it ended before that."""
    killed: bool = False
    """It was still there when its grace was over."""
    writing: tuple[str, ...] = ()
    """What it was still writing when it was killed."""

    @property
    def by_itself(self) -> bool:
        """Say whether it ended before anybody told it to."""
        return self.asked_at is None

    @property
    def stop_s(self) -> Seconds | None:
        """Return how long it took from the signal to its end; None when it got none."""
        return None if self.asked_at is None else max(0.0, self.ended_at - self.asked_at)


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """A rehearsal: what was asked for, and what was seen of it."""

    job: str
    rule: CheckpointRule
    first: Act
    """From zero, until the notice."""
    published: Checkpoint | None = None
    """The newest checkpoint that lies in the store after it: what the second begins from."""
    publish_s: Seconds | None = None
    """From the end of the job's process until all of it lay in the store of this host."""
    lost_s: Seconds = 0.0
    """Run time of the first that was done after that checkpoint."""
    second: Act | None = None
    """Resumed; None when there was nothing to resume from."""
    was_read: bool | None = None
    """Whether the second has read what was restored for it; None: this host cannot tell."""
    fresh: Act | None = None
    """Once more from zero, to compare with; None when that would have told nothing."""
