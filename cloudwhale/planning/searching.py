"""Which offers have what is asked for, by what an hour of work there is expected to cost."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from operator import attrgetter, itemgetter
from typing import NamedTuple

from cloudwhale.model import gpus
from cloudwhale.model.job import JobSpec, Resources
from cloudwhale.model.node import Facts, Node, NodeState
from cloudwhale.model.offer import Offer
from cloudwhale.model.reason import Code, Refusal
from cloudwhale.model.units import MICRO_PER_USD, Seconds
from cloudwhale.planning.allowing import LIMIT_NAMES, NO_LIMITS, Limits, barred_by
from cloudwhale.planning.fit import could_ever_fit, memory_lacks, suits
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
    """Offers that have it: of one type and price in one region, which differ in the zone alone."""

    useful_usd_h: float
    """Expected dollars for what one hour of work on the reference takes, extras included."""
    id: str
    """Of the offer; two that cost the same stand in its order."""
    offer: Offer
    """The first of them by id."""
    zones: tuple[str, ...]
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
    kept_out: Mapping[str, int] = field(default_factory=dict[str, int])
    """Offers that have it and that a limit of the settings keeps out, by the limit's name."""
    nearest: Refusal | None = None
    """Of those that lie where they may and have too little: what the closest one lacks."""
    nearest_offer: str | None = None


def search(offers: Iterable[Offer], asked: Asked, limits: Limits = NO_LIMITS) -> Found:
    """Return the offers that have what is asked for, by expected cost; ties end at the id.

    Tens of thousands are looked at: those that differ in zone and price alone are judged once.
    """
    judge = _Judge(asked, limits)
    most = math.inf if limits.max_price_usd_h is None else limits.max_price_usd_h
    dear = 0
    verdicts: dict[object, _Verdict] = {}
    for offer in offers:
        facts = offer.facts
        key = (id(facts), offer.region, offer.market, offer.hazard_per_h, offer.boot_s)
        verdict = verdicts.get(key)
        if verdict is None:
            verdict = verdicts[key] = judge.judged(offer)
        price = offer.price_usd_h
        if not verdict.useful or price is None:
            verdict.missed(offer)
            continue
        price_usd_h = price + offer.extras_usd_h
        alike = verdict.priced.get(price_usd_h)
        if price_usd_h > most:
            dear += 1
        elif alike is None:
            verdict.priced[price_usd_h] = [offer]
        else:
            alike.append(offer)
    hits = [hit for verdict in verdicts.values() for hit in verdict.hits()]
    counts, nearest = _told(verdicts.values())
    counts["max_price_usd_h"] += dear
    kept_out = {name: counts.pop(name) for name in LIMIT_NAMES if counts[name]}
    near = (None, None) if nearest is None else (nearest.refusal, nearest.first)
    return Found(tuple(sorted(hits, key=_COST_THEN_ID)), +counts, kept_out, *near)


_COST_THEN_ID = itemgetter(0, 1)
_ID = attrgetter("id")


@dataclass(slots=True)
class _Verdict:
    """What was found of offers that differ in zone and price alone."""

    facts: Facts
    """Kept, so that no others take their place in memory while they are told apart by it."""
    speed: float = 0.0
    """Beside the reference; 0: it lacks something, or lies elsewhere."""
    lasting: float = 0.0
    useful: float = 0.0
    """What divides a price in micro-dollars: hours of work on the reference that one brings."""
    refusal: Refusal | None = None
    why: str = "unpriced"
    misses: int = 0
    first: str = ""
    """Id of the first that was missed."""
    priced: dict[int, list[Offer]] = field(default_factory=dict[int, list[Offer]])
    """Those that have it, by price with extras."""

    def hits(self) -> Iterator[Hit]:
        """Yield what has been found at each price."""
        for price_usd_h, offers in self.priced.items():
            if len(offers) > 1:
                offers.sort(key=_ID)
            first = offers[0]
            zones = tuple([offer.zone for offer in offers])
            cost = price_usd_h / self.useful
            yield Hit(cost, first.id, first, zones, self.speed, self.lasting)

    def missed(self, offer: Offer) -> None:
        """Count an offer that is no hit."""
        self.misses += 1
        if not self.first or offer.id < self.first:
            self.first = offer.id


