"""What can be rented by all that is known here: shipped, read by `catalog update`, your own."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cloudwhale.control.catalogue.cached import cached
from cloudwhale.control.catalogue.files import own
from cloudwhale.control.catalogue.listed import offers_of
from cloudwhale.control.catalogue.merging import Disagreement, merged, still_there
from cloudwhale.control.catalogue.saying import notes_of
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant
from cloudwhale.planning.plausible import DAY_S, plausible, possible
from cloudwhale.plugins import OWN_PRICES, PRICES, load, names
from cloudwhale.settings import Settings, own_table, provider_of
from cloudwhale.spi.prices import Listing, PriceList


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All that could be rented, before any limit of the settings."""

    offers: tuple[Offer, ...]
    """By id."""
    notes: tuple[str, ...]
    """Sentences for the user: what is old, what was dropped, where sources disagree."""
    counts: Counter[str]
    """Prices that each rule of `planning.plausible` has dropped or pointed at."""
    disagreements: tuple[Disagreement, ...] = ()


def price_lists() -> dict[str, PriceList]:
    """Return the price list of every cloud that is installed, by its name."""
    return {name: load(PRICES, name)() for name in names(PRICES)}


def _own_lists(settings: Settings, now: Instant) -> dict[str, PriceList]:
    """Return the price lists that stand in the settings themselves, by the names of their clouds.

    Raises SettingsError for a table that is wrong.
    """
    found: dict[str, PriceList] = {}
    for name, table in sorted(settings.clouds.items()):
        provider = provider_of(name, table)
        if provider in names(OWN_PRICES):
            found[name] = load(OWN_PRICES, provider)(name, own_table(table), now)
    return found


def catalogue(settings: Settings, now: Instant) -> Catalogue:
    """Return what can be rented; raise SettingsError for a file of yours that is wrong.

    Looks at no network. The newest price of each machine type, region and market holds.
    """
    lists = {**price_lists(), **_own_lists(settings, now)}
    kept = cached(settings.home)
    counts: Counter[str] = Counter()
    sane: list[Sequence[Listing]] = []
    for source in _sources(settings, lists, kept.listings):
        judged = possible(source)
        counts.update(judged.counts)
        sane.append(judged.listings)
    found = merged(sane, now)
    judged = plausible(found.listings, now, settings.catalogue_max_age_days * DAY_S)
    counts.update(judged.counts)
    offers = sorted(offers_of(judged.listings, lists), key=lambda offer: offer.id)
    notes = notes_of(judged.listings, found.disagreements, counts, settings, now)
    return Catalogue(tuple(offers), (*kept.notes, *notes), counts, found.disagreements)


def _sources(
    settings: Settings,
    lists: Mapping[str, PriceList],
    kept: Sequence[Listing],
) -> Iterator[Sequence[Listing]]:
    """Yield the lists, the one that is trusted most at last."""
    for prices in lists.values():
        yield tuple(still_there(prices.shipped(), kept))
    yield kept
    for file in settings.prices:
        yield own(file, lists)
