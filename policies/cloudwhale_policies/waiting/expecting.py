"""How long jobs still run, from what is said of them, what has ended, and how old they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp

from cloudwhale.model.units import Seconds
from cloudwhale.spi.waiting import Running, Waits

GUESS_S: Seconds = 3600.0
"""Mean length while nothing has ended and nothing is said."""
SHORTEST_S: Seconds = 1.0
"""Nobody ends at the very moment: a release in the future is never now."""
ENOUGH = 20
"""Ended jobs after which their mean length is believed; before, what is said counts beside it."""


@dataclass(frozen=True, slots=True)
class Expecting:
    """What is expected of lengths, the same for all jobs of a round."""

    mean_s: Seconds
    """Of all jobs."""
    spread: float = 1.0
    """Lengths are wrong by up to this factor either way; 1: they are right."""

    def length_s(self, said_s: Seconds | None) -> Seconds:
        """Return how long a job runs that has not begun."""
        if said_s is None:
            return self.mean_s
        if self.spread <= 1.0:
            return said_s
        return _cut_mean(self.mean_s, said_s / self.spread, said_s * self.spread)

    def left_s(self, said_s: Seconds | None, ran_s: Seconds) -> Seconds:
        """Return how long a job still runs that has run for some time.

        Who has outrun what was said goes on for a while: half of its age.
        """
        if said_s is None:
            return self.mean_s
        if self.spread <= 1.0:
            left_s = said_s - ran_s
            return left_s if left_s > 0.0 else max(SHORTEST_S, 0.5 * ran_s)
        low_s, high_s = max(ran_s, said_s / self.spread), said_s * self.spread
        if low_s >= high_s:
            return max(SHORTEST_S, 0.5 * ran_s)
        return max(SHORTEST_S, _cut_mean(self.mean_s, low_s, high_s) - ran_s)


def _cut_mean(mean_s: Seconds, low_s: Seconds, high_s: Seconds) -> Seconds:
    """Return the mean of an exponential length that lies between two bounds."""
    width = (high_s - low_s) / mean_s
    if width < 1e-6:
        return 0.5 * (low_s + high_s)
    if width > 50.0:
        return low_s + mean_s
    return low_s + mean_s - (high_s - low_s) / (exp(width) - 1.0)


def expecting(waits: Waits, spread: float) -> Expecting:
    """Return what is expected: the mean of what has ended, before that of what is said."""
    said = [one.length_s for one in waits.waiting if one.length_s is not None]
    said += [one.length_s for one in waits.running if one.length_s is not None]
    if len(waits.ended_s) < ENOUGH and said:
        lengths: Sequence[Seconds] = (*waits.ended_s, *said)
    else:
        lengths = waits.ended_s
    mean_s = sum(lengths) / len(lengths) if lengths else GUESS_S
    return Expecting(max(mean_s, SHORTEST_S), spread)


def ends_s(waits: Waits, expected: Expecting) -> Mapping[str, Seconds]:
    """Return in how many seconds each running job is expected to end, by its id.

    Of those that nothing is known of, somebody ends soon, though nobody knows who: of K with a
    mean of m the first ends after m/K, the next m/(K-1) later, and so on (the order statistics of
    an exponential). The oldest are taken to be the first.
    """
    found: dict[str, Seconds] = {}
    unknown: list[Running] = []
    for one in waits.running:
        if one.length_s is None:
            unknown.append(one)
        else:
            found[one.job.id] = expected.left_s(one.length_s, one.ran_s)
    unknown.sort(key=lambda one: (-one.ran_s, one.job.id))
    at_s = 0.0
    for rank, one in enumerate(unknown):
        at_s += expected.mean_s / (len(unknown) - rank)
        found[one.job.id] = at_s
    return found
