"""What a catalogue has to say of itself: how old it is, what was dropped, where lists disagree."""

from collections.abc import Iterator, Mapping, Sequence

from cloudwhale.control.catalogue.merging import Disagreement
from cloudwhale.model.units import Instant, MicroUsd, usd
from cloudwhale.planning.plausible import DAY_S, DROPPED, FLAGGED, MARKETS, is_ahead
from cloudwhale.settings import Settings
from cloudwhale.spi.prices import Listing, Price

UPDATE = "`cloudwhale catalog update` reads new ones"


def notes_of(
    listings: Sequence[Listing],
    apart: Sequence[Disagreement],
    counts: Mapping[str, int],
    settings: Settings,
    now: Instant,
) -> Iterator[str]:
    """Yield sentences about what a user may want to mend or to know."""
    if not listings:
        yield f"No price is known of anything: {UPDATE}, or name your own in `prices`."
        return
    yield from _old(listings, counts, settings.catalogue_max_age_days * DAY_S, now)
    yield from _ahead(listings, counts, now)
    dropped = [f"{counts[rule]:,} {says}" for rule, says in DROPPED.items() if counts.get(rule)]
    if dropped:
        yield f"Prices that were dropped: {'; '.join(dropped)}."
    if counts.get("far-above"):
        yield f"{counts['far-above']:,} prices {FLAGGED['far-above']}; they are kept."
    if apart:
        yield _apart(apart)


def _old(
    listings: Sequence[Listing], counts: Mapping[str, int], most_s: float, now: Instant
) -> Iterator[str]:
    if not counts.get("stale"):
        return
    ages = [now - price.at for price in _prices(listings) if not is_ahead(price, now)]
    old = [age for age in ages if age > most_s]
    days = sorted(age / DAY_S for age in old)
    span = (
        f"{days[0]:.0f} to {days[-1]:.0f}" if round(days[0]) < round(days[-1]) else f"{days[0]:.0f}"
    )
    yield (
        f"{len(old):,} of {len(ages):,} prices are {span} days old, over the {most_s / DAY_S:g} of "
        f"`catalogue_max_age_days`; {UPDATE}."
    )


def _ahead(listings: Sequence[Listing], counts: Mapping[str, int], now: Instant) -> Iterator[str]:
    if counts.get("from-the-future"):
        ahead = [price for price in _prices(listings) if is_ahead(price, now)]
        sources = ", ".join(sorted({price.source for price in ahead}))
        yield (
            f"{len(ahead):,} prices are dated after now ({sources}): the clock of this host is "
            f"wrong, or their dates are. They count as older than all others."
        )


def _prices(listings: Sequence[Listing]) -> Iterator[Price]:
    for listing in listings:
        for market in MARKETS:
            price = listing.price(market)
            if price is not None:
                yield price


def _apart(apart: Sequence[Disagreement]) -> str:
    first = apart[0]
    what = f"{first.shape.type} in {first.region}, {first.market}"
    return (
        f"Of {len(apart):,} prices two sources say different things; the furthest apart is "
        f"{what}: {_dollars(first.other.usd_h)} by {first.other.source}, "
        f"{_dollars(first.taken.usd_h)} by {first.taken.source}, the later, which holds."
    )


def _dollars(amount: MicroUsd) -> str:
    return f"{usd(amount)} USD"
