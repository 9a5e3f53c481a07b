"""Listens for the word that this machine's provider will take it away."""

import threading
from collections.abc import Callable

from cloudwhale.agent.seen import Seen, Warned
from cloudwhale.clock import SystemClock, real
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.notices import Notice, Notices

CLOCK = SystemClock()
LEAST_S: Seconds = 0.2  # on a real clock, however fast time goes: whoever answers is no faster


class Noticing:
    """A thread that asks again and again, and tells each notice once.

    Who is asked is loaded by the thread: the agent joins first. None: nobody can be.
    """

    def __init__(
        self,
        load: Callable[[], Notices | None],
        tell: Callable[[Seen], None],
        now: Callable[[], Instant] = CLOCK.now,
    ) -> None:
        self._load = load
        self._tell = tell
        self._now = now
        self._told: set[Notice] = set()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._live, name="notices", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End; a question that is under way is not waited for."""
        self._ended.set()

    def look(self, notices: Notices) -> None:
        """Ask once; tell what is new."""
        for found in notices.look():
            if found not in self._told:
                self._told.add(found)
                goes_at = found.goes_at
                if found.goes_in_s is not None:
                    goes_at = self._now() + found.goes_in_s
                self._tell(Warned(goes_at, found.says, found.at_once))

    def _live(self) -> None:
        notices = self._load()
        while notices is not None and not self._ended.is_set():
            self.look(notices)
            self._ended.wait(max(LEAST_S, real(notices.every_s)))
