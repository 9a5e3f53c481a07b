"""A few threads for what takes time: unpacking, restoring, publishing, merging logs."""

import logging
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue

from cloudwhale.clock import pause
from cloudwhale.model.units import Seconds

THREADS = 4  # uploads of different jobs overlap; more would only share the same disk and line


class Pool:
    """Does one thing after the other in each of its threads; made as they are needed."""

    def __init__(self, most: int = THREADS) -> None:
        self._most = most
        self._waiting: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._idle = threading.Semaphore(0)
        self._turn = threading.Lock()
        self._undone = 0
        self._emptied = threading.Event()

    def do(
        self, task: Callable[[], object], failed: Callable[[Exception], object] | None = None
    ) -> None:
        """Do something soon; `failed` hears, in the same thread, of what nobody has foreseen.

        That is the failure of one task, for one attempt: the agent has others to go on with.
        """
        with self._turn:
            self._undone += 1
            self._emptied.clear()
        if not self._idle.acquire(blocking=False) and len(self._threads) < self._most:
            thread = threading.Thread(target=self._live, name="pool", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._waiting.put(partial(_done, task, failed))

    def drain(self, at_most_s: Seconds) -> bool:
        """Wait until everything is done; False when that takes longer."""
        return self._undone == 0 or pause(at_most_s, self._emptied)

    def close(self) -> None:
        """Begin nothing more; what is under way is not waited for."""
        for _ in self._threads:
            self._waiting.put(None)

    def _live(self) -> None:
        while (task := self._waiting.get()) is not None:
            task()
            with self._turn:
                self._undone -= 1
                if self._undone == 0:
                    self._emptied.set()
            self._idle.release()


def _done(task: Callable[[], object], failed: Callable[[Exception], object] | None) -> None:
    try:
        task()
    except Exception as error:
        logging.exception("a task of this agent failed")
        if failed is not None:
            _done(partial(failed, error), None)
