"""What a project will have spent when its month ends: what is there, what waits, and habit; pure.

What is there and what waits is what today brings, so today counts the larger of that and of what
is left of today's habit; each day that follows brings its weekday's habit. Months and days are UTC,
as budgets are, and a machine counts on the day on which its lease begins.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta

from cloudwhale.model.units import NOTHING, Instant, MicroUsd
from cloudwhale.model.value import Value

HABIT_DAYS = 28
"""Four of each weekday: enough for a mean, and what was usual before is forgotten in a month."""

WEEK_DAYS = 7

EVIDENCE_DAYS = WEEK_DAYS
"""Fewer known days are no habit: they may be working days alone, or the one of a burst."""

WEEKDAYS_KNOWN = 2 * WEEK_DAYS
"""Fewer known days than two of each tell nothing of weekdays."""

OF_TEN_EIGHT = 1.2816
"""Eight in ten of what is normally distributed lie within so many standard deviations."""


class Taken(Value):
    """What a project's account of a month holds now, and what its queue is expected to cost."""

    spent: MicroUsd = NOTHING
    reserved: MicroUsd = NOTHING
    """Set aside for machines that are there: the most that they can cost."""
    so_far: MicroUsd = NOTHING
    """What these have cost by now: it will be spent, whatever happens."""
    running: MicroUsd = NOTHING
    """What these are expected to cost in all."""
    queue: MicroUsd = NOTHING
    """What those that wait are expected to cost."""
    waits: int = 0
    """How many wait."""
    at_home: int = 0
    """How many of them fit on a machine of ours: they are counted with nothing."""
    unpriced: int = 0
    """How many of them nothing with a price suits: they are counted with nothing, too."""


class Bound(Value):
    """A project's budget of a month."""

    limit: MicroUsd
    soft_line: MicroUsd
    """From here on nothing new is rented."""


class Habit(Value):
    """What a project spends on a day, by its weekday."""

    since: date | None = None
    """The first day that it rests on; None: nothing is known."""
    days: int = 0
    by_weekday: tuple[float, ...] = (0.0,) * WEEK_DAYS
    """Micro-dollars on a mean Monday, Tuesday, …"""
    spread: float | None = None
    """Standard deviation of a day around that; None: too few days to say."""

    @property
    def is_enough(self) -> bool:
        """Say whether that many days make a habit; else what is there and waits is all."""
        return self.days >= EVIDENCE_DAYS

    @property
    def tells_weekdays(self) -> bool:
        """Say whether weekdays are told apart."""
        return self.days >= WEEKDAYS_KNOWN

    def of_day(self, day: date) -> float:
        """Return what is expected of a day, in micro-dollars; nothing without evidence."""
        return self.by_weekday[day.weekday()] if self.is_enough else 0.0


class Outlook(Value):
    """How a project's month is expected to end."""

    month: str
    last_day: date
    taken: Taken
    habit: Habit
    bound: Bound | None = None
    to_come: MicroUsd
    """What habit adds to what is there and waits."""
    low: MicroUsd
    """Eight in ten such months end between this …"""
    expected: MicroUsd
    high: MicroUsd
    """… and this."""
    soft_on: date | None = None
    """The day on which the soft line is expected to be reached; None: not in this month."""
    passed_on: date | None = None
    """The day on which the budget would be passed if it did not hold."""
    may_pass_on: date | None = None
    """The day on which it would be passed in one of ten months, with what is dearer than usual."""


def day_of(at: Instant) -> date:
    """Return the day of a time, in UTC."""
    return datetime.fromtimestamp(at, tz=UTC).date()


def days_left(now: Instant) -> Sequence[date]:
    """Return the days of the month that follow today, in UTC."""
    today = day_of(now)
    day, found = today + timedelta(days=1), list[date]()
    while day.month == today.month:
        found.append(day)
        day += timedelta(days=1)
    return found


