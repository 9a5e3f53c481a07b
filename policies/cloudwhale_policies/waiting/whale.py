"""Whale's wait or rent: the order of waiting jobs that costs least, rented ones left out."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf

from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.waiting import Verdict, Wait, Waiting, Waits
from cloudwhale_policies.waiting.expecting import Expecting, ends_s, expecting
from cloudwhale_policies.waiting.outlook import HOUR_S, Ask, Outlook, outlook
from cloudwhale_policies.waiting.timetable import EPSILON, Slot, Timetable

LOOKED = 64
"""Jobs that are planned, first first; those behind them start where that delays nobody.

Or are rented for, where nothing here could ever run them.
"""
HEAD = 12
"""Jobs whose order is sought; those behind them are planned in the order of the round."""
SEARCHES = 100_000
"""Slots on a node in a future that a round may look for: on many nodes fewer jobs are turned."""
PASSES = 2
"""Times that each job of the head is taken out and put in again."""
ROUNDED_MIN = 5
"""Minutes in what is told: a new number is news."""


class Whale:
    """Plans the waiting jobs anew in every round; only what is still to come counts.

    Running and waiting jobs end as they may in a few futures. In each, the jobs get their first
    slots one after another; whose wait costs more than renting, on average, is rented for. Of
    the orders of the jobs that one is sought whose waits and rentals cost least, so that a job
    that is rented cheaply leaves its place to one that is not.
    """

    needs_quotes = True

    def __init__(self, spread: float = 2.0, futures: int = 5) -> None:
        """Take what is said of lengths as wrong by up to `spread` times; `futures`: a prime.

        With lengths wrong by up to 3 times either way a spread of 2 does as well as 3; where they
        are known to be right, 1 saves about a twentieth.
        """
        self.spread = spread
        self.futures = futures

    def verdicts(self, waits: Waits) -> Mapping[str, Verdict]:
        """Return a verdict for each job; none when nothing can be rented for anybody."""
        if not any(one.quote is not None for one in waits.waiting):
            return {}
        expected = expecting(waits, self.spread, self.futures)
        tables = timetables(waits, ends_s(waits, expected), expected.futures)
        asks = [_ask(i, one, waits, expected) for i, one in enumerate(waits.waiting[:LOOKED])]
        left = dict(waits.free)
        asks, found = _at_once(asks, tables, left)
        planned = outlook(_best_order(asks, tables, len(waits.free)), tables)
        for ask in asks:
            found[ask.waiting.job.id] = _verdict(ask, planned, left, waits.now)
        for index, one in enumerate(waits.waiting[LOOKED:], LOOKED):
            ask = _ask(index, one, waits, expected)
            found[one.job.id] = _behind(ask, planned.tables, left)
        return found


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


def _ask(index: int, one: Waiting, waits: Waits, expected: Expecting) -> Ask:
    rent_usd = inf
    if one.quote is not None:
        late_s = max(0.0, one.quote.done_s - expected.length_s(one.length_s))
        rent_usd = one.quote.cost_usd + one.usd_h * late_s / HOUR_S
    # Who is too late already is not helped by a machine that has to boot: a start now is in time.
    by_s = inf if one.start_by is None else max(0.0, one.start_by - waits.now)
    return Ask(index, one, expected.lefts_s(one.length_s, 0.0, index), rent_usd, by_s)


def _at_once(
    asks: Sequence[Ask], tables: Sequence[Timetable], left: dict[str, float]
) -> tuple[list[Ask], dict[str, Verdict]]:
    """Start those that fit now and that nothing can be rented for: they are kept from no room."""
    others: list[Ask] = []
    found: dict[str, Verdict] = {}
    for ask in asks:
        slots = _openings(ask, tables) if ask.rent_usd == inf else []
        node = _taken(ask, slots, left)
        if node:
            found[ask.waiting.job.id] = Verdict("start", "fits", node=node)
            ask.reserve(slots, tables)
        else:
            others.append(ask)
    return others, found


def _taken(ask: Ask, slots: Sequence[Slot], left: dict[str, float]) -> str:
    """Take what a job needs now, on the node where it starts now in most futures.

    Empty: it does not start now in most of them, or others have taken the room.
    """
    now = Counter(slot.node for slot in slots if slot.start_s <= 0.0)
    if 2 * now.total() <= len(slots):
        return ""
    devices = ask.waiting.devices
    for node in sorted(now, key=lambda name: (-now[name], name)):
        if left[node] >= devices - EPSILON:
            left[node] -= devices
            return node
    return ""


def _openings(ask: Ask, tables: Sequence[Timetable]) -> list[Slot]:
    """Return a slot that begins now in every future; none where one future has none."""
    one, found = ask.waiting, list[Slot]()
    for table, length_s in zip(tables, ask.lengths_s, strict=True):
        slot = table.opening(one.devices, length_s, one.fits_now)
        if slot is None:
            return []
        found.append(slot)
    return found


def _best_order(asks: Sequence[Ask], tables: Sequence[Timetable], nodes: int) -> list[Ask]:
    turned = int((SEARCHES / (max(1, nodes) * len(tables))) ** (1 / 3))
    head = asks[: max(1, min(HEAD, turned))]
    order: list[Ask] = []
    for ask in head:
        order = _inserted(order, ask, tables)
    for _ in range(PASSES if len(order) > 2 else 0):
        before = [ask.index for ask in order]
        for ask in head:
            order = _inserted([other for other in order if other is not ask], ask, tables)
        if before == [ask.index for ask in order]:
            break
    return [*order, *asks[len(head) :]]


def _inserted(order: Sequence[Ask], ask: Ask, tables: Sequence[Timetable]) -> list[Ask]:
    """Return the order with a job where the sum of costs is least; of equals the last place."""
    best_usd, best = inf, [*order, ask]
    for place in range(len(order), -1, -1):
        tried = [*order[:place], ask, *order[place:]]
        usd = outlook(tried, tables, best_usd).usd
        if usd < best_usd - 1e-9:
            best_usd, best = usd, tried
    return best


def _verdict(ask: Ask, planned: Outlook, left: dict[str, float], now: Instant) -> Verdict:
    slots = planned.slots[ask.index]
    start_s = sorted(slot.start_s for slot in slots)[len(slots) // 2] if slots else inf
    if ask.index in planned.rented:
        return Verdict("rent", _rents(ask, start_s))
    if not slots:
        return Verdict("wait", "nobody knows when there will be enough room")
    taken = _taken(ask, slots, left)
    if taken:
        return Verdict("start", "fits", node=taken)
    node = min(slots, key=lambda slot: (abs(slot.start_s - start_s), slot.node)).node
    return Verdict("wait", _waits(ask, start_s), node=node, at=now + start_s)


def _behind(ask: Ask, tables: Sequence[Timetable], left: dict[str, float]) -> Verdict:
    if not ask.waiting.nodes and ask.rent_usd < inf:
        return Verdict("rent", _rents(ask, inf))  # nobody who comes first keeps it from a start
    slots = _openings(ask, tables)
    node = _taken(ask, slots, left)
    if node:
        ask.reserve(slots, tables)
        return Verdict("start", "fits", node=node)
    if ask.by_s <= 0.0 and ask.rent_usd < inf:
        return Verdict("rent", "has waited for as long as its file allows")
    return Verdict("wait", f"{LOOKED} others come first")


def _waits(ask: Ask, start_s: Seconds) -> str:
    one = ask.waiting
    if one.quote is None:
        return "nothing can be rented for it"
    saves = f"saves about {_minutes(start_s)}, worth {one.usd_h:g} USD an hour"
    return f"to rent costs {one.quote.cost_usd:.2f} USD and {saves}"


def _rents(ask: Ask, start_s: Seconds) -> str:
    quote = ask.waiting.quote
    cost = "" if quote is None else f"to rent costs {quote.cost_usd:.2f} USD"
    if start_s == inf:
        return f"can start nowhere here; {cost}"
    if start_s > ask.by_s:
        return f"would start here too late for its file, in about {_minutes(start_s)}; {cost}"
    value = f"{ask.waiting.usd_h:g} USD an hour"
    return f"would start here in about {_minutes(start_s)}: at {value} that costs more; {cost}"


def _minutes(time_s: Seconds) -> str:
    return f"{max(1, round(time_s / 60 / ROUNDED_MIN)) * ROUNDED_MIN} min"


_: Wait = Whale()
