"""Ends a conversation at its limit, also where each single byte comes soon enough."""

import http.client
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

from cloudwhale.clock import pause
from cloudwhale.model.units import Seconds

AGAIN_S: Seconds = 0.2


@contextmanager
def cut_after(limit_s: Seconds, connection: Callable[[], socket.socket | None]) -> Generator[None]:
    """Close the connection after so many seconds of a real clock, and any that comes later.

    A host of several addresses is connected to by one after the other, each for its own time.
    Raise TimeoutError where what failed did so after that: whatever it failed of, that was why.
    """
    ended, is_over = threading.Event(), threading.Event()

    def watch() -> None:
        wait_s = limit_s
        while not pause(wait_s, ended):
            wait_s = AGAIN_S
            is_over.set()
            open_one = connection()
            if open_one is not None:
                try:
                    open_one.shutdown(socket.SHUT_RDWR)  # wakes who reads from it
                except OSError:
                    pass  # it is closed already, or not open yet

    threading.Thread(target=watch, name="notify limit", daemon=True).start()
    try:
        yield
    except (OSError, http.client.HTTPException) as error:
        if is_over.is_set():
            raise TimeoutError("cut off at its limit") from error
        raise
    finally:
        ended.set()
