"""What Compute Engine says of its spot machines: what an hour costs, and how often they go.

`advice.capacityHistory` answers for one machine type in one region at a time, so the answers come
bit by bit: some with each round of offers, the oldest first.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any

from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant, MicroUsd, Seconds
from cloudwhale.spi.errors import CloudwhaleError, Unreachable
from cloudwhale.spi.spelling import hourly
from cloudwhale_providers.gcp import names
from cloudwhale_providers.gcp.account import Account

HOLDS_S: Seconds = 6 * 3600.0  # spot prices change once a day at most, rates are of days
SILENT_S: Seconds = 3600.0
"""So long nothing is asked after a refusal: the API is new, and not everybody has it."""
AT_ONCE = 8
"""Questions in one round."""
LIFE_H = 24.0
"""How long a spot machine is kept, on average: the rate is of machines that stopped. Assumed, as
for the bands of prices/hazards."""
RATE_MOST = 0.95
"""A rate of 1 would be a machine that never lives."""

Key = tuple[str, str]
"""Region and machine type."""


@dataclass(frozen=True, slots=True)
class Told:
    """What was told of a type in a region; None: nobody has said."""

    at: Instant
    usd_h: MicroUsd | None = None
    hazard_per_h: float | None = None


class Advice:
    """Asks for advice, a few questions at a time; safe for threads."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._told: dict[Key, Told] = {}
        self._silent_until: Instant = float("-inf")
        self.wrong: Mapping[str, tuple[str, str]] = {}
        """What went wrong when it was asked last, and how to mend it."""
        self._lock = Lock()

    def renew(self, offers: Iterable[Offer], now: Instant) -> None:
        """Ask for what is not known, or is known for long: with GPUs first, they cost most."""
        if now < self._silent_until:
            return
        due = self._due(offers, now)
        if not due:
            return
        with ThreadPoolExecutor(AT_ONCE) as pool:
            answers = list(pool.map(partial(self._asked, now), due))
        with self._lock:
            self._told |= {key: told for key, told in zip(due, answers, strict=True) if told}

    def applied(self, offer: Offer) -> Offer:
        """Return a spot offer with what was told of it; other offers as they are."""
        with self._lock:
            told = self._told.get((offer.region, offer.type))
        if told is None or offer.market != "spot":
            return offer
        if told.usd_h is not None and told.usd_h != offer.price_usd_h:
            cap = offer.cap_usd_h
            offer = offer.but(
                price_usd_h=told.usd_h, priced_at=None, source="", estimated=False,
                cap_usd_h=None if cap is None else max(cap, told.usd_h),
            )  # fmt: skip
        if told.hazard_per_h is not None:
            offer = offer.but(hazard_per_h=told.hazard_per_h)
        return offer

    def _due(self, offers: Iterable[Offer], now: Instant) -> Sequence[Key]:
        spot = {
            (one.region, one.type): bool(one.facts.devices)
            for one in offers
            if one.market == "spot" and not one.type.startswith("n1-")
        }
        never = Told(float("-inf"))
        with self._lock:
            ages = {key: now - self._told.get(key, never).at for key in spot}
        old = [key for key in spot if ages[key] >= HOLDS_S]
        return sorted(old, key=lambda key: (-ages[key], not spot[key], key))[:AT_ONCE]

    def _asked(self, now: Instant, key: Key) -> Told | None:
        region, type_name = key
        try:
            answer = self._account.compute(
                "advice.capacityHistory", region=region, body=_words(region, type_name)
            )
        except CloudwhaleError as error:
            self._refused(error, now)
            return None
        self.wrong = {}
        return Told(now, _price(answer), _hazard(answer))

    def _refused(self, error: CloudwhaleError, now: Instant) -> None:
        if not isinstance(error, Unreachable):
            self._silent_until = now + SILENT_S
        remedy = error.remedy or "The catalogue's prices are used."
        self.wrong = {"advice on spot prices": (error.says, remedy)}


def _words(region: str, type_name: str) -> Mapping[str, Any]:
    return {
        "types": ["PRICE", "PREEMPTION"],
        "instanceProperties": {
            "machineType": type_name, "scheduling": {"provisioningModel": "SPOT"},
        },
        "locationPolicy": {"location": f"regions/{region}"},
    }  # fmt: skip


def _price(answer: Mapping[str, Any]) -> MicroUsd | None:
    """Return the newest price that is told; None: none, or in another money."""
    rows: Sequence[Mapping[str, Any]] = answer.get("priceHistory") or ()
    newest = max(rows, key=_ends_at, default=None)
    money: Mapping[str, Any] = {} if newest is None else newest.get("listPrice") or {}
    if money.get("currencyCode", "USD") != "USD" or not money:
        return None
    try:
        found = hourly(f"{int(money.get('units') or 0)}.{int(money.get('nanos') or 0):09d}")
    except ValueError:
        return None
    return found if found > 0 else None  # nothing is free


def _hazard(answer: Mapping[str, Any]) -> float | None:
    """Return preemptions per hour; None where no rate is told.

    The rate is of all machines that stopped: with one that is kept for a time of mean LIFE_H the
    part h / (h + 1/LIFE_H) is preempted, as prices/hazards has it.
    """
    rows: Sequence[Mapping[str, Any]] = answer.get("preemptionHistory") or ()
    rates = [float(one["preemptionRate"]) for one in rows if one.get("preemptionRate") is not None]
    known = [min(rate, RATE_MOST) for rate in rates if math.isfinite(rate) and rate >= 0]
    if not known:
        return None
    mean = sum(known) / len(known)
    return mean / ((1.0 - mean) * LIFE_H)


def _ends_at(row: Mapping[str, Any]) -> Instant:
    interval: Mapping[str, Any] = row.get("interval") or {}
    return names.instant(interval.get("endTime")) or 0.0
