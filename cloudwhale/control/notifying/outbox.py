"""The notices that have not arrived yet, by target: what is sent next, and when.

One message at a time goes to a target, so that they come in order. A target that takes nothing is
left alone for a while that grows; more messages than it is sent in a minute are put together.
"""

import hashlib
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from cloudwhale.control.notifying.message import (
    Answer,
    Message,
    digest_name,
    digest_of,
    message_of,
)
from cloudwhale.model.notice import OWN, Notice, Notified
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.planning.queue import earliest

IN_A_MINUTE = 10  # messages; a person reads no more, and chats let no more through for long
MINUTE_S: Seconds = 60.0
GIVE_UP_S: Seconds = 24 * 3600.0
FIRST_S: Seconds = 5.0
LONGEST_S: Seconds = 3600.0
JITTER = 0.2  # of a wait, up or down, so that many controllers do not come back at once


@dataclass(slots=True)
class Parcel:
    """A message that waits: of one notice, or of several."""

    name: str
    notices: list[Notice]
    is_digest: bool = False
    may_have_come: bool = False
    """It was tried: it stays what it is, so that whoever got it can tell that it is the same."""
    tries: int = 0
    not_before: Instant = 0.0
    says: str = ""

    @property
    def message(self) -> Message:
        """Return what is sent."""
        if self.is_digest:
            return digest_of(self.name, self.notices)
        return message_of(self.notices[0])

    @property
    def ids(self) -> tuple[str, ...]:
        """Return the notices that are in it."""
        return tuple(notice.id for notice in self.notices)


@dataclass(slots=True)
class Line:
    """Those who wait for one target."""

    target: str
    parcels: dict[str, Parcel] = field(default_factory=dict[str, Parcel])
    under_way: str = ""
    failures: int = 0
    """In a row."""
    not_before: Instant = 0.0
    sent_at: deque[Instant] = field(default_factory=deque[Instant])
    gathered_at: Instant | None = None

    def fresh(self) -> list[Parcel]:
        """Return those that may still be put together."""
        waits = self.parcels.values()
        return [one for one in waits if not one.is_digest and not one.may_have_come]

    def matters(self, now: Instant) -> bool:
        """Say whether somebody waits, or what was sent still counts."""
        newest = max(self.sent_at[-1] if self.sent_at else 0.0, self.gathered_at or 0.0)
        return bool(self.parcels) or now < newest + MINUTE_S


