"""Prices that cannot be right: what is dropped, what is only pointed at, and how often."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

from cloudwhale.model.units import Instant, MicroUsd, Seconds
from cloudwhale.spi.prices import Listing, Market, Price, Shape

DAY_S: Seconds = 86400.0

LEAST_USD_H = 0.001  # the cheapest machines of all cost two or three times as much
MOST_USD_H = 2_000.0  # twenty times the largest machine of today
SENTINELS_USD_H = frozenset((9_999.0, 999.0, 999.99, 9_999.99))
"""Numbers that lists write where they have none; they are within the bounds above or near."""
TIMES_OFF = 5.0
NEIGHBOURS_LEAST = 3
"""Of fewer regions nobody can say which one is off."""
SPOT_LEAST = 0.09
"""Of the on-demand price; clouds say of themselves up to 90 % less, one up to 91 %."""
GPU_LEAST = 0.15
"""Of what an hour of the same GPU model costs where it is cheapest on demand, for estimates.

Of 1,500 spot prices that a cloud asked itself on 2026-07-30 none is below 0.18; the largest savings
that another publishes, in four places that hardly have the type, make estimates from 0.11 to 0.13.
"""
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
    "gpu-too-cheap": f"are estimates below {GPU_LEAST:.0%} of the same GPU's cheapest on demand",
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
        if on_demand is not None:
            on_demand = _left(on_demand, _absurd, counts)
        if spot is not None:
            spot = _left(spot, partial(_wrong_spot, on_demand), counts)
        if on_demand is not listing.on_demand or spot is not listing.spot:
            listing = listing._replace(on_demand=on_demand, spot=spot)
        if on_demand is not None or spot is not None:
            kept.append(listing)
    return Judged(tuple(kept), counts)


def plausible(listings: Sequence[Listing], now: Instant, max_age_s: Seconds) -> Judged:
    """Drop what is far too cheap beside others; count what is far above, old, or ahead of now."""
    counts: Counter[str] = Counter()
    others = _Others(listings)
    kept: list[Listing] = []
    for listing in listings:
        left = listing
        for market in MARKETS:
            price = listing.price(market)
            if price is None:
                continue
            sane = _left(price, partial(others.too_cheap, listing.shape, market, price), counts)
            if sane is not price:
                left = _with(left, market, sane)
            if sane is not None:
                counts.update(others.flags(listing.shape, market, sane))
                counts.update(_ages(sane, now, max_age_s))
        if left.on_demand is not None or left.spot is not None:
            kept.append(left)
    return Judged(tuple(kept), counts)


def _left(
    price: Price, rule_of: Callable[[MicroUsd], str | None], counts: Counter[str]
) -> Price | None:
    """Return what the rules leave of a price, zone by zone where those differ; count the rest."""
    if not price.zones:
        rule = rule_of(price.usd_h)
        if rule is None:
            return price
        counts[rule] += 1
        return None
    zones: list[tuple[str, MicroUsd]] = []
    for zone in price.zones:
        rule = rule_of(zone[1])
        if rule is None:
            zones.append(zone)
        else:
            counts[rule] += 1
    if len(zones) == len(price.zones):
        return price
    if not zones:
        return None
    return price._replace(usd_h=min(usd_h for _, usd_h in zones), zones=tuple(zones))


def _with(listing: Listing, market: Market, price: Price | None) -> Listing:
    if market == "spot":
        return listing._replace(spot=price)
    return listing._replace(on_demand=price)


def is_ahead(price: Price, now: Instant) -> bool:
    """Say whether a price is dated after now: its date says nothing then."""
    return price.at > now + AHEAD_S


def _absurd(amount: MicroUsd) -> str | None:
    usd_h = amount / 1e6
    if usd_h == 0:
        return "zero"
    if usd_h in SENTINELS_USD_H:
        return "sentinel"
    return None if LEAST_USD_H <= usd_h <= MOST_USD_H else "out-of-bounds"


def _wrong_spot(on_demand: Price | None, amount: MicroUsd) -> str | None:
    rule = _absurd(amount)
    if rule is not None or on_demand is None:
        return rule
    if amount >= on_demand.usd_h:
        return "spot-dearer"
    return "spot-too-cheap" if amount < SPOT_LEAST * on_demand.usd_h else None


class _Others:
    """What all listings say of a type, and of a model of GPU."""

    def __init__(self, listings: Sequence[Listing]) -> None:
        found: dict[tuple[str, str, Market], list[MicroUsd]] = {}
        self._of_gpu: dict[str, float] = {}
        for listing in listings:
            shape, on_demand = listing.shape, listing.on_demand
            for market in MARKETS:
                price = listing.price(market)
                if price is not None:
                    found.setdefault((shape.provider, shape.type, market), []).append(price.usd_h)
            if shape.gpus and on_demand is not None:
                each = on_demand.usd_h / shape.gpus
                self._of_gpu[shape.gpu] = min(each, self._of_gpu.get(shape.gpu, each))
        self._middles = {
            key: float(median(prices))
            for key, prices in found.items()
            if len(prices) >= NEIGHBOURS_LEAST
        }

    def too_cheap(self, shape: Shape, market: Market, price: Price, amount: MicroUsd) -> str | None:
        """Return the rule after which an amount of a price is too low to be believed."""
        middle = self._middles.get((shape.provider, shape.type, market))
        if middle is not None and amount * TIMES_OFF < middle:
            return "far-below"
        if not price.estimated or not shape.gpus:
            return None
        least = GPU_LEAST * shape.gpus * self._of_gpu.get(shape.gpu, 0.0)
        return "gpu-too-cheap" if amount < least else None

    def flags(self, shape: Shape, market: Market, price: Price) -> Iterable[str]:
        """Yield the rule of a price that is kept although it is far above its neighbours."""
        middle = self._middles.get((shape.provider, shape.type, market))
        amounts = [amount for _, amount in price.zones] or (price.usd_h,)
        if middle is not None and max(amounts) > middle * TIMES_OFF:
            yield "far-above"


def _ages(price: Price, now: Instant, max_age_s: Seconds) -> Iterable[str]:
    if is_ahead(price, now):
        yield "from-the-future"
    elif now - price.at > max_age_s:
        yield "stale"
