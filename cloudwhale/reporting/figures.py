"""How numbers are written for people: money, time, sizes, shares."""

import re
from datetime import UTC, datetime
from decimal import ROUND_CEILING, Decimal

from cloudwhale.model.units import GiB, Instant, MicroUsd, Seconds, usd

NOTHING = "-"
"""What stands where there is no value: unknown is not zero."""

MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86400
_PARTS_OF_CENTS = re.compile(r"\b\d+\.\d{3,}(?= USD| of (?:the )?[\d.]+ USD| are| and| more)")


def money(amount: MicroUsd | Decimal | None) -> str:
    """Return `12.50 USD`; smaller amounts keep the digits that they have."""
    if amount is None:
        return NOTHING
    return f"{dollars(amount)} USD"


def dollars(amount: MicroUsd | Decimal) -> str:
    """Return an amount without its unit, two digits at least, never as an exponent."""
    exact = amount if isinstance(amount, Decimal) else usd(amount)
    cents = exact.quantize(Decimal("0.01"))
    return f"{cents if cents == exact else exact:f}"


def cents(amount: MicroUsd | Decimal) -> str:
    """Return an amount without its unit, rounded to cents; `<0.01` for what is less than one."""
    exact = amount if isinstance(amount, Decimal) else usd(amount)
    return "<0.01" if 0 < exact < Decimal("0.01") else f"{exact:,.2f}"


def in_cents(says: str, *, up: bool = False) -> str:
    """Return a sentence with its dollars in whole cents; `up`: never less, as for what to do."""
    return _PARTS_OF_CENTS.sub(
        lambda found: cents(_up(Decimal(found[0])) if up else Decimal(found[0])), says
    )


def _up(amount: Decimal) -> Decimal:
    return amount.quantize(Decimal("0.01"), ROUND_CEILING)


def span(length_s: Seconds | None) -> str:
    """Return a length of time in at most two units: `0.4 s`, `42 s`, `3 min 05 s`, `2 h 10 min`."""
    if length_s is None:
        return NOTHING
    if length_s < 10:
        return f"{max(0.0, length_s):.1f} s"
    whole = round(length_s)
    if whole < MINUTE_S:
        return f"{whole} s"
    if whole < HOUR_S:
        return f"{whole // MINUTE_S} min {whole % MINUTE_S:02d} s"
    if whole < DAY_S:
        return f"{whole // HOUR_S} h {whole % HOUR_S // MINUTE_S:02d} min"
    return f"{whole // DAY_S} d {whole % DAY_S // HOUR_S} h"


def watch(length_s: Seconds) -> str:
    """Return a running time as a stop watch shows it: `0:42`, `1:03:07`; its width is steady."""
    whole = max(0, int(length_s))
    hours, minutes, seconds = whole // HOUR_S, whole % HOUR_S // MINUTE_S, whole % MINUTE_S
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def size(count_bytes: int) -> str:
    """Return a number of bytes in the largest binary unit that it fills."""
    amount = float(count_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def gib(amount: GiB | None) -> str:
    """Return a size in GiB: `16 GiB`, `7.5 GiB`."""
    return NOTHING if amount is None else f"{plain(amount)} GiB"


def plain(amount: float) -> str:
    """Return a number with at most one digit after the point, and none when it is whole."""
    return f"{amount:.1f}".removesuffix(".0")


def percent(share: float) -> str:
    """Return a fraction of 1 as per cent."""
    return f"{share * 100:.0f} %"


def clock_time(at: Instant) -> str:
    """Return the time of day on this host: `12:03:01`."""
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%H:%M:%S")


def moment(at: Instant | None, now: Instant) -> str:
    """Return a time as short as it stays clear: the date only when it is another day's."""
    if at is None:
        return NOTHING
    there = datetime.fromtimestamp(at, UTC).astimezone()
    here = datetime.fromtimestamp(now, UTC).astimezone()
    if there.date() == here.date():
        return there.strftime("%H:%M:%S")
    return there.strftime("%d %b %H:%M" if there.year == here.year else "%d %b %Y")


def hour(at: Instant, now: Instant) -> str:
    """Return a time of day to the minute, `14:05`; `14:05 +2d` when it is two days ahead."""
    there = datetime.fromtimestamp(at, UTC).astimezone()
    days = (there.date() - datetime.fromtimestamp(now, UTC).astimezone().date()).days
    return f"{there:%H:%M}" + (f" {days:+d}d" if days else "")


def roughly(length_s: Seconds) -> str:
    """Return a length of time to the minute: `52 min`, `2 h 10 min`."""
    minutes = max(1, round(length_s / MINUTE_S))
    return f"{minutes} min" if minutes < 60 else span(minutes * MINUTE_S)


def counted(number: int, noun: str) -> str:
    """Return `1 job`, `2 jobs`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
