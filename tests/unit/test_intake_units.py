"""Amounts and words of a job file: every one that is accepted means what was written."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudwhale.control.intake import gpu, units, words
from cloudwhale.control.intake.unfit import Unfit
from cloudwhale.model.job import Span
from cloudwhale.model.units import usd

AMOUNTS = st.integers(min_value=1, max_value=99_999).map(lambda thousandths: thousandths / 1000)
SIZE_UNITS = st.sampled_from(sorted(units.SIZES))
RATE_UNITS = st.sampled_from(sorted(units.RATES))
TIME_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
PARSERS: tuple[Callable[[str], object], ...] = (
    units.number,
    units.whole,
    units.factor,
    units.yes_no,
    units.time,
    units.size,
    units.gpu_size,
    units.rate,
    units.money,
    units.span(units.gpu_size),
    units.at_least(units.size),
    gpu.short_form,
    words.folder_name,
    words.env_name,
    words.image,
    words.inside,
    words.absolute,
    words.mount_point,
    words.url(("https", "s3")),
)


@given(AMOUNTS, SIZE_UNITS)
def test_a_size_means_its_number_times_its_unit(amount: float, unit: str) -> None:
    gib = units.size(f"{amount}{unit}")
    assert math.isclose(gib * 2**30 / units.SIZES[unit], amount)


@given(AMOUNTS, SIZE_UNITS)
def test_gpu_memory_means_the_same_in_gb_and_gib(amount: float, unit: str) -> None:
    assert units.gpu_size(f"{amount}{unit}") == units.gpu_size(f"{amount} {_binary(unit)}")


def _binary(unit: str) -> str:
    return unit if "i" in unit or unit == "B" else f"{unit[0].upper()}iB"


@given(AMOUNTS, RATE_UNITS)
def test_a_rate_means_its_number_times_its_unit(amount: float, unit: str) -> None:
    assert math.isclose(units.rate(f"{amount}{unit}") / units.RATES[unit], amount)


@given(AMOUNTS, st.sampled_from(sorted(TIME_UNITS)))
def test_a_time_means_its_number_times_its_unit(amount: float, unit: str) -> None:
    if amount * TIME_UNITS[unit] <= units.TIME_MOST_S:
        assert math.isclose(units.time(f"{amount}{unit}") / TIME_UNITS[unit], amount)


@given(st.integers(0, 99), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_times_may_be_put_together(days: int, hours: int, minutes: int, seconds: int) -> None:
    whole = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    assert units.time(f"{days}d{hours}h{minutes}m{seconds}s") == whole


@given(st.integers(min_value=1, max_value=10**12))
def test_money_is_kept_to_the_millionth(micro: int) -> None:
    text = f"{micro // 10**6}.{micro % 10**6:06d}"
    assert units.money(text) == micro
    assert units.money(f"{usd(units.money(text)):f}") == micro


@given(st.integers(1, 500), st.integers(0, 500))
def test_a_range_holds_both_its_ends(least: int, more: int) -> None:
    parse = units.span(units.gpu_size)
    assert parse(f"{least}GB..{least + more}GB") == Span(least=least, most=least + more)
    assert parse(f"{least}GB..") == parse(f"{least}GB") == Span(least=least)
    assert parse(f"..{least}GB") == Span(most=least)


@given(st.sampled_from(PARSERS), st.text(max_size=50))
def test_a_parser_accepts_or_says_what_to_write(parse: Callable[[str], object], text: str) -> None:
    try:
        parse(text)
    except Unfit as wrong:
        assert wrong.says and wrong.remedy
        assert len(wrong.says) < 400


@given(st.sampled_from(PARSERS), st.text("0123456789.eE+-_ :,kKMGTiBbps/hdmn", max_size=12))
def test_what_looks_like_an_amount_is_finite(parse: Callable[[str], object], text: str) -> None:
    try:
        value = parse(text)
    except Unfit:
        return
    if isinstance(value, float):
        assert 0 <= value < math.inf


@given(st.text("abcXYZ019._-/\\ é\n\0", max_size=70))
def test_a_name_is_a_folder_on_any_machine(text: str) -> None:
    try:
        name = words.folder_name(text)
    except Unfit:
        return
    assert name == text
    assert name not in (".", "..") and not set(name) & set("/\\ \n\0é")
    assert 0 < len(name) <= 63


@pytest.mark.parametrize(("written", "inside"), [("./ckpt/", "ckpt"), ("a//b", "a/b")])
def test_paths_inside_are_written_one_way(written: str, inside: str) -> None:
    assert words.inside(written) == inside


def test_digits_of_other_scripts_are_no_numbers() -> None:
    for text in ("\u0663", "\uff13", "\u00b2"):
        with pytest.raises(Unfit):
            units.number(text)
