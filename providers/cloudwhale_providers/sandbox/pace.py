"""How fast time goes in a sandbox, and from when on: a clock over the real one."""

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.clock import Clock


@dataclass(frozen=True, slots=True)
class Pace:
    """Time in a box: at `begin` of the real clock it was `start` there, and went on at a speed."""

    begin: Instant = 0.0
    speed: float = 1.0
    start: Instant = 0.0

    @property
    def is_real(self) -> bool:
        """Say whether it is the time of the real clock."""
        return self.speed == 1.0 and self.start == self.begin

    def at(self, real: Instant) -> Instant:
        """Return what time it is in the box at a time of the real clock."""
        return self.start + (real - self.begin) * self.speed

    @property
    def words(self) -> str:
        """Return it as $CLOUDWHALE_CLOCK has it; empty for the real time."""
        return "" if self.is_real else f"{self.begin!r}:{self.speed!r}:{self.start!r}"


class PacedClock:
    """A clock of the box; see `spi/clock`."""

    def __init__(self, clock: Clock, pace: Pace) -> None:
        self._clock = clock
        self.pace = pace

    def now(self) -> Instant:
        """Return the wall time in the box."""
        return self.pace.at(self._clock.now())

    def steady(self) -> Seconds:
        """Return seconds of the box since some moment."""
        return self._clock.steady() * self.pace.speed

    def real(self, for_s: Seconds) -> Seconds:
        """Return how long a time of the box takes outside."""
        return for_s / self.pace.speed


@dataclass(frozen=True, slots=True)
class TimeOfDay:
    """What the clock on a wall shows when a box begins."""

    minutes: int
    """After midnight."""
    zone: str = ""
    """IANA name; empty: this host's."""

    def after(self, at: Instant) -> Instant:
        """Return when it is that time next."""
        zone = ZoneInfo(self.zone) if self.zone else None
        there = datetime.fromtimestamp(at, UTC).astimezone(zone)
        wanted = time(self.minutes // 60, self.minutes % 60)
        days = (there.date() + timedelta(days=ahead) for ahead in range(3))
        times = (datetime.combine(day, wanted, zone).timestamp() for day in days)
        return next(found for found in times if found >= at)


def pace_from(begin: Instant, speed: float, last: Instant, begins: TimeOfDay | None = None) -> Pace:
    """Return the pace of a box that begins now; time there never goes back behind its `last`."""
    start = max(begin, last)
    return Pace(begin, speed, start if begins is None else begins.after(start))
