"""Compares the steps that a resumed attempt did again with those of the first."""

from collections.abc import Iterator

from cloudwhale.model.units import Instant
from cloudwhale.reporting.counters import Slot, numbers_of, same_words
from cloudwhale.reporting.rehearsed import Act, Rehearsed
from cloudwhale.reporting.votes import Tells, heard, votes


def repeated(seen: Rehearsed) -> tuple[int, int]:
    """Return how many lines of steps that were done twice are the same, and how many differ.

    They say whether the state is whole: a missing optimiser or random state shows in the digits.
    """
    if seen.second is None or seen.published is None:
        return 0, 0
    same = other = 0
    for vote in heard(votes(seen)):
        if vote.source != "printed" or vote.tells is not Tells.GOES_ON:
            continue
        slot = vote.counter.slot
        before = dict(_steps(seen.first, slot, seen.published.saved_at))
        for count, words in _steps(seen.second, slot, seen.second.began_at):
            if count in before:
                same, other = _counted(before[count] == words, same, other)
        break
    return same, other


def _counted(is_same: bool, same: int, other: int) -> tuple[int, int]:
    return (same + 1, other) if is_same else (same, other + 1)


def _steps(act: Act, slot: Slot, since: Instant) -> Iterator[tuple[float, str]]:
    """Yield what a counter stood at in each line that has it, with the line."""
    _, template, place = slot
    for line in act.lines:
        words, numbers = numbers_of(line.text)
        if words == template and line.at > since:
            yield numbers[place], same_words(line.text)
