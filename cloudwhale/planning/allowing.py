"""What the user's settings leave of all offers."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from cloudwhale.model.offer import Offer
from cloudwhale.model.units import MicroUsd
from cloudwhale.model.value import Value


class Limits(Value):
    """Where, what and how dear a machine may be; nothing said: anything."""

    regions: tuple[str, ...] = ()
    """Patterns of regions, `us-*`, or of provider and region, `CLOUD/us-east-1`; empty: all."""
    never: tuple[str, ...] = ()
    """Patterns of types, `p5*`, or of provider and type, `CLOUD/p5*`."""
    max_price_usd_h: MicroUsd | None = None
    """The most that an hour may cost, disk and address included; unknown prices are above it."""


NO_LIMITS = Limits()
LIMIT_NAMES = tuple(Limits.model_fields)


@dataclass(frozen=True, slots=True)
class Allowed:
    """The offers that may be taken, and how many each limit keeps out, by the limit's name."""

    offers: tuple[Offer, ...]
    counts: Mapping[str, int]


def allowed(offers: Iterable[Offer], limits: Limits) -> Allowed:
    """Return what the limits leave; an offer is counted for the first that keeps it out."""
    if limits == NO_LIMITS:
        return Allowed(tuple(offers), {})
    most = limits.max_price_usd_h
    barred: dict[tuple[str, str, str], str] = {}
    counts: Counter[str] = Counter()
    kept: list[Offer] = []
    for offer in offers:
        # There are few places and types, and many offers.
        key = (offer.provider, offer.region, offer.type or offer.id)
        why = barred.get(key)
        if why is None:
            why = barred[key] = barred_by(offer, limits)
        if most is not None and not why and _is_above(offer, most):
            why = "max_price_usd_h"
        if why:
            counts[why] += 1
        else:
            kept.append(offer)
    return Allowed(tuple(kept), counts)


def unmatched(offers: Iterable[Offer], limits: Limits) -> Mapping[str, tuple[str, ...]]:
    """Return the patterns that name nothing of what there is, by limit: likely slips of the pen."""
    regions, types = set[tuple[str, str]](), set[tuple[str, str]]()
    for offer in offers:
        regions.add((offer.provider, offer.region))
        types.add((offer.provider, offer.type or offer.id))
    found = {"regions": _strange(limits.regions, regions), "never": _strange(limits.never, types)}
    return {name: patterns for name, patterns in found.items() if patterns}


def _strange(patterns: Iterable[str], places: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(
        one for one in patterns if not any(_is_named(*place, patterns=(one,)) for place in places)
    )


def barred_by(offer: Offer, limits: Limits) -> str:
    """Return the limit that keeps a type out of a region at any price; empty: none does."""
    if limits.regions and not _is_named(offer.provider, offer.region, limits.regions):
        return "regions"
    if _is_named(offer.provider, offer.type or offer.id, limits.never):
        return "never"
    return ""


def _is_named(provider: str, name: str, patterns: Iterable[str]) -> bool:
    whole = f"{provider}/{name}"
    return any(fnmatchcase(whole if "/" in one else name, one) for one in patterns)


def _is_above(offer: Offer, most: MicroUsd) -> bool:
    return offer.price_usd_h is None or offer.price_usd_h + offer.extras_usd_h > most
