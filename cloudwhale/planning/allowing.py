"""What the user's settings leave of all offers."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

from cloudwhale.model.offer import Offer
from cloudwhale.model.units import MicroUsd
from cloudwhale.model.value import Value

Matches = Callable[[tuple[str, ...], str, str], bool]
"""Says whether a name or `provider/name` has one of some patterns."""


class Limits(Value):
    """Where, what and how dear a machine may be; nothing said: anything."""

    regions: tuple[str, ...] = ()
    """Patterns of regions, `us-*`, or of provider and region, `aws/us-east-1`; empty: all."""
    never: tuple[str, ...] = ()
    """Patterns of types, `p5*`, of provider and type, `aws/p5*`, or of whole offers' ids."""
    max_price_usd_h: MicroUsd | None = None
    """The most that an hour may cost, disk and address included; unknown prices are above it."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """The offers that may be taken, and how many each limit keeps out, by the limit's name."""

    offers: tuple[Offer, ...]
    counts: Mapping[str, int]


def allowed(offers: Iterable[Offer], limits: Limits) -> Allowed:
    """Return what the limits leave; an offer is counted for the first that keeps it out."""
    matches = _matching()
    counts: Counter[str] = Counter()
    kept: list[Offer] = []
    for offer in offers:
        if limits.regions and not matches(limits.regions, offer.region, offer.provider):
            counts["regions"] += 1
        elif limits.never and _is_named(offer, limits.never, matches):
            counts["never"] += 1
        elif limits.max_price_usd_h is not None and _is_above(offer, limits.max_price_usd_h):
            counts["max_price_usd_h"] += 1
        else:
            kept.append(offer)
    return Allowed(tuple(kept), counts)


def _matching() -> Matches:
    """Return a matcher that remembers: there are few regions and types, and many offers."""

    @cache
    def matches(patterns: tuple[str, ...], name: str, provider: str) -> bool:
        whole = f"{provider}/{name}"
        return any(fnmatchcase(whole if "/" in one else name, one) for one in patterns)

    return matches


def _is_named(offer: Offer, never: tuple[str, ...], matches: Matches) -> bool:
    if matches(never, offer.type or offer.id, offer.provider):
        return True
    whole = [one for one in never if one.count("/") > 1]
    return any(fnmatchcase(offer.id, one) for one in whole)


def _is_above(offer: Offer, most: MicroUsd) -> bool:
    return offer.price_usd_h is None or offer.price_usd_h + offer.extras_usd_h > most
