"""Numbers as people read them."""

from decimal import Decimal

import pytest

from cloudwhale.model.units import micro_usd
from cloudwhale.reporting.bars import bar, taken
from cloudwhale.reporting.figures import (
    cents,
    counted,
    dollars,
    gib,
    hour,
    in_cents,
    moment,
    money,
    percent,
    roughly,
    size,
    span,
    watch,
)


@pytest.mark.parametrize(
    ("length_s", "said"),
    [
        (0.04, "0.0 s"),
        (3.21, "3.2 s"),
        (42, "42 s"),
        (59.7, "1 min 00 s"),
        (185, "3 min 05 s"),
        (7800, "2 h 10 min"),
        (200_000, "2 d 7 h"),
        (-1, "0.0 s"),
        (None, "-"),
    ],
)
def test_a_length_of_time_has_two_units_at_most(length_s: float | None, said: str) -> None:
    assert span(length_s) == said


@pytest.mark.parametrize(
    ("amount", "said"),
    [("0", "0.00"), ("12.5", "12.50"), ("0.000123", "0.000123"), ("1000", "1000.00")],
)
def test_money_shows_cents_at_least_and_never_an_exponent(amount: str, said: str) -> None:
    assert dollars(micro_usd(amount)) == said
    assert dollars(Decimal(amount)) == said


def test_unknown_money_is_not_zero() -> None:
    assert money(None) == "-"
    assert money(micro_usd(0)) == "0.00 USD"


def test_a_stop_watch_grows_by_a_unit_at_the_hour() -> None:
    assert [watch(0), watch(62.9), watch(3787)] == ["0:00", "1:02", "1:03:07"]


def test_sizes_use_the_largest_unit_that_they_fill() -> None:
    assert [size(0), size(1023), size(1536)] == ["0 B", "1023 B", "1.5 KiB"]
    assert size(5 << 30) == "5.0 GiB"
    assert [gib(16.0), gib(7.5), gib(None)] == ["16 GiB", "7.5 GiB", "-"]


def test_a_time_of_another_day_carries_its_date() -> None:
    now = 1_800_000_000.0
    assert ":" in moment(now - 1, now) and len(moment(now - 1, now)) == 8
    assert len(moment(now - 5 * 86400, now).split()) == 3
    assert moment(now - 700 * 86400, now).split()[-1].startswith("202")


def test_one_is_not_plural() -> None:
    assert [counted(1, "job"), counted(0, "job"), counted(1200, "job")] == [
        "1 job",
        "0 jobs",
        "1,200 jobs",
    ]
    assert percent(0.456) == "46 %"


@pytest.mark.parametrize("share", [-1.0, 0.0, 0.003, 0.5, 0.999, 1.0, 7.0])
def test_a_bar_is_exactly_as_wide_as_it_should_be(share: float) -> None:
    assert len(bar(share, 20)) == 20


def test_a_bar_is_full_only_when_all_is_taken() -> None:
    assert bar(1.0, 4) == "████"
    assert bar(0.0, 4) == "····"
    assert bar(0.5, 4) == "██··"
    assert taken(3, 0) == 0.0


def test_money_in_tables_is_rounded_to_cents_and_never_to_nothing() -> None:
    amounts = ("0", "0.004", "0.016", "12.3456", "1234.5")
    assert [cents(micro_usd(amount)) for amount in amounts] == [
        "0.00", "<0.01", "0.02", "12.35", "1,234.50",
    ]  # fmt: skip


def test_a_time_of_day_says_how_many_days_ahead_it_is() -> None:
    noon = 1_790_000_000.0
    assert len(hour(noon, noon)) == 5
    assert hour(noon + 2 * 86400, noon) == f"{hour(noon, noon)} +2d"


def test_a_rough_time_has_no_seconds() -> None:
    assert [roughly(length_s) for length_s in (5.0, 3130.0, 7800.0)] == [
        "1 min", "52 min", "2 h 10 min",
    ]  # fmt: skip


def test_a_sentence_is_told_in_cents_and_what_to_do_is_never_less_than_needed() -> None:
    says = "could cost 6.662543 USD, and 0.732819 more; 6.814283 of 8.00 USD are left"
    assert in_cents(says) == "could cost 6.66 USD, and 0.73 more; 6.81 of 8.00 USD are left"
    assert in_cents("raise it by 0.580001 USD", up=True) == "raise it by 0.59 USD"
    assert in_cents("raise it by 0.000001 USD", up=True) == "raise it by 0.01 USD"
    assert in_cents("kept 1322.125 s longer on 2.5.1234") == "kept 1322.125 s longer on 2.5.1234"
