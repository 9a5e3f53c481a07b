"""Notices that the sandbox is gone which a command works in: its store and its cloud are silent."""

from collections.abc import Callable

from cloudwhale.clock import real
from cloudwhale.model.units import Seconds
from cloudwhale.settings import Settings
from cloudwhale.spi.clock import Clock

LOOK_EVERY_S: Seconds = 2.0
SURE_S: Seconds = 10.0  # one that is stopped and started anew is away for less


class BoxWatch:
    """Asks now and then whether the sandbox lives, in real time, however fast its own goes."""

    def __init__(self, lives: Callable[[], bool], clock: Clock) -> None:
        self._lives = lives
        self._clock = clock
        self._looked_at: Seconds | None = None
        self._gone_at: Seconds | None = None
        self._says = ""

    def trouble(self) -> str:
        """Say that it is gone, and what starts it again; empty while it lives."""
        now = real(self._clock.steady())
        if self._looked_at is not None and now - self._looked_at < LOOK_EVERY_S:
            return self._says
        self._looked_at = now
        if self._lives():
            self._gone_at, self._says = None, ""
            return ""
        self._gone_at = now if self._gone_at is None else self._gone_at
        gone_s = now - self._gone_at
        if gone_s >= SURE_S and not self._says:
            self._says = (
                f"the sandbox does not answer since {gone_s:.0f} s, its process has ended: "
                "`cloudwhale doctor --sandbox` in another terminal starts it again"
            )
        return self._says


def box_watch(settings: Settings, clock: Clock) -> BoxWatch:
    """Return a watch over the sandbox that some settings are inside of; one that sees none else."""
    if not settings.sandbox:
        return BoxWatch(lambda: True, clock)
    from cloudwhale.control.surrounding import still_there

    return BoxWatch(still_there(settings), clock)
