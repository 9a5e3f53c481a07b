"""AWS's prices as they are now: its own list, Spot Advisor, and by zone where credentials are."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cloudwhale.model.units import Instant, MicroUsd
from cloudwhale.spi.errors import Denied, Unreachable
from cloudwhale.spi.prices import Listing, Price, Reading, Told
from cloudwhale_providers.prices import web
from cloudwhale_providers.prices.aws_list import Listed, listed
from cloudwhale_providers.prices.aws_spot import (
    Advice,
    DescribedHistory,
    SpotHistory,
    ZonePrices,
    advice,
)
from cloudwhale_providers.prices.hazards import hazard_per_h

LIST_MOST_BYTES = 2**30  # a region's list has a few hundred MB
ADVISOR_MOST_BYTES = 64 * 2**20  # it has five

Known = Mapping[tuple[str, str], Listing]
"""Listings by type and region."""


@dataclass(frozen=True, slots=True)
class AwsSources:
    """Who is asked; addresses can be others in a trial."""

    lists: str = "https://pricing.us-east-1.amazonaws.com"
    advisor: str = "https://spot-bid-advisor.s3.amazonaws.com"
    history: SpotHistory = field(default_factory=DescribedHistory)

    def list_url(self, region: str) -> str:
        """Return where the list of a region is."""
        return f"{self.lists}/offers/v1.0/aws/AmazonEC2/current/{region}/index.csv"

    @property
    def advisor_url(self) -> str:
        """Return where Spot Advisor's document is."""
        return f"{self.advisor}/spot-advisor-data.json"


def read(
    sources: AwsSources, regions: Sequence[str], known: Known, now: Instant, told: Told
) -> Reading:
    """Return what the sources say; raise Unreachable or Denied when no region's list is read.

    `known`: where zones and what is not read anew come from.
    """
    if not regions:
        return Reading(())
    asked = _Asked(sources, known, now, told)
    said = asked.advice()
    found: list[Listing] = []
    whole: set[str] = set()
    failed: list[Unreachable | Denied] = []
    for region in regions:
        told(f"prices of {region}")
        try:
            rows = asked.region(region)
        except (Unreachable, Denied) as error:
            failed.append(error)
            asked.notes.append(f"{region}: {error.says}; what was known of it is kept.")
            continue
        whole.add(region)
        by_zone = asked.by_zone(region, rows)
        found += asked.listings(region, rows, said, by_zone)
    if failed and not whole:
        raise failed[0]
    return Reading(tuple(found), frozenset(whole), tuple(asked.notes))


class _Asked:
    """One reading: its sources, and what went wrong so far."""

    def __init__(self, sources: AwsSources, known: Known, now: Instant, told: Told) -> None:
        self._sources, self._known, self._now, self._told = sources, known, now, told
        self._types = frozenset(name for name, _ in known)
        self._no_history = ""
        self.notes: list[str] = []

    def advice(self) -> Mapping[tuple[str, str], Advice]:
        """Return what Spot Advisor says; nothing, and a note, when it does not answer."""
        try:
            url = self._sources.advisor_url
            return advice(web.document(url, ADVISOR_MOST_BYTES, self._told))
        except (Unreachable, Denied) as error:
            self.notes.append(f"Spot Advisor: {error.says}; hazards are kept as they were.")
            return {}

    def region(self, region: str) -> list[Listed]:
        """Return the list of a region; raise Unreachable or Denied."""
        lines = web.lines(self._sources.list_url(region), LIST_MOST_BYTES, self._told)
        rows = {row.shape.type: row for row in listed(lines, self._types)}
        if not rows:
            raise Unreachable("its list has none of the machine types that are looked for")
        return list(rows.values())

    def by_zone(self, region: str, rows: Sequence[Listed]) -> ZonePrices:
        """Return spot prices by zone; nothing, and a note once, where they cannot be read."""
        if self._no_history:
            return {}
        self._told(f"spot prices of {region}")
        try:
            types = sorted(row.shape.type for row in rows)
            return self._sources.history.prices(region, types, self._now)
        except (Unreachable, Denied) as error:
            self._no_history = error.says
            remedy = f" ({error.remedy.rstrip('.')})" if error.remedy else ""
            self.notes.append(
                f"Spot prices by zone were not read: {error.says}{remedy}; they are estimated from "
                f"Spot Advisor's averages."
            )
            return {}

    def listings(
        self,
        region: str,
        rows: Sequence[Listed],
        said: Mapping[tuple[str, str], Advice],
        by_zone: ZonePrices,
    ) -> Iterator[Listing]:
        """Yield the listings of a region."""
        for row in rows:
            before = self._known.get((row.shape.type, region))
            told = said.get((region, row.shape.type))
            zones = by_zone.get(row.shape.type, ())
            hazard = hazard_per_h(told.band) if told else before and before.hazard_per_h
            yield Listing(
                row.shape, region,
                tuple(name for name, _ in zones) or (before.zones if before else ()),
                Price(row.usd_h, self._now, "aws list"), self._spot(row, told, zones), hazard,
            )  # fmt: skip

    def _spot(
        self, row: Listed, told: Advice | None, zones: tuple[tuple[str, MicroUsd], ...]
    ) -> Price | None:
        if zones:
            least = min(price for _, price in zones)
            return Price(least, self._now, "aws spot history", False, zones)
        if told is None:
            return None
        estimate = MicroUsd(round(row.usd_h * (1.0 - told.savings)))
        return Price(estimate, self._now, "aws list*spot advisor", True)
