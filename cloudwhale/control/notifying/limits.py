"""Ends a conversation at its limit, also where each single byte comes soon enough."""

import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

from cloudwhale.clock import pause
from cloudwhale.model.units import Seconds


@contextmanager
def cut_after(limit_s: Seconds, connection: Callable[[], socket.socket | None]) -> Generator[None]:
    """Close the connection, if there is one then, after so many seconds of a real clock."""
    ended = threading.Event()

    def watch() -> None:
        open_one = None if pause(limit_s, ended) else connection()
        if open_one is not None:
            try:
                open_one.shutdown(socket.SHUT_RDWR)  # wakes who reads from it
            except OSError:
                pass  # it is closed already

    threading.Thread(target=watch, name="notify limit", daemon=True).start()
    try:
        yield
    finally:
        ended.set()
