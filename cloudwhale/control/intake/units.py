"""One small parser per kind of amount: text in, value out, or Unfit with the remedy."""

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import TypeVar

from cloudwhale.control.intake.unfit import Unfit, shown
from cloudwhale.model.job import Span
from cloudwhale.model.units import GiB, MicroUsd, Seconds, micro_usd

Amount = TypeVar("Amount", int, float)

# Bounds keep arithmetic finite; each is far above what anything has.
TIME_MOST_S = 3650 * 86400.0
SIZE_MOST_GIB = 1024.0**3
MONEY_MOST_USD = Decimal(10) ** 9

_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,9})?"
_QUANTITY = re.compile(rf"({_NUMBER})\s*([A-Za-z/]+)")
_OTHER = "(?:[€£¥₹]|(?!USD)[A-Z]{3})"
_OTHER_CURRENCY = re.compile(rf"{_OTHER}\s*{_NUMBER}|{_NUMBER}\s*{_OTHER}")
_TIME = re.compile(rf"(?:({_NUMBER})d)?(?:({_NUMBER})h)?(?:({_NUMBER})m)?(?:({_NUMBER})s)?")
_TIME_S = (86400.0, 3600.0, 60.0, 1.0)

SIZES: dict[str, float] = {
    **{unit: 1000.0**power for power, unit in enumerate(("B", "KB", "MB", "GB", "TB"))},
    "kB": 1000.0,
    **{unit: 1024.0**power for power, unit in enumerate(("KiB", "MiB", "GiB", "TiB"), 1)},
}
"""Bytes of each unit of size."""

RATES: dict[str, float] = {
    **{f"{unit}/s": size / 1e6 for unit, size in SIZES.items()},
    **{
        f"{prefix}{bits}": factor / 8
        for prefix, factor in (("K", 1e-3), ("k", 1e-3), ("M", 1.0), ("G", 1e3), ("T", 1e6))
        for bits in ("bps", "bit/s")
    },
}
"""Megabytes per second (of a million bytes) of each unit of rate."""

_YES, _NO = ("true", "yes", "on"), ("false", "no", "off")


# -- numbers ---------------------------------------------------------------------------------


def number(text: str) -> float:
    """Return a plain decimal number that is not negative."""
    if re.fullmatch(f"-{_NUMBER}", text):
        raise Unfit(f"{shown(text)} is not above 0", "Write a number above 0, like 4 or 0.5.")
    if not re.fullmatch(_NUMBER, text):
        raise Unfit(f"{shown(text)} is not a number", "Write digits, like 4 or 0.5.")
    return float(text)


def whole(text: str) -> int:
    """Return a whole number that is not negative."""
    if not re.fullmatch(r"[0-9]{1,15}", text):
        raise Unfit(f"{shown(text)} is not a whole number", "Write digits alone, like 4.")
    return int(text)


def factor(text: str) -> float:
    """Return a finite number above 0; `1e-3` is fine."""
    if not re.fullmatch(rf"-?{_NUMBER}(?:[eE][+-]?[0-9]{{1,3}})?", text):
        raise Unfit(f"{shown(text)} is not a number", "Write a number above 0, like 0.5.")
    value = float(text)
    if not 0 < value < math.inf:
        raise Unfit(f"{shown(text)} is not above 0", "Write a number above 0, like 0.5.")
    return value


def between(parse: Callable[[str], Amount], least: float, most: float) -> Callable[[str], Amount]:
    """Return a parser that holds a number to bounds; both belong to it."""

    def bounded(text: str) -> Amount:
        value = parse(text)
        if not least <= float(value) <= most:
            raise Unfit(
                f"{shown(text)} is out of bounds", f"Write a value from {least:g} to {most:g}."
            )
        return value

    return bounded


def yes_no(text: str) -> bool:
    """Return true or false."""
    if text.lower() in _YES:
        return True
    if text.lower() in _NO:
        return False
    raise Unfit(f"{shown(text)} is neither true nor false", "Write true or false.")


# -- quantities ------------------------------------------------------------------------------


def time(text: str) -> Seconds:
    """Return a length of time: `90s`, `10m`, `3h`, `2d`, `1h30m`."""
    parts = _TIME.fullmatch(text)
    if not text or parts is None:
        raise Unfit(f"{shown(text)} is not a time", "Write it with a unit: 90s, 10m, 3h, 2d.")
    seconds = sum(
        float(part) * unit for part, unit in zip(parts.groups(), _TIME_S, strict=True) if part
    )
    if seconds > TIME_MOST_S:
        raise Unfit(f"{shown(text)} is more than ten years", "Write a shorter time.")
    return seconds


