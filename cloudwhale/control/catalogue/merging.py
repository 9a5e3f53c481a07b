"""Several price lists become one: the newest price of each machine type, region and market wins."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cloudwhale.model.units import Instant, Seconds
from cloudwhale.planning.plausible import DAY_S, MARKETS, is_ahead
from cloudwhale.spi.prices import Listing, Market, Price, Shape

DISAGREE_TIMES = 1.5
"""Two sources whose prices are further apart are told of; prices move less in a month."""
DISAGREE_S: Seconds = 30 * DAY_S
"""Prices of days that are further apart have moved, and contradict nobody."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two sources that say different prices of one thing."""

    shape: Shape
    region: str
    market: Market
    taken: Price
    other: Price

    @property
    def times(self) -> float:
        """Return how many times the larger is the smaller."""
        one, two = sorted((max(1, self.taken.usd_h), max(1, self.other.usd_h)))
        return two / one


@dataclass(frozen=True, slots=True)
class Merged:
    """The newest of several lists, and where they were far apart."""

    listings: tuple[Listing, ...]
    disagreements: tuple[Disagreement, ...]


def merged(lists: Sequence[Iterable[Listing]], now: Instant) -> Merged:
    """Return one listing for each type and region; of equally new prices the later list's.

    A price that is dated after now is taken as older than all others: its date says nothing.
    What is said of the machine itself is taken from the later list.
    """
    found: dict[tuple[str, str, str], Listing] = {}
    apart: list[Disagreement] = []
    for listings in lists:
        for listing in listings:
            key = (listing.shape.provider, listing.shape.type, listing.region)
            known = found.get(key)
            if known is not None:
                apart += _apart(known, listing, now)
                listing = _newest(known, listing, now)
            found[key] = listing
    ordered = tuple(found[key] for key in sorted(found))
    return Merged(ordered, tuple(sorted(apart, key=_largest_first)))


def _largest_first(one: Disagreement) -> tuple[float, str, str]:
    return (-one.times, one.shape.type, one.region)


def _newest(known: Listing, later: Listing, now: Instant) -> Listing:
    spot = _newer(known.spot, later.spot, now)
    hazard = later.hazard_per_h if later.hazard_per_h is not None else known.hazard_per_h
    return Listing(
        later.shape, later.region, later.zones or known.zones,
        _newer(known.on_demand, later.on_demand, now), spot, hazard,
    )  # fmt: skip


def _newer(known: Price | None, later: Price | None, now: Instant) -> Price | None:
    if known is None or later is None:
        return later or known
    return known if _rank(known, now) > _rank(later, now) else later


def _rank(price: Price, now: Instant) -> float:
    return 0.0 if is_ahead(price, now) else price.at


def _apart(known: Listing, later: Listing, now: Instant) -> Iterable[Disagreement]:
    for market in MARKETS:
        one, two = known.price(market), later.price(market)
        if one is None or two is None or one.source == two.source:
            continue
        taken = _newer(one, two, now)
        if taken is not None:
            said = Disagreement(
                later.shape, later.region, market, taken, two if taken is one else one
            )
            if said.times > DISAGREE_TIMES and _is_of_one_month(one, two, now):
                yield said


def _is_of_one_month(one: Price, two: Price, now: Instant) -> bool:
    """Say whether two prices are of about one time; the date of one ahead of now says nothing."""
    return is_ahead(one, now) or is_ahead(two, now) or abs(one.at - two.at) <= DISAGREE_S


def still_there(shipped: Sequence[Listing], kept: Sequence[Listing]) -> Iterator[Listing]:
    """Yield what ships, but for what a cloud has dropped since from a region that was read."""
    regions = {(one.shape.provider, one.region) for one in kept}
    types = {(one.shape.provider, one.region, one.shape.type) for one in kept}
    for one in shipped:
        place = (one.shape.provider, one.region)
        if place not in regions or (*place, one.shape.type) in types:
            yield one
