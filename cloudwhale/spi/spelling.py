"""Prices, dates and names as others write them: read with bounds, or refused with the reason."""

import re
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

from cloudwhale.model.units import Instant, MicroUsd, micro_usd

MOST_USD_H = Decimal(100_000)
"""No machine costs so much; what does is a slip of the unit."""
DATES = (datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC))
"""Prices are dated between these; later ones cannot be shown everywhere."""
NAME_MOST = 100
NAMES = f"Write up to {NAME_MOST} letters, digits and signs without `/`, `;` and `=`"

_NO_NAME = re.compile(r"[/;=]")
"""They stand between the names in ids of offers, and between zones and their prices."""


def instant(text: str) -> Instant:
    """Return an ISO date or time as seconds; without an offset it is UTC.

    Raises ValueError, saying why, for what is none, or outside of DATES.
    """
    try:
        when = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError("is not a date") from error
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    first, last = DATES
    if not first <= when < last:
        raise ValueError(f"is not between {first.year} and {last.year}")
    return when.timestamp()


def hourly(dollars: str | Decimal) -> MicroUsd:
    """Return dollars an hour; raise ValueError, saying why, for what no machine can cost.

    Asked of every price that somebody else has written: an exponent could fill the memory.
    """
    try:
        amount = Decimal(dollars)
    except InvalidOperation as error:
        raise ValueError("is not a price") from error
    if not amount.is_finite() or not 0 <= amount <= MOST_USD_H:
        raise ValueError(f"is not between 0 and {MOST_USD_H:,}")
    return micro_usd(amount)


def is_name(text: str) -> bool:
    """Say whether a text can be part of an offer's id: NAMES tells which can."""
    return 0 < len(text) <= NAME_MOST and text.isprintable() and not _NO_NAME.search(text)
