"""Whale's wait or rent: the order of waiting jobs that costs least, rented ones left out."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from statistics import median

from cloudwhale.model.units import Seconds
from cloudwhale.spi.waiting import Verdict, Wait, Waiting, Waits
from cloudwhale_policies.waiting.expecting import Expecting, ends_s, expecting
from cloudwhale_policies.waiting.timetable import Slot, Timetable

HOUR_S: Seconds = 3600.0
HEAD = 12
"""Jobs whose order is sought; those behind them are planned in the order of the round."""
PASSES = 2


@dataclass(frozen=True, slots=True)
class _Ask:
    """A waiting job as it is weighed."""

    index: int
    waiting: Waiting
    lengths_s: Sequence[Seconds]
    """In each future."""
    rent_usd: float
    """What renting costs, the wait for the boot in it; infinite where nothing can be rented."""
    by_s: Seconds
    """It must have started by then, from now."""

    def wait_usd(self, start_s: Seconds) -> float:
        """Return what a start in the future costs."""
        if start_s > self.by_s and self.rent_usd < inf:
            return inf
        return self.waiting.usd_h * start_s / HOUR_S


@dataclass(frozen=True, slots=True)
class _Outcome:
    usd: float
    slots: Mapping[int, Sequence[Slot]]
    """By the job's index, one for each future; none: rented."""


class Whale:
    """Plans all waiting jobs anew in every round; only what is still to come counts."""

    needs_quotes = True

    def __init__(self, spread: float = 1.0, futures: int = 5) -> None:
        self.spread = spread
        self.futures = futures

    def verdicts(self, waits: Waits) -> Mapping[str, Verdict]:
        """Return a verdict for each job; none when nothing can be rented for anybody."""
        if not any(one.quote is not None for one in waits.waiting):
            return {}
        expected = expecting(waits, self.spread, self.futures)
        tables = timetables(waits, ends_s(waits, expected), expected.futures)
        asks = [_ask(i, one, waits, expected) for i, one in enumerate(waits.waiting)]
        order = _best_order(asks, tables)
        outcome = _played(order, tables)
        return {ask.waiting.job.id: _verdict(ask, outcome.slots[ask.index], waits) for ask in asks}


def timetables(
    waits: Waits, ends: Mapping[str, Sequence[Seconds]], futures: int
) -> Sequence[Timetable]:
    """Return what is free when in each future, as those that run end."""
    tables = [Timetable(waits.free) for _ in range(futures)]
    for one in waits.running:
        if one.node in waits.free:
            for table, end_s in zip(tables, ends[one.job.id], strict=True):
                table.release(one.node, end_s, one.devices)
    return tables


def _ask(index: int, one: Waiting, waits: Waits, expected: Expecting) -> _Ask:
    length_s = expected.length_s(one.length_s)
    rent_usd = inf
    if one.quote is not None:
        late_s = max(0.0, one.quote.done_s - length_s)
        rent_usd = one.quote.cost_usd + one.usd_h * late_s / HOUR_S
    by_s = inf if one.start_by is None else one.start_by - waits.now
    lengths_s = expected.lefts_s(one.length_s, 0.0, index)
    return _Ask(index, one, lengths_s, rent_usd, by_s)


def _best_order(asks: Sequence[_Ask], tables: Sequence[Timetable]) -> list[_Ask]:
    order: list[_Ask] = []
    for ask in asks[:HEAD]:
        order = _inserted(order, ask, tables)
    if len(order) > 2:
        for _ in range(PASSES):
            before = [a.index for a in order]
            for ask in asks[:HEAD]:
                order = _inserted([a for a in order if a is not ask], ask, tables)
            if before == [a.index for a in order]:
                break
    return [*order, *asks[HEAD:]]


def _inserted(order: Sequence[_Ask], ask: _Ask, tables: Sequence[Timetable]) -> list[_Ask]:
    """Return the order with a job where the sum of costs is least; of equals the last place."""
    best_usd, best = inf, [*order, ask]
    for place in range(len(order), -1, -1):
        tried = [*order[:place], ask, *order[place:]]
        usd = _played(tried, tables).usd
        if usd < best_usd - 1e-9:
            best_usd, best = usd, tried
    return best


def _played(order: Sequence[_Ask], tables: Sequence[Timetable]) -> _Outcome:
    """Give each in turn its first slot in every future, unless renting costs less on average."""
    tables = [table.copy() for table in tables]
    usd = 0.0
    slots: dict[int, Sequence[Slot]] = {}
    for ask in order:
        one = ask.waiting
        found: list[Slot] = []
        cost = 0.0
        for table, length_s in zip(tables, ask.lengths_s, strict=True):
            slot = table.earliest(one.devices, length_s, one.nodes, one.fits_now)
            if slot is None:
                cost = inf
                break
            found.append(slot)
            cost += ask.wait_usd(slot.start_s) / len(tables)
        if cost > ask.rent_usd or cost == inf:
            slots[ask.index] = ()
            usd += min(cost, ask.rent_usd)
            continue
        slots[ask.index] = found
        usd += cost
        for table, slot, length_s in zip(tables, found, ask.lengths_s, strict=True):
            table.reserve(slot, one.devices, length_s)
    return _Outcome(usd, slots)


def _verdict(ask: _Ask, slots: Sequence[Slot], waits: Waits) -> Verdict:
    if not slots:
        return Verdict("rent", "")
    now = Counter(slot.node for slot in slots if slot.start_s <= 0.0)
    if 2 * now.total() >= len(slots):
        node = min(now, key=lambda name: (-now[name], name))
        return Verdict("start", "", node=node)
    start_s = median(slot.start_s for slot in slots)
    node = min(slots, key=lambda slot: abs(slot.start_s - start_s)).node
    return Verdict("wait", "", node=node, at=waits.now + start_s)


_: Wait = Whale()
