"""The catalogue's offers as they are today, made of what a region has told.

What nobody has said stays unknown: no price is guessed, and nothing is left out for want of one.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from cloudwhale.model.offer import Offer
from cloudwhale.model.units import MicroUsd
from cloudwhale.spi.prices import Market
from cloudwhale_providers.prices.aws import quota_group


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of a region beyond the catalogue; None: nobody has said."""

    zones: Mapping[str, tuple[str, ...]] | None = None
    prices: Mapping[tuple[str, str], MicroUsd] | None = None
    left: Mapping[tuple[Market, str], float | None] = field(
        default_factory=dict[tuple[Market, str], float | None]
    )


def newer(offers: Iterable[Offer], seen: Seen) -> Iterator[Offer]:
    """Yield the offers of a region as they are today, one for each zone that has the type."""
    ordered = sorted(offers, key=lambda one: (one.type, one.market, one.zone))
    for (name, market), some in groupby(ordered, key=lambda one: (one.type, one.market)):
        by_zone = {one.zone: one for one in some}
        where = by_zone if seen.zones is None else seen.zones.get(name, ())
        left = seen.left.get((market, quota_group(name, market)))
        for zone in where:
            offer = _in_zone(by_zone, zone).but(quota_left=left)
            yield offer if market == "on-demand" else _at_spot_price(offer, seen.prices)


def id_in(offer: Offer, zone: str) -> str:
    """Return the id of the same offer in another zone, as the catalogue makes it."""
    return f"{offer.provider}/{zone}/{offer.type}/{offer.market}"


def _in_zone(by_zone: Mapping[str, Offer], zone: str) -> Offer:
    """Return the offer of a zone; of one that the catalogue does not name the same as elsewhere.

    Where zones differ in price, that of another one is unknown.
    """
    if zone in by_zone:
        return by_zone[zone]
    first = next(iter(by_zone.values()))
    prices = {one.price_usd_h for one in by_zone.values()}
    return first.but(
        id=id_in(first, zone), zone=zone,
        price_usd_h=first.price_usd_h if len(prices) == 1 else None,
    )  # fmt: skip


def _at_spot_price(offer: Offer, prices: Mapping[tuple[str, str], MicroUsd] | None) -> Offer:
    """Return a spot offer at the price of now; unknown where EC2 says prices and none for it.

    EC2 charges no more than the on-demand price; where spot is above what we think that this is,
    we do not know it, and what bounds the cost is unknown.
    """
    if prices is None:
        return offer
    price = prices.get((offer.type, offer.zone))
    cap = offer.cap_usd_h
    if price is not None and cap is not None and price > cap:
        cap = None
    return offer.but(price_usd_h=price, cap_usd_h=cap, priced_at=None, source="", estimated=False)
