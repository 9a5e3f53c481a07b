"""What machines cost in the sandbox, now and before, and where each type stands."""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from cloudwhale.model.units import MICRO_PER_USD, Instant, MicroUsd, Seconds
from cloudwhale.spi.prices import Listing, Market
from cloudwhale_providers.prices.aws import AwsPrices
from cloudwhale_providers.sandbox.endpoint.fields import each
from cloudwhale_providers.sandbox.endpoint.refused import Refused
from cloudwhale_providers.sandbox.endpoint.weather_values import PriceFactor, Weather

PRODUCTS = ("Linux/UNIX", "Linux/UNIX (Amazon VPC)")
HISTORY_S: Seconds = 90 * 86_400.0
"""EC2 keeps ninety days: EC2 API Reference, DescribeSpotPriceHistory."""
PAGE = 1000


class Prices:
    """Prices by type, zone and market: those that ship with us, moved by the weather."""

    def __init__(self, weather: Weather, began_at: Instant) -> None:
        self._factors = sorted(weather.price_factors, key=lambda one: one.at_s)
        self._began_at = began_at

    @cached_property
    def listings(self) -> Mapping[tuple[str, str], Listing]:
        """Return what ships, by type and region."""
        return {(one.shape.type, one.region): one for one in AwsPrices().shipped()}

    def region_of(self, zone: str) -> str:
        """Return the region of a zone."""
        return zone.rstrip("abcdef")

    def price(self, type_name: str, zone: str, market: Market, at: Instant) -> MicroUsd | None:
        """Return what an hour costs at a time; None where no price ships."""
        listing = self.listings.get((type_name, self.region_of(zone)))
        said = None if listing is None else listing.price(market)
        if said is None:
            return None
        listed = dict(said.zones).get(zone, said.usd_h)
        if market == "on-demand":
            return listed
        return MicroUsd(round(listed * self._factor(type_name, zone, at)))

    def _factor(self, type_name: str, zone: str, at: Instant) -> float:
        found = [
            one.factor
            for one in self._factors
            if self._began_at + one.at_s <= at and one.which.fits(type_name, zone, "spot")
        ]
        return found[-1] if found else 1.0

    def changes(
        self, type_name: str, zone: str, since: Instant, until: Instant
    ) -> Iterator[Instant]:
        """Return when the spot price changed between two times; the price of `since` is one."""
        yield since
        for one in self._of(type_name, zone):
            at = self._began_at + one.at_s
            if since < at <= until:
                yield at

    def _of(self, type_name: str, zone: str) -> Sequence[PriceFactor]:
        return [one for one in self._factors if one.which.fits(type_name, zone, "spot")]


class SpotHistory:
    """Answers DescribeSpotPriceHistory."""

    def __init__(self, prices: Prices) -> None:
        self._prices = prices

    def answer(self, region: str, asked: Mapping[str, Any], now: Instant) -> dict[str, Any]:
        """Return a page of rows, newest first; raise Refused for a filter that is unknown."""
        rows = self._rows(region, asked, now)
        most = min(asked.get("MaxResults") or PAGE, PAGE)
        first = _first(asked.get("NextToken") or "")
        page, is_more = rows[first : first + most], len(rows) > first + most
        return {"SpotPriceHistory": page, "NextToken": str(first + most) if is_more else ""}

    def _rows(self, region: str, asked: Mapping[str, Any], now: Instant) -> list[dict[str, Any]]:
        wanted = _wanted(asked)
        since = _at(asked.get("StartTime"), now - HISTORY_S)
        until = min(now, _at(asked.get("EndTime"), now))
        since = max(now - HISTORY_S, min(since, until))
        rows: list[dict[str, Any]] = []
        for (type_name, where), listing in sorted(self._prices.listings.items()):
            if where != region or not _is_in(type_name, wanted["instance-type"]):
                continue
            for zone in listing.zones:
                if _is_in(zone, wanted["availability-zone"]):
                    rows += self._of_offer(type_name, zone, (since, until), wanted)
        rows.sort(key=lambda row: (-row["Timestamp"], row["InstanceType"], row["AvailabilityZone"]))
        return rows

    def _of_offer(
        self, type_name: str, zone: str, span: tuple[Instant, Instant], wanted: Mapping[str, Any]
    ) -> Iterator[dict[str, Any]]:
        for at in self._prices.changes(type_name, zone, *span):
            price = self._prices.price(type_name, zone, "spot", at)
            if price is None:
                continue
            for product in PRODUCTS:
                if _is_in(product, wanted["product-description"]):
                    yield {
                        "AvailabilityZone": zone,
                        "InstanceType": type_name,
                        "ProductDescription": product,
                        "SpotPrice": f"{price / MICRO_PER_USD:.6f}",
                        "Timestamp": float(math.floor(at)),
                    }


def _wanted(asked: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    """Return what rows must have, by filter; empty: anything."""
    zone = asked.get("AvailabilityZone")
    found: dict[str, Sequence[str]] = {
        "instance-type": each(asked, "InstanceTypes"),
        "product-description": each(asked, "ProductDescriptions"),
        "availability-zone": [zone] if zone else (),
    }
    for one in each(asked, "Filters"):
        if one["Name"] not in found:
            raise Refused("InvalidParameterValue", f"The filter '{one['Name']}' is invalid")
        found[one["Name"]] = one["Values"]
    return found


def _is_in(value: str, wanted: Sequence[str]) -> bool:
    return not wanted or value in wanted


def _at(said: datetime | None, otherwise: Instant) -> Instant:
    if said is None:
        return otherwise
    return (said if said.tzinfo else said.replace(tzinfo=UTC)).timestamp()


def _first(token: str) -> int:
    if token and not token.isdecimal():
        raise Refused("InvalidNextToken", "The token is invalid")
    return int(token or 0)
