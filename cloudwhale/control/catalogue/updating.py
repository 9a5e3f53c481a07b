"""Reading the prices of clouds anew, and keeping the old ones where that fails."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cloudwhale.control.catalogue.cached import alone, cached, keep
from cloudwhale.control.catalogue.changes import Changes, changes
from cloudwhale.control.catalogue.merging import merged
from cloudwhale.model.units import Instant
from cloudwhale.planning.plausible import DROPPED, possible
from cloudwhale.spi.errors import Denied, Unreachable
from cloudwhale.spi.prices import Listing, PriceList, Reading, Told


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

    Raises OSError when nothing can be written.
    """
    return tuple(
        _updated(home, cloud, prices, regions, (now, told)) for cloud, prices in lists.items()
    )


def _updated(
    home: Path, cloud: str, prices: PriceList, regions: Sequence[str], rest: tuple[Instant, Told]
) -> Updated:
    now, told = rest
    try:
        reading = prices.read(regions, now, told)
    except (Unreachable, Denied) as error:
        remedy = f" {error.remedy}" if error.remedy else ""
        return _unread(home, cloud, f"{error.says}; the prices that were known are kept.{remedy}")
    if not reading.listings and not reading.regions:
        none = _unread(home, cloud, "none of its regions was asked for.")
        return replace(none, is_asked=False)
    with alone(home):  # another update may have kept other regions while we read
        return _taken(home, cloud, prices.shipped(), reading, now)


def _unread(home: Path, cloud: str, note: str) -> Updated:
    return Updated(cloud, None, len(_kept(home, cloud)), notes=(note,))


def _kept(home: Path, cloud: str) -> Sequence[Listing]:
    return [one for one in cached(home).listings if one.shape.provider == cloud]


def _taken(
    home: Path, cloud: str, shipped: Sequence[Listing], reading: Reading, now: Instant
) -> Updated:
    """Keep what was read, and what was kept before of regions that were not."""
    judged = possible(reading.listings)
    read = [one for one in judged.listings if one.region in reading.regions]
    if not read:
        says = "nothing that was read can be right; the prices that were known are kept."
        return _unread(home, cloud, says)
    regions = {one.region for one in read}
    mine = _kept(home, cloud)
    kept = [one for one in mine if one.region not in regions]
    keep(home, cloud, [*kept, *read], now)
    before = merged([shipped, mine], now).listings
    notes = [*reading.notes, *_dropped(judged.counts)]
    return Updated(
        cloud,
        changes((one for one in before if one.region in regions), read),
        len(kept) + len(read),
        tuple(sorted(regions)),
        tuple(notes),
    )


def _dropped(counts: Mapping[str, int]) -> Iterable[str]:
    for rule, says in DROPPED.items():
        if counts.get(rule):
            yield f"{counts[rule]:,} prices {says}, and were dropped."
