"""The price list of a cloud that stands in its own table of the settings."""

from collections.abc import Mapping, Sequence
from typing import Any

from cloudwhale.model.units import Instant, MicroUsd
from cloudwhale.spi.prices import Listing, Market, Price, Reading, Shape, Terms, Told
from cloudwhale_providers.libcloud.settings import read

SOURCE = "cloudwhale.toml"


class OwnPrices:
    """What the table of one cloud says of its sizes; all of it holds now."""

    def __init__(self, name: str, table: Mapping[str, Any], now: Instant) -> None:
        """Raise SettingsError when the table is wrong."""
        self._name = name
        self._options = read(table, name)
        self._now = now

    def shipped(self) -> Sequence[Listing]:
        """Return every size with its price."""
        return [
            Listing(
                Shape(
                    self._name, one.size, one.gpu, one.gpus, one.gpu_gib, one.cpu, one.memory_gib,
                    one.disk_gib,
                ),
                self._options.region,
                on_demand=Price(one.price_usd_h, self._now, SOURCE),
                hazard_per_h=0.0,
            )
            for one in self._options.sizes
        ]  # fmt: skip

    def read(self, regions: Sequence[str], now: Instant, told: Told) -> Reading:
        """Return nothing: nobody but the table knows."""
        return Reading(())

    def terms(self, shape: Shape, region: str, market: Market) -> Terms:
        """Return what the table says for all of its sizes; memory and disk are as jobs find them.

        A count of machines is the quota of a size.
        """
        options, size = self._options, self._options.size_of(shape.type)
        has_quota = size is not None and size.at_most is not None
        return Terms(
            boot_s=options.boot_s,
            notice_s=0.0,
            billing_step_s=options.billing_step_s,
            billing_least_s=max(60.0, options.billing_step_s),
            egress_usd_gb=options.egress_usd_gb,
            egress_near_usd_gb=options.egress_usd_gb,
            quota=f"{self._name}/{shape.type}" if has_quota else "",
            quota_units=1.0 if has_quota else 0.0,
            is_sold=market == "on-demand",
        )

    def cap(self, listing: Listing, market: Market) -> MicroUsd | None:
        """Return the price: nobody asks for more than the table says."""
        price = listing.price(market)
        return None if price is None else price.usd_h

    def region_of(self, location: str) -> str:
        """Return the same: a table has one region."""
        return location