def some_time(text: str) -> Seconds:
    """Return a length of time above 0."""
    return _above_zero(time(text), text, "time")


def size(text: str) -> GiB:
    """Return an exact size above 0: `16GiB`, `100GB`; GB is 10^9 bytes, GiB is 2^30."""
    amount, unit = _quantity(text, SIZES, "size", "16GB or 16GiB")
    return _bounded_size(amount * SIZES[unit] / SIZES["GiB"], text)


def gpu_size(text: str) -> GiB:
    """Return a nominal size of GPU memory above 0.

    GB and GiB mean the same here: an "80GB" card has 80 GiB, and both spellings ask for it.
    """
    amount, unit = _quantity(text, SIZES, "size", "24GB or 24GB..80GB")
    nominal = unit if unit == "B" or "i" in unit else f"{unit[0].upper()}iB"
    return _bounded_size(amount * SIZES[nominal] / SIZES["GiB"], text)


def rate(text: str) -> float:
    """Return megabytes per second: `200MB/s`, `1Gbps`."""
    amount, unit = _quantity(text, RATES, "rate", "200MB/s or 1Gbps")
    return _above_zero(amount * RATES[unit], text, "rate")


def money(text: str) -> MicroUsd:
    """Return an amount of dollars above 0: `50`, `0.25`."""
    if _OTHER_CURRENCY.fullmatch(text):
        raise Unfit(
            f"{shown(text)} is not in US dollars",
            "Prices are in US dollars, and so are budgets: write 50 or 0.25.",
        )
    if not re.fullmatch(_NUMBER, text):
        raise Unfit(
            f"{shown(text)} is not an amount of money", "Write dollars in digits, like 50 or 0.25."
        )
    dollars = Decimal(text)
    amount = micro_usd(dollars)
    if amount <= 0:
        raise Unfit(f"a budget of {text} is not above 0", "Leave it out to rent nothing.")
    if dollars > MONEY_MOST_USD:
        raise Unfit(f"{shown(text)} is more than a billion dollars", "Write a smaller amount.")
    return amount


def _quantity(text: str, units: dict[str, float], kind: str, like: str) -> tuple[float, str]:
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise Unfit(f"{shown(text)} is not a {kind}", f"Write it with a unit: {like}.")
    if found[2] not in units:
        known = [unit for unit in units if unit.lower() == found[2].lower()]
        hint = f"Did you mean {found[1]}{known[-1]}?" if known else f"Write it like {like}."
        raise Unfit(f"{shown(found[2])} in {shown(text)} is not a unit of {kind}", hint)
    return float(found[1]), found[2]


def _bounded_size(gib: GiB, text: str) -> GiB:
    if gib > SIZE_MOST_GIB:
        raise Unfit(f"{shown(text)} is more than any machine has", "Write a smaller size.")
    return _above_zero(gib, text, "size")


def _above_zero(value: float, text: str, kind: str) -> float:
    if value <= 0:
        raise Unfit(f"{shown(text)} is not above 0", f"Write a {kind} above 0, or leave it out.")
    return value


# -- ranges ----------------------------------------------------------------------------------


def ends(text: str, parse: Callable[[str], Amount]) -> tuple[Amount | None, Amount | None]:
    """Return both ends of `16..`, `..80GB` or `24GB..80GB`; an open end is None."""
    low, dots, high = text.partition("..")
    if not dots or not (low.strip() or high.strip()):
        raise Unfit(f"{shown(text)} is not a range", "Write it like 16.., ..80GB or 24GB..80GB.")
    least = parse(low.strip()) if low.strip() else None
    most = parse(high.strip()) if high.strip() else None
    if least is not None and most is not None and least > most:
        raise Unfit(f"the range {shown(text)} ends before it begins", f"Write {high}..{low}?")
    return least, most


def span(parse: Callable[[str], float]) -> Callable[[str], Span]:
    """Return a parser of ranges; one value alone means "at least"."""

    def ranged(text: str) -> Span:
        if ".." not in text:
            return Span(least=parse(text))
        least, most = ends(text, parse)
        return Span(least=least or 0.0, most=most)

    return ranged


def at_least(parse: Callable[[str], float]) -> Callable[[str], float]:
    """Return a parser of what a node must have at least: `16GiB` and `16GiB..` are the same."""

    def lower_end(text: str) -> float:
        if ".." not in text:
            return parse(text)
        least, most = ends(text, parse)
        if least is None or most is not None:
            raise Unfit(
                f"{shown(text)} has an upper end", "Write the least that the job needs, alone."
            )
        return least

    return lower_end
