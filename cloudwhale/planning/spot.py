"""How long work takes on a machine that may be taken away, what that costs, how often to save.

The model, as in Young (1974) and Daly (2006): a machine lives for an exponential time of rate h,
its hazard. Work is done in segments of c seconds, each followed by a save of k seconds; the last
one needs no save, as the job has ended. Whoever is interrupted restarts in r seconds (boot of
another machine, restore) and begins the segment anew; restarts and saves can be interrupted too.

*Expected time of a stretch of s seconds that must pass without an interruption*, E(s). The first of
the interruption and the end comes after (1 - e^-hs)/h on average, and it is an interruption with
probability 1 - e^-hs; then a restart, of length R, and the whole stretch again:

    E(s) = (1 - e^-hs)/h + (1 - e^-hs) (R + E(s))   =>   E(s) = (e^hs - 1) (1/h + R)

A restart is such a stretch that is begun anew without a restart before it: R = (e^hr - 1)/h. So

    E(s) = e^hr (e^hs - 1)/h

which is Daly's complete model, and all of some work is the sum over its segments. A notice that
leaves time for a save, and time that is not billed, make the truth better than this, never worse.
By when work ends with a given probability is asked in `planning/lateness`.

J. W. Young: A first order approximation to the optimum checkpoint interval. CACM 17(9), 1974.
J. T. Daly: A higher order estimate of the optimum checkpoint interval for restart dumps. Future
Generation Computer Systems 22(3), 2006.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloudwhale.model.units import Seconds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

HOUR_S: Seconds = 3600.0
LEAST_INTERVAL_S: Seconds = 60.0  # saving more often costs more in requests than it saves in work
TOO_LARGE = 700.0  # e to it is all that a float holds: what takes so long is never done


@dataclass(frozen=True, slots=True)
class Risk:
    """What can happen to work on one kind of machine, and what is done about it."""

    hazard_per_h: float | None = None
    """Interruptions per hour; None or 0: nothing interrupts it."""
    every_s: Seconds | None = None
    """Work between two saves; None: nothing is saved, and an interruption takes all."""
    save_s: Seconds = 0.0
    """How long a save holds the work up."""
    restart_s: Seconds = 0.0
    """From an interruption to work again: finding and booting another machine, and restoring."""

    @property
    def per_s(self) -> float:
        """Return the interruptions per second."""
        return max(0.0, self.hazard_per_h or 0.0) / HOUR_S

    def of_gang(self, machines: int) -> Risk:
        """Return the risk of work that stops when any one of its machines goes."""
        hazard = None if self.hazard_per_h is None else self.hazard_per_h * machines
        return Risk(hazard, self.every_s, self.save_s, self.restart_s)

    def saves_for(self, work_s: Seconds) -> tuple[int, Seconds]:
        """Return how many segments of some work end with a save, and the work after the last."""
        if self.every_s is None or work_s <= self.every_s:
            return 0, work_s
        every_s = max(self.every_s, LEAST_INTERVAL_S)
        saved = max(0, math.ceil(work_s / every_s) - 1)
        return saved, work_s - saved * every_s

    def segment_s(self) -> Seconds:
        """Return the work and save of a whole segment; infinity when nothing is saved."""
        if self.every_s is None:
            return math.inf
        return max(self.every_s, LEAST_INTERVAL_S) + self.save_s


def plain_s(work_s: Seconds, risk: Risk) -> Seconds:
    """Return how long work takes when nothing interrupts it; saves included where it has a hazard.

    Saves that nobody needs are not held against a machine that is never taken away.
    """
    if not risk.per_s:
        return work_s
    saved, _ = risk.saves_for(work_s)
    return work_s + saved * risk.save_s


def expected_s(work_s: Seconds, risk: Risk) -> Seconds:
    """Return how long work takes on average, the first boot left out; infinity: it never ends."""
    per_s = risk.per_s
    if not per_s or work_s <= 0:
        return max(0.0, work_s)
    saved, rest_s = risk.saves_for(work_s)
    total_s = _stretch_s(rest_s, per_s, risk.restart_s)
    if saved:
        total_s += saved * _stretch_s(risk.segment_s(), per_s, risk.restart_s)
    return total_s


def expected_each_s(works_s: Floats, risk: Risk) -> Floats:
    """Return `expected_s` of many amounts of work under one risk."""
    import numpy as np  # only where many are asked for

    per_s = risk.per_s
    works = np.maximum(np.asarray(works_s, dtype=np.float64), 0.0)
    if not per_s:
        return works
    saved, rests = segments(works, risk)
    with np.errstate(over="ignore"):
        total = np.expm1(per_s * rests) * (math.exp(min(TOO_LARGE, per_s * risk.restart_s)) / per_s)
    if risk.every_s is not None:
        whole_s = _stretch_s(risk.segment_s(), per_s, risk.restart_s)
        total = total + np.where(saved > 0, saved, 0.0) * min(whole_s, 1e300)
    return total


def segments(works: Floats, risk: Risk) -> tuple[Floats, Floats]:
    """Return `saves_for` of many amounts of work."""
    import numpy as np

    if risk.every_s is None:
        return np.zeros_like(works), works
    every_s = max(risk.every_s, LEAST_INTERVAL_S)
    saved = np.where(works > risk.every_s, np.maximum(np.ceil(works / every_s) - 1, 0.0), 0.0)
    return saved, works - saved * every_s


def _stretch_s(stretch_s: Seconds, per_s: float, restart_s: Seconds) -> Seconds:
    if per_s * (stretch_s + restart_s) > TOO_LARGE:
        return math.inf
    return math.exp(per_s * restart_s) * math.expm1(per_s * stretch_s) / per_s


def expected_usd(work_s: Seconds, risk: Risk, usd_h: float) -> float:
    """Return what work costs on average at an hourly price, the first boot left out.

    All time is billed, restarts too: that is what is paid when each machine is replaced at once.
    """
    return usd_h * expected_s(work_s, risk) / HOUR_S


def interruptions(work_s: Seconds, risk: Risk) -> float:
    """Return how often work is interrupted on average: hazard × expected time, by Wald."""
    return risk.per_s * expected_s(work_s, risk) if risk.per_s else 0.0


def useful_share(work_s: Seconds, risk: Risk) -> float:
    """Return the part of the time that is work which lasts, in [0, 1]; the rest is done again."""
    if work_s <= 0:
        return 1.0
    return work_s / expected_s(work_s, risk)


# -- the interval ----------------------------------------------------------------------------


def interval_s(
    hazard_per_h: float | None, save_s: Seconds, *, least_s: Seconds = LEAST_INTERVAL_S
) -> Seconds:
    """Return the work between two saves for which long work takes least time on average.

    It is the c at which E(c + k)/c is least, whatever r is: with x = hc, (1 - x) e^x = e^-hk.
    Young's sqrt(2k/h) is its first order and where Newton's steps begin. Never below `least_s`;
    infinity where nothing interrupts.
    """
    per_s = max(0.0, hazard_per_h or 0.0) / HOUR_S
    if not per_s:
        return math.inf
    goal = math.exp(-per_s * max(0.0, save_s))
    x = min(0.999, math.sqrt(2.0 * per_s * max(0.0, save_s)))
    # (1 - x) e^x falls ever faster on (0, 1): from either side the steps end up right of the root
    # and come down to it.
    for _ in range(60):
        if x <= 0.0:
            break
        step = ((1.0 - x) * math.exp(x) - goal) / (x * math.exp(x))
        x = min(1.0, x + step)
        if abs(step) < 1e-12:
            break
    return max(least_s, x / per_s)
