"""Reading the prices of clouds anew, and keeping the old ones where that fails."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cloudwhale.control.catalogue.cached import cached, keep
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


def update(
    home: Path, lists: Mapping[str, PriceList], regions: Sequence[str], now: Instant, told: Told
) -> tuple[Updated, ...]:
    """Read the lists of some clouds and keep what they say; one that fails changes nothing.

    Raises OSError when nothing can be written.
    """
    aside = cached(home, now)
    old = [one for one in aside.listings if one.shape.provider in lists]
    found: list[Updated] = []
    for cloud, prices in lists.items():
        mine = [one for one in old if one.shape.provider == cloud]
        try:
            reading = prices.read(regions, now, told)
        except (Unreachable, Denied) as error:
            remedy = f" {error.remedy}" if error.remedy else ""
            notes = (f"{error.says}; the prices that were known are kept.{remedy}",)
            found.append(Updated(cloud, None, len(mine), notes=notes))
            continue
        found.append(_taken(home, cloud, (mine, prices.shipped()), reading, now))
    return tuple(found)


def _taken(
    home: Path,
    cloud: str,
    known: tuple[Sequence[Listing], Sequence[Listing]],
    reading: Reading,
    now: Instant,
) -> Updated:
    """Keep what was read, and what was kept before of regions that were not."""
    mine, shipped = known
    if not reading.listings and not reading.regions:
        return Updated(cloud, None, len(mine), notes=("none of its regions was asked for.",))
    judged = possible(reading.listings)
    read = [one for one in judged.listings if one.region in reading.regions]
    if not read:
        says = "nothing that was read can be right; the prices that were known are kept."
        return Updated(cloud, None, len(mine), notes=(says,))
    kept = [one for one in mine if one.region not in reading.regions]
    keep(home, cloud, [*kept, *read], now)
    before = merged([shipped, mine], now).listings
    notes = [*reading.notes, *_dropped(judged.counts)]
    return Updated(
        cloud,
        changes((one for one in before if one.region in reading.regions), read),
        len(kept) + len(read),
        tuple(sorted(reading.regions)),
        tuple(notes),
    )


def _dropped(counts: Mapping[str, int]) -> Iterable[str]:
    for rule, says in DROPPED.items():
        if counts.get(rule):
            yield f"{counts[rule]:,} prices {says}, and were dropped."
