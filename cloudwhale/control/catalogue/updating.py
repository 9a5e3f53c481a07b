"""Reading the prices of clouds anew, and keeping the old ones where that fails."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cloudwhale.control.catalogue.cached import alone, cached, folder, keep
from cloudwhale.control.catalogue.changes import Changes, changes
from cloudwhale.control.catalogue.merging import merged, still_there
from cloudwhale.control.catalogue.saying import dropped
from cloudwhale.model.units import Instant
from cloudwhale.planning.plausible import possible
from cloudwhale.reporting.figures import counted
from cloudwhale.spi.errors import Denied, SettingsError, Unreachable
from cloudwhale.spi.prices import Listing, PriceList, Reading, Told

LEAST = 0.5
"""Of the types that were known in a region: a list with fewer of them was cut short on its way."""


@dataclass(frozen=True, slots=True)
class Updated:
    """What came of reading one cloud's prices."""

    cloud: str
    changes: Changes | None
    """Beside what was known before; None: nothing was read, and the old prices are kept."""
    listings: int = 0
    """That are kept now: of machine types in regions."""
    regions: tuple[str, ...] = ()
    """Those that were read."""
    notes: tuple[str, ...] = ()
    """What went wrong, and what was done about it."""
    is_asked: bool = True
    """Whether any of its regions was asked for."""


def update(
    home: Path, lists: Mapping[str, PriceList], regions: Sequence[str], now: Instant, told: Told
) -> tuple[Updated, ...]:
    """Read the lists of some clouds and keep what they say; one that fails changes nothing.

    Raises SettingsError when nothing can be written.
    """
    found: list[Updated] = []
    for cloud, prices in lists.items():
        try:
            reading = prices.read(regions, now, told)
        except (Unreachable, Denied) as error:
            remedy = f" {error.remedy}" if error.remedy else ""
            says = f"{error.says}; the prices that were known are kept.{remedy}"
            found.append(_unread(home, cloud, says))
        else:
            found.append(_answered(home, cloud, prices.shipped(), reading, now))
    return tuple(found)


def _answered(
    home: Path, cloud: str, shipped: Sequence[Listing], reading: Reading, now: Instant
) -> Updated:
    if not reading.listings and not reading.regions:
        none = _unread(home, cloud, "none of its regions was asked for.")
        return replace(none, is_asked=False)
    try:
        with alone(home):  # another update may have kept other regions while we read
            return _taken(home, cloud, shipped, reading, now)
    except OSError as error:
        raise SettingsError(
            f"prices cannot be kept in {folder(home)}: {error.strerror}",
            "Make room for them there, or set another `home`.",
        ) from error


def _unread(home: Path, cloud: str, note: str) -> Updated:
    return Updated(cloud, None, len(_kept(home, cloud)), notes=(note,))


def _kept(home: Path, cloud: str) -> Sequence[Listing]:
    return [one for one in cached(home).listings if one.shape.provider == cloud]


def _taken(
    home: Path, cloud: str, shipped: Sequence[Listing], reading: Reading, now: Instant
) -> Updated:
    """Keep what was read, and what was kept before of regions that were not."""
    judged = possible(reading.listings)
    mine = _kept(home, cloud)
    before = merged([still_there(shipped, mine), mine], now).listings
    found, known = _types(judged.listings), _types(before)
    regions = {
        region
        for region in reading.regions
        if found[region] and len(found[region] & known[region]) >= LEAST * len(known[region])
    }
    notes = [*reading.notes, *dropped(judged.counts)]
    notes += _not_taken(reading.regions - regions, found, known)
    if not regions:
        return replace(_unread(home, cloud, ""), notes=tuple(notes))
    read = [one for one in judged.listings if one.region in regions]
    kept = [one for one in mine if one.region not in regions]
    keep(home, cloud, [*kept, *read], now)
    return Updated(
        cloud,
        changes((one for one in before if one.region in regions), read),
        len(kept) + len(read),
        tuple(sorted(regions)),
        tuple(notes),
    )


def _types(listings: Iterable[Listing]) -> defaultdict[str, set[str]]:
    """Return the names of the types in each region."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for one in listings:
        found[one.region].add(one.shape.type)
    return found


def _not_taken(
    regions: Iterable[str], found: Mapping[str, set[str]], known: Mapping[str, set[str]]
) -> Iterable[str]:
    for region in sorted(regions):
        yield (
            f"{region}: of {counted(len(known[region]), 'type')} that were known, sane prices came "
            f"for {len(found[region] & known[region])}; what was known is kept."
        )
