"""Periods that people name: months and days as clocks of a zone have them."""

from datetime import UTC, date, datetime, timedelta

import pytest

from cloudwhale.planning.cost_sums import day_of, zone_named
from cloudwhale.reporting.periods import NAMES, NoPeriod, begin_of, period

NOW = datetime(2026, 11, 30, 23, 50, tzinfo=UTC).timestamp()
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Apia", "Australia/Lord_Howe")


def span(text: str, zone: str = "UTC", now: float = NOW) -> tuple[str, str]:
    found = period(text, now, zone)
    assert found.since is not None and found.until is not None
    there = zone_named(zone)
    first, after = (datetime.fromtimestamp(at, there) for at in (found.since, found.until))
    return first.isoformat(), after.isoformat()


@pytest.mark.parametrize(
    ("text", "since", "until"),
    [
        ("last month", "2026-10-01", "2026-11-01"),
        ("This  MONTH", "2026-11-01", "2026-12-01"),
        ("2026-11", "2026-11-01", "2026-12-01"),
        ("2026-12", "2026-12-01", "2027-01-01"),
        ("2024-02", "2024-02-01", "2024-03-01"),
        ("2026-Q4", "2026-10-01", "2027-01-01"),
        ("last quarter", "2026-07-01", "2026-10-01"),
        ("2026", "2026-01-01", "2027-01-01"),
        ("last year", "2025-01-01", "2026-01-01"),
        ("today", "2026-11-30", "2026-12-01"),
        ("yesterday", "2026-11-29", "2026-11-30"),
        ("this week", "2026-11-30", "2026-12-07"),
        ("2026-W53", "2026-12-28", "2027-01-04"),
        ("7d", "2026-11-24", "2026-12-01"),
        ("last 2 weeks", "2026-11-17", "2026-12-01"),
        ("2026-11-01..2026-11-15", "2026-11-01", "2026-11-16"),
        ("2026-01..2026-Q2", "2026-01-01", "2026-07-01"),
    ],
)
def test_a_name_means_whole_days(text: str, since: str, until: str) -> None:
    assert span(text) == (f"{since}T00:00:00+00:00", f"{until}T00:00:00+00:00")


def test_the_month_is_that_of_the_zone_not_of_utc() -> None:
    assert period("this month", NOW, "Europe/Berlin").says == "December 2026, Europe/Berlin"
    assert period("this month", NOW, "America/New_York").says == "November 2026, America/New_York"


@pytest.mark.parametrize(
    ("day", "zone", "hours"),
    [
        ("2026-03-29", "Europe/Berlin", 23), ("2026-10-25", "Europe/Berlin", 25),
        ("2026-03-08", "America/New_York", 23), ("2026-11-01", "America/New_York", 25),
        ("2026-04-05", "Australia/Lord_Howe", 24.5), ("2026-10-04", "Australia/Lord_Howe", 23.5),
        ("2026-03-29", "Asia/Kolkata", 24), ("2011-12-29", "Pacific/Apia", 24),
    ],
)  # fmt: skip
def test_a_day_is_as_long_as_clocks_make_it(day: str, zone: str, hours: float) -> None:
    found = period(day, NOW, zone)
    assert found.since is not None and found.until is not None
    assert (found.until - found.since) / 3600 == hours


def test_months_with_a_change_of_clocks_are_an_hour_longer_or_shorter() -> None:
    def hours(month: str) -> float:
        found = period(month, NOW, "Europe/Berlin")
        return ((found.until or 0) - (found.since or 0)) / 3600

    assert (hours("2026-03"), hours("2026-10"), hours("2026-11")) == (743, 745, 720)


def test_a_day_that_clocks_left_out_is_no_period() -> None:
    with pytest.raises(NoPeriod, match="2011-12-30 did not happen in Pacific/Apia"):
        period("2011-12-30", NOW, "Pacific/Apia")


@pytest.mark.parametrize("zone", [*ZONES, "Africa/Cairo", "Asia/Beirut", "America/Havana"])
def test_days_follow_one_another_and_hold_the_moments_that_the_ledger_puts_there(zone: str) -> None:
    there = zone_named(zone)
    day = date(2026, 1, 1)
    for _ in range(365):
        first, after = begin_of(day, there), begin_of(day + timedelta(days=1), there)
        assert 23 * 3600 <= after - first <= 25 * 3600
        assert day_of(first, zone) == day_of(after - 1, zone) == day.isoformat()
        assert day_of(first - 1, zone) == (day - timedelta(days=1)).isoformat()
        day += timedelta(days=1)


def test_a_midnight_inside_a_jump_of_clocks_is_found_to_the_second() -> None:
    there = zone_named("America/Toronto")  # on 1919-03-30 clocks went from 23:30 to 00:30
    begin = begin_of(date(1919, 3, 31), there)
    assert datetime.fromtimestamp(begin, there).strftime("%d %H:%M:%S") == "31 00:30:00"


def test_hours_are_counted_back_from_now() -> None:
    found = period("24h", NOW, "Europe/Berlin")
    assert (found.since, found.until) == (NOW - 86_400, NOW)


def test_a_period_may_have_one_end_or_none() -> None:
    assert period("all", NOW, "UTC").since is period("all", NOW, "UTC").until is None
    assert period("2026-11..", NOW, "UTC").until is None
    assert period("..2026-11", NOW, "UTC").since is None
    assert period("2026-11..", NOW, "UTC").says == "from November 2026 on, UTC"


@pytest.mark.parametrize("name", NAMES)
def test_every_name_that_is_offered_is_read(name: str) -> None:
    assert period(name, NOW, "Europe/Berlin").until is not None


@pytest.mark.parametrize(
    "text",
    ["", "..", "november", "2026-13", "2026-00", "2026-02-30", "2026-W54", "2026-Q5", "0d", "-3d",
     "9999", "1969", "2026-11-1x", "2026..2026..2026", "🐳", "99999999999d", "x" * 5000],
)  # fmt: skip
def test_what_names_no_period_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(NoPeriod) as caught:
        period(text, NOW, "UTC")
    assert caught.value.remedy.startswith("Write ")
    assert len(caught.value.says) < 120


def test_a_period_that_ends_before_it_begins_is_told_the_right_way_round() -> None:
    with pytest.raises(NoPeriod, match="ends before it begins") as caught:
        period("2026-11-15..2026-11-01", NOW, "UTC")
    assert caught.value.remedy == "Write the earlier one first: `2026-11-01..2026-11-15`."
