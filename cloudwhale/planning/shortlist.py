"""Of thousands of offers, those that some job could be best off with.

Offers that differ in nothing but where they stand are one; so is one that another beats in every
respect. No plan becomes dearer by that: who would take what is left out takes what beats it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cloudwhale.model.offer import Offer
from cloudwhale.model.units import NOTHING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

UNKNOWN_HAZARD_PER_H = 0.1
"""What a spot offer is taken to have that nobody has said anything of: one in ten hours."""

Regions = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Moves:
    """What it costs to bring data to where a machine stands."""

    usd_gb: dict[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])
    """From a region to another, by their names; within a region it is free."""
    default_usd_gb: float = 0.09
    """Where no price is known: that of leaving for the internet, as AWS has it for the first TB."""
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
    groups: dict[object, dict[object, Offer]] = {}
    for offer in offers:
        price, cap = offer.price_usd_h, offer.cap_usd_h
        if price is None or cap is None or price > cap:
            continue
        alike = groups.setdefault(_group(offer), {})
        key = _key(offer, moves)
        known = alike.get(key)
        if known is None or offer.id < known.id:
            alike[key] = offer
    kept = [offer for alike in groups.values() for offer in _unbeaten(list(alike.values()), moves)]
    return tuple(sorted(kept, key=lambda offer: (offer.id, offer.provider)))


def _group(offer: Offer) -> object:
    """Return what two offers must share for one to stand in for the other."""
    facts = offer.facts
    models = tuple(sorted({(d.model, d.packs_gib) for d in facts.devices}))
    rules = (tuple(sorted(facts.labels.items())), facts.mounts, facts.runtimes)
    quota = "" if offer.quota_left is None else offer.quota
    return (models, offer.market, rules, quota, offer.capacity and offer.id, facts.links)


def _key(offer: Offer, moves: Moves) -> object:
    facts = offer.facts
    return (
        offer.price_usd_h, offer.cap_usd_h, offer.extras_usd_h, offer.hazard_per_h, offer.boot_s,
        len(facts.devices), facts.cpu, facts.memory_gib, facts.disk_gib, offer.notice_s,
        offer.billing_step_s, offer.billing_least_s, offer.quota_units,
        *(moves.price(source, offer.region) for source in moves.regions),
    )  # fmt: skip


def _unbeaten(offers: Sequence[Offer], moves: Moves) -> Sequence[Offer]:
    """Return those that no other is at least as good as in everything; ties end at the id."""
    if len(offers) < 2:
        return offers
    import numpy as np

    # Who beats another stands before it when all is compared in turn, ties by id.
    scored = ((_less_is_better(one, moves), one.id, one) for one in offers)
    ordered = sorted(scored, key=lambda three: three[:2])
    rows = np.array([row for row, _, _ in ordered])
    kept: list[int] = []
    for at in range(len(ordered)):
        if not kept or not _is_beaten(rows[kept], rows[at]):
            kept.append(at)
    return [ordered[at][2] for at in kept]


def _is_beaten(others: NDArray[np.float64], one: Any) -> bool:
    return bool((others <= one).all(axis=1).any())


def _less_is_better(offer: Offer, moves: Moves) -> tuple[float, ...]:
    facts = offer.facts
    return (
        offer.usd_h or NOTHING, offer.most_usd_h or NOTHING, hazard_of(offer), offer.boot_s,
        offer.billing_step_s, offer.billing_least_s, offer.quota_units, -offer.notice_s,
        -len(facts.devices), -facts.cpu, -facts.memory_gib, -facts.disk_gib,
        *(moves.price(source, offer.region) for source in moves.regions),
    )  # fmt: skip
