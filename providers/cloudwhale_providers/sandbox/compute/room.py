"""Whether Compute Engine has a machine to give: quotas, capacity, and what the weather refuses."""

from collections.abc import Iterator, Mapping
from functools import cached_property

from cloudwhale.model.units import Instant
from cloudwhale.spi.prices import Listing
from cloudwhale_providers.prices.gcp import GcpPrices
from cloudwhale_providers.sandbox.compute.disks import Disks
from cloudwhale_providers.sandbox.compute.machines import Machines
from cloudwhale_providers.sandbox.compute.operations import Failure
from cloudwhale_providers.sandbox.compute.places import PROJECT
from cloudwhale_providers.sandbox.compute.quotas import (
    Needs,
    Quotas,
    metric_of_disk,
    taken_by,
)
from cloudwhale_providers.sandbox.compute.refused import STATUSES, GoogleRefused
from cloudwhale_providers.sandbox.compute.wishes import Wish
from cloudwhale_providers.sandbox.compute.wording import Words, region_of
from cloudwhale_providers.sandbox.endpoint.machines import Instance
from cloudwhale_providers.sandbox.endpoint.market import Prices
from cloudwhale_providers.sandbox.endpoint.room import is_of_ec2
from cloudwhale_providers.sandbox.endpoint.weather_values import Capacity, Refusal, Weather

STOCKOUT = "ZONE_RESOURCE_POOL_EXHAUSTED"


class GcpMarket(Prices):
    """Prices of Compute Engine by type, zone and market, moved by the weather."""

    @cached_property
    def listings(self) -> Mapping[tuple[str, str], Listing]:
        """Return what ships, by type and region."""
        return {(one.shape.type, one.region): one for one in GcpPrices().shipped()}

    def region_of(self, zone: str) -> str:
        """Return the region of a zone."""
        return region_of(zone)


class Room:
    """Looks at one wish at a time."""

    def __init__(
        self,
        machines: Machines,
        disks: Disks,
        quotas: Quotas,
        weather: tuple[Weather, Instant],
    ) -> None:
        """`weather`: with when the cloud began."""
        self._machines, self._disks, self._quotas = machines, disks, quotas
        self._weather, self._began_at = weather

    def failure(self, wish: Wish, now: Instant) -> Failure | None:
        """Return why its insert fails after a while; None: it does not. Raise Refused for what is
        refused at once."""
        for rule in self._weather.refusals:
            if self._means(rule, wish, now) and not is_of_ec2(rule.code):
                says = f"{rule.code}, says the weather"
                if rule.code in STATUSES:
                    raise GoogleRefused(rule.code, says)
                return Failure(rule.code, says)
        said = self._quotas.refusal(needs_of(wish), self.taken())
        return said or self._full(wish, now)

    def taken(self) -> Iterator[Needs]:
        """Yield what all machines and disks take of the quotas."""
        for one in self._machines:
            if one.takes_room:
                yield Needs(one.instance.region, one.instance.market, one.takes)
        for disk in self._disks.all():
            amounts = {metric_of_disk(disk.kind): float(disk.gib)}
            yield Needs(region_of(disk.zone), "on-demand", amounts)

    def _full(self, wish: Wish, now: Instant) -> Failure | None:
        for rule in self._weather.capacity:
            if not self._means(rule, wish, now):
                continue
            taken = sum(
                1
                for one in self._machines.all()
                if (one.takes_room or (one.has_run and not rule.again))
                and _fits(rule, one.instance)
            )
            if taken >= rule.machines:
                return _exhausted(wish)
        return None

    def _means(self, rule: Capacity | Refusal, wish: Wish, now: Instant) -> bool:
        age_s = now - self._began_at
        holds = rule.since_s <= age_s and (rule.until_s is None or age_s < rule.until_s)
        return holds and rule.which.fits(wish.kind.name, wish.zone, wish.market)


def needs_of(wish: Wish) -> Needs:
    """Return what a machine takes of the quotas, with its disks."""
    amounts = dict(taken_by(wish))
    for disk in wish.disks:
        if not disk.old:
            metric = metric_of_disk(disk.kind)
            amounts[metric] = amounts.get(metric, 0.0) + disk.gib
    return Needs(region_of(wish.zone), wish.market, amounts)


def _fits(rule: Capacity, one: Instance) -> bool:
    return rule.which.fits(one.type, one.zone, one.market)


def _exhausted(wish: Wish) -> Failure:
    """Return a stock-out with its details, as operations of public reports have them."""
    says = (
        f"The zone 'projects/{PROJECT}/zones/{wish.zone}' does not have enough resources available "
        "to fulfill the request.  Try a different zone, or try again later."
    )
    metadatas = {
        "vmType": wish.kind.name, "zone": wish.zone, "zonesAvailable": "", "attachment": "",
    }  # fmt: skip
    info = {
        "domain": "compute.googleapis.com", "reason": "resource_availability",
        "metadatas": metadatas,
    }  # fmt: skip
    localized = f"A {wish.kind.name} VM instance is currently unavailable in the {wish.zone} zone."
    details: list[Words] = [
        {"localizedMessage": {"locale": "en-US", "message": localized}}, {"errorInfo": info},
    ]  # fmt: skip
    return Failure(STOCKOUT, says, details)
