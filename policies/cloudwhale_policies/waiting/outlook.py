"""What becomes of waiting jobs in a given order: when each starts, or that it is rented for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from cloudwhale.model.units import Seconds
from cloudwhale.spi.waiting import Waiting
from cloudwhale_policies.waiting.timetable import Slot, Timetable

HOUR_S: Seconds = 3600.0


@dataclass(frozen=True, slots=True)
class Ask:
    """A waiting job as it is weighed."""

    index: int
    waiting: Waiting
    lengths_s: Sequence[Seconds]
    """How long it runs in each future."""
    rent_usd: float
    """What renting costs, the wait for the boot in it; infinite where nothing can be rented."""
    by_s: Seconds
    """From now: it must have started by then."""

    def wait_usd(self, start_s: Seconds) -> float:
        """Return what a start in so many seconds costs; only the wait that is still to come."""
        if start_s > self.by_s and self.rent_usd < inf:
            return inf
        return self.waiting.usd_h * start_s / HOUR_S

    def reserve(self, slots: Sequence[Slot], tables: Sequence[Timetable]) -> None:
        """Keep its slot in each future."""
        for table, slot, length_s in zip(tables, slots, self.lengths_s, strict=True):
            table.reserve(slot, self.waiting.devices, length_s)


@dataclass(frozen=True, slots=True)
class Outlook:
    """What an order comes to."""

    usd: float
    """Waits and rentals together; jobs that can neither start nor be rented for left out."""
    slots: Mapping[int, Sequence[Slot]]
    """By the job's index, its slot in each future; none: it can never start here."""
    rented: frozenset[int]
    """Indices of those that are better rented for; their slots are not kept."""
    tables: Sequence[Timetable]
    """What is left in each future."""


def outlook(order: Sequence[Ask], tables: Sequence[Timetable], most_usd: float = inf) -> Outlook:
    """Give each in turn its first slot in every future, unless renting costs less on average.

    `most_usd`: what costs more is not looked at to its end; no cost is negative.
    """
    tables = [table.copy() for table in tables]
    usd = 0.0
    slots: dict[int, Sequence[Slot]] = {}
    rented: set[int] = set()
    for ask in order:
        if usd > most_usd:
            break
        found = _slots(ask, tables)
        cost = sum(ask.wait_usd(slot.start_s) for slot in found) / len(tables) if found else inf
        slots[ask.index] = found
        if ask.rent_usd < cost:
            rented.add(ask.index)
            usd += ask.rent_usd
        elif found:
            usd += cost
            ask.reserve(found, tables)
    return Outlook(usd, slots, frozenset(rented), tables)


def _slots(ask: Ask, tables: Sequence[Timetable]) -> Sequence[Slot]:
    one, found = ask.waiting, list[Slot]()
    for table, length_s in zip(tables, ask.lengths_s, strict=True):
        slot = table.earliest(one.devices, length_s, one.nodes, one.fits_now)
        if slot is None:
            return ()
        found.append(slot)
    return found
