"""Where machines can stand: zones that have their type, subnets, a group that lets nobody in."""

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant, MicroUsd, Seconds, usd
from cloudwhale.spi.errors import Denied, NoCapacity, PriceMoved
from cloudwhale_providers.aws.account import Account
from cloudwhale_providers.aws.asking import listed
from cloudwhale_providers.aws.groups import Group, alone, among_themselves, had
from cloudwhale_providers.aws.offers import spot_prices, zones

ZONES_HOLD_S: Seconds = 3600.0  # new types come to a zone every few weeks
PRICES_HOLD_S: Seconds = 60.0
DRIFT = 1.1  # a plan is minutes old; who pays a tenth more has still what was planned
WITHOUT_S: Seconds = 4 * 3600.0
"""How long a zone is left out that said it does not support a type."""


class Network:
    """Zones, subnets and security groups of an account; safe for threads."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._zones: dict[tuple[str, str], tuple[Instant, tuple[str, ...]]] = {}
        self._prices: dict[tuple[str, str], tuple[Instant, Mapping[str, MicroUsd]]] = {}
        self._without: dict[tuple[str, str], Instant] = {}
        """Until when a type is not asked for in a zone."""
        self._subnets: dict[str, Mapping[str, str]] = {}
        self._groups: dict[tuple[str, str], str] = {}
        """By region and name."""
        self._lock = Lock()

    def choices(self, offer: Offer) -> Sequence[Mapping[str, str]]:
        """Return where an offer may be had, its own zone first, as CreateFleet's overrides say it.

        Spot also in the zones that cost no more now; raise NoCapacity where none has the type, and
        PriceMoved where all cost more.
        """
        where = self._where(offer)
        where = sorted(where, key=lambda zone: (zone != offer.zone, zone))
        subnets = self._subnets_of(offer.region)
        found = [
            {"AvailabilityZone": zone} if subnets is None else {"SubnetId": subnets[zone]}
            for zone in where
            if subnets is None or zone in subnets
        ]
        if not where:
            raise NoCapacity(f"no zone of {offer.region} has {offer.type} any more")
        if not found:
            raise NoCapacity(
                f"no subnet of ours in {offer.region} is in a zone that has {offer.type}",
                "Name more in `subnets` of [clouds.aws].",
            )
        return found

    def zone_of(self, region: str, choice: Mapping[str, Any]) -> str:
        """Return the zone that an override or a description stands for; empty when unknown."""
        zone = str(choice.get("AvailabilityZone") or "")
        subnet = choice.get("SubnetId")
        if zone or subnet is None:
            return zone
        subnets = self._subnets.get(region, {})
        return next((where for where, name in subnets.items() if name == subnet), "")

    def lacks(self, zone: str, type_name: str) -> None:
        """Leave a zone out for some hours: it does not support a type."""
        with self._lock:
            self._without[(zone, type_name)] = self._account.clock.now() + WITHOUT_S

    def group(self, region: str) -> str:
        """Return the security group of our machines; made when it is missing, without any rule.

        Raise Denied when somebody has opened it, or where there is no network to make it in.
        """
        named = self._account.options.security_group
        return named or self._made(region, alone(self._account))

    def gang_group(self, region: str) -> str:
        """Return the group that machines of gangs have besides: it admits its own members alone.

        Made when it is missing; raise Denied as `group` does. Also where the settings name a
        group: what that one lets in is its owner's affair.
        """
        return self._made(region, among_themselves(self._account))

    def forget(self, region: str) -> None:
        """Look at a region's subnets and groups anew: one of them is said to be gone."""
        with self._lock:
            self._groups = {key: one for key, one in self._groups.items() if key[0] != region}
            self._subnets.pop(region, None)

    # -- zones -------------------------------------------------------------------------------

    def _where(self, offer: Offer) -> list[str]:
        found = self._zones_with(offer)
        if self._account.options.pin_zone and offer.zone != offer.region:
            return [zone for zone in found if zone == offer.zone]
        if offer.market == "on-demand" or offer.price_usd_h is None:
            return found
        return self._cheap(offer, found, offer.price_usd_h)

    def _cheap(self, offer: Offer, found: Sequence[str], most: MicroUsd) -> list[str]:
        """Return the zones whose spot price is what was offered; raise PriceMoved for none."""
        prices = self._prices_of(offer)
        cheap = [zone for zone in found if prices.get(zone, most + 1) <= most]
        own = prices.get(offer.zone, most)
        if offer.zone in found and offer.zone not in cheap and own <= most * DRIFT:
            cheap.append(offer.zone)
        if found and not cheap:
            says = f"{offer.id} costs {usd(own)} USD/h now, and was offered for {usd(most)}"
            raise PriceMoved(says)
        return cheap

    def _zones_with(self, offer: Offer) -> list[str]:
        now, key = self._account.clock.now(), (offer.region, offer.type)
        with self._lock:
            at, known = self._zones.get(key, (float("-inf"), ()))
            without = {zone for (zone, kind), until in self._without.items()
                       if kind == offer.type and until > now}  # fmt: skip
        if now - at >= ZONES_HOLD_S:
            known = zones(self._account.calls, offer.region, [offer.type]).get(offer.type, ())
            with self._lock:
                self._zones[key] = (now, known)
        return [zone for zone in known if zone not in without]

    def _prices_of(self, offer: Offer) -> Mapping[str, MicroUsd]:
        now, key = self._account.clock.now(), (offer.region, offer.type)
        with self._lock:
            at, known = self._prices.get(key, (float("-inf"), {}))
        if now - at < PRICES_HOLD_S:
            return known
        told = spot_prices(self._account.calls, offer.region, [offer.type], now)
        known = {zone: price for (_, zone), price in told.items()}
        with self._lock:
            self._prices[key] = (now, known)
        return known

    # -- subnets and groups ------------------------------------------------------------------

    def _made(self, region: str, group: Group) -> str:
        with self._lock:
            found = self._groups.get((region, group.name))
        if found is None:
            found = had(self._account, region, self._vpc(region), group)
            with self._lock:
                self._groups[(region, group.name)] = found
        return found

    def _subnets_of(self, region: str) -> Mapping[str, str] | None:
        """Return the subnet of each zone, the emptiest of several; None: the default ones.

        A fleet may not name two subnets of one zone (EC2 User Guide, create-ec2-fleet).
        """
        named = self._account.options.subnets.get(region)
        if not named:
            return None
        with self._lock:
            known = self._subnets.get(region)
        if known is None:
            rows = listed(
                self._account.calls, region, "ec2", "describe_subnets", "Subnets",
                SubnetIds=list(named),
            )  # fmt: skip
            by_room = sorted(rows, key=lambda one: int(one["AvailableIpAddressCount"]))
            known = {str(one["AvailabilityZone"]): str(one["SubnetId"]) for one in by_room}
            with self._lock:
                self._subnets[region] = known
        return known

    def _vpc(self, region: str) -> str:
        calls, named = self._account.calls, self._account.options.subnets.get(region)
        if named:
            answer = calls.call(region, "ec2", "describe_subnets", SubnetIds=[named[0]])
            return str(answer["Subnets"][0]["VpcId"])
        only_default = [{"Name": "is-default", "Values": ["true"]}]
        found = calls.call(region, "ec2", "describe_vpcs", Filters=only_default)["Vpcs"]
        if not found:
            raise Denied(
                f"{region} has no default VPC, and [clouds.aws] names no subnets there",
                f"`aws ec2 create-default-vpc --region {region}`, or set `subnets`.",
            )
        return str(found[0]["VpcId"])
