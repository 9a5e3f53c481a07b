"""What could become of the jobs: a few futures, from what is said, seen and learned of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, inf, log

from cloudwhale.model.units import Seconds
from cloudwhale.spi.waiting import Waits

GUESS_S: Seconds = 3600.0
"""Mean length while nothing has ended and nothing is said."""
SHORTEST_S: Seconds = 1.0
"""Nobody ends at the very moment: a release in the future is never now."""
DUE_S: Seconds = 1e-3
"""Who is to end at this moment, as was said, does so though it is not heard yet."""
ENOUGH = 20
"""Ended jobs after which their mean length is believed; before, what is said counts beside it."""


@dataclass(frozen=True, slots=True)
class Expecting:
    """What is expected of lengths, the same for all jobs of a round.

    Lengths are exponential with a mean that is learned; of a job of which something is said they
    lie within a factor of it.
    """

    mean_s: Seconds
    """Of all jobs."""
    spread: float = 1.0
    """What is said is wrong by up to this factor either way; 1: it is right."""
    futures: int = 1

    def length_s(self, said_s: Seconds | None) -> Seconds:
        """Return how long a job is expected to run that has not begun."""
        if said_s is None:
            return self.mean_s
        if self.spread <= 1.0:
            return said_s
        return _cut_mean(self.mean_s, said_s / self.spread, said_s * self.spread)

    def lefts_s(self, said_s: Seconds | None, ran_s: Seconds, number: int) -> Sequence[Seconds]:
        """Return how long a job still runs in each of the futures.

        `number` tells jobs apart: each future has some that end soon and some that end late. Who
        has outrun all that was said goes on for about half of its age.
        """
        if self.spread <= 1.0 and said_s is not None:
            left_s = said_s - ran_s
            return [left_s if left_s > 0.0 else _outran_s(-left_s, ran_s)] * self.futures
        low_s, high_s = ran_s, inf
        if said_s is not None:
            low_s, high_s = max(ran_s, said_s / self.spread), said_s * self.spread
            if low_s >= high_s:
                high_s = 2.0 * ran_s
        parts = _parts(number, self.futures)
        return [max(SHORTEST_S, self._at(part, low_s, high_s) - ran_s) for part in parts]

    def _at(self, part: float, low_s: Seconds, high_s: Seconds) -> Seconds:
        """Return the length that a part of all jobs stays below, of those between two bounds."""
        width = (high_s - low_s) / self.mean_s
        return low_s - self.mean_s * log(1.0 - part * (1.0 - exp(-width)))


def _outran_s(late_s: Seconds, ran_s: Seconds) -> Seconds:
    """Return how long one still runs that should have ended: one that is hardly late, hardly."""
    if late_s < DUE_S:
        return DUE_S
    return SHORTEST_S if late_s < SHORTEST_S else max(SHORTEST_S, 0.5 * ran_s)


def _parts(number: int, count: int) -> Sequence[float]:
    """Return parts of one, evenly spread, each once, in an order that differs among jobs."""
    step = 1 + number % (count - 1) if count > 1 else 1  # `count` is a prime: every order is whole
    shift = number // max(1, count - 1)
    return [((future * step + shift) % count + 0.5) / count for future in range(count)]


def _cut_mean(mean_s: Seconds, low_s: Seconds, high_s: Seconds) -> Seconds:
    """Return the mean of an exponential length that lies between two bounds."""
    width = (high_s - low_s) / mean_s
    if width < 1e-6:
        return 0.5 * (low_s + high_s)
    if width > 50.0:
        return low_s + mean_s
    return low_s + mean_s - (high_s - low_s) / (exp(width) - 1.0)


def expecting(waits: Waits, spread: float, futures: int) -> Expecting:
    """Return what is expected: the mean of what has ended, before that of what is said.

    Where all is known there is one future.
    """
    known = [one.length_s for one in waits.waiting] + [one.length_s for one in waits.running]
    said = [length_s for length_s in known if length_s is not None]
    lengths: Sequence[Seconds] = waits.ended_s
    if len(lengths) < ENOUGH:
        lengths = (*lengths, *said)
    mean_s = sum(lengths) / len(lengths) if lengths else GUESS_S
    is_known = spread <= 1.0 and len(said) == len(known)
    return Expecting(max(mean_s, SHORTEST_S), spread, 1 if is_known else futures)


def ends_s(waits: Waits, expected: Expecting) -> Mapping[str, Sequence[Seconds]]:
    """Return in how many seconds each running job ends, in each future, by its id."""
    rows = sorted(waits.running, key=lambda one: one.job.id)
    return {
        one.job.id: expected.lefts_s(one.length_s, one.ran_s, number)
        for number, one in enumerate(rows)
    }
