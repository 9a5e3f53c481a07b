"""What faults do to what a play begins with, and a store that fails when it is told to."""

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import replace

from cloudwhale.control.store.memory import MemoryStore
from cloudwhale.model.event import Event
from cloudwhale.model.plan import Round
from cloudwhale.model.units import Instant, MicroUsd
from cloudwhale.simulation.cloud import Shelf
from cloudwhale.simulation.faults import (
    Fault,
    NoCapacity,
    Preempted,
    PriceMoved,
    SlowBoot,
    WrongEstimates,
)
from cloudwhale.simulation.setting import Arrival
from cloudwhale.spi.errors import StoreUnusable


class TroubledStore(MemoryStore):
    """A store in memory that takes no writes of a controller while it fails."""

    is_failing = False

    def append(self, events: Iterable[Event], *, epoch: int | None = None) -> int:
        """See Store."""
        self._refuse(epoch)
        return super().append(events, epoch=epoch)

    def record(self, round: Round, events: Iterable[Event], *, epoch: int, offers: str = "") -> int:
        """See Store."""
        self._refuse(epoch)
        return super().record(round, events, epoch=epoch, offers=offers)

    def _refuse(self, epoch: int | None) -> None:
        if self.is_failing and epoch is not None:
            raise StoreUnusable("the database takes no writes now", "It is tried again.")


def with_wrong_estimates(arrivals: Sequence[Arrival], faults: Sequence[Fault]) -> list[Arrival]:
    """Return the arrivals with what their files say of lengths off, as the faults have it."""
    found = list(arrivals)
    for fault in faults:
        if isinstance(fault, WrongEstimates):
            found = [_misjudged(one, fault) for one in found]
    return found


def _misjudged(arrival: Arrival, fault: WrongEstimates) -> Arrival:
    said_s = arrival.spec.duration_s
    if said_s is None:
        return arrival
    dice = random.Random(f"estimates-{fault.seed}-{arrival.job}")
    off = math.exp(dice.uniform(-1.0, 1.0) * math.log(fault.by))
    return replace(arrival, spec=arrival.spec.but(duration_s=said_s * off))


def troubled(shelf: Shelf, faults: Sequence[Fault], began_at: Instant) -> Shelf:
    """Return a cloud's shelf with what goes wrong with its offer."""
    for fault in faults:
        if getattr(fault, "offer", shelf.offer.id) in ("", shelf.offer.id):
            shelf = _troubled(shelf, fault, began_at)
    return shelf


def _troubled(shelf: Shelf, fault: Fault, began_at: Instant) -> Shelf:
    match fault:
        case NoCapacity(at, for_s):
            return replace(
                shelf, droughts=(*shelf.droughts, (began_at + at, began_at + at + for_s))
            )
        case SlowBoot(share):
            return replace(shelf, slow_boots=share)
        case Preempted(per_h, notice_s):
            offer = shelf.offer.but(notice_s=notice_s)
            return replace(shelf, offer=offer, hazard_per_h=per_h)
        case PriceMoved(at, times):
            return _dearer(shelf, began_at + at, times)
        case _:
            return shelf


def _dearer(shelf: Shelf, since: Instant, times: float) -> Shelf:
    def moved(price: MicroUsd | None) -> MicroUsd | None:
        return None if price is None else MicroUsd(round(price * times))

    before = tuple(each for each in shelf.prices if each[0] < since)
    after = tuple((at, moved(price)) for at, price in shelf.prices if at > since)
    prices = (*before, (since, moved(shelf.price_at(since))), *after)
    return replace(shelf, prices=prices)
