"""Ctrl-C and the signals that ask a follower to go, noted instead of obeyed at once."""

import os
import select
import signal
import sys
import termios
import threading
import tty
from types import FrameType, TracebackType
from typing import Any, Self

from cloudwhale.clock import pause
from cloudwhale.model.units import Seconds

NOTED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
KEY_POLL_S: Seconds = 0.1


class Interrupts:
    """Within it, the signals are noted; the follower asks `pending` and decides."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._newest: signal.Signals | None = None
        self._before: dict[signal.Signals, Any] = {}

    @property
    def pending(self) -> signal.Signals | None:
        """The newest signal that was not taken yet."""
        return self._newest

    def take(self) -> signal.Signals | None:
        """Return the newest signal and forget it."""
        newest, self._newest = self._newest, None
        self._event.clear()
        return newest

    def wait(self, for_s: Seconds) -> None:
        """Wait, less when a signal comes."""
        pause(for_s, self._event)

    def begin(self) -> None:
        """Note signals from now on; nothing changes when they are noted already."""
        if not self._before:
            for number in NOTED:
                self._before[number] = signal.signal(number, self._note)

    def end(self) -> None:
        """Let signals act again as they did before."""
        for number, before in self._before.items():
            signal.signal(number, before)
        self._before = {}

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._newest = signal.Signals(number)
        self._event.set()


def key_pressed(keys: str, interrupts: Interrupts) -> str | None:
    """Wait for one of some keys on the terminal; None when a signal came or the input ended."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    try:
        while interrupts.pending is None:
            ready, _, _ = select.select([descriptor], [], [], KEY_POLL_S)
            if not ready:
                continue
            key = os.read(descriptor, 1).decode("ascii", "ignore").lower()
            if not key:
                return None
            if key in keys:
                return key
        return None
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
