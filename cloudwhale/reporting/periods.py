"""Periods that a person names, like `last month` or `2026-Q4`, in a time zone."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo

from cloudwhale.model.units import Instant
from cloudwhale.planning.cost_sums import zone_named
from cloudwhale.reporting.figures import HOUR_S

FORMS = (
    "`today`, `yesterday`, `this week`, `last month`, `this year`, `7d`, `24h`, `2026`, `2026-Q4`, "
    "`2026-11`, `2026-W48`, `2026-11-30`, `2026-11-01..2026-11-15`, or `all`"
)


EARLIEST = date(1970, 1, 1)
"""Nothing was rented before; calendars of computers begin there."""


class NoPeriod(ValueError):
    """Words that name no period, or none that can be; with what to write instead."""

    def __init__(self, says: str, remedy: str) -> None:
        super().__init__(says)
        self.says, self.remedy = says, remedy


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch of time with its name; half open, and without a bound where one is None."""

    since: Instant | None
    until: Instant | None
    says: str
    """For people, with the zone: `November 2026, Europe/Berlin`."""


@dataclass(frozen=True, slots=True)
class _Days:
    """Whole days, the last one not included."""

    first: date
    after: date
    says: str


def period(text: str, now: Instant, zone: str) -> Period:
    """Return what words mean in a zone; raise NoPeriod for others, ValueError for no zone.

    Whole days, weeks, months begin at midnight in the zone, however long clocks there make them:
    weeks on Monday. `7d` is today and the six days before, `24h` the last 24 hours to the second.
    """
    there = zone_named(zone)
    words = " ".join(text.lower().split())
    today = datetime.fromtimestamp(now, there).date()
    try:
        return _read(words, _Here(now, today, there, zone))
    except _Unread as error:
        shown = text if len(text) <= 60 else f"{text[:57]}..."
        raise NoPeriod(f"{shown!r} names no period", f"Write {FORMS}.") from error
    except OverflowError as error:
        raise NoPeriod(
            f"{words!r} reaches beyond what a calendar has", f"Write {FORMS}."
        ) from error


class _Unread(Exception):
    """These words are of another form."""


@dataclass(frozen=True, slots=True)
class _Here:
    """When and where a period is named."""

    now: Instant
    today: date
    there: tzinfo
    zone: str

    def spans(self, days: _Days) -> Period:
        """Return days as times."""
        since, until = (begin_of(day, self.there) for day in (days.first, days.after))
        if since >= until:
            raise NoPeriod(
                f"{days.says} did not happen in {self.zone}: clocks there left it out",
                "Name another day.",
            )
        return Period(since, until, f"{days.says}, {self.zone}")


