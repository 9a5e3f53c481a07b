"""Listings become offers: one for each zone and market that has a price."""

from collections.abc import Iterable, Iterator, Mapping

from cloudwhale.model.gpus import MODELS
from cloudwhale.model.node import Device, Facts
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import MicroUsd
from cloudwhale.spi.prices import Listing, Market, Price, PriceList, Shape, Terms

MARKETS: tuple[Market, ...] = ("on-demand", "spot")

UNSAID = Terms(
    boot_s=600.0, notice_s=0.0, billing_step_s=3600.0, billing_least_s=3600.0, memory_share=0.925
)
"""Terms of a provider that nobody has told us about: slow, and billed by the hour."""

RUNTIMES = ("process", "container")


def offers_of(listings: Iterable[Listing], lists: Mapping[str, PriceList]) -> Iterator[Offer]:
    """Yield what could be rented, with an id like `CLOUD/us-east-1b/g5.xlarge/spot`.

    A type whose zones nobody has said is offered once in its region, which stands for the zone.
    Where zones have prices of their own, those without one are unknown and not offered.
    Machines of one type share their facts.
    """
    firsts: dict[tuple[Shape, float, float, Market], Offer] = {}
    for listing in listings:
        prices = lists.get(listing.shape.provider)
        for market in MARKETS:
            price = listing.price(market)
            if price is None:
                continue
            terms = _terms(prices, listing, market)
            if not terms.is_sold:
                continue
            key = (listing.shape, terms.disk_gib, terms.memory_share, market)
            if key not in firsts:
                other = firsts.get((*key[:3], "on-demand"))
                facts = facts_of(listing.shape, terms) if other is None else other.facts
                firsts[key] = _first(listing.shape, facts, market)
            cap = price.usd_h if market == "on-demand" else _cap(prices, listing)
            yield from _by_zone(listing, price, _of_region(firsts[key], listing, terms, cap))


def facts_of(shape: Shape, terms: Terms) -> Facts:
    """Return what jobs find on a machine of a shape."""
    return Facts(
        cpu=shape.cpu,
        memory_gib=round(shape.memory_gib * terms.memory_share, 1),
        disk_gib=max(terms.disk_gib, shape.disk_gib),
        devices=tuple(_device(shape, number) for number in range(shape.gpus)),
        runtimes=RUNTIMES,
    )


def _device(shape: Shape, number: int) -> Device:
    nominal = MODELS[shape.gpu].memory_gib
    usable = shape.gpu_gib if 0 < shape.gpu_gib < nominal else None
    return Device(id=f"gpu-{number}", model=shape.gpu, memory_gib=nominal, usable_gib=usable)


def _terms(prices: PriceList | None, listing: Listing, market: Market) -> Terms:
    if prices is None:
        return UNSAID
    return prices.terms(listing.shape, listing.region, market)


def _cap(prices: PriceList | None, listing: Listing) -> MicroUsd | None:
    """Return the most that a spot machine can cost; where nobody says, its on-demand price."""
    if prices is not None:
        return prices.cap(listing, "spot")
    return None if listing.on_demand is None else listing.on_demand.usd_h


def _first(shape: Shape, facts: Facts, market: Market) -> Offer:
    """Return an offer that all of a type and market are copies of but for a few fields.

    There are tens of thousands of them: to copy costs a third of making each anew.
    """
    return Offer(
        id="", provider=shape.provider, region="", zone="", market=market, facts=facts,
        price_usd_h=None, cap_usd_h=None, type=shape.type, boot_s=0.0,
    )  # fmt: skip


def _of_region(first: Offer, listing: Listing, terms: Terms, cap: MicroUsd | None) -> Offer:
    """Return the offer with all that is the same in the zones of a region."""
    price = listing.price(first.market)
    hazard = listing.hazard_per_h if first.market == "spot" else 0.0
    return first.but(
        region=listing.region, cap_usd_h=cap, hazard_per_h=hazard,
        priced_at=None if price is None else price.at,
        source="" if price is None else price.source,
        estimated=price is not None and price.estimated,
        boot_s=terms.boot_s, notice_s=terms.notice_s, billing_step_s=terms.billing_step_s,
        billing_least_s=terms.billing_least_s, extras_usd_h=terms.extras_usd_h,
        address_usd_h=terms.address_usd_h,
        egress_usd_gb=terms.egress_usd_gb, egress_near_usd_gb=terms.egress_near_usd_gb,
        quota=terms.quota, quota_units=terms.quota_units, stop_moves=terms.stop_moves,
    )  # fmt: skip


def _by_zone(listing: Listing, price: Price, whole: Offer) -> Iterator[Offer]:
    own = dict(price.zones)
    end = f"{whole.type}/{whole.market}"
    for zone in tuple(own) or listing.zones or (listing.region,):
        yield whole.but(
            id=f"{whole.provider}/{zone}/{end}", zone=zone,
            price_usd_h=own.get(zone, price.usd_h),
        )  # fmt: skip
