"""What this host has, counted once; whether Docker answers is asked again now and then."""

from collections.abc import Callable

from cloudwhale.host.containers import images_here, runtimes
from cloudwhale.model.node import Facts
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.clock import Clock

ASK_EVERY_S: Seconds = 15.0  # one question over a socket; a GPU driver would take seconds


class Counted:
    """Called like the count itself; from one thread at a time."""

    def __init__(self, count: Callable[[], Facts], clock: Clock) -> None:
        self._count = count
        self._clock = clock
        self._facts: Facts | None = None
        self._asked_at: Instant = 0.0

    def __call__(self) -> Facts:
        """Return what this host has; takes two seconds where Docker hangs."""
        now = self._clock.steady()
        if self._facts is None:
            self._facts, self._asked_at = self._count(), now
        elif now - self._asked_at >= ASK_EVERY_S:
            images = images_here()
            self._facts = self._facts.but(runtimes=runtimes(images), images=images or ())
            self._asked_at = now
        return self._facts