def begin_of(day: date, there: tzinfo) -> Instant:
    """Return the first moment of a day: midnight, or what clocks show first where that is not."""
    midnight = datetime(day.year, day.month, day.day, tzinfo=there)
    late, early = midnight.timestamp(), midnight.replace(fold=1).timestamp()
    if early >= late:  # midnight happens: once, or twice, when the first counts
        return late
    while late - early > 1:  # clocks jump over it: at some second between these two
        middle = float((early + late) // 2)
        if datetime.fromtimestamp(middle, there).date() >= day:
            late = middle
        else:
            early = middle
    return late


# -- forms -----------------------------------------------------------------------------------


def _read(words: str, here: _Here) -> Period:
    if words in ("all", "ever"):
        return Period(None, None, f"all time, {here.zone}")
    rolling = re.fullmatch(r"(?:last )?(\d{1,5}) ?(h|hours?|d|days?|w|weeks?)", words)
    if rolling:
        return _rolling(int(rolling[1]), rolling[2][0], here)
    if ".." in words:
        return _between(words, here)
    return here.spans(_days(words, here.today))


def _rolling(many: int, unit: str, here: _Here) -> Period:
    if not many:
        raise NoPeriod(f"0{unit} is no time at all", "Write `1d` for today, or `24h`.")
    if unit == "h":
        says = f"the last {many} hours" if many > 1 else "the last hour"
        return Period(here.now - many * HOUR_S, here.now, f"{says}, {here.zone}")
    days = many * (7 if unit == "w" else 1)
    first = max(EARLIEST, here.today - timedelta(days=days - 1))
    says = f"the last {days} days" if days > 1 else f"{here.today.isoformat()}"
    return here.spans(_Days(first, here.today + timedelta(days=1), says))


def _between(words: str, here: _Here) -> Period:
    first, _, last = (part.strip() for part in words.partition(".."))
    if not first and not last:
        raise _Unread
    begin = _days(first, here.today) if first else None
    end = _days(last, here.today) if last else None
    if begin is None or end is None:
        since = None if begin is None else begin_of(begin.first, here.there)
        until = None if end is None else begin_of(end.after, here.there)
        says = f"from {begin.says} on" if begin is not None else f"to {end.says}" if end else ""
        return Period(since, until, f"{says}, {here.zone}")
    if end.after <= begin.first:
        raise NoPeriod(
            f"{words!r} ends before it begins",
            f"Write the earlier one first: `{last}..{first}`.",
        )
    return here.spans(_Days(begin.first, end.after, f"{begin.says} to {end.says}"))


def _days(words: str, today: date) -> _Days:
    """Return days that one word, or two, mean."""
    named = _NAMED.get(words)
    if named is not None:
        return named(today)
    for form, read in _FORMS:
        found = re.fullmatch(form, words)
        if found:
            try:
                return _since_1970(read(*(int(part) for part in found.groups())))
            except ValueError as error:  # the calendar has no such day, or week
                raise NoPeriod(f"{words!r} is not in the calendar", f"Write {FORMS}.") from error
    raise _Unread


def _since_1970(days: _Days) -> _Days:
    if days.first < EARLIEST:
        raise ValueError(days.first)
    return days


def _day(year: int, month: int, day: int) -> _Days:
    first = date(year, month, day)
    return _Days(first, first + timedelta(days=1), first.isoformat())


def _week(year: int, week: int) -> _Days:
    first = date.fromisocalendar(year, week, 1)
    return _Days(first, first + timedelta(days=7), f"week {week} of {year}")


def _month(year: int, month: int) -> _Days:
    first = date(year, month, 1)
    return _Days(first, _months_on(first, 1), f"{MONTHS[month - 1]} {year}")


def _quarter(year: int, number: int) -> _Days:
    first = date(year, 3 * number - 2, 1)
    return _Days(first, _months_on(first, 3), f"quarter {number} of {year}")


def _year(year: int) -> _Days:
    return _Days(date(year, 1, 1), date(year + 1, 1, 1), str(year))


MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
"""In English whatever the host speaks, as all else is."""


def _months_on(first: date, many: int) -> date:
    months = first.year * 12 + first.month - 1 + many
    return date(months // 12, months % 12 + 1, 1)


def _week_of(day: date) -> _Days:
    year, week, _ = day.isocalendar()
    return _week(year, week)


def _month_of(day: date) -> _Days:
    return _month(day.year, day.month)


def _quarter_of(day: date) -> _Days:
    return _quarter(day.year, (day.month + 2) // 3)


def _a_day(day: date) -> _Days:
    return _day(day.year, day.month, day.day)


def _before(whole: Callable[[date], _Days]) -> Callable[[date], _Days]:
    """Return the one before: it has the day before this one's first."""
    return lambda today: whole(whole(today).first - timedelta(days=1))


_FORMS: tuple[tuple[str, Callable[..., _Days]], ...] = (
    (r"(\d{4})-(\d{1,2})-(\d{1,2})", _day),
    (r"(\d{4})-?w(\d{1,2})", _week),
    (r"(\d{4})-(\d{1,2})", _month),
    (r"(\d{4})[- ]?q([1-4])", _quarter),
    (r"(\d{4})", _year),
)
_NAMED: dict[str, Callable[[date], _Days]] = {
    "today": _a_day,
    "yesterday": _before(_a_day),
    "this week": _week_of,
    "last week": _before(_week_of),
    "this month": _month_of,
    "last month": _before(_month_of),
    "this quarter": _quarter_of,
    "last quarter": _before(_quarter_of),
    "this year": lambda today: _year(today.year),
    "last year": _before(lambda day: _year(day.year)),
}
NAMES = tuple(_NAMED)
"""Periods that have a name, for the shell to offer."""
