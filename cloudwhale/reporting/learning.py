"""Tells from what a job measures of itself, such as its loss, whether what it learned came back."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

from cloudwhale.reporting.counters import RADIX, Slot, Value, label_of, of_lines
from cloudwhale.reporting.rehearsed import Act, Rehearsed
from cloudwhale.reporting.votes import Tells

MEASURE = re.compile(
    r"(?:\w*_)?(?:loss|nll|bpc|ppl|perplexity|err|error|mse|mae|rmse|acc|accuracy|reward|return|score)",
    re.IGNORECASE,
)
"""What quantities are called that get better while a job learns."""
FEW = 3
"""So many values at an end are averaged; of fewer than twice as many nothing is said."""
CLEAR: float = 4.0
"""How many times its own noise a quantity must have moved, to tell anything."""
BACK, THERE = 0.3, 0.6
"""Of the way from where it began to where it was saved: up to here it is back, from here it is
there."""


@dataclass(frozen=True, slots=True)
class Learned:
    """A quantity that had moved clearly, and where the second attempt has it."""

    label: str
    tells: Tells
    began: float
    saved: float
    resumed: float


def learned(seen: Rehearsed) -> list[Learned]:
    """Return what quantities like a loss say of the second attempt; nothing of mere noise."""
    if seen.second is None or seen.published is None:
        return []
    saved_at = seen.published.saved_at
    second, fresh = _measures(seen.second), {} if seen.fresh is None else _measures(seen.fresh)
    found: list[Learned] = []
    for slot, values in _measures(seen.first).items():
        until = [value.amount for value in values if value.at <= saved_at]
        there = second.get(slot)
        one = _judged(until, [] if there is None else [value.amount for value in there[:FEW]])
        if one is None:
            continue
        began, saved, resumed, tells = one
        if slot in fresh and _part(began, saved, fresh[slot][0].amount) > BACK:
            continue  # it is no matter of learning: a fresh start is there at once
        found.append(Learned(label_of(slot), tells, began, saved, resumed))
    return found


def _measures(act: Act) -> dict[Slot, list[Value]]:
    return {
        slot: [Value(one.at, one.amount % RADIX) for one in seen]
        for slot, seen in of_lines(act.lines).items()
        if MEASURE.fullmatch(label_of(slot))
    }


def _judged(
    until: Sequence[float], resumed: Sequence[float]
) -> tuple[float, float, float, Tells] | None:
    if len(until) < 2 * FEW or len(resumed) < 2:
        return None
    began, saved, now = fmean(until[:2]), fmean(until[-FEW:]), fmean(resumed)
    noise = pstdev(until[-(len(until) // 2) :])
    if abs(saved - began) <= CLEAR * noise:
        return None
    part = _part(began, saved, now)
    if part <= BACK:
        return began, saved, now, Tells.BEGINS_AGAIN
    return (began, saved, now, Tells.GOES_ON) if part >= THERE else None


def _part(began: float, saved: float, now: float) -> float:
    return (now - began) / (saved - began) if saved != began else 1.0