def _told(verdicts: Iterable[_Verdict]) -> tuple[Counter[str], _Verdict | None]:
    """Return how many were missed for what reason, and the refusal that came closest."""
    counts: Counter[str] = Counter()
    nearest: _Verdict | None = None
    for verdict in verdicts:
        if verdict.misses:
            counts[verdict.why] += verdict.misses
        if verdict.refusal is not None and (nearest is None or _nearer(verdict, nearest)):
            nearest = verdict
    return counts, nearest


def _nearer(one: _Verdict, other: _Verdict) -> bool:
    if one.refusal is None or other.refusal is None:
        return one.refusal is not None
    return (one.refusal.shortfall, one.first) < (other.refusal.shortfall, other.first)


class _Judge:
    """Judges offers; remembers what it has found of each type and each risk."""

    def __init__(self, asked: Asked, limits: Limits) -> None:
        self._asked = asked
        self._limits = limits
        self._spec = asked.spec
        self._types: dict[int, Refusal | float] = {}
        self._risks: dict[tuple[float, Seconds], float] = {}

    def judged(self, offer: Offer) -> _Verdict:
        """Return what holds for all offers that differ from this one in zone and price alone."""
        elsewhere = self._elsewhere(offer)
        if elsewhere:
            return _Verdict(offer.facts, why=elsewhere)
        suited = self._suited(offer)
        if isinstance(suited, Refusal):
            return _Verdict(offer.facts, refusal=suited, why=suited.code.value)
        barred = barred_by(offer, self._limits)
        if barred:
            return _Verdict(offer.facts, why=barred)
        lasting = self._lasting(offer)
        return _Verdict(offer.facts, suited, lasting, suited * lasting * MICRO_PER_USD)

    def _elsewhere(self, offer: Offer) -> str:
        asked = self._asked
        if asked.market is not None and offer.market != asked.market:
            return "market"
        if asked.providers and offer.provider not in asked.providers:
            return "provider"
        whole = f"{offer.provider}/{offer.region}"
        if asked.regions and not any(
            fnmatchcase(whole if "/" in one else offer.region, one) for one in asked.regions
        ):
            return "region"
        return ""

    def _suited(self, offer: Offer) -> Refusal | float:
        """Return how fast a machine is beside the reference, or what it lacks."""
        key = id(offer.facts)  # of an offer that is held by a verdict
        if key not in self._types:
            self._types[key] = self._of_type(offer)
        return self._types[key]

    def _of_type(self, offer: Offer) -> Refusal | float:
        name = offer.type or offer.id
        node = Node(id=name, facts=offer.facts, state=NodeState.READY, owned=False)
        free = free_capacity([node], ())[name]
        refusal = could_ever_fit(self._spec, free)
        if refusal is not None and refusal.code is Code.GPU_MEMORY:
            refusal = refusal.but(shortfall=memory_lacks(self._spec, free))
        return refusal if refusal is not None else self._speed(offer.facts)

    def _speed(self, facts: Facts) -> float:
        """Return the speed of the slowest device that would do: which one it gets is open."""
        reference = self._asked.reference
        if reference is None or not self._spec.resources.gpu.count:
            return 1.0
        models = {device.model for device in facts.devices if suits(self._spec, device)}
        known = [speed for model in models if (speed := gpus.speed(model, reference)) is not None]
        return min(known, default=1.0)

    def _lasting(self, offer: Offer) -> float:
        """Return the part of the time that is not work done again, in (0, 1]."""
        hazard = hazard_of(offer)
        if not hazard:
            return 1.0
        key = (hazard, offer.boot_s)
        if key not in self._risks:
            risk = Risk(hazard, EVERY_S, SAVE_HOLDS_S, offer.boot_s + RESTORES_S)
            self._risks[key] = max(1e-9, useful_share(WORK_S, risk))
        return self._risks[key]
