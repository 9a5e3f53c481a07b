"""Answers the advice on capacity: what spot has cost, how often it goes, where there is room."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from cloudwhale.model.units import MICRO_PER_USD, Instant, MicroUsd
from cloudwhale_providers.sandbox.compute.calls import Call, Does
from cloudwhale_providers.sandbox.compute.catalogue import catalogue
from cloudwhale_providers.sandbox.compute.refused import invalid
from cloudwhale_providers.sandbox.compute.room import GcpMarket
from cloudwhale_providers.sandbox.compute.wording import Words, last, region_of
from cloudwhale_providers.sandbox.endpoint.weather_values import Weather

DAY_S = 86_400.0
DAYS = 30
"""So far back goes the history of the box."""
NANO = 1000
"""Nano-dollars in a micro-dollar."""
UPTIME_S = 86_400
"""What is said of how long a spot machine lives where there is room."""


class Advice:
    """Answers the methods of advice."""

    def __init__(self, market: GcpMarket, weather: Weather, began_at: Instant) -> None:
        self._market, self._weather, self._began_at = market, weather, began_at

    def methods(self) -> Mapping[str, Does]:
        """Return what answers which method."""
        return {
            "compute.advice.capacity": self.capacity,
            "compute.advice.capacityHistory": self.history,
        }

    def capacity(self, call: Call) -> Words:
        """Return where machines are had best; raise Refused."""
        region, body = call.path["region"], call.body
        policy: Mapping[str, Any] = body.get("instanceFlexibilityPolicy") or {}
        selections: Mapping[str, Any] = policy.get("instanceSelections") or {}
        types = [str(one) for each in selections.values() for one in each.get("machineTypes") or ()]
        if not types:
            raise invalid("instanceFlexibilityPolicy", "", "At least one machine type is needed.")
        count = int(body.get("size") or 1)
        found = [
            self._recommended(name, zone, count, call.now)
            for name in types
            for zone in self._zones(body, region, name)
        ]
        return {"recommendations": sorted(found, key=lambda one: -one["scores"]["obtainability"])}

    def history(self, call: Call) -> Words:
        """Return what spot machines of a type have cost, and how often they were taken back."""
        body, region = call.body, call.path["region"]
        properties: Mapping[str, Any] = body.get("instanceProperties") or {}
        name = str(properties.get("machineType", ""))
        policy: Mapping[str, Any] = body.get("locationPolicy") or {}
        where = str(policy.get("location") or f"regions/{region}")
        found: Words = {"machineType": name, "location": where}
        zone = self._zone(where, region, name)
        types: Sequence[str] = body.get("types") or ()
        if "PRICE" in types:
            found["priceHistory"] = self._prices(name, zone, call.now)
        if "PREEMPTION" in types:
            rate = self._rate(name, zone)
            day = _interval(call.now - DAY_S, call.now)
            found["preemptionHistory"] = [{"interval": day, "preemptionRate": rate}]
        return found

    def _prices(self, name: str, zone: str, now: Instant) -> list[Words]:
        since = now - DAYS * DAY_S
        times = [*self._market.changes(name, zone, since, now), now]
        rows: list[Words] = []
        for begins_at, ends_at in zip(times, times[1:], strict=False):
            price = self._market.price(name, zone, "spot", begins_at)
            if price is not None:
                rows.append({"interval": _interval(begins_at, ends_at), "listPrice": _money(price)})
        return rows

    def _rate(self, name: str, zone: str) -> float:
        """Return the part of machines that were taken back in a day, as the prices expect it."""
        listing = self._market.listings.get((name, region_of(zone)))
        hazard = None if listing is None else listing.hazard_per_h
        return 0.0 if hazard is None else min(1.0, round(hazard * 24, 4))

    def _zones(self, body: Mapping[str, Any], region: str, name: str) -> Sequence[str]:
        policy: Mapping[str, Any] = body.get("distributionPolicy") or {}
        only = {last(str(one.get("zone", ""))) for one in policy.get("zones") or ()}
        found = [
            zone
            for zone, kinds in catalogue().zones.items()
            if region_of(zone) == region and name in kinds
        ]
        if not found:
            raise invalid("machineTypes", name, f"The type does not exist in '{region}'.")
        return [zone for zone in found if not only or zone in only]

    def _zone(self, where: str, region: str, name: str) -> str:
        """Return the zone that is meant, or the first of the region that has the type."""
        zone = last(where)
        if zone in catalogue().zones:
            return zone
        return self._zones({}, region, name)[0]

    def _recommended(self, name: str, zone: str, count: int, now: Instant) -> Words:
        room = self._room(name, zone, now)
        shard = {
            "zone": f"zones/{zone}", "machineType": name, "instanceCount": count,
            "provisioningModel": "SPOT",
        }  # fmt: skip
        scores: Words = {"obtainability": min(1.0, room / count), "estimatedUptime": f"{UPTIME_S}s"}
        return {"scores": scores, "shards": [shard]}

    def _room(self, name: str, zone: str, now: Instant) -> float:
        """Return how many spot machines the weather has; without a word of it, enough."""
        age_s = now - self._began_at
        found = [
            float(rule.machines)
            for rule in self._weather.capacity
            if rule.which.fits(name, zone, "spot")
            and rule.since_s <= age_s
            and (rule.until_s is None or age_s < rule.until_s)
        ]
        return min(found, default=float("inf"))


def _money(price: MicroUsd) -> Words:
    units, micro = divmod(int(price), MICRO_PER_USD)
    return {"currencyCode": "USD", "units": str(units), "nanos": micro * NANO}


def _interval(since: Instant, until: Instant) -> Words:
    return {"startTime": _utc(since), "endTime": _utc(until)}


def _utc(at: Instant) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
