"""Time that never goes back: what duty is told, whatever somebody does to the wall clock."""

from collections.abc import Callable

from cloudwhale.model.units import Instant
from cloudwhale.spi.clock import Clock


def onward(clock: Clock) -> Callable[[], Instant]:
    """Return a clock that begins at the wall time of now and counts on, sleep included."""
    wall, steady = clock.now(), clock.steady()
    return lambda: wall + clock.steady() - steady
