"""Finds numbers that count a job's progress, in what it prints and in what it saves."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from cloudwhale.model.units import Instant
from cloudwhale.reporting.rehearsed import Act, Printed, Save

Source = Literal["printed", "inside", "named"]
"""A line of output, a number inside a checkpoint, a number in a checkpoint's name."""

PROGRESS = re.compile(
    r"(?:global_?|total_?|train_?)?(?:steps?|iter(?:ation)?s?|it|epochs?|batch(?:es)?|updates?"
    r"|samples?|tokens?|examples?|episodes?|rounds?|generations?|trials?|images?|ckpt|checkpoint)",
    re.IGNORECASE,
)
"""What counters of progress are called."""
SLOW = re.compile(r"epochs?|rounds?|pass(?:es)?|generations?", re.IGNORECASE)
"""Counters behind which a faster one begins anew."""
_CLOCKS = re.compile(
    r"\d{4}-\d\d-\d\d[T ]?"  # a date
    r"|\d+:\d\d(?::\d\d)?(?:[.,]\d+)?"  # a time of day, or one that has passed
    r"|\d+(?:\.\d+)?\s?(?:%\|)"  # tqdm's percentage, which the count behind it says better
    r"|\d+(?:\.\d+)?\s?(?:[kMG]?i?[bB]|it|steps?|samples?|tokens?|img|images|batch(?:es)?)/s(?:ec)?"
    r"|\d+(?:\.\d+)?\s?s(?:ec)?/(?:it|step|batch|epoch)"
    r"|\d+(?:\.\d+)?\s?(?:ms|us|ns|s|secs?|seconds?|m|mins?|minutes?|h|hours?)\b",
    re.IGNORECASE,
)
"""Times and rates: they tell of clocks, which go on or begin anew whoever resumes."""
_NUMBER = re.compile(r"(?<![\d.])(?:\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?(?:e[-+]?\d+)?)")
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_BAR = re.compile("[\u2580-\u259f]+")
_LABEL = re.compile(r"([A-Za-z_]+)['\"]?[\s=:_\-/.(#\['\"]*$")

Slot = tuple[Source, str, int]
"""Where it was found, the words around it, and which of their numbers it is."""


@dataclass(frozen=True, slots=True)
class Value:
    """What a counter stood at."""

    at: Instant
    amount: float


@dataclass(frozen=True, slots=True)
class Counter:
    """A number that only grew, or only fell, while a job ran from zero."""

    slot: Slot
    label: str
    values: tuple[Value, ...]

    @property
    def source(self) -> Source:
        """Return where it was found."""
        return self.slot[0]

    @property
    def says_progress(self) -> bool:
        """Say whether it is called what counters of progress are called."""
        return PROGRESS.fullmatch(self.label) is not None

    @property
    def sign(self) -> int:
        """Return 1 for one that grows, -1 for one that falls."""
        return 1 if self.values[-1].amount >= self.values[0].amount else -1

    @property
    def gap(self) -> float:
        """Return by how much it moves from one time to the next, in the middle."""
        moves = sorted(abs(two.amount - one.amount) for one, two in pairwise(self.values))
        return moves[len(moves) // 2] if moves else 0.0

    def at(self, when: Instant) -> float | None:
        """Return what it stood at then; None before its first value."""
        seen = [value.amount for value in self.values if value.at <= when]
        return seen[-1] if seen else None


def same_words(text: str) -> str:
    """Return a line without colours and without what clocks say: two runs' lines can be equal."""
    return " ".join(_CLOCKS.sub("~", _BAR.sub("", _COLOUR.sub("", text))).split())


def series(source: Source, told: Iterable[tuple[Instant, str]]) -> dict[Slot, list[Value]]:
    """Return all numbers of some texts, by the words around them."""
    found: dict[Slot, list[Value]] = {}
    for at, text in told:
        template, numbers = numbers_of(text)
        for place, number in enumerate(numbers):
            found.setdefault((source, template, place), []).append(Value(at, number))
    return found


def numbers_of(text: str) -> tuple[str, list[float]]:
    """Return the words of a text with `#` for each number, and the numbers.

    One that stands behind an epoch counts on where that goes on.
    """
    words = same_words(text)
    numbers = [float(one.replace(",", "")) for one in _NUMBER.findall(words)]
    template = _NUMBER.sub("#", words)
    epoch = _slow_place(template)
    if epoch is None:
        return template, numbers
    more = RADIX * numbers[epoch]
    return template, [one if at <= epoch else more + one for at, one in enumerate(numbers)]


RADIX = 1e9
"""No epoch has so many steps: a step counts behind its epoch, as a digit behind another."""


def _slow_place(template: str) -> int | None:
    """Return which number of a text is an epoch's that stands before another one's."""
    parts = template.split("#")
    for place in range(len(parts) - 2):
        label = _label(parts, place)
        if SLOW.fullmatch(label):
            return place
    return None


def _label(parts: Sequence[str], place: int) -> str:
    match = _LABEL.search(parts[place])
    return match[1] if match else ""


def label_of(slot: Slot) -> str:
    """Return what a number is called where it stands; empty when nothing names it."""
    source, template, place = slot
    if source == "inside":
        return re.split(r"[.:]", template)[-1]
    return _label(template.split("#"), place)


def of_lines(lines: Iterable[Printed]) -> dict[Slot, list[Value]]:
    """Return the numbers of what was printed."""
    return series("printed", ((line.at, line.text) for line in lines))


def of_saves(saves: Iterable[Save]) -> dict[Slot, list[Value]]:
    """Return the numbers in the names of checkpoints, and inside them."""
    every = tuple(saves)
    found = series("named", ((save.at, save.name) for save in every))
    for save in every:
        for name, amount in save.numbers.items():
            found.setdefault(("inside", name, 0), []).append(Value(save.at, amount))
    return found


def counters(act: Act) -> list[Counter]:
    """Return what counted progress in an attempt that ran from zero."""
    found = [_counter(slot, seen) for slot, seen in of_lines(act.lines).items()]
    found += [_counter(slot, seen) for slot, seen in of_saves(act.saves).items()]
    return [counter for counter in found if counter is not None]


def _counter(slot: Slot, seen: Sequence[Value]) -> Counter | None:
    source = slot[0]
    counter = Counter(slot, label_of(slot), tuple(seen))
    if source != "printed":
        return counter if _is_steady(seen) else None
    least = 2 if counter.says_progress else 4  # four of any number rise by chance once in 24
    if len(seen) < least or seen[0].amount == seen[-1].amount:
        return None
    return counter if _is_steady(seen) else None


def _is_steady(seen: Sequence[Value]) -> bool:
    moves = [two.amount - one.amount for one, two in pairwise(seen)]
    return all(move >= 0 for move in moves) or all(move <= 0 for move in moves)


def first_values(act: Act | None) -> Mapping[Slot, Value]:
    """Return the first value of every number of an attempt."""
    if act is None:
        return {}
    both = {**of_lines(act.lines), **of_saves(act.saves)}
    return {slot: seen[0] for slot, seen in both.items()}
