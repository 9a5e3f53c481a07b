"""What each counter says of a resumed attempt: that it goes on, or that it begins again."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from cloudwhale.model.units import Instant, Seconds
from cloudwhale.reporting.counters import RADIX, Counter, Source, Value, counters, first_values
from cloudwhale.reporting.rehearsed import Act, Rehearsed

NEAR: float = 0.25
"""Of the way that a counter came until it was saved: what counts as near its end, or its start."""
SOONER: float = 0.75
"""A save that took less of its attempt's time than this part of the first's, and counts further,
did not begin from zero."""


class Tells(StrEnum):
    """What a counter says."""

    GOES_ON = "goes-on"
    BEGINS_AGAIN = "begins-again"
    FALLS_BACK = "falls-back"
    """It stands between where the first began and where it was saved."""
    ELSEWHERE = "elsewhere"
    """It goes on in a fresh start too: a clock, or state that lies outside of the folder."""


@dataclass(frozen=True, slots=True)
class Vote:
    """One counter, with the numbers that it is judged by."""

    counter: Counter
    tells: Tells
    began: float
    """Where the first attempt began."""
    saved: float
    """Where it stood when what was restored had been written."""
    resumed: float
    """Where the second attempt began."""

    @property
    def source(self) -> Source:
        """Return where the counter was found."""
        return self.counter.source

    @property
    def what(self) -> str:
        """Name it as a person would."""
        name = self.counter.label or "a number"
        match self.source:
            case "printed":
                return f"{name} in its output"
            case "inside":
                return f"{name} inside its checkpoint"
            case _:
                return f"{name} in the names of its checkpoints"

    @property
    def numbers(self) -> tuple[float, float, float]:
        """Return where it began, was saved and was resumed, without the epochs before it."""
        three = (self.began, self.saved, self.resumed)
        if max(three) < RADIX or min(three) // RADIX != max(three) // RADIX:
            return three
        return (self.began % RADIX, self.saved % RADIX, self.resumed % RADIX)


def votes(seen: Rehearsed) -> list[Vote]:
    """Return what every counter of the first attempt says of the second."""
    if seen.second is None or seen.published is None:
        return []
    saved_at = seen.published.saved_at
    resumed, fresh = first_values(seen.second), first_values(seen.fresh)
    found: list[Vote | None] = []
    for counter in counters(seen.first):
        one = resumed.get(counter.slot)
        if one is None:
            continue
        if counter.source == "printed":
            found.append(_printed(counter, saved_at, one.amount, fresh.get(counter.slot)))
        else:
            found.append(_saved(counter, saved_at, one, (seen.first, seen.second)))
    return [vote for vote in found if vote is not None]


def _printed(
    counter: Counter, saved_at: Instant, resumed: float, fresh: Value | None
) -> Vote | None:
    """Judge a counter by where it was first, where at the save, and where the second began.

    Nothing is said of one that had hardly moved until the save.
    """
    began = counter.values[0].amount
    at_save = counter.at(saved_at)
    saved = counter.values[-1].amount if at_save is None else at_save
    sign = counter.sign
    way = sign * (saved - began)
    near = max(counter.gap, NEAR * way)
    if way <= 0 or 2 * counter.gap > way:
        return None
    came = sign * (resumed - began)
    if fresh is not None and sign * (fresh.amount - began) >= way - near:
        return Vote(counter, Tells.ELSEWHERE, began, saved, resumed)
    tells = Tells.FALLS_BACK
    if came >= way - near:
        tells = Tells.GOES_ON
    elif came <= near:
        tells = Tells.BEGINS_AGAIN
    return Vote(counter, tells, began, saved, resumed)


def _saved(counter: Counter, saved_at: Instant, resumed: Value, acts: Sequence[Act]) -> Vote | None:
    """Judge a counter of saves: one that goes on is past what was restored.

    A save that had as long as the first's proves nothing: from zero it would be there too.
    """
    first, second = acts
    saved = counter.at(saved_at)
    if saved is None:
        return None
    began = counter.values[0].amount
    if len({value.amount for value in counter.values}) < 2:
        # A name that is used again, or a number that never changes, counts nothing.
        if not counter.says_progress or resumed.amount == saved:
            return None
    if counter.sign * (resumed.amount - saved) <= 0:
        return Vote(counter, Tells.BEGINS_AGAIN, began, saved, resumed.amount)
    took_s: Seconds = resumed.at - second.began_at
    if took_s > SOONER * (saved_at - first.began_at):
        return None
    return Vote(counter, Tells.GOES_ON, began, saved, resumed.amount)


ORDER: tuple[Source, ...] = ("printed", "inside", "named")
"""Whom to believe first: a name is easily given to what it does not fit."""


def heard(every: Sequence[Vote]) -> list[Vote]:
    """Return the votes that count: of the best source that has any, those called as progress is."""
    for source in ORDER:
        of_it = [vote for vote in every if vote.source == source and vote.tells != Tells.ELSEWHERE]
        named = [vote for vote in of_it if vote.counter.says_progress]
        if named or of_it:
            return named or of_it
    return []


def all_tell(tells: Tells, some: Iterable[Vote]) -> bool:
    """Say whether there are votes, and all say this."""
    told = {vote.tells for vote in some}
    return told == {tells}