class Outbox:
    """What is on its way; what it yields is to be stored before anything more is sent."""

    def __init__(self, targets: Collection[str]) -> None:
        self._targets = frozenset(targets)
        self._lines: dict[str, Line] = {}

    def load(self, notices: Iterable[Notice]) -> None:
        """Take up what an earlier controller has left, oldest first.

        It may have been killed while it sent what stood first in a line.
        """
        self.add(notices)
        for line in self._lines.values():
            for parcel in line.fresh()[:1]:
                parcel.may_have_come = True

    def add(self, notices: Iterable[Notice]) -> None:
        """Put notices behind the others."""
        for notice in notices:
            for target, way in notice.ways.items():
                if way.state == "due":
                    line = self._lines.setdefault(target, Line(target))
                    name = way.digest or message_of(notice).id
                    parcel = line.parcels.setdefault(name, Parcel(name, [], bool(way.digest)))
                    parcel.notices.append(notice)
                    parcel.may_have_come |= way.tried

    def waiting(self) -> int:
        """Return how many notices have not arrived yet, counted for each target."""
        parcels = (one for line in self._lines.values() for one in line.parcels.values())
        return sum(len(parcel.notices) for parcel in parcels)

    # -- what is to be done ------------------------------------------------------------------

    def sorted_out(self, now: Instant, *, at_once: bool = False) -> Iterator[Notified]:
        """Yield what becomes of those that wait before anything is sent: given up, put together.

        `at_once`: this controller ends, so nothing is put off.
        """
        for line in self._lines.values():
            yield from self._given_up(line, now)
            yield from self._gathered(line, now, at_once=at_once)
        self._lines = {name: one for name, one in self._lines.items() if one.matters(now)}

    def next_ones(self, now: Instant, *, at_once: bool = False) -> Iterator[tuple[str, Parcel]]:
        """Yield for each target what is sent to it now, and count it as under way."""
        for line in self._lines.values():
            parcel = self._next(line, now, at_once=at_once)
            if parcel is not None:
                line.under_way = parcel.name
                parcel.may_have_come = True
                yield line.target, parcel

    def answered(self, target: str, name: str, answer: Answer, now: Instant) -> list[Notified]:
        """Return what a target's answer leads to."""
        line = self._lines[target]
        line.under_way, parcel = "", line.parcels[name]
        parcel.tries += 1
        told = Notified(at=now, target=target, notices=parcel.ids, outcome="told", says=answer.says)
        if answer.outcome == "told":
            del line.parcels[name]
            line.failures = 0
            line.sent_at.append(now)
            return [told]
        if answer.outcome == "never":
            del line.parcels[name]
            return [told.but(outcome="given-up")]
        return self._again(line, parcel, answer, told)

    def due_at(self, now: Instant) -> Instant | None:
        """Return when something is to be done next though nobody answers; None: nothing waits."""
        return earliest(*(self._due_at(line, now) for line in self._lines.values()))

    @property
    def is_busy(self) -> bool:
        """Say whether something is under way, or could be sent for the first time."""
        return any(
            line.under_way or (not line.failures and line.parcels) for line in self._lines.values()
        )

    # -- one line ----------------------------------------------------------------------------

    def _given_up(self, line: Line, now: Instant) -> Iterator[Notified]:
        for parcel in list(line.parcels.values()):
            why = self._why_over(line.target, parcel, now)
            if why and parcel.name != line.under_way:
                del line.parcels[parcel.name]
                yield Notified(
                    at=now, target=line.target, notices=parcel.ids, outcome="given-up", says=why
                )

    def _why_over(self, target: str, parcel: Parcel, now: Instant) -> str:
        if target not in self._targets and not target.startswith(OWN):
            return f"the settings have no target {target} any more"
        if now - max(one.at for one in parcel.notices) >= GIVE_UP_S:
            return f"tried for a day; {parcel.says}" if parcel.says else "a day has passed"
        return ""

    def _gathered(self, line: Line, now: Instant, *, at_once: bool) -> Iterator[Notified]:
        fresh = line.fresh()
        if len(fresh) <= IN_A_MINUTE or (not at_once and now < _gathers_at(line)):
            return
        notices = [parcel.notices[0] for parcel in fresh]
        name = digest_name(line.target, notices)
        for parcel in fresh:
            del line.parcels[parcel.name]
        line.parcels[name] = Parcel(name, notices, is_digest=True)
        line.gathered_at = now
        ids = tuple(one.id for one in notices)
        yield Notified(at=now, target=line.target, notices=ids, outcome="gathered", digest=name)

    def _next(self, line: Line, now: Instant, *, at_once: bool) -> Parcel | None:
        if line.under_way or now < line.not_before:
            return None
        able = [one for one in self._may_go(line) if one.not_before <= now]
        if not at_once and now < _free_at(line, now):
            able = [one for one in able if one.is_digest]
        # Who was tried least goes first: one that is never taken is in nobody's way.
        return min(able, key=lambda one: one.tries, default=None)

    def _may_go(self, line: Line) -> Sequence[Parcel]:
        """Return those that may be sent: not those that are to be put together soon."""
        fresh = line.fresh()
        if len(fresh) <= IN_A_MINUTE:
            return list(line.parcels.values())
        held = {one.name for one in fresh}
        return [one for one in line.parcels.values() if one.name not in held]

    def _due_at(self, line: Line, now: Instant) -> Instant | None:
        if line.under_way or not line.parcels:
            return None
        first = min(max(o.at for o in one.notices) for one in line.parcels.values())
        free_at = _free_at(line, now)
        goes = [
            max(one.not_before, line.not_before, 0.0 if one.is_digest else free_at)
            for one in self._may_go(line)
        ]
        gathers = [_gathers_at(line)] if len(line.fresh()) > IN_A_MINUTE else []
        return min([first + GIVE_UP_S, *goes, *gathers])

    def _again(self, line: Line, parcel: Parcel, answer: Answer, told: Notified) -> list[Notified]:
        is_news = parcel.says != answer.says
        parcel.says, now = answer.says, told.at
        parcel.not_before = now + _wait_s(parcel.name, parcel.tries)
        if not answer.only_this:
            line.failures += 1
            line.not_before = now + _wait_s(line.target, line.failures)
        if answer.after_s is not None:
            line.not_before = max(line.not_before, now + answer.after_s)
        return [told.but(outcome="failing")] if is_news else []


def _gathers_at(line: Line) -> Instant:
    return 0.0 if line.gathered_at is None else line.gathered_at + MINUTE_S


def _free_at(line: Line, now: Instant) -> Instant:
    """Return when one more may be sent: so many in a minute at most."""
    while line.sent_at and line.sent_at[0] <= now - MINUTE_S:
        line.sent_at.popleft()
    return now if len(line.sent_at) < IN_A_MINUTE else line.sent_at[0] + MINUTE_S


def _wait_s(name: str, failures: int) -> Seconds:
    """Return how long to wait after so many failures: twice as long each time, and not evenly."""
    wait_s = min(LONGEST_S, FIRST_S * 2.0 ** min(failures - 1, 20))
    drawn = hashlib.sha256(f"{name} {failures}".encode()).digest()[0] / 255
    return wait_s * (1 - JITTER + 2 * JITTER * drawn)
