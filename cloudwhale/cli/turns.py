"""One submission at a time: of two equal commands the second finds what the first has queued."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from cloudwhale.clock import pause
from cloudwhale.control.store import Lock
from cloudwhale.model.units import Seconds

TRY_EVERY_S: Seconds = 0.05
QUIET_TRIES = 20
"""So often it is tried before a word is said: to queue a file takes milliseconds, mostly."""


@contextmanager
def in_turn(lock: Lock, say: Callable[[str], object]) -> Generator[None]:
    """Wait for the lock of who submits, and hold it; raise StoreUnusable when it cannot be."""
    tries = 0
    while not lock.acquire():
        tries += 1
        if tries == QUIET_TRIES:
            say(f"waiting: {lock.holder() or 'another command'} is submitting")
        pause(TRY_EVERY_S)
    try:
        yield
    finally:
        lock.release()
