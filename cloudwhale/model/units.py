"""The units that money, time and size are counted in."""

from decimal import ROUND_HALF_EVEN, Decimal
from typing import NewType, TypeAlias

MicroUsd = NewType("MicroUsd", int)
"""Money: whole millionths of a US dollar, never a float."""

Seconds: TypeAlias = float
"""A length of time."""

Instant: TypeAlias = float
"""A point in time: seconds since 1970-01-01T00:00Z."""

GiB: TypeAlias = float
"""A size: 2**30 bytes."""

MICRO_PER_USD = 1_000_000

NOTHING = MicroUsd(0)


def micro_usd(dollars: Decimal | int | str) -> MicroUsd:
    """Return dollars as whole micro-dollars; raise ValueError for what is not a finite number."""
    amount = Decimal(dollars)
    if not amount.is_finite():
        raise ValueError(f"{dollars} is not an amount of money")
    return MicroUsd(int((amount * MICRO_PER_USD).to_integral_value(ROUND_HALF_EVEN)))


def usd(amount: MicroUsd) -> Decimal:
    """Return micro-dollars as exact dollars, without trailing zeros beyond the cents."""
    dollars = Decimal(amount) / MICRO_PER_USD
    cents = dollars.quantize(Decimal("0.01"))
    return cents if cents == dollars else dollars.normalize()
