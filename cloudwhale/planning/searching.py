"""Which offers have what is asked for, by what an hour of work there is expected to cost."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import NamedTuple

from cloudwhale.model import gpus
from cloudwhale.model.job import JobSpec, Resources
from cloudwhale.model.node import Facts, Node, NodeState
from cloudwhale.model.offer import Offer
from cloudwhale.model.reason import Refusal
from cloudwhale.model.units import MICRO_PER_USD, NOTHING, Seconds
from cloudwhale.planning.fit import could_ever_fit, suits
from cloudwhale.planning.inventory import free_capacity
from cloudwhale.planning.shortlist import hazard_of
from cloudwhale.planning.spot import Risk, useful_share
from cloudwhale.planning.stock import RESTORES_S, SAVE_HOLDS_S
from cloudwhale.spi.prices import Market

WORK_S: Seconds = 6 * 3600.0
EVERY_S: Seconds = 600.0
"""Spot machines are weighed by the work of a morning that saves as often as a job does that says
nothing of it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a machine must have, and where and how it may be had."""

    wants: Resources = Resources()
    reference: str | None = None
    """GPU model that one hour of work is counted on; None: all are equally fast."""
    regions: tuple[str, ...] = ()
    """Patterns; empty: all."""
    providers: tuple[str, ...] = ()
    market: Market | None = None

    @property
    def spec(self) -> JobSpec:
        """Return a job that wants just this."""
        return JobSpec(name="asked", command="true", resources=self.wants)


class Hit(NamedTuple):
    """An offer that has it."""

    useful_usd_h: float
    """Expected dollars for what one hour of work on the reference takes, extras included."""
    offer: Offer
    speed: float = 1.0
    """Beside the reference."""
    lasting: float = 1.0
    """Part of the time that is not work done again."""


@dataclass(frozen=True, slots=True)
class Found:
    """What there is, the cheapest first, and why the others are not in it."""

    hits: tuple[Hit, ...]
    refused: Mapping[str, int] = field(default_factory=dict[str, int])
    """Offers that are left out, by reason code, `region`, `provider`, `market` or `unpriced`."""
    nearest: Refusal | None = None
    """Of those that lie where they may and have too little: what the closest one lacks."""
    nearest_offer: str | None = None


def search(offers: Iterable[Offer], asked: Asked) -> Found:
    """Return the offers that have what is asked for, by expected cost; ties end at the id.

    Tens of thousands are looked at: what their machines have is judged once for each type.
    """
    judge = _Judge(asked)
    counts: Counter[str] = Counter()
    hits: list[Hit] = []
    nearest: tuple[float, str, Refusal] | None = None
    for offer in offers:
        why = judge.elsewhere(offer)
        if why is not None:
            counts[why] += 1
            continue
        suited = judge.suited(offer)
        if isinstance(suited, Refusal):
            counts[suited.code.value] += 1
            near = (suited.shortfall, offer.id, suited)
            nearest = near if nearest is None or near[:2] < nearest[:2] else nearest
        elif offer.price_usd_h is None:
            counts["unpriced"] += 1
        else:
            lasting = judge.lasting(offer)
            usd_h = (offer.price_usd_h + (offer.extras_usd_h or NOTHING)) / MICRO_PER_USD
            hits.append(Hit(usd_h / (suited * lasting), offer, suited, lasting))
    hits.sort(key=_cheapest_first)
    if nearest is None:
        return Found(tuple(hits), counts)
    return Found(tuple(hits), counts, nearest[2], nearest[1])


def _cheapest_first(hit: Hit) -> tuple[float, str]:
    return (hit.useful_usd_h, hit.offer.id)


class _Judge:
    """Remembers what it has found of each type, place and risk: there are few of each."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._spec = asked.spec
        self._places: dict[tuple[str, str], str | None] = {}
        self._types: dict[int, tuple[Facts, Refusal | float]] = {}
        self._risks: dict[tuple[float, Seconds], float] = {}

    def elsewhere(self, offer: Offer) -> str | None:
        """Return why an offer is not where or how it was asked for; None: it is."""
        if self._asked.market is not None and offer.market != self._asked.market:
            return "market"
        key = (offer.provider, offer.region)
        if key not in self._places:
            self._places[key] = self._placed(offer)
        return self._places[key]

    def _placed(self, offer: Offer) -> str | None:
        providers, regions = self._asked.providers, self._asked.regions
        if providers and offer.provider not in providers:
            return "provider"
        whole = f"{offer.provider}/{offer.region}"
        if regions and not any(
            fnmatchcase(whole if "/" in one else offer.region, one) for one in regions
        ):
            return "region"
        return None

    def suited(self, offer: Offer) -> Refusal | float:
        """Return how fast a machine is beside the reference, or what it lacks."""
        known = self._types.get(id(offer.facts))
        if known is None:
            # The facts are kept beside what was found, so that no other ones take their place.
            known = (offer.facts, self._judged(offer))
            self._types[id(offer.facts)] = known
        return known[1]

    def _judged(self, offer: Offer) -> Refusal | float:
        name = offer.type or offer.id
        node = Node(id=name, facts=offer.facts, state=NodeState.READY, owned=False)
        refusal = could_ever_fit(self._spec, free_capacity([node], ())[name])
        return refusal if refusal is not None else self._speed(offer.facts)

    def _speed(self, facts: Facts) -> float:
        """Return the speed of the slowest device that would do: which one it gets is open."""
        reference = self._asked.reference
        if reference is None or not self._spec.resources.gpu.count:
            return 1.0
        models = {device.model for device in facts.devices if suits(self._spec, device)}
        known = [speed for model in models if (speed := gpus.speed(model, reference)) is not None]
        return min(known, default=1.0)

    def lasting(self, offer: Offer) -> float:
        """Return the part of the time that is not work done again, in (0, 1]."""
        if offer.market == "on-demand":
            return 1.0
        key = (hazard_of(offer), offer.boot_s)
        if key not in self._risks:
            risk = Risk(key[0], EVERY_S, SAVE_HOLDS_S, offer.boot_s + RESTORES_S)
            self._risks[key] = max(1e-9, useful_share(WORK_S, risk))
        return self._risks[key]


# -- alike but for the zone --------------------------------------------------------------------


class Row(NamedTuple):
    """Offers of one type in one region that differ in nothing but the zone."""

    hit: Hit
    zones: tuple[str, ...]


def folded(hits: Iterable[Hit], most: int | None = None) -> tuple[Sequence[Row], int]:
    """Return the first rows, and how many there are; zones that are alike stand in one row."""
    zones: dict[tuple[object, ...], list[str]] = {}
    first: dict[tuple[object, ...], Hit] = {}
    for hit in hits:
        offer = hit.offer
        key = (offer.provider, offer.type or offer.id, offer.region, offer.market, hit.useful_usd_h)
        zones.setdefault(key, []).append(offer.zone)
        first.setdefault(key, hit)
    rows = [Row(hit, tuple(zones[key])) for key, hit in first.items()]
    return (rows if most is None else rows[:most]), len(rows)
