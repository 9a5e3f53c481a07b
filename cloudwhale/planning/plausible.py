"""Prices that cannot be right: what is dropped, what is only pointed at, and how often."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.prices import Listing, Market, Price

DAY_S: Seconds = 86400.0

LEAST_USD_H = 0.001  # the cheapest machines of all cost two or three times as much
MOST_USD_H = 2_000.0  # twenty times the largest machine of today
SENTINELS_USD_H = frozenset((9_999.0, 999.0, 999.99, 9_999.99))
"""Numbers that lists write where they have none; they are within the bounds above or near."""
TIMES_OFF = 5.0
NEIGHBOURS_LEAST = 3
"""Of fewer regions nobody can say which one is off."""
SPOT_LEAST = 0.09
"""Of the on-demand price; AWS says of itself up to 90 % less, GCP up to 91 %."""
AHEAD_S: Seconds = DAY_S
"""A clock and a date without a time may differ by so much."""

MARKETS: tuple[Market, ...] = ("on-demand", "spot")

DROPPED: Mapping[str, str] = {
    "zero": "cost nothing",
    "sentinel": "are no prices but a sign that there is none",
    "out-of-bounds": f"are not between {LEAST_USD_H:g} and {MOST_USD_H:,.0f} USD an hour",
    "spot-dearer": "are spot and not cheaper than on-demand",
    "spot-too-cheap": "are spot and further below on-demand than any cloud says of its own",
    "far-below": f"are over {TIMES_OFF:g} times below the same type elsewhere",
}
"""Rules after which a price counts as unknown, each with what is said of its prices."""
FLAGGED: Mapping[str, str] = {
    "far-above": f"are over {TIMES_OFF:g} times above the same type elsewhere",
    "stale": "are too old",
    "from-the-future": "are dated after now",
}
"""Rules after which a price is kept and pointed at."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What is left of some listings, and how many prices each rule has met."""

    listings: tuple[Listing, ...]
    counts: Mapping[str, int]


def possible(listings: Iterable[Listing]) -> Judged:
    """Drop prices that are wrong by themselves; a listing without any price goes with them.

    Asked of every source before the newest is taken, so that no absurd price hides a sane one.
    """
    counts: Counter[str] = Counter()
    kept: list[Listing] = []
    for listing in listings:
        on_demand, spot = listing.on_demand, listing.spot
        on_demand_rule, spot_rule = _absurd(on_demand), _absurd(spot)
        if on_demand_rule:
            counts[on_demand_rule] += 1
            on_demand = None
        spot_rule = spot_rule or _beside_on_demand(spot, on_demand)
        if spot_rule:
            counts[spot_rule] += 1
            spot = None
        if on_demand_rule or spot_rule:
            listing = listing._replace(on_demand=on_demand, spot=spot)
        if on_demand is not None or spot is not None:
            kept.append(listing)
    return Judged(tuple(kept), counts)


def plausible(listings: Sequence[Listing], now: Instant, max_age_s: Seconds) -> Judged:
    """Drop what is far below its neighbours, count what is far above, old, or from the future."""
    counts: Counter[str] = Counter()
    middles = _middles(listings)
    kept: list[Listing] = []
    for listing in listings:
        left = listing
        for market in MARKETS:
            price = listing.price(market)
            if price is None:
                continue
            rule = _beside(price, middles.get((listing.shape.provider, listing.shape.type, market)))
            if rule is not None:
                counts[rule] += 1
            if rule == "far-below":
                left = without(left, market)
                continue
            rule = _aged(price, now, max_age_s)
            if rule is not None:
                counts[rule] += 1
        if left.on_demand is not None or left.spot is not None:
            kept.append(left)
    return Judged(tuple(kept), counts)


def without(listing: Listing, market: Market) -> Listing:
    """Return a listing whose price of a market is unknown."""
    return listing._replace(spot=None) if market == "spot" else listing._replace(on_demand=None)


def is_ahead(price: Price, now: Instant) -> bool:
    """Say whether a price is dated after now: its date says nothing then."""
    return price.at > now + AHEAD_S


def _absurd(price: Price | None) -> str | None:
    if price is None:
        return None
    usd_h = price.usd_h / 1e6
    if usd_h == 0:
        return "zero"
    if usd_h in SENTINELS_USD_H:
        return "sentinel"
    return None if LEAST_USD_H <= usd_h <= MOST_USD_H else "out-of-bounds"


def _beside_on_demand(spot: Price | None, on_demand: Price | None) -> str | None:
    if spot is None or on_demand is None:
        return None
    if spot.usd_h >= on_demand.usd_h:
        return "spot-dearer"
    return "spot-too-cheap" if spot.usd_h < SPOT_LEAST * on_demand.usd_h else None


def _middles(listings: Sequence[Listing]) -> dict[tuple[str, str, Market], float]:
    """Return the median price of each type and market that enough regions have."""
    found: dict[tuple[str, str, Market], list[int]] = {}
    for listing in listings:
        for market in MARKETS:
            price = listing.price(market)
            if price is not None:
                key = (listing.shape.provider, listing.shape.type, market)
                found.setdefault(key, []).append(price.usd_h)
    return {
        key: float(median(prices))
        for key, prices in found.items()
        if len(prices) >= NEIGHBOURS_LEAST
    }


def _beside(price: Price, middle: float | None) -> str | None:
    if middle is None:
        return None
    if price.usd_h * TIMES_OFF < middle:
        return "far-below"
    return "far-above" if price.usd_h > middle * TIMES_OFF else None


def _aged(price: Price, now: Instant, max_age_s: Seconds) -> str | None:
    if is_ahead(price, now):
        return "from-the-future"
    return "stale" if now - price.at > max_age_s else None
