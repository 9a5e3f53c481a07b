"""Reads the orders of one node: at once where the store is a folder, else at the next poll.

A poll is one request that misses. An agent polls often while it waits for its first order, and
after each one: orders come together. Then it polls every two seconds.

An order is told only when the node was still ours after it was read, see `mailbox/claims`.
"""

import json
import threading
from collections.abc import Callable, Sequence
from typing import TypeAlias

from pydantic import ValidationError

from cloudwhale.agent.place import ReadTo
from cloudwhale.agent.seen import Key, Ordered, Unreadable
from cloudwhale.clock import real
from cloudwhale.mailbox.bell import Bell
from cloudwhale.mailbox.box import orders_to
from cloudwhale.mailbox.documents import ORDERS, LeaveOrder
from cloudwhale.mailbox.objects import Objects
from cloudwhale.model.units import Seconds
from cloudwhale.spi.errors import StoreUnusable

POLL_S: Seconds = 2.0
SOON_S: Seconds = 0.25
SOON_POLLS = 120  # after an order, half a minute; 0.005 cents of requests on S3
FIRST_POLLS = 480  # after the start, two minutes: a machine was rented for somebody who waits
SOON_PER_POLL = 8
POLL_LEAST_S = 0.2  # on a real clock, however fast time goes: a store has other readers too
POLL_FOLDER_S: Seconds = 10.0  # where the folder rings, this is only for a ring that got lost
LOOKS_EVERY_POLLS = 5  # how often it is asked whether the node is still ours, with no order too
GAP_POLLS = 15  # idle polls after which newer orders are looked for behind one that never came

Told: TypeAlias = tuple[Ordered | Unreadable, int]
"""What was read, and its number."""
Tell: TypeAlias = Callable[[Sequence[Told]], None]


Stands: TypeAlias = Callable[[], bool]
"""Says whether the node is still ours; raises StoreUnusable."""


class Ousted(Exception):
    """Another agent has claimed the node."""


class OrderReader:
    """A thread that reads one order after the other, and tells each once.

    `stands` is asked before an order is told, and now and then; when the node is not ours any
    more, `ousted` is called and nothing is read again.
    """

    def __init__(
        self,
        objects: Objects,
        folder: str,
        tell: Tell,
        stands: Stands = lambda: True,
        ousted: Callable[[], None] = lambda: None,
    ) -> None:
        self._box = orders_to(objects, folder)
        self._tell = tell
        self._stands = stands
        self._ousted = ousted
        self._bell = Bell()
        self._folder = None if objects.folder is None else objects.folder / "orders" / folder
        self._next = 1
        self._missed_to = 0
        self._held: list[Told] = []
        self._fresh = True
        """It has not looked yet at what was deleted before it came."""
        self._idle = 0
        """Polls in a row that have found nothing."""
        self._gap_at = 0
        """The number that did not come although a later one had."""
        self._soon = FIRST_POLLS
        """So many polls more come soon after one another."""
        self._ended = False
        self._thread = threading.Thread(target=self._live, name="orders", daemon=True)

    def start(self, read_to: ReadTo) -> None:
        """Begin after what earlier agents have read."""
        self._next = read_to.number + 1
        self._missed_to = read_to.missed_to
        self._thread.start()

    def close(self) -> None:
        """End; an order that is under way is told or stays for the next agent."""
        self._ended = True
        self._bell.ring()
        self._thread.join()
        self._bell.close()

    def _live(self) -> None:
        rings = self._folder is not None and self._bell.watch(self._folder)
        while not self._ended:
            try:
                if self._read_next():
                    self._idle = 0
                    self._soon = max(self._soon, SOON_POLLS)
                    continue
                self._give()
                self._now_and_then(rings=rings)
            except StoreUnusable:
                rings = False  # the folder may have been removed, and its watch with it
            except Ousted:
                self._held = []
                self._ousted()
                return
            if self._folder is not None and not rings:
                self._bell.unwatch(self._folder)
                rings = self._folder.parent.is_dir() and self._bell.watch(self._folder)
            self._bell.wait(real(POLL_FOLDER_S) if rings else self._poll_s())

    def _poll_s(self) -> Seconds:
        """Return how long to wait before the next poll, on a real clock."""
        self._soon = max(0, self._soon - 1)
        return max(POLL_LEAST_S, real(SOON_S if self._soon else POLL_S))

    def _now_and_then(self, *, rings: bool) -> None:
        if not rings and not self._fresh and self._soon % SOON_PER_POLL:
            return  # what is looked for here has more time
        self._idle += 1
        if rings or self._idle % LOOKS_EVERY_POLLS == 1:
            self._look_whose()
        if self._fresh or self._idle % GAP_POLLS == 0:
            self._look_behind_a_gap()
            self._fresh = False

    def _look_whose(self) -> None:
        if not self._stands():
            raise Ousted

    def _look_behind_a_gap(self) -> None:
        """Go on after an order that is not there although later ones are; seen twice, to be sure.

        The controller writes one after the other, so it was deleted: by hand, or by age before we
        came. A shared folder may show a file later than the next one.
        """
        later = self._box.first_kept(self._next)
        if later > self._next and (self._fresh or self._gap_at == self._next):
            self._next = later
            self._bell.ring()
        self._gap_at = self._next

    def _read_next(self) -> bool:
        body = self._box.read(self._next)
        if body is None:
            return False
        order = self._understood(body)
        self._held.append((order, self._next))
        self._next += 1
        if not isinstance(order, Ordered) or not isinstance(order.order, LeaveOrder):
            self._give()
        return True

    def _give(self) -> None:
        """Tell what was read, at once: an order to leave is held back for what comes after it."""
        if self._held:
            self._look_whose()
            held, self._held = self._held, []
            self._tell(held)

    def _understood(self, body: bytes) -> Ordered | Unreadable:
        try:
            order = ORDERS.validate_json(body)
        except ValidationError as error:
            says = f"order {self._next} cannot be read: {error.errors()[0]['msg']}"
            return Unreadable(says, _about(body))
        return Ordered(order, missed=self._next <= self._missed_to)


def _about(body: bytes) -> Key | None:
    """Return the attempt that an order is to start, as far as it can be read."""
    try:
        found = json.loads(body)
        key = str(found["job"]), int(found["attempt"])
        return key if found["kind"] == "start" else None
    except (ValueError, KeyError, TypeError):
        return None
