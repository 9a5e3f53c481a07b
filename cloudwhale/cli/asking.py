"""What an interrupt means to a person at a terminal, and where there is nobody."""

import signal
import sys

from cloudwhale.cli.following import Told
from cloudwhale.cli.interrupts import Interrupts, key_pressed
from cloudwhale.cli.presence import someone_is_there
from cloudwhale.cli.view import View

CHOICES = "\n[d]etach, the jobs go on   [s]top the jobs   [c]ontinue watching ? "


class Goodbye:
    """Answers an interrupt: a person at a terminal is asked, everybody else is let go."""

    def __init__(self, interrupts: Interrupts, view: View) -> None:
        self._interrupts = interrupts
        self._view = view
        self.told_to_go: signal.Signals | None = None
        """The signal that ended the following without a person's word."""

    def __call__(self, number: signal.Signals, stopping: bool) -> Told:
        """Return what is to be done now; jobs are never stopped without a person's word."""
        if number is not signal.SIGINT or not someone_is_there():
            self.told_to_go = number
            return Told.DETACH
        if stopping:
            return Told.DETACH
        self._view.rest()
        print(CHOICES, end="", file=sys.stderr, flush=True)
        key = key_pressed("dsc", self._interrupts)
        print(key or "d", file=sys.stderr, flush=True)
        return {"s": Told.STOP_JOBS, "c": Told.GO_ON}.get(key or "d", Told.DETACH)
