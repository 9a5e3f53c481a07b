"""Whether the cloud has a machine to give: capacity, quota, price and its other refusals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cloudwhale.model.units import MICRO_PER_USD, Instant, MicroUsd
from cloudwhale.spi.prices import Market
from cloudwhale_providers.sandbox.endpoint.estate import Estate
from cloudwhale_providers.sandbox.endpoint.market import Prices
from cloudwhale_providers.sandbox.endpoint.quotas import Quotas, quota_code
from cloudwhale_providers.sandbox.endpoint.refused import Refused
from cloudwhale_providers.sandbox.endpoint.weather_values import Capacity, Refusal, Weather

Zones = Callable[[str], set[str]]
"""Where a type stands, by its name."""


@dataclass(frozen=True, slots=True)
class Wish:
    """One machine that somebody asks for."""

    type: str
    region: str
    zone: str
    market: Market
    vcpus: int
    most_usd_h: MicroUsd | None = None
    """No more than this for spot; None: whatever it costs."""

    def is_like(self, rule: Capacity | Refusal) -> bool:
        """Say whether a rule of the weather means it."""
        return rule.which.fits(self.type, self.zone, self.market)


@dataclass(frozen=True, slots=True)
class Stock:
    """What holds for the whole account."""

    prices: Prices
    quotas: Quotas
    has_spot_role: Callable[[], bool]


class Room:
    """Looks at one wish at a time."""

    def __init__(self, estate: Estate, stock: Stock, weather: Weather, began_at: Instant) -> None:
        self._estate, self._stock = estate, stock
        self._weather, self._began_at = weather, began_at

    def refusal(
        self, wish: Wish, promised: Sequence[Wish], zones: Zones, now: Instant
    ) -> Refused | None:
        """Return why a machine cannot be had beside those that were just promised; None: it can."""
        said = self._weathered(wish, now) or self._unsupported(wish, zones)
        if said is None and wish.market == "spot":
            said = self._not_spot(wish, now)
        return said or self._over_quota(wish, promised) or self._full(wish, promised, now)

    def _weathered(self, wish: Wish, now: Instant) -> Refused | None:
        for rule in self._weather.refusals:
            if is_of_ec2(rule.code) and wish.is_like(rule) and self._holds(rule, now):
                return Refused(rule.code, f"{rule.code}, says the weather")
        return None

    def _unsupported(self, wish: Wish, zones: Zones) -> Refused | None:
        found = zones(wish.type)
        if not found:
            return Refused(
                "InvalidParameterValue", f"Invalid value '{wish.type}' for InstanceType."
            )
        if wish.zone in found:
            return None
        says = (
            f"Your requested instance type ({wish.type}) is not supported in your requested "
            f"Availability Zone ({wish.zone})."
        )
        return Refused("Unsupported", says)

    def _not_spot(self, wish: Wish, now: Instant) -> Refused | None:
        if not self._stock.has_spot_role():
            says = (
                "The provided credentials do not have permission to create the service-linked "
                "role for EC2 Spot Instances."
            )
            return Refused("AuthFailure.ServiceLinkedRoleCreationNotPermitted", says, 403)
        price = self._stock.prices.price(wish.type, wish.zone, "spot", now)
        if wish.most_usd_h is None or price is None or price <= wish.most_usd_h:
            return None
        says = (
            f"Your Spot request price of {wish.most_usd_h / MICRO_PER_USD:g} is lower than the "
            f"minimum required Spot request fulfillment price of {price / MICRO_PER_USD:g}."
        )
        return Refused("SpotMaxPriceTooLow", says)

    def _over_quota(self, wish: Wish, promised: Sequence[Wish]) -> Refused | None:
        code = quota_code(wish.type, wish.market)
        used = sum(
            other.vcpus
            for other in (*self._taken(), *promised)
            if other.region == wish.region and quota_code(other.type, other.market) == code
        )
        if wish.vcpus <= self._stock.quotas.left(code, used):
            return None
        if wish.market == "spot":
            return Refused("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
        says = "You have requested more vCPU capacity than your current vCPU limit allows."
        return Refused("VcpuLimitExceeded", says)

    def _full(self, wish: Wish, promised: Sequence[Wish], now: Instant) -> Refused | None:
        for rule in self._weather.capacity:
            if not wish.is_like(rule) or not self._holds(rule, now):
                continue
            taken = sum(1 for other in (*self._taken(rule.again), *promised) if other.is_like(rule))
            if taken >= rule.machines:
                says = (
                    f"We currently do not have sufficient {wish.type} capacity in the Availability "
                    f"Zone you requested ({wish.zone})."
                )
                return Refused("InsufficientInstanceCapacity", says, 500)
        return None

    def _holds(self, rule: Capacity | Refusal, now: Instant) -> bool:
        age_s = now - self._began_at
        return rule.since_s <= age_s and (rule.until_s is None or age_s < rule.until_s)

    def _taken(self, now_alone: bool = True) -> Sequence[Wish]:
        """Return what machines have taken that live, or of all that there have been lately."""
        records = [record for record in self._estate if record.is_live or not now_alone]
        return [
            Wish(one.type, one.region, one.zone, one.market, one.vcpus)
            for one in (record.instance for record in records)
        ]


def is_of_ec2(code: str) -> bool:
    """Say whether a code is written as EC2 has them, `LikeThis`."""
    return code[:1].isupper() and not code.isupper()
