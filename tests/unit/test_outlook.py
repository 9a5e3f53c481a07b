"""How a month is expected to end: month ends, leap years, no history, clocks that jump."""

from datetime import UTC, date, datetime, timedelta

import pytest

from cloudwhale.model.units import MicroUsd, micro_usd
from cloudwhale.planning.outlook import (
    HABIT_DAYS,
    Bound,
    Habit,
    Taken,
    day_of,
    days_left,
    habit_of,
    outlook,
)


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def spent(today: date, days: int, usd: int = 10) -> dict[date, MicroUsd]:
    return {today - timedelta(days=n + 1): micro_usd(usd) for n in range(days)}


@pytest.mark.parametrize(
    ("now", "left"),
    [
        ("2026-11-30T23:59:59", 0),
        ("2026-12-01T00:00:00", 30),
        ("2028-02-01T12:00:00", 28),  # a leap year
        ("2028-02-29T12:00:00", 0),
        ("2027-02-28T12:00:00", 0),
        ("2026-12-31T12:00:00", 0),
    ],
)
def test_the_days_that_follow_are_those_of_the_same_month(now: str, left: int) -> None:
    assert len(days_left(at(now))) == left


def test_without_history_a_month_ends_with_what_is_there_and_waits() -> None:
    has = Taken(spent=micro_usd(5), running=micro_usd(2), queue=micro_usd(3))
    found = outlook("2026-11", at("2026-11-10T00:00:00"), has, Habit(), None)
    assert found.expected == micro_usd(10) and found.low >= micro_usd(5)
    assert found.habit.since is None and found.passed_on is None


def test_the_same_on_each_day_goes_on_so_to_the_months_end() -> None:
    now = at("2026-11-21T00:00:00")
    habit = habit_of(spent(day_of(now), 40), day_of(now))
    assert habit.days == HABIT_DAYS and habit.spread == 0.0
    found = outlook("2026-11", now, Taken(spent=micro_usd(200)), habit, None)
    assert found.low == found.expected == found.high == micro_usd(300)


def test_weekdays_are_told_apart_and_days_without_spending_count() -> None:
    today = date(2026, 11, 30)  # a Monday
    days = {today - timedelta(days=7 * n): micro_usd(28) for n in range(1, 5)}
    habit = habit_of(days, today)
    assert habit.by_weekday[0] == micro_usd(28) and sum(habit.by_weekday[1:]) == 0.0


def test_of_fewer_days_than_a_week_the_mean_holds_for_every_weekday() -> None:
    today = date(2026, 11, 30)
    habit = habit_of({today - timedelta(days=2): micro_usd(10)}, today)
    assert habit.days == 2 and set(habit.by_weekday) == {float(micro_usd(5))}
    assert habit.spread is None


def test_what_waits_is_what_today_brings_and_is_not_counted_twice() -> None:
    now = at("2026-11-29T00:00:00")
    habit = habit_of(spent(day_of(now), 28), day_of(now))
    for queue, expected in ((4, 20), (10, 20), (16, 26)):
        found = outlook("2026-11", now, Taken(queue=micro_usd(queue)), habit, None)
        assert found.expected == micro_usd(expected)


def test_a_budget_that_would_be_passed_is_told_with_its_day() -> None:
    now = at("2026-11-21T00:00:00")
    habit = habit_of(spent(day_of(now), 28), day_of(now))
    bound = Bound(limit=micro_usd(255), soft_line=micro_usd(230))
    found = outlook("2026-11", now, Taken(spent=micro_usd(200)), habit, bound)
    assert (found.soft_on, found.passed_on) == (date(2026, 11, 23), date(2026, 11, 26))
    enough = Bound(limit=micro_usd(300), soft_line=micro_usd(301))
    assert outlook("2026-11", now, Taken(spent=micro_usd(200)), habit, enough).passed_on is None


def test_a_budget_that_is_passed_already_is_passed_today() -> None:
    bound = Bound(limit=micro_usd(1), soft_line=micro_usd(1))
    now = at("2026-11-30T23:00:00")
    found = outlook("2026-11", now, Taken(spent=micro_usd(2)), Habit(), bound)
    assert found.passed_on == date(2026, 11, 30)


@pytest.mark.parametrize("jump_s", [-3600.0, 3600.0])
def test_a_clock_that_jumps_an_hour_moves_the_outlook_by_an_hour_of_habit(jump_s: float) -> None:
    now = at("2026-11-21T12:00:00")
    days = spent(day_of(now), 28, 24) | {day_of(now): micro_usd(5)}
    ends = [
        outlook("2026-11", when, Taken(spent=micro_usd(5)), habit_of(days, day_of(when)), None)
        for when in (now, now + jump_s)
    ]
    assert abs(ends[0].expected - ends[1].expected) <= micro_usd(1) + 2


def test_spending_of_days_ahead_by_a_clock_that_was_wrong_is_left_out() -> None:
    today = date(2026, 11, 30)
    habit = habit_of({today + timedelta(days=1): micro_usd(99)}, today)
    assert habit == Habit()
