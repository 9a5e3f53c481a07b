"""What EC2 would rent us now: the catalogue's offers with the prices, zones and quotas of today.

A region that does not answer keeps what was known of it, and a row of `doctor` says so. What nobody
has said stays unknown; hazards stay what the catalogue says.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from threading import Lock

from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant, MicroUsd, Seconds
from cloudwhale.spi.errors import CloudwhaleError, Denied, Unreachable
from cloudwhale.spi.prices import Market
from cloudwhale.spi.provider import Check
from cloudwhale_providers.aws import quotas
from cloudwhale_providers.aws.asking import Calls, code_of, listed
from cloudwhale_providers.aws.renewed import Seen, newer
from cloudwhale_providers.prices.aws import REGION, quota_group
from cloudwhale_providers.prices.aws_spot import newest
from cloudwhale_providers.prices.regions import meant

PRICES_HOLD_S: Seconds = 300.0  # spot prices move slowly: EC2 User Guide, using-spot-instances
ZONES_HOLD_S: Seconds = 3600.0  # new types come to a zone every few weeks
REGIONS_HOLD_S: Seconds = 3600.0
USE_HOLDS_S: Seconds = 55.0  # offers are asked for each minute: once for each time
SIDE_BY_SIDE = 8
"""Regions that are asked at once."""
FILTER_MOST = 200  # values of a filter, says EC2's reference of DescribeInstanceTypeOfferings
FIRST_REGION = "us-east-1"
"""Who is asked which regions there are: the one that every account has."""

CLOSED = frozenset({"OptInRequired", "AuthFailure", "UnrecognizedClientException"})
"""What a region says that the account has not enabled, to credentials that are right elsewhere."""
NO_PERMISSION = frozenset({"UnauthorizedOperation", "AccessDenied", "AccessDeniedException"})

_Sought = tuple[Market, str]


@dataclass(frozen=True, slots=True)
class _Region:
    """What is known of one region; None: nobody has said yet."""

    prices: Mapping[tuple[str, str], MicroUsd] | None = None
    """Spot prices by type and zone."""
    priced_at: Instant = float("-inf")
    zones: Mapping[str, tuple[str, ...]] | None = None
    """Those that have a type, by type."""
    zoned_at: Instant = float("-inf")
    limits: Mapping[_Sought, quotas.Limit] = field(default_factory=dict[_Sought, quotas.Limit])
    used: quotas.Used | None = None
    used_at: Instant = float("-inf")
    is_closed: bool = False
    """Whether the account has not enabled it."""
    wrong: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """By what was asked for: what went wrong when it was asked last, and how to mend it."""


class LiveOffers:
    """Makes the catalogue's offers newer; safe for several threads."""

    def __init__(
        self,
        calls: Calls,
        listed: Callable[[Instant], Sequence[Offer]],
        regions: Sequence[str] = (),
    ) -> None:
        """Take who is asked, the catalogue, and names or patterns of regions; none: all."""
        self._calls = calls
        self._listed = listed
        self._patterns = tuple(regions)
        self._limits = quotas.Limits(calls)
        self._known: dict[str, _Region] = {}
        self._enabled: frozenset[str] | None = None
        self._enabled_at: Instant = float("-inf")
        self._wrong: tuple[str, str] | None = None
        self._prices: Mapping[tuple[str, str, str], MicroUsd] = {}
        """What an hour costs, disk and address included, by zone, type and market."""
        self._lock = Lock()

    def offers(self, now: Instant) -> Sequence[Offer]:
        """Return what could be rented now; raise Denied or Unreachable when AWS takes no questions.

        Four requests a region when nothing is known, and one or two for each quota; then one a
        minute, and each five minutes another.
        """
        by_region: dict[str, list[Offer]] = {}
        for offer in self._listed(now):
            by_region.setdefault(offer.region, []).append(offer)
        regions = self.regions(by_region, now)
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            looks = {name: pool.submit(self._look, name, by_region[name], now) for name in regions}
            known = {name: look.result() for name, look in looks.items()}
        found = tuple(
            offer
            for name in regions
            if not known[name].is_closed
            for offer in newer(by_region[name], _seen(known[name]))
        )
        with self._lock:
            self._known |= known
            self._prices = _usd_h(found)
        return found

    def usd_h(self, zone: str, type_name: str, market: str, now: Instant) -> MicroUsd | None:
        """Return what an hour of such a machine cost when offers were made last; None: unknown.

        Where none were made yet: what the catalogue says.
        """
        with self._lock:
            if not self._prices:
                self._prices = _usd_h(self._listed(now))
            return self._prices.get((zone, type_name, market))

    def forget_prices(self, region: str) -> None:
        """Ask for the spot prices of a region at the next chance: one is said to have moved."""
        with self._lock:
            known = self._known.get(region)
            if known is not None:
                self._known[region] = replace(known, priced_at=_Region().priced_at)

    def regions(self, listed: Iterable[str], now: Instant) -> list[str]:
        """Return those of some regions that are configured and enabled, by name."""
        wanted = set(meant(self._patterns, "aws", listed, REGION)) & set(listed)
        enabled = self._regions_enabled(now)
        return sorted(wanted if enabled is None else wanted & enabled)

    def every_region(self, listed: Iterable[str], now: Instant) -> list[str]:
        """Return all regions that are enabled, meant now or not; those listed, where none says."""
        enabled = self._regions_enabled(now)
        return sorted(set(listed) if enabled is None else enabled)

    def rows(self) -> Sequence[Check]:
        """Return a row for each thing that could not be read when it was asked for last."""
        with self._lock:
            found = [("regions", *self._wrong)] if self._wrong else []
            for name, region in sorted(self._known.items()):
                found += [(f"{what} of {name}", *told) for what, told in region.wrong.items()]
        return tuple(
            Check(
                name="aws offers", state="warning", remedy=remedy,
                says=f"{what} cannot be read: {says}; what was known is used",
            )
            for what, says, remedy in found
        )  # fmt: skip

    # -- asking ------------------------------------------------------------------------------

    def _regions_enabled(self, now: Instant) -> frozenset[str] | None:
        """Return the account's regions; None when we may not ask, and then all are taken."""
        if now - self._enabled_at < REGIONS_HOLD_S:
            return self._enabled
        try:
            found = enabled_regions(self._calls)
        except (Denied, Unreachable) as error:
            if self._enabled is None and code_of(error) not in NO_PERMISSION:
                raise  # no credentials, or no network: nothing could be launched
            self._wrong = _told(error, "ec2:DescribeRegions")
            return self._enabled
        self._enabled, self._enabled_at, self._wrong = found, now, None
        return found

    def _look(self, name: str, offers: Sequence[Offer], now: Instant) -> _Region:
        """Ask a region for all that is not known any more; keep what it does not tell."""
        types = sorted({offer.type for offer in offers})
        known = self._known.get(name, _Region())
        known = self._with_zones(name, types, known, now)
        known = self._with_prices(name, types, known, now)
        return self._with_quotas(name, offers, known, now)

    def _with_zones(self, name: str, types: Sequence[str], known: _Region, now: Instant) -> _Region:
        if now - known.zoned_at < ZONES_HOLD_S:
            return known
        try:
            found = zones(self._calls, name, types)
        except CloudwhaleError as error:
            return _wrong(known, "zones", error, "ec2:DescribeInstanceTypeOfferings")
        return replace(_well(known, "zones"), zones=found, zoned_at=now)

    def _with_prices(
        self, name: str, types: Sequence[str], known: _Region, now: Instant
    ) -> _Region:
        if now - known.priced_at < PRICES_HOLD_S:
            return known
        try:
            found = spot_prices(self._calls, name, types, now)
        except CloudwhaleError as error:
            return _wrong(known, "spot prices", error, "ec2:DescribeSpotPriceHistory")
        return replace(_well(known, "spot prices"), prices=found, priced_at=now)

    def _with_quotas(
        self, name: str, offers: Sequence[Offer], known: _Region, now: Instant
    ) -> _Region:
        groups: set[_Sought] = {(one.market, quota_group(one.type, one.market)) for one in offers}
        known = replace(known, limits=self._limits.of(name, groups, now))
        if now - known.used_at < USE_HOLDS_S:
            return known
        try:
            instances = quotas.running(self._calls, name)
        except CloudwhaleError as error:
            # What was used then says little of now: unknown, and it is tried.
            return replace(
                _wrong(known, "use of quotas", error, "ec2:DescribeInstances"), used=None
            )
        vcpus = {one.type: one.quota_units for one in offers}
        used = quotas.used(instances, vcpus)
        return replace(_well(known, "use of quotas"), used=used, used_at=now)


