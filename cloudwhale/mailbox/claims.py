"""Claims: which agent may be a node, said once under the next number; the newest claim holds.

Why no order is obeyed by two agents of one name: a claim is made by create-if-absent under the
number after the newest, so all agents agree on which is the newest. An agent that takes a name
over obeys no order that was posted before its claim: it lists the orders after it has claimed.
An agent obeys an order only when, after it has read the order, no later claim than its own is
there: so the order was posted before that later claim, and the later agent does not obey it.
No clock takes part in this. Clocks matter for when a name may be taken over, see `free_after_s`.
"""

from dataclasses import dataclass

from pydantic import ValidationError

from cloudwhale.mailbox.box import Box, claims_of, inbox_from
from cloudwhale.mailbox.documents import REPORTS, Document, Left
from cloudwhale.mailbox.objects import Objects
from cloudwhale.model.units import Instant, Seconds

SKEW_S: Seconds = 30.0  # how far an agent's clock and the store's may differ


class Claim(Document):
    """An agent says that it is a node."""

    place: str
    """Made up once for the agent's folder: other agents of that folder go on for this one."""
    host: str
    """Name of its machine, for people."""
    agent: str
    """Incarnation."""
    lease_s: Seconds
    """After so long without the store it has stopped its jobs."""
    boot: str = ""
    """Running system and process namespace; empty when unknown."""
    pid: int = 0
    """Its process there."""
    began: int = 0
    """When that process began, in the system's own count."""


@dataclass(frozen=True, slots=True)
class Held:
    """The newest claim of a name, and the number it was made under."""

    number: int
    claim: Claim | None
    """None when it cannot be read: a newer version wrote it."""


@dataclass(frozen=True, slots=True)
class Word:
    """What the agent of a claim was heard to say last."""

    at: Instant
    """By the store's clock."""
    left: bool
    """It said goodbye, so nothing of it runs any more."""


class Claims:
    """The claims of one node's name."""

    def __init__(self, objects: Objects, folder: str) -> None:
        self._box: Box = claims_of(objects, folder)
        self._inbox: Box = inbox_from(objects, folder)

    def make(self, claim: Claim, after: int) -> int | None:
        """Claim the name under the next number; None when somebody has done so already."""
        number = after + 1
        return number if self._box.create(number, claim.model_dump_json().encode()) else None

    def newest(self) -> Held | None:
        """Return the newest claim, None when nobody ever made one; lists."""
        number = self._box.newest()
        body = self._box.read(number) if number else None
        return None if body is None else Held(number, _claim(body))

    def stands(self, number: int) -> bool:
        """Say whether a claim is still the newest one; one request that misses."""
        return self._box.read(number + 1) is None

    def made_at(self, number: int) -> Instant | None:
        """Return when a claim was made, by the store's clock."""
        return self._box.posted_at(number)

    def forget(self, number: int) -> None:
        """Delete a claim that a later one of the same place stands for."""
        self._box.forget(number, number)

    def last_word(self, held: Held) -> Word:
        """Return what was last heard of the agent that holds the name; lists its inbox."""
        claimed_at = self.made_at(held.number) or 0.0
        newest = self._inbox.newest()
        said_at = self._inbox.posted_at(newest) if newest else None
        if said_at is None or said_at < claimed_at:
            return Word(claimed_at, left=False)
        return Word(said_at, left=self._is_goodbye(newest, held))

    def _is_goodbye(self, number: int, held: Held) -> bool:
        body = self._inbox.read(number)
        try:
            report = REPORTS.validate_json(body or b"")
        except ValidationError:
            return False
        own = held.claim is not None and report.agent == held.claim.agent
        return own and isinstance(report, Left)


def _claim(body: bytes) -> Claim | None:
    try:
        return Claim.model_validate_json(body)
    except ValidationError:
        return None


def free_after_s(claim: Claim | None, otherwise_s: Seconds) -> Seconds:
    """Return how long the holder of a name must be silent before another may have it.

    Its jobs have ended by then: it stops them when its own lease since the last answer of the
    store has passed, and that answer cannot be later than the newest document of it that lies
    in the store; the skew is for what the two clocks may differ.
    """
    return (otherwise_s if claim is None else claim.lease_s) + SKEW_S
