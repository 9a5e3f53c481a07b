"""Says on standard error what a command is busy with, once that takes longer than a glance."""

import sys
import threading
from types import TracebackType
from typing import Self

from cloudwhale.cli.output import is_terminal
from cloudwhale.clock import SystemClock, pause, real
from cloudwhale.model.units import Seconds

QUIET_S: Seconds = 2.0
EVERY_S: Seconds = 1.0


class Thinking:
    """Within it, a line tells of the work after two seconds; a terminal's counts the seconds."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._tell, name="thinking", daemon=True)

    def _tell(self) -> None:
        clock = SystemClock()
        since = clock.steady()
        if pause(QUIET_S, until=self._done):
            return
        stream = sys.stderr
        if not is_terminal(stream):
            print(f"{self._what} …", file=stream, flush=True)
            return
        while True:
            took_s = real(clock.steady() - since)
            print(f"\r{self._what} … {took_s:.0f} s ", end="", file=stream, flush=True)
            if pause(EVERY_S, until=self._done):
                break
        print("\r\x1b[K", end="", file=stream, flush=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()