def _usd_h(offers: Iterable[Offer]) -> Mapping[tuple[str, str, str], MicroUsd]:
    return {(one.zone, one.type, one.market): one.usd_h for one in offers if one.usd_h is not None}


def _told(error: CloudwhaleError, permission: str) -> tuple[str, str]:
    """Return what is wrong, and the remedy: where AWS refused, the permission that it wants."""
    return error.says, error.remedy or f"Allow {permission} to whom the controller runs as."


def _wrong(known: _Region, what: str, error: CloudwhaleError, permission: str) -> _Region:
    return replace(
        known,
        wrong={**known.wrong, what: _told(error, permission)},
        is_closed=code_of(error) in CLOSED,
    )


def _well(known: _Region, what: str) -> _Region:
    others = {name: one for name, one in known.wrong.items() if name != what}
    return replace(known, wrong=others, is_closed=False)


def enabled_regions(calls: Calls) -> frozenset[str]:
    """Return the regions that the account has; raise Denied or Unreachable."""
    answer = calls.call(FIRST_REGION, "ec2", "describe_regions")
    return frozenset(str(one["RegionName"]) for one in answer["Regions"])


def zones(calls: Calls, region: str, types: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """Return which zones of a region have which types; raise Denied or Unreachable.

    Local zones and wavelength zones, `us-west-2-lax-1a`, are left out: they need subnets made for
    them, and cost otherwise.
    """
    found: dict[str, set[str]] = {}
    plain = re.compile(re.escape(region) + "[a-z]")
    for first in range(0, len(types), FILTER_MOST):
        some = list(types[first : first + FILTER_MOST])
        for one in listed(
            calls, region, "ec2", "describe_instance_type_offerings", "InstanceTypeOfferings",
            LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": some}],
        ):  # fmt: skip
            if plain.fullmatch(one["Location"]):
                found.setdefault(one["InstanceType"], set()).add(one["Location"])
    return {name: tuple(sorted(where)) for name, where in found.items()}


def spot_prices(
    calls: Calls, region: str, types: Sequence[str], now: Instant
) -> Mapping[tuple[str, str], MicroUsd]:
    """Return what spot machines cost now, by type and zone; raise Denied or Unreachable.

    Asked from now on, EC2 answers with the price that holds for each type and zone.
    """
    rows = listed(
        calls, region, "ec2", "describe_spot_price_history", "SpotPriceHistory",
        StartTime=datetime.fromtimestamp(now, UTC), ProductDescriptions=["Linux/UNIX"],
        InstanceTypes=list(types), MaxResults=1000,
    )  # fmt: skip
    try:
        by_type = newest(rows)
    except (ValueError, KeyError) as error:
        raise Unreachable(f"EC2 has sent spot prices that are none: {error}") from error
    return {(name, zone): price for name, some in by_type.items() for zone, price in some}


def _seen(known: _Region) -> Seen:
    used = known.used
    left = {
        key: quotas.left(limit, None if used is None else used.of(*key))
        for key, limit in known.limits.items()
    }
    return Seen(known.zones, known.prices, left)
