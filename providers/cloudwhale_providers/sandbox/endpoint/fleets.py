"""CreateFleet of type `instant`: the cheapest offers that can be had, and why not the others."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cloudwhale.model.units import Instant
from cloudwhale.spi.prices import Market
from cloudwhale_providers.sandbox.endpoint.fields import each, inner
from cloudwhale_providers.sandbox.endpoint.market import Prices
from cloudwhale_providers.sandbox.endpoint.refused import Refused
from cloudwhale_providers.sandbox.endpoint.regions import Region
from cloudwhale_providers.sandbox.endpoint.room import Room, Wish
from cloudwhale_providers.sandbox.endpoint.specs import Spec, merged, spec

PRIORITIZED = frozenset({"prioritized", "capacity-optimized-prioritized"})
UNKNOWN = float("inf")
"""An offer without a price comes last."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One offer that a fleet may take."""

    spec: Spec
    template: Mapping[str, Any]
    """As the answer names it, with its version."""
    override: Mapping[str, Any]

    @property
    def named(self) -> dict[str, Any]:
        """Return what the answer says it was made from."""
        over = {"AvailabilityZone": self.spec.wish.zone, **self.override}
        return {"LaunchTemplateSpecification": self.template, "Overrides": over}


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a fleet takes, and what it could not have."""

    taken: tuple[Choice, ...]
    errors: tuple[tuple[Choice, Refused], ...]


def choices(
    region: Region, asked: Mapping[str, Any], market: Market
) -> Iterator[Choice | tuple[Mapping[str, Any], Refused]]:
    """Return the offers of a fleet's request, and the overrides that name something wrong."""
    for config in each(asked, "LaunchTemplateConfigs"):
        named = inner(config, "LaunchTemplateSpecification")
        template, version = region.template(named)
        told = {
            "LaunchTemplateId": template.id,
            "LaunchTemplateName": template.name,
            "Version": str(version.number),
        }
        if "LaunchTemplateId" in named:
            del told["LaunchTemplateName"]
        for override in each(config, "Overrides") or ({},):
            data = merged(version.data, _over(override))
            try:
                one = spec(region, data, asked.get("TagSpecifications"), market)
            except Refused as refused:
                yield {"LaunchTemplateSpecification": told, "Overrides": override}, refused
            else:
                yield Choice(one, told, override)


def ordered(
    found: Sequence[Choice], asked: Mapping[str, Any], prices: Prices, now: Instant
) -> list[Choice]:
    """Return offers as a fleet tries them: by price, or by priority; ties as they were named.

    Capacity is either there or not here, so `price-capacity-optimized` goes by price too.
    """
    how = options_of(asked).get("AllocationStrategy") or "lowest-price"

    def price(one: Choice) -> float:
        wish = one.spec.wish
        found = prices.price(wish.type, wish.zone, wish.market, now)
        return UNKNOWN if found is None else float(found)

    if how in PRIORITIZED:
        return sorted(found, key=lambda one: float(one.override.get("Priority") or 0.0))
    if how == "diversified":
        return list(found)
    return sorted(found, key=price)


def chosen(
    found: Sequence[Choice],
    asked: Mapping[str, Any],
    room: Room,
    where: tuple[Callable[[str], set[str]], Instant],
) -> Chosen:
    """Return what a fleet takes of offers in their order; nothing is made yet.

    `where`: which zones a type stands in, and what time it is.
    """
    zones, now = where
    left = target(asked)
    taken: list[Choice] = []
    errors: list[tuple[Choice, Refused]] = []
    for one in _alike(found, asked):
        wish = one.spec.wish
        while left > 0:
            promised: list[Wish] = [other.spec.wish for other in taken]
            refused = room.refusal(wish, promised, zones, now)
            if refused is not None:
                errors.append((one, refused))
                break
            taken.append(one)
            left -= float(one.override.get("WeightedCapacity") or 1.0)
        if left <= 0:
            break
    if target(asked) - max(left, 0.0) < least(asked):
        return Chosen((), tuple(errors))
    return Chosen(tuple(taken), tuple(errors))


def market_of(asked: Mapping[str, Any]) -> Market:
    """Return which market a fleet takes all its machines from."""
    wanted = inner(asked, "TargetCapacitySpecification")
    said = wanted.get("DefaultTargetCapacityType") or "on-demand"
    if (wanted.get("SpotTargetCapacity") or 0) > 0:
        said = "spot"
    if said not in ("spot", "on-demand"):
        raise Refused("UnsupportedOperation", f"the sandbox has no {said}")
    return "spot" if said == "spot" else "on-demand"


def target(asked: Mapping[str, Any]) -> float:
    """Return how much a fleet wants; raise Refused."""
    wanted = inner(asked, "TargetCapacitySpecification").get("TotalTargetCapacity")
    if not wanted or wanted < 1:
        raise Refused("InvalidParameterValue", "TotalTargetCapacity must be at least 1")
    return float(wanted)


def least(asked: Mapping[str, Any]) -> float:
    """Return how much a fleet must have, or it takes nothing."""
    return float(options_of(asked).get("MinTargetCapacity") or 0)


def options_of(asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a fleet's request says of its market."""
    return inner(asked, "SpotOptions" if market_of(asked) == "spot" else "OnDemandOptions")


def _alike(found: Sequence[Choice], asked: Mapping[str, Any]) -> Iterator[Choice]:
    """Return the offers that may stand beside the first that is had."""
    options = options_of(asked)
    is_one = options.get("SingleInstanceType") or options.get("SingleAvailabilityZone")
    if (is_one and target(asked) > 1) or options.get("MaxTotalPrice"):
        says = "the sandbox knows no fleet in one zone or type, and none with a price in total"
        raise Refused("UnsupportedOperation", says)
    yield from found


def _over(override: Mapping[str, Any]) -> dict[str, Any]:
    kept = dict(override)
    if "SubnetId" not in kept and "AvailabilityZone" in kept:
        kept["Placement"] = {"AvailabilityZone": kept["AvailabilityZone"]}
    return kept
