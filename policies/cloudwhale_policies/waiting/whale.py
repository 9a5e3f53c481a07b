"""Whale's wait or rent: the order of waiting jobs that costs least, rented ones left out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

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
    length_s: Seconds
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
    slots: Mapping[int, Slot | None]
    """By the job's index; None: rented."""


class Whale:
    """Plans all waiting jobs anew in every round; only what is still to come counts."""

    def __init__(self, spread: float = 1.0) -> None:
        self.spread = spread

    def verdicts(self, waits: Waits) -> Mapping[str, Verdict]:
        """Return a verdict for each job; none when nothing can be rented for anybody."""
        if not any(one.quote is not None for one in waits.waiting):
            return {}
        expected = expecting(waits, self.spread)
        table = timetable(waits, ends_s(waits, expected))
        asks = [_ask(i, one, waits, expected) for i, one in enumerate(waits.waiting)]
        order = _best_order(asks, table)
        outcome = _played(order, table)
        return {ask.waiting.job.id: _verdict(ask, outcome.slots[ask.index], waits) for ask in asks}


def timetable(waits: Waits, ends: Mapping[str, Seconds]) -> Timetable:
    """Return what is free when, as those that run are expected to end."""
    table = Timetable(waits.free)
    for one in waits.running:
        if one.node in waits.free:
            table.release(one.node, ends[one.job.id], one.devices)
    return table


def _ask(index: int, one: Waiting, waits: Waits, expected: Expecting) -> _Ask:
    length_s = expected.length_s(one.length_s)
    rent_usd = inf
    if one.quote is not None:
        late_s = max(0.0, one.quote.done_s - length_s)
        rent_usd = one.quote.cost_usd + one.usd_h * late_s / HOUR_S
    by_s = inf if one.start_by is None else one.start_by - waits.now
    return _Ask(index, one, length_s, rent_usd, by_s)


def _best_order(asks: Sequence[_Ask], table: Timetable) -> list[_Ask]:
    order: list[_Ask] = []
    for ask in asks[:HEAD]:
        order = _inserted(order, ask, table)
    if len(order) > 2:
        for _ in range(PASSES):
            before = [a.index for a in order]
            for ask in asks[:HEAD]:
                order = _inserted([a for a in order if a is not ask], ask, table)
            if before == [a.index for a in order]:
                break
    return [*order, *asks[HEAD:]]


def _inserted(order: Sequence[_Ask], ask: _Ask, table: Timetable) -> list[_Ask]:
    """Return the order with a job where the sum of costs is least; of equals the last place."""
    best_usd, best = inf, [*order, ask]
    for place in range(len(order), -1, -1):
        tried = [*order[:place], ask, *order[place:]]
        usd = _played(tried, table).usd
        if usd < best_usd - 1e-9:
            best_usd, best = usd, tried
    return best


def _played(order: Sequence[_Ask], table: Timetable) -> _Outcome:
    """Give each in turn its first slot, unless renting costs less."""
    table = table.copy()
    usd = 0.0
    slots: dict[int, Slot | None] = {}
    for ask in order:
        slot = table.earliest(ask.waiting.devices, ask.length_s, ask.waiting.nodes)
        cost = inf if slot is None else ask.wait_usd(slot.start_s)
        if slot is None or cost > ask.rent_usd:
            slots[ask.index] = None
            usd += min(cost, ask.rent_usd)
        else:
            slots[ask.index] = slot
            usd += cost
            table.reserve(slot, ask.waiting.devices, ask.length_s)
    return _Outcome(usd, slots)


def _verdict(ask: _Ask, slot: Slot | None, waits: Waits) -> Verdict:
    if slot is None:
        return Verdict("rent", "")
    if slot.start_s <= 0.0:
        return Verdict("start", "", node=slot.node)
    return Verdict("wait", "", node=slot.node, at=waits.now + slot.start_s)


_: Wait = Whale()
