"""Listens for the word that this machine's provider will take it away."""

import threading
from collections.abc import Callable

from cloudwhale.agent.seen import Seen, Warned
from cloudwhale.clock import wait
from cloudwhale.spi.notices import Notice, Notices


class Noticing:
    """A thread that asks again and again, and tells each notice once."""

    def __init__(self, notices: Notices, tell: Callable[[Seen], None]) -> None:
        self._notices = notices
        self._tell = tell
        self._told: Notice | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._live, name="notices", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End; a question that is under way is not waited for."""
        self._ended.set()

    def look(self) -> None:
        """Ask once; tell what is new. A recommendation after a notice is nothing new."""
        found = self._notices.look()
        if found is None or found == self._told:
            return
        if found.goes_at is None and self._told is not None:
            return
        self._told = found
        self._tell(Warned(found.goes_at, found.says))

    def _live(self) -> None:
        while not self._ended.is_set():
            self.look()
            wait(self._notices.every_s, self._ended)
