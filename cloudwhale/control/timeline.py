"""The controller's time: the wall clock where it is sane, never backwards."""

from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.clock import Clock

JUMP_S: Seconds = 2.0  # clocks are nudged by less; more is a jump, or the machine slept


class Timeline:
    """Time for one controller's life.

    After the wall clock was set back it goes on from where it was, at the steady clock's pace.
    """

    def __init__(self, clock: Clock, not_before: Instant = 0.0) -> None:
        self._clock = clock
        self._wall = max(clock.now(), not_before)
        self._steady = clock.steady()
        self.jumped_s: Seconds = 0.0
        """How far the last `now` was from what was expected; negative: the clock went back."""

    def now(self) -> Instant:
        """Return the time; never less than before."""
        wall, steady = self._clock.now(), self._clock.steady()
        expected = self._wall + (steady - self._steady)
        self.jumped_s = wall - expected
        if self.jumped_s < -JUMP_S:
            return expected
        self._wall, self._steady = max(self._wall, wall), steady
        return self._wall
