"""Which moments the hours of a night are, by the calendar of its zone: pure, but for zone data.

What the clock on the wall jumps over is the moment of the jump; what it shows twice is the first
of both. So a night of ten hours has nine when clocks go forward in it, eleven when they go back.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from cloudwhale.model.night import DAYS, Night, Window
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.model.value import Value

LOOKED_AHEAD_DAYS = 16  # a week's day comes within eight; a window that is jumped over, once a year


class Hours(Value):
    """One night of a window."""

    date: str
    """The day on which it opens, `2026-11-30`."""
    zone: str
    opens_at: Instant
    closes_at: Instant

    @property
    def lasts_s(self) -> Seconds:
        """Return how long it lasts; 0 or less: the clock jumps over it."""
        return self.closes_at - self.opens_at


def moment(day: date, minutes: int, zone: ZoneInfo) -> Instant:
    """Return when the clock on a wall shows some minutes after midnight of a day."""
    naive = datetime.combine(day, time(minutes // 60, minutes % 60))
    at = naive.replace(tzinfo=zone).timestamp()
    if datetime.fromtimestamp(at, zone).replace(tzinfo=None) == naive:
        return at
    # It is jumped over: the offset of before leads behind the jump, that of after before it.
    early, late = int(naive.replace(tzinfo=zone, fold=1).timestamp()), int(at)
    after = _offset(late, zone)
    while late - early > 1:
        middle = (early + late) // 2
        early, late = (early, middle) if _offset(middle, zone) == after else (middle, late)
    return float(late)


def _offset(at: Instant, zone: ZoneInfo) -> timedelta | None:
    return datetime.fromtimestamp(at, UTC).astimezone(zone).utcoffset()


def local_day(at: Instant, zone: ZoneInfo) -> date:
    """Return which day it is there."""
    return datetime.fromtimestamp(at, UTC).astimezone(zone).date()


def hours_on(window: Window, zone: ZoneInfo, day: date) -> Hours:
    """Return the night that opens on a day; none of it may be left where the clock jumps."""
    next_day = timedelta(days=1 if window.closes_min <= window.opens_min else 0)
    return Hours(
        date=day.isoformat(),
        zone=zone.key,
        opens_at=moment(day, window.opens_min, zone),
        closes_at=moment(day + next_day, window.closes_min, zone),
    )


def nights_from(window: Window, zone: ZoneInfo, now: Instant) -> Iterator[Hours]:
    """Yield the night that is, if one is, and those that follow; also those jumped over."""
    today = local_day(now, zone)
    for ahead in range(-1, LOOKED_AHEAD_DAYS):
        day = today + timedelta(days=ahead)
        if not window.days or DAYS[day.weekday()] in window.days:
            found = hours_on(window, zone, day)
            if found.closes_at > now:
                yield found


def at_once(window: Window, zone: ZoneInfo, now: Instant) -> Hours:
    """Return a night that opens now and closes when the window does next."""
    today = local_day(now, zone)
    hours = (hours_on(window, zone, today + timedelta(days=ahead)) for ahead in (-1, 0, 1))
    found = next(one for one in hours if one.closes_at > now)
    if found.opens_at <= now:
        return found
    closes = (moment(today + timedelta(days=n), window.closes_min, zone) for n in (0, 1, 2))
    return Hours(
        date=today.isoformat(),
        zone=zone.key,
        opens_at=now,
        closes_at=next(at for at in closes if at > now),
    )


def next_after(night: Night) -> Hours | None:
    """Return the night of the same file that follows, by its days and the calendar of its zone.

    None: of those looked at none is left, the clock jumps over them.
    """
    zone = ZoneInfo(night.zone)
    opens, closes = (_minutes(at, zone) for at in (night.opens_at, night.closes_at))
    window = Window(
        opens_min=opens if night.opens_min is None else night.opens_min,
        closes_min=closes if night.closes_min is None else night.closes_min,
        days=night.days,
    )
    found = nights_from(window, zone, night.closes_at)
    return next((one for one in found if one.lasts_s > 0), None)


def _minutes(at: Instant, zone: ZoneInfo) -> int:
    there = datetime.fromtimestamp(at, UTC).astimezone(zone)
    return 60 * there.hour + there.minute
