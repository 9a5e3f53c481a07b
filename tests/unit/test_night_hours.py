"""Which moments the hours of a night are: zones, clocks that jump, days of the week."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from cloudwhale.model.night import Night, Window
from cloudwhale.planning.night_hours import at_once, hours_on, next_after, nights_from

BERLIN = ZoneInfo("Europe/Berlin")
HOUR = 3600.0


def window(opens: str, closes: str, **of: object) -> Window:
    at = [60 * int(text[:2]) + int(text[3:]) for text in (opens, closes)]
    return Window.model_validate({"opens_min": at[0], "closes_min": at[1], **of})


def utc(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("day", "hours"), [(date(2026, 3, 28), 9), (date(2026, 10, 24), 11), (date(2026, 6, 1), 10)]
)
def test_a_night_of_ten_hours_has_nine_or_eleven_when_clocks_change(day: date, hours: int) -> None:
    found = hours_on(window("22:00", "08:00"), BERLIN, day)
    assert found.lasts_s == hours * HOUR and found.date == day.isoformat()


def test_an_end_that_the_clock_jumps_over_is_the_moment_of_the_jump() -> None:
    found = hours_on(window("22:00", "02:30"), BERLIN, date(2026, 3, 28))
    assert found.closes_at == utc("2026-03-29T01:00")


def test_an_end_that_the_clock_shows_twice_is_the_first_of_both() -> None:
    found = hours_on(window("22:00", "02:30"), BERLIN, date(2026, 10, 24))
    assert found.closes_at == utc("2026-10-25T00:30")


def test_a_window_within_the_jump_has_no_night() -> None:
    assert hours_on(window("02:15", "02:45"), BERLIN, date(2026, 3, 29)).lasts_s <= 0


@pytest.mark.parametrize("zone", ["Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Apia"])
@pytest.mark.parametrize("year", [2011, 2026])
def test_nights_of_a_year_follow_one_another_and_never_overlap(zone: str, year: int) -> None:
    there, wanted = ZoneInfo(zone), window("22:00", "08:00")
    now, last = datetime(year, 1, 1, tzinfo=there).timestamp(), 0.0
    for _ in range(366):
        found = next(one for one in nights_from(wanted, there, now) if one.lasts_s > 0)
        assert found.opens_at >= last and 0 < found.lasts_s <= 11 * HOUR
        now = last = found.closes_at


def test_in_the_small_hours_the_night_is_that_of_yesterday() -> None:
    found = next(nights_from(window("22:00", "08:00"), BERLIN, utc("2026-12-01T02:00")))
    assert found.date == "2026-11-30" and found.opens_at == utc("2026-11-30T21:00")


def test_a_night_of_fridays_opens_on_friday_alone() -> None:
    fridays = window("22:00", "08:00", days=("fri",))
    found = next(nights_from(fridays, BERLIN, utc("2026-12-01T12:00")))
    assert found.date == "2026-12-04"


def test_at_once_it_opens_now_and_closes_when_the_window_does_next() -> None:
    found = at_once(window("22:00", "08:00"), BERLIN, utc("2026-12-01T12:00"))
    assert (found.opens_at, found.closes_at) == (utc("2026-12-01T12:00"), utc("2026-12-02T07:00"))
    within = at_once(window("22:00", "08:00"), BERLIN, utc("2026-12-01T23:00"))
    assert within.opens_at == utc("2026-12-01T21:00"), "it is open already"


def night(opens: str, closes: str, **of: object) -> Night:
    base = {"name": "lab", "date": opens[:10], "zone": "Europe/Berlin"}
    hours = {"opens_at": utc(opens), "closes_at": utc(closes)}
    return Night.model_validate({**base, **hours, **of})


@pytest.mark.parametrize(
    ("days", "opens"),
    [
        ((), "2026-12-05T21:00"),
        (("mon", "fri"), "2026-12-07T21:00"),
        (("fri",), "2026-12-11T21:00"),
    ],
)
def test_the_night_that_follows_is_on_a_day_of_its_file(days: tuple[str, ...], opens: str) -> None:
    friday = night("2026-12-04T21:00", "2026-12-05T07:00", days=days)
    found = next_after(friday)
    assert found is not None and found.opens_at == utc(opens)


def test_the_night_that_follows_is_of_the_window_also_where_the_clock_was_changed() -> None:
    """Saturday's opens at 02:30; on 29 March that is jumped over, and the day after it is not."""
    jumped = night("2026-03-29T01:00", "2026-03-29T06:00", opens_min=150, closes_min=480)
    found = next_after(jumped)
    assert found is not None and found.opens_at == utc("2026-03-30T00:30")
    before = night("2026-03-28T01:30", "2026-03-28T07:00", opens_min=150, closes_min=480)
    jump = next_after(before)
    assert jump is not None and jump.opens_at == utc("2026-03-29T01:00")
    assert jump.closes_at == utc("2026-03-29T06:00")


def test_after_one_that_was_opened_at_once_the_next_opens_as_its_file_says() -> None:
    at_noon = night("2026-12-01T11:00", "2026-12-02T07:00", opens_min=1320, closes_min=480)
    found = next_after(at_noon)
    assert found is not None and found.opens_at == utc("2026-12-02T21:00")


def test_where_the_clock_jumps_over_a_window_the_night_that_follows_is_a_day_later() -> None:
    found = next_after(night("2026-03-28T01:15", "2026-03-28T01:45", opens_min=135, closes_min=165))
    assert found is not None and found.date == "2026-03-30"
