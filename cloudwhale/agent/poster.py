"""Says things to the controller: in order, again and again until the store has taken them."""

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TypeAlias

from cloudwhale.clock import pause
from cloudwhale.mailbox.box import Box
from cloudwhale.mailbox.documents import AnyReport, AttemptEnded, Heartbeat, Left
from cloudwhale.model.requests import StoreUse
from cloudwhale.model.units import Seconds
from cloudwhale.spi.clock import Clock
from cloudwhale.spi.errors import StoreUnusable

FIRST_RETRY_S: Seconds = 0.2
LONGEST_RETRY_S: Seconds = 5.0
TURN_S: Seconds = 3600.0

Then: TypeAlias = Callable[[], None]
"""Done once everything posted before has been taken; may raise StoreUnusable, and is repeated."""


Heard: TypeAlias = Callable[[bool, Seconds], None]
"""Told whether the store took a report, and how long ago it was asked to."""


def _none() -> None:
    return None


class Poster:
    """A thread that posts one report after the other; `heard` is told how the store answers."""

    def __init__(
        self, box: Box, clock: Clock, heard: Heard, use: Callable[[], StoreUse | None] = _none
    ) -> None:
        self._use = use
        self._box = box
        self._clock = clock
        self._heard = heard
        self._waiting: SimpleQueue[AnyReport | Then] = SimpleQueue()
        self._number: int | None = None
        """Of the newest document in the box; None until the store was asked."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._live, name="poster", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def say(self, report: AnyReport, then: Then | None = None) -> None:
        """Post a report; from any thread."""
        self._waiting.put(report)
        if then is not None:
            self._waiting.put(then)

    def afterwards(self, then: Then) -> None:
        """Do something once everything said before was taken."""
        self._waiting.put(then)

    def drain(self, at_most_s: Seconds) -> bool:
        """Wait until everything is said; False when the store did not take it in time."""
        emptied = threading.Event()
        self._waiting.put(emptied.set)
        return pause(at_most_s, emptied)

    def close(self) -> None:
        """End; what is not said by now is said by the next agent, from its folder."""
        self._ended.set()
        self._waiting.put(lambda: None)
        self._thread.join()

    def _live(self) -> None:
        while not self._ended.is_set():
            try:
                self._until_taken(self._waiting.get(timeout=TURN_S))
            except Empty:
                continue

    def _until_taken(self, one: AnyReport | Then) -> None:
        retry_s = FIRST_RETRY_S
        while not self._ended.is_set():
            asked_at = self._clock.steady()
            try:
                self._do(one)
            except StoreUnusable:
                self._heard(False, self._clock.steady() - asked_at)
                pause(retry_s, self._ended)
                retry_s = min(2 * retry_s, LONGEST_RETRY_S)
            else:
                if not callable(one):
                    # The report says when it was written: for the controller the lease runs since.
                    self._heard(True, self._clock.steady() - asked_at)
                return

    def _do(self, one: AnyReport | Then) -> None:
        if callable(one):
            one()
            return
        one = one.but(at=self._clock.now())
        if isinstance(one, Heartbeat | AttemptEnded | Left):
            one = one.but(store=self._use())
        body = one.model_dump_json().encode()
        if self._number is None:
            self._number = self._box.newest()
        self._number = self._box.post(body, self._number)
