"""Clocks that move when they are told to, or when a simulation does."""

from collections.abc import Callable

from cloudwhale.model.units import Instant, Seconds


class SteppedClock:
    """Time for simulations and tests."""

    def __init__(self, at: Instant = 1_000_000.0) -> None:
        self._wall = at
        self._steady = 0.0

    def now(self) -> Instant:
        """Return the wall time."""
        return self._wall

    def steady(self) -> Seconds:
        """Return the time that has passed since the clock was made."""
        return self._steady

    def advance_to(self, at: Instant) -> None:
        """Move both hands on; a time that has passed changes nothing."""
        step = max(0.0, at - self._wall)
        self._wall += step
        self._steady += step

    def set_wall(self, at: Instant) -> None:
        """Set the wall clock, back or forth, as a person would."""
        self._wall = at


class EnvironmentClock:
    """The time of a simulation, on both hands."""

    def __init__(self, now: Callable[[], Instant]) -> None:
        self._now = now

    def now(self) -> Instant:
        """Return the time."""
        return self._now()

    def steady(self) -> Seconds:
        """Return the same."""
        return self._now()
