"""Reads what rented machines tell of their first boot, until their agents are there."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import ValidationError

from cloudwhale.control.effects import Effect, Key
from cloudwhale.control.inboxes import Cadence
from cloudwhale.control.mailboxes import Mailboxes
from cloudwhale.mailbox.box import Box, boot_of, folder_of
from cloudwhale.mailbox.documents import BootTold
from cloudwhale.model import event as e
from cloudwhale.model.rental import Rental
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.model.world import World
from cloudwhale.planning.booting import is_awaited

FOLLOW = "follow"
PACE = Cadence(every_s=2.0)  # a phase takes seconds to minutes, and each look costs a request
READ_AT_ONCE = 16  # all that a boot tells which goes well
READ_MOST = 200  # a machine that tells more than ten boots would is not listened to any more
SAYS_MOST = 300
NAME_MOST = 32
TOOK_MOST_S: Seconds = 7 * 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Tidings:
    """Documents that one machine has written of its boot, from a number on."""

    rental: str
    first: int
    bodies: tuple[bytes, ...]
    asked_at: Instant
    """When it was asked for: what came later was not there then."""


class Boots:
    """Remembers when each machine that boots was asked last; how far it was read, the store does.

    A machine writes its documents one after the other, so what is missing is not there yet.
    """

    def __init__(self, mailboxes: Mailboxes, cadence: Cadence = PACE) -> None:
        self._mailboxes = mailboxes
        self._cadence = cadence
        self._asked_at: dict[str, Instant] = {}
        self._empty_at: dict[str, Instant] = {}
        """When each was last asked for what it had not told yet."""
        self._every_s = cadence.every_s

    def look_soon(self) -> None:
        """Ask all of them at the next chance."""
        self._asked_at = {}

    def looks(self, world: World, now: Instant) -> list[Effect]:
        """Return the looks that are due; the world must hold all that was read before."""
        if not (world.rentals or self._asked_at or self._empty_at):
            return []
        booting = [one for one in world.rentals.values() if _is_followed(one, world)]
        self._forget_others({one.id for one in booting})
        self._every_s = max(self._cadence.every_s, self._cadence.apart_s * len(booting))
        due = [one for one in booting if self._is_due(one.id, now)]
        self._asked_at |= {one.id: now for one in due}
        return [self._look(one, now) for one in due]

    def next_look_at(self) -> Instant | None:
        """Return when the next look is due; None when nothing boots."""
        at = min(self._asked_at.values(), default=math.inf) + self._every_s
        return None if math.isinf(at) else at

    def _is_due(self, name: str, now: Instant) -> bool:
        at = self._asked_at.get(name)
        return at is None or not 0 <= now - at < self._every_s

    def _forget_others(self, names: set[str]) -> None:
        self._asked_at = {name: at for name, at in self._asked_at.items() if name in names}
        self._empty_at = {name: at for name, at in self._empty_at.items() if name in names}

    def _look(self, rental: Rental, now: Instant) -> Effect:
        folder = folder_of(rental.node or rental.id, rental.door)
        provider, first = (
            "" if rental.taken is None else rental.taken.provider,
            rental.boot.read + 1,
        )

        def look() -> Tidings:
            box = boot_of(self._mailboxes.of(provider), folder)
            return Tidings(rental.id, first, _from(box, first), now)

        return Effect(Key(FOLLOW, rental.id), look, lane=self._mailboxes.name_of(provider))

    # -- what came back ----------------------------------------------------------------------

    def came(self, tidings: Tidings, world: World, now: Instant) -> Iterable[e.BootTold]:
        """Yield an event for each document that is new; what is read twice is folded once."""
        name = tidings.rental
        rental, empty_at = world.rentals.get(name), self._empty_at.get(name)
        if len(tidings.bodies) < READ_AT_ONCE:
            self._empty_at[name] = tidings.asked_at
        if rental is None:
            return
        began_at = rental.reserved_at if rental.launched_at is None else rental.launched_at
        not_before = max(began_at, rental.boot.since, empty_at or -math.inf)
        for number, body in enumerate(tidings.bodies, tidings.first):
            told = _event(rental.id, number, body, (min(not_before, now), now))
            not_before = told.since
            yield told


def _is_followed(rental: Rental, world: World) -> bool:
    is_over = rental.boot.has_failed or rental.boot.read >= READ_MOST
    return not is_over and is_awaited(rental, world.nodes.get(rental.node or ""))


def _from(box: Box, first: int) -> tuple[bytes, ...]:
    bodies: list[bytes] = []
    while len(bodies) < READ_AT_ONCE and (body := box.read(first + len(bodies))) is not None:
        bodies.append(body)
    return tuple(bodies)


def _event(rental: str, number: int, body: bytes, between: tuple[Instant, Instant]) -> e.BootTold:
    """Return what a document means; its machine's clock counts as far as it can be right."""
    earliest, now = between
    try:
        told = BootTold.model_validate_json(body)
    except ValidationError as error:
        why = str(error.errors()[0]["msg"])
        return e.BootTold(
            at=now, rental=rental, number=number, phase="", state="unreadable", since=earliest,
            says=one_line(why, SAYS_MOST),
        )  # fmt: skip
    return e.BootTold(
        at=now, rental=rental, number=number,
        phase=one_line(told.phase, NAME_MOST) or "?", state=told.state,
        since=min(now, max(earliest, told.at)) if math.isfinite(told.at) else now,
        took_s=_took_s(told.took_s), says=one_line(told.says, SAYS_MOST),
    )  # fmt: skip


def _took_s(took_s: Seconds | None) -> Seconds | None:
    is_known = took_s is not None and 0 <= took_s <= TOOK_MOST_S
    return took_s if is_known else None


def one_line(text: str, most: int) -> str:
    """Return words of a machine as one line that commands no terminal, cut where it is too long."""
    line = " ".join(text[: 4 * most].split())
    shown = "".join(each if each.isprintable() else "\ufffd" for each in line)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"
