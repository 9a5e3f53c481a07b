"""How often spot machines are taken back, as our own machines have seen it.

Interruptions come in bursts: where one was taken, the next is taken soon. So the hazard of a
*pool*, one type in one zone, is two parts:

    h(t) = (1 + s N) / (1/h0 + E)  +  sum of a 2^-(t - t_i)/T

*Slow*: a gamma prior whose mean is the published hazard h0, worth one interruption, meets E hours
that machines of the pool have lived and N that were taken, both fading by half every three days;
only the part s of an interruption is news about the pool, the rest belongs to its burst.
*Fast*: each interruption at t_i in the pool, and a little of one in another zone of its region,
raises the hazard until it has faded.

a, T and s are the maximum-likelihood fit of such a self-exciting process (Hawkes, Biometrika 58(1),
1971) to two series of recorded spot availability that share no month, type or zone: nine zones of
2023 (V100) and eight pools of 2022 (K80, V100; skypilot-org/spot-traces). Both say T = 1 h, and
a = 0.73 and 0.71 per hour; without the fast part the log-likelihood is worse by 550 and 250.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cloudwhale.model.offer import Offer
from cloudwhale.model.rental import Rental
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.planning.shortlist import hazard_of

HOUR_S: Seconds = 3600.0
BURST_PER_H = 0.7
"""What an interruption adds to the hazard of its own pool, at once."""
NEAR_PER_H = 0.05
"""The same for its other zones in the region: 0.13 in one series, 0.01 in the other."""
BURST_HALF_LIFE_S: Seconds = HOUR_S
SLOW_SHARE = 0.35
SLOW_HALF_LIFE_S: Seconds = 3 * 24 * HOUR_S
FORGOTTEN_S: Seconds = 10 * SLOW_HALF_LIFE_S
STEPS_A_DOUBLING = 4
"""Hazards are told in steps, so that a list of offers changes now and then and not all the time."""
LEAST_PER_H = 1e-4
BURST_OVER = 0.02
"""Of an interruption so much is left after six hours, and its neighbours do not hear of it."""

Pool = tuple[str, str, str, str]
"""Provider, region, type (of an offer without one: its id), zone."""


def pool_of(offer: Offer) -> Pool:
    """Return what shares one hazard with an offer."""
    return (offer.provider, offer.region, offer.type or offer.id, offer.zone)


@dataclass(frozen=True, slots=True)
class Life:
    """How long a spot machine was there, and whether it was taken."""

    pool: Pool
    since: Instant
    until: Instant | None
    """None: it is there."""
    was_taken: bool


@dataclass(slots=True)
class Seen:
    """What is remembered of one pool, faded to one moment."""

    hours: float = 0.0
    """That machines have lived there."""
    taken: float = 0.0
    """Interruptions, faded by the long half-life."""
    burst: float = 0.0
    """The same, faded by the short one."""


@dataclass(frozen=True, slots=True)
class Hazards:
    """What was learned until a moment; an empty one says what is published."""

    pools: Mapping[Pool, Seen] = field(default_factory=dict[Pool, Seen])
    near: Mapping[tuple[str, str, str], float] = field(
        default_factory=dict[tuple[str, str, str], float]
    )
    """Bursts of all zones together, by provider, region and type."""

    def per_h(self, offer: Offer) -> float | None:
        """Return the preemptions per hour of an offer; as it says itself where nobody has been."""
        if offer.market != "spot" or not self.pools:
            return offer.hazard_per_h
        pool = pool_of(offer)
        seen, near = self.pools.get(pool), self.near.get(pool[:3], 0.0)
        if seen is None and near < BURST_OVER:
            return offer.hazard_per_h
        seen = seen or Seen()
        published = max(LEAST_PER_H, hazard_of(offer))
        slow = (1.0 + SLOW_SHARE * seen.taken) / (1.0 / published + seen.hours)
        return in_steps(slow + BURST_PER_H * seen.burst + NEAR_PER_H * (near - seen.burst))

    def told(self, offer: Offer) -> Offer:
        """Return an offer with what was learned of it."""
        per_h = self.per_h(offer)
        return offer if per_h == offer.hazard_per_h else offer.but(hazard_per_h=per_h)


NOTHING_LEARNED = Hazards()


def life_of(rental: Rental) -> Life | None:
    """Return the life of a rental on spot; None while there is none, or where the market is sure.

    One that was told that it goes counts as taken from then on, whoever ends it.
    """
    offer = rental.taken
    if offer is None or offer.market != "spot" or rental.requested_at is None:
        return None
    taken_at = rental.interrupted_at
    until = rental.ended_at if taken_at is None else taken_at
    return Life(pool_of(offer), rental.requested_at, until, taken_at is not None)


def learned(lives: Iterable[Life], now: Instant) -> Hazards:
    """Return what some lives teach at a moment; what is older than a month is forgotten."""
    pools: dict[Pool, Seen] = {}
    near: dict[tuple[str, str, str], float] = {}
    for life in lives:
        until = now if life.until is None else min(life.until, now)
        if until < now - FORGOTTEN_S or until < life.since:
            continue
        seen = pools.setdefault(life.pool, Seen())
        seen.hours += _faded_hours(now - until, now - life.since)
        if life.was_taken:
            burst = _left(now - until, BURST_HALF_LIFE_S)
            seen.taken += _left(now - until, SLOW_HALF_LIFE_S)
            seen.burst += burst
            near[life.pool[:3]] = near.get(life.pool[:3], 0.0) + burst
    return Hazards(pools, near)


def in_steps(per_h: float) -> float:
    """Return a hazard rounded to a quarter of a doubling, six digits."""
    steps = round(math.log2(max(LEAST_PER_H, per_h)) * STEPS_A_DOUBLING)
    return float(f"{2.0 ** (steps / STEPS_A_DOUBLING):.6g}")


def _left(ago_s: Seconds, half_life_s: Seconds) -> float:
    return float(0.5 ** (max(0.0, ago_s) / half_life_s))


def _faded_hours(until_ago_s: Seconds, since_ago_s: Seconds) -> float:
    """Return the hours between two moments of the past, each faded by how long ago it was."""
    rate = math.log(2.0) / SLOW_HALF_LIFE_S
    return (math.exp(-rate * until_ago_s) - math.exp(-rate * since_ago_s)) / (rate * HOUR_S)
