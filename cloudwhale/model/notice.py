"""What people are told beside what they look up: notices, and how far each is on its way."""

from enum import StrEnum
from typing import Literal

from cloudwhale.model.happened import Happened
from cloudwhale.model.units import Instant, MicroUsd, Seconds
from cloudwhale.model.value import Value


class NoticeKind(StrEnum):
    """What can be told; settings and jobs choose of these, or `all`."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    PARKED = "parked"
    PREEMPTED = "preempted"
    """A job was interrupted often, by its machine or for others."""
    CHECKPOINT_LATE = "checkpoint-late"
    BUDGET = "budget"
    """The soft line or the bound of a run's or a project's money is reached."""
    LEAK = "leak"
    """Something of ours that no machine needs was found in a cloud."""
    ATTENTION = "attention"
    """A machine cannot be given back: a person must look."""
    NIGHT = "night"
    """A night is over."""


ALL = "all"
EVERY_KIND = frozenset(kind.value for kind in NoticeKind)
OWN = "job:"
"""How the webhooks that jobs name themselves are called among targets, each with a mark of its
own behind it: their addresses may be secrets."""


class Way(Value):
    """How far a notice is on its way to one target."""

    state: Literal["due", "told", "given-up"] = "due"
    digest: str = ""
    """The message that it goes out in together with others; empty: in one of its own."""
    tried: bool = False
    """It may have arrived although nobody said so: it stays the message that it is."""
    says: str = ""
    """Why it has not arrived yet, or never will; what the target has answered."""
    at: Instant | None = None
    """When that was."""


class Notice(Value):
    """One thing to tell; the facts, not the words: those are made for each target."""

    id: str
    """Kind, subject and occasion: what makes it one, for ever and over restarts."""
    kind: NoticeKind
    at: Instant
    """When it happened."""
    subject: str
    """The job, run, machine or account that it is of, by id."""
    job: str = ""
    """Whose wishes count for it, too."""
    name: str = ""
    """How a person calls it."""
    project: str = ""
    run: str = ""
    user: str = ""
    says: str = ""
    """Why, in the words of the event's reason."""
    change: str = ""
    """What a person could do."""
    attempt: int | None = None
    ran_s: Seconds | None = None
    interruptions: int | None = None
    spent: MicroUsd | None = None
    reserved: MicroUsd | None = None
    limit: MicroUsd | None = None
    share: float | None = None
    """Of the limit: where the soft line is."""
    counts: dict[str, int] = {}
    """Of a night: how many of its jobs are in each state, or are left over for what."""
    ways: dict[str, Way] = {}
    """How far it is to each target."""

    @property
    def state(self) -> Literal["due", "told", "given-up"]:
        """Return how far it is as a whole: due while one target waits for it."""
        states = {way.state for way in self.ways.values()}
        if "due" in states:
            return "due"
        return "given-up" if "given-up" in states else "told"


class Noticed(Happened):
    """The controller has looked for what is to be told, through all events up to a number."""

    kind: Literal["noticed"] = "noticed"
    to: int
    notices: tuple[Notice, ...] = ()
    """Those that are known already are left as they are."""


class Notified(Happened):
    """A target has answered for some notices, or will not, or they go out together."""

    kind: Literal["notified"] = "notified"
    target: str
    notices: tuple[str, ...]
    outcome: Literal["told", "failing", "given-up", "gathered"]
    says: str = ""
    digest: str = ""
    """Of `gathered`: the message that they go out in."""


def after(notice: Notice, event: Notified) -> Notice:
    """Return a notice after what became of it; what is over stays over."""
    way = notice.ways.get(event.target)
    if way is None or way.state != "due":
        return notice
    match event.outcome:
        case "gathered":
            new = way.but(digest=event.digest)
        case "failing":
            new = way.but(tried=True, says=event.says, at=event.at)
        case outcome:
            new = way.but(state=outcome, tried=True, says=event.says, at=event.at)
    return notice.but(ways=notice.ways | {event.target: new})
