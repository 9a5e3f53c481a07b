"""What the settings allow to be rented, as the planner takes it."""

from decimal import Decimal

from cloudwhale.model.units import micro_usd
from cloudwhale.planning.allowing import Limits
from cloudwhale.settings import Settings


def limits_of(settings: Settings) -> Limits:
    """Return where, what and how dear a machine may be."""
    most = settings.max_price_usd_h
    return Limits(
        regions=settings.regions,
        never=settings.never,
        max_price_usd_h=None if most is None else micro_usd(Decimal(repr(most))),
    )
