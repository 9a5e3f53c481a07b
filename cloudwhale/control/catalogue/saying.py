"""What a catalogue has to say of itself: how old it is, what was dropped, where lists disagree."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from cloudwhale.control.catalogue.merging import Disagreement
from cloudwhale.model.units import Instant, MicroUsd, usd
from cloudwhale.planning.plausible import DAY_S, DROPPED, FLAGGED, MARKETS, is_ahead
from cloudwhale.reporting.figures import counted
from cloudwhale.settings import Settings
from cloudwhale.spi.prices import Listing, Price

UPDATE = "`cloudwhale catalog update` reads new ones"


def notes_of(
    listings: Sequence[Listing],
    apart: Sequence[Disagreement],
    counts: Counter[str],
    settings: Settings,
    now: Instant,
) -> Iterator[str]:
    """Yield sentences about what a user may want to mend or to know."""
    if not listings:
        yield f"No price is known of anything: {UPDATE}, or name your own in `prices`."
        return
    yield from _old(listings, counts, settings.catalogue_max_age_days * DAY_S, now)
    yield from _ahead(listings, counts, now)
    yield from dropped(counts)
    if counts["far-above"]:
        yield f"Prices that are kept: {counts['far-above']:,} that {FLAGGED['far-above']}."
    if apart:
        yield _apart(apart)


def dropped(counts: Mapping[str, int]) -> Iterator[str]:
    """Yield a sentence about the prices that the rules have dropped, if any."""
    parts = [f"{counts[rule]:,} that {says}" for rule, says in DROPPED.items() if counts.get(rule)]
    if parts:
        yield f"Prices that were dropped: {'; '.join(parts)}."


def _old(
    listings: Sequence[Listing], counts: Counter[str], most_s: float, now: Instant
) -> Iterator[str]:
    if not counts["stale"]:
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


def _ahead(listings: Sequence[Listing], counts: Counter[str], now: Instant) -> Iterator[str]:
    if counts["from-the-future"]:
        ahead = [price for price in _prices(listings) if is_ahead(price, now)]
        sources = ", ".join(sorted({price.source for price in ahead}))
        yield (
            f"{counted(len(ahead), 'price')} dated after now ({sources}): the clock of this host "
            f"is wrong, or a date is. What is ahead counts as older than all others."
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
        f"Two sources say different things of {counted(len(apart), 'price')}; the furthest apart "
        f"is {what}: {_dollars(first.other.usd_h)} by {first.other.source}, "
        f"{_dollars(first.taken.usd_h)} by {first.taken.source}, the later, which holds."
    )


def _dollars(amount: MicroUsd) -> str:
    return f"{usd(amount)} USD"