def habit_of(days: Mapping[date, MicroUsd], today: date, since: date | None = None) -> Habit:
    """Return what is usual, from what was spent on each of the last weeks' days before today.

    `since`: the day from which on a day without spending is known to be one; None: the first with
    some, of these weeks or earlier. Days that lie ahead, by a clock that was wrong, are left out.
    """
    begins = today - timedelta(days=HABIT_DAYS)
    known = [day for day, amount in days.items() if day < today and amount]
    first = min((*known, today) if since is None else (*known, since, today))
    first = max(first, begins)
    if first >= today:
        return Habit()
    spent = {
        day: float(days.get(day, NOTHING))
        for day in (first + timedelta(days=n) for n in range((today - first).days))
    }
    usual = _by_weekday(spent)
    return Habit(since=first, days=len(spent), by_weekday=usual, spread=_spread(spent, usual))


def _by_weekday(spent: Mapping[date, float]) -> tuple[float, ...]:
    whole = sum(spent.values()) / len(spent)
    if len(spent) < WEEKDAYS_KNOWN:
        return (whole,) * WEEK_DAYS
    found: list[float] = []
    for weekday in range(WEEK_DAYS):
        there = [amount for day, amount in spent.items() if day.weekday() == weekday]
        found.append(sum(there) / len(there))
    return tuple(found)


def _spread(spent: Mapping[date, float], usual: Sequence[float]) -> float | None:
    means = 1 if len(spent) < WEEKDAYS_KNOWN else WEEK_DAYS
    freedom = len(spent) - means
    if freedom < 2:
        return None
    off = sum((amount - usual[day.weekday()]) ** 2 for day, amount in spent.items())
    return math.sqrt(off / freedom)


def outlook(month: str, now: Instant, taken: Taken, habit: Habit, bound: Bound | None) -> Outlook:
    """Return how a month is expected to end that goes on now."""
    today, ahead = day_of(now), days_left(now)
    there = taken.running + taken.queue
    rest = habit.of_day(today) * _left_of_day(now)
    sums = [float(taken.spent + max(there, math.ceil(rest)))]
    for day in ahead:
        sums.append(sums[-1] + habit.of_day(day))
    wide = [_wide(habit, nth + _left_of_day(now)) for nth in range(len(sums))]
    dear = max(0, taken.reserved - taken.running)
    tops = [total + more + dear for total, more in zip(sums, wide, strict=True)]
    low = max(taken.spent + taken.so_far, sums[-1] - wide[-1] - (there - taken.so_far))
    days = (today, *ahead)
    return Outlook(
        month=month, last_day=days[-1], taken=taken, habit=habit, bound=bound,
        to_come=MicroUsd(math.ceil(sums[-1]) - taken.spent - there),
        low=MicroUsd(math.floor(low)), expected=MicroUsd(math.ceil(sums[-1])),
        high=MicroUsd(math.ceil(tops[-1])),
        soft_on=None if bound is None else _first(days, sums, bound.soft_line),
        passed_on=None if bound is None else _first(days, sums, bound.limit + 1),
        may_pass_on=None if bound is None else _first(days, tops, bound.limit + 1),
    )  # fmt: skip


def _left_of_day(now: Instant) -> float:
    """Return which part of today is still to come, in [0, 1]."""
    at = datetime.fromtimestamp(now, tz=UTC)
    return 1.0 - (at.hour * 3600 + at.minute * 60 + at.second) / 86_400


def _wide(habit: Habit, days: float) -> float:
    """Return how far eight in ten sums of so many days lie off, at most; days are independent.

    The mean is off itself, the more the fewer days it is of: alike for all days that are to come.
    """
    if habit.spread is None or not habit.is_enough:
        return 0.0
    return OF_TEN_EIGHT * habit.spread * math.sqrt(days + days**2 / habit.days)


def _first(days: Sequence[date], sums: Sequence[float], line: int) -> date | None:
    return next((day for day, total in zip(days, sums, strict=True) if total >= line), None)
