"""Knows since when the store is silent, over restarts too: the attempt lease counts from there."""

import math
import os
import threading
from collections.abc import Callable
from pathlib import Path

from cloudwhale.agent.duty import HEARTBEAT_S
from cloudwhale.agent.seen import Seen, StoreFailed, StoreWorks
from cloudwhale.clock import told
from cloudwhale.model.units import Instant, Seconds

SILENCE_S: Seconds = 3 * HEARTBEAT_S  # a call that hangs gives no error: three heartbeats late
NOTE_EVERY_S: Seconds = 5.0


class StoreWatch:
    """Told of every answer of the store; tells duty when it falls silent and when it is back."""

    def __init__(self, note: Path, now: Instant, tell: Callable[[Seen], None]) -> None:
        self._note = note
        self._tell = tell
        self._turn = threading.Lock()
        self._silent = False
        self._noted_at: Instant = -math.inf
        self._woke_at = now
        self._heard_at = min(now, _noted(note, now))

    def fresh(self, now: Instant) -> None:
        """Count from now: there is nothing here that an earlier silence could matter to."""
        self._heard_at = now

    def heard(self, now: Instant, *, works: bool) -> None:
        """Note an answer, or that there was none; from any thread."""
        with self._turn:
            if works:
                self._heard_at = now
                if now - self._noted_at >= NOTE_EVERY_S:
                    self._noted_at = now
                    _touch(self._note)
            self._judge(silent=not works)

    def look(self, now: Instant) -> None:
        """Judge a store that has not answered for a while; called each turn."""
        with self._turn:
            if now - self._asked_at > SILENCE_S:
                self._judge(silent=True)

    def wakes_at(self) -> Instant:
        """Return when to look."""
        return math.inf if self._silent else self._asked_at + SILENCE_S + 1.0

    @property
    def _asked_at(self) -> Instant:
        """Return since when the store could have answered: while no agent lived, nobody asked."""
        return max(self._woke_at, self._heard_at)

    def _judge(self, *, silent: bool) -> None:
        if silent and not self._silent:
            self._tell(StoreFailed(self._heard_at))
        elif not silent and self._silent:
            self._tell(StoreWorks())
        self._silent = silent


def _noted(note: Path, otherwise: Instant) -> Instant:
    try:
        return told(note.stat().st_mtime)
    except OSError:
        return otherwise


def _touch(note: Path) -> None:
    try:
        note.touch()
        os.utime(note)
    except OSError:
        pass  # a full disk: after a restart the silence counts from the start
