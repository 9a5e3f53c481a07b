"""How sums of money are written so that columns of them add up."""

from collections.abc import Sequence
from decimal import Decimal

from cloudwhale.model.units import MICRO_PER_USD, MicroUsd

_STEPS = ((1, 2), (Decimal("0.01"), 4), (0, 6))
"""Totals of so many dollars and more are written with so many digits after the point."""


def digits_for(total: MicroUsd) -> int:
    """Return how many digits after the point show what a sum is made of: 2, 4 or 6."""
    return next(digits for least, digits in _STEPS if abs(total) >= least * MICRO_PER_USD)


def column(amounts: Sequence[MicroUsd], digits: int) -> list[str]:
    """Return amounts as text, rounded so that what is written adds up to their rounded sum.

    All are rounded down; those that lose most thereby get the units that are missing, so none is
    off by a whole one.
    """
    unit = MICRO_PER_USD // 10**digits
    floors = [amount // unit for amount in amounts]
    missing = _nearest(sum(amounts), unit) - sum(floors)
    by_loss = sorted(range(len(amounts)), key=lambda place: (-(amounts[place] % unit), place))
    for place in by_loss[:missing]:
        floors[place] += 1
    return [_text(number, digits) for number in floors]


def column_with_total(amounts: Sequence[MicroUsd], digits: int) -> list[str]:
    """Return the same of amounts of which the last is the sum of the others."""
    return [*column(amounts[:-1], digits), amount(amounts[-1], digits)]


def amount(of: MicroUsd, digits: int) -> str:
    """Return one amount as text: the rounded sum of a column."""
    return _text(_nearest(of, MICRO_PER_USD // 10**digits), digits)


def _nearest(amount_micro: int, unit: int) -> int:
    return (2 * amount_micro + unit) // (2 * unit)


def _text(number: int, digits: int) -> str:
    return f"{Decimal(number).scaleb(-digits):,.{digits}f}"
