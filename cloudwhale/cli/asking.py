"""Questions to the person at the terminal, and what is assumed where there is none."""

import signal
import sys

from cloudwhale.cli.exits import WrongUsage
from cloudwhale.cli.following import Told
from cloudwhale.cli.interrupts import Interrupts, key_pressed
from cloudwhale.cli.view import View

CHOICES = "\n[d]etach, the jobs go on   [s]top the jobs   [c]ontinue watching ? "


def someone_is_there() -> bool:
    """Say whether a person sits at the terminal and can answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def must_be_sure(yes: bool) -> None:
    """Raise WrongUsage when nobody can be asked and nobody has said -y."""
    if not yes and not someone_is_there():
        raise WrongUsage(
            "This is not a terminal, so nobody can be asked whether the plan is fine.",
            "Say -y to run without being asked, or look first with `cloudwhale plan FILE`.",
        )


def agrees(question: str) -> bool:
    """Ask; Enter means yes."""
    print(f"{question} [Y/n] ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    return answer.strip().lower() in ("", "y", "yes") and answer != ""


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
