"""Of thousands of offers, those that some job could be best off with.

Offers that differ in nothing but where they stand are one; so is one that another beats in every
respect. No plan becomes dearer by that: who would take what is left out takes what beats it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from cloudwhale.model.node import Facts
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import NOTHING

UNKNOWN_HAZARD_PER_H = 0.1
"""What a spot offer is taken to have that nobody has said anything of: one in ten hours."""

Regions = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Moves:
    """What it costs to bring data to where a machine stands."""

    usd_gb: dict[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])
    """From a region to another, by their names; within a region it is free."""
    default_usd_gb: float = 0.09
    """Where no price is known: what the cheapest of large clouds asks for a GB to the internet."""
    regions: Regions = ()
    """Where data lies that the jobs need."""

    def price(self, source: str, target: str) -> float:
        """Return the price of a GB in dollars."""
        if source == target:
            return 0.0
        return self.usd_gb.get((source, target), self.default_usd_gb)


NO_MOVES = Moves()


def hazard_of(offer: Offer) -> float:
    """Return the preemptions per hour that are counted with."""
    if offer.market == "on-demand":
        return 0.0
    return UNKNOWN_HAZARD_PER_H if offer.hazard_per_h is None else offer.hazard_per_h


def shortlist(offers: Iterable[Offer], moves: Moves = NO_MOVES) -> tuple[Offer, ...]:
    """Return the offers that no other beats, by id; those without a bounded price are left out.

    Where the end of a quota group is known, an offer is beaten only by one of its own group.
    """
    seen = _Seen(moves)
    groups: dict[object, dict[object, Offer]] = {}
    for offer in offers:
        price, cap = offer.price_usd_h, offer.cap_usd_h
        if price is None or cap is None or price > cap:
            continue
        alike = groups.setdefault(seen.group(offer), {})
        key = seen.key(offer)
        known = alike.get(key)
        if known is None or offer.id < known.id:
            alike[key] = offer
    kept = [offer for alike in groups.values() for offer in _unbeaten(list(alike.values()), seen)]
    return tuple(sorted(kept, key=lambda offer: (offer.id, offer.provider)))


class _Seen:
    """What offers share, worked out once: thousands of them are of a few types and regions."""

    def __init__(self, moves: Moves) -> None:
        self._moves = moves
        self._prices: dict[str, tuple[float, ...]] = {}
        self._shapes: dict[int, tuple[Facts, object, tuple[float, ...]]] = {}
        """By the identity of the facts, which are kept with it so that it stays theirs."""

    def group(self, offer: Offer) -> object:
        """Return what two offers must share for one to stand in for the other."""
        quota = "" if offer.quota_left is None else offer.quota
        alone = "" if offer.capacity is None else offer.id
        return (self._shape(offer.facts)[1], offer.market, offer.stop_moves, quota, alone)

    def key(self, offer: Offer) -> object:
        """Return all that matters of an offer in its group."""
        return (
            offer.price_usd_h, offer.cap_usd_h, offer.extras_usd_h, offer.hazard_per_h,
            offer.boot_s, offer.notice_s, offer.billing_step_s, offer.billing_least_s,
            offer.quota_units, self._shape(offer.facts)[2], self._moved(offer.region),
        )  # fmt: skip

    def less_is_better(self, offer: Offer) -> tuple[float, ...]:
        """Return the same as numbers: who is at most as large in each beats the other."""
        return (
            offer.usd_h or NOTHING, offer.most_usd_h or NOTHING, hazard_of(offer), offer.boot_s,
            offer.billing_step_s, offer.billing_least_s, offer.quota_units, -offer.notice_s,
            *self._shape(offer.facts)[2], *self._moved(offer.region),
        )  # fmt: skip

    def _shape(self, facts: Facts) -> tuple[Facts, object, tuple[float, ...]]:
        found = self._shapes.get(id(facts))
        if found is None:
            models = tuple(sorted({(d.model, d.packs_gib) for d in facts.devices}))
            rules = (tuple(sorted(facts.labels.items())), facts.mounts, facts.runtimes)
            sizes = (-len(facts.devices), -facts.cpu, -facts.memory_gib, -facts.disk_gib)
            found = self._shapes[id(facts)] = (facts, (models, rules, facts.links), sizes)
        return found

    def _moved(self, region: str) -> tuple[float, ...]:
        found = self._prices.get(region)
        if found is None:
            moves = self._moves
            found = tuple(moves.price(source, region) for source in moves.regions)
            self._prices[region] = found
        return found


def _unbeaten(offers: Sequence[Offer], seen: _Seen) -> Sequence[Offer]:
    """Return those that no other is at least as good as in everything; ties end at the id."""
    if len(offers) < 2:
        return offers
    import numpy as np

    # Who beats another stands before it when all is compared in turn, ties by id.
    scored = ((seen.less_is_better(one), one.id, one) for one in offers)
    ordered = sorted(scored, key=lambda three: three[:2])
    rows = np.array([row for row, _, _ in ordered])
    kept = np.empty_like(rows)
    chosen: list[Offer] = []
    for row, (_, _, offer) in zip(rows, ordered, strict=True):
        if not (kept[: len(chosen)] <= row).all(axis=1).any():
            kept[len(chosen)] = row
            chosen.append(offer)
    return chosen
