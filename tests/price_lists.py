"""Small makers of price lists: every argument has a default."""

from typing import Any

from cloudwhale.model.units import MicroUsd
from cloudwhale.spi.prices import Listing, Market, Price, Reading, Shape, Terms, Told

NOW = 1_796_000_000.0
DAY_S = 86400.0


def a_price(usd_h: float = 1.0, **fields: Any) -> Price:
    """Make a price of a day ago."""
    made = Price(MicroUsd(round(usd_h * 1e6)), NOW - DAY_S, "list")
    return made._replace(**fields)


def a_shape(name: str = "g5.xlarge", provider: str = "aws", **fields: Any) -> Shape:
    """Make a machine type with one A10G."""
    has = {"gpu": "A10G", "gpus": 1, "gpu_gib": 22.4, "cpu": 4.0, "memory_gib": 16.0}
    return Shape(**{"provider": provider, "type": name, **has, **fields})


def a_listing(
    name: str = "g5.xlarge",
    region: str = "us-east-1",
    on_demand: float | Price | None = 1.0,
    spot: float | Price | None = 0.4,
    **fields: Any,
) -> Listing:
    """Make a listing in one zone; `shape=` replaces the whole machine."""
    shape = fields.pop("shape", None) or a_shape(name)
    zones = fields.pop("zones", (f"{region}a",))
    return Listing(shape, region, zones, _price(on_demand), _price(spot), **fields)


def _price(said: float | Price | None) -> Price | None:
    return said if said is None or isinstance(said, Price) else a_price(said)


class FakePrices:
    """A cloud whose list is what it was given; it may refuse to be read."""

    def __init__(
        self, shipped: list[Listing], read: list[Listing] | Exception | None = None
    ) -> None:
        self._shipped = shipped
        self._read = shipped if read is None else read
        self.asked: list[tuple[str, ...]] = []

    def shipped(self) -> list[Listing]:
        """See PriceList."""
        return self._shipped

    def read(self, regions: Any, now: float, told: Told) -> Reading:
        """See PriceList."""
        self.asked.append(tuple(regions))
        if isinstance(self._read, Exception):
            raise self._read
        return Reading(self._read, frozenset(one.region for one in self._read))

    def terms(self, shape: Shape, region: str, market: Market) -> Terms:
        """See PriceList."""
        return Terms(100.0, 30.0, 1.0, 60.0, MicroUsd(10_000), 120.0, quota="q", quota_units=4.0)

    def region_of(self, location: str) -> str:
        """See PriceList."""
        return location

    def cap(self, listing: Listing, market: Market) -> MicroUsd | None:
        """See PriceList."""
        return None if listing.on_demand is None else listing.on_demand.usd_h
