"""The controller's time: the wall clock where it is sane, never backwards."""

from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.clock import Clock

JUMP_S: Seconds = 2.0  # clocks are nudged by less; more is a jump, or the machine slept


class Timeline:
    """Time for one controller's life.

    When the wall clock is set back, time goes on from where it was, ahead of the wall by as much;
    when the wall clock is set forward again, that lead is given up first.
    """

    def __init__(self, clock: Clock, not_before: Instant = 0.0) -> None:
        self._clock = clock
        wall = clock.now()
        self._lead_s = max(0.0, not_before - wall)
        self._wall, self._steady = wall, clock.steady()
        self._now = wall + self._lead_s
        self.jumped_s: Seconds = 0.0
        """How far the wall clock was from what was expected at the last `now`; negative: back."""

    def now(self) -> Instant:
        """Return the time; never less than before."""
        wall, steady = self._clock.now(), self._clock.steady()
        self.jumped_s = wall - (self._wall + (steady - self._steady))
        if abs(self.jumped_s) > JUMP_S:
            self._lead_s = max(0.0, self._lead_s - self.jumped_s)
        self._wall, self._steady = wall, steady
        self._now = max(self._now, wall + self._lead_s)
        return self._now
