"""By when work on a machine that may be taken away has ended, with a given probability.

The model is that of `planning/spot`. The answer is on the safe side: the smaller of two bounds that
both hold.

*By counting.* An interruption costs a segment and a restart at most. So work that takes W when
nothing happens has ended at t_j = W + j (s + r) unless more than j interruptions came before t_j:
P(T > t_j) <= P(Poisson(h t_j) > j). The first j for which that is at most 1 - q will do. It is
exact where most see no interruption, and good where interruptions are few.

*By moments* (Chernoff). P(T > t) <= e^-zt M(z) for every z > 0 for which M(z) = E e^zT is finite,
so T <= (ln M(z) + ln 1/(1 - q))/z with probability q; the least over some z is taken. The moments
of a stretch follow as its mean does: with a = h - z and A(x) = h (1 - e^-ax)/a they are for a
restart p = e^-ar/(1 - A(r)), for a stretch of s seconds m(s) = e^-as/(1 - p A(s)). ln m is convex
in s and 0 at 0, so a last segment of l seconds counts l/s of a whole one, at most.
"""

import math

import numpy as np
from numpy.typing import NDArray

from cloudwhale.model.units import Seconds
from cloudwhale.planning.spot import TOO_LARGE, Risk, segments

Floats = NDArray[np.float64]

POISSON_TERMS = 16  # with more interruptions than that the other bound is the better one
BY_LENGTH = np.geomspace(1e-3, 20.0, 48)[:, None]
BY_MEAN = np.geomspace(0.05, 0.98, 16)[:, None]
"""Where the best rate is looked for, by the length of a stretch and by its mean."""


def quantile_s(work_s: Seconds, risk: Risk, q: float) -> Seconds:
    """Return a time within which work ends with probability `q` at least; see `quantile_each_s`."""
    if not risk.per_s or work_s <= 0:
        return max(0.0, work_s)
    return float(quantile_each_s(np.array([work_s]), risk, q)[0])


def quantile_each_s(works_s: Floats, risk: Risk, q: float) -> Floats:
    """Return times within which each of many amounts of work ends with probability `q` at least.

    Below the mean when `q` is small, as quantiles are. Asked once for each kind of machine.
    """
    if not 0.0 < q < 1.0:
        raise ValueError(f"{q} is no quantile: it lies between 0 and 1")
    found = np.maximum(np.asarray(works_s, dtype=np.float64), 0.0)
    if risk.per_s:
        is_some = found > 0
        works = found[is_some]
        found[is_some] = np.minimum(_by_counting(works, risk, q), _by_moments(works, risk, q))
    return found


def _by_counting(works: Floats, risk: Risk, q: float) -> Floats:
    per_s = risk.per_s
    saved, _ = segments(works, risk)
    plain = works + saved * risk.save_s
    each = np.minimum(plain, risk.segment_s()) + risk.restart_s
    found = np.full_like(works, np.inf)
    for count in range(POISSON_TERMS):
        open_ = np.flatnonzero(np.isinf(found))
        if not open_.size:
            break
        ends = plain[open_] + count * each[open_]
        enough = _poisson_at_most(count, per_s * ends) >= q
        found[open_[enough]] = ends[enough]
    return found


def _poisson_at_most(count: int, means: Floats) -> Floats:
    term = np.exp(-means)
    total = term.copy()
    for number in range(1, count + 1):
        term = term * means / number
        total += term
    return total


def _by_moments(works: Floats, risk: Risk, q: float) -> Floats:
    spare = -math.log(1.0 - q)
    whole_s = risk.segment_s()
    found = np.full_like(works, np.inf)
    if math.isinf(whole_s):  # each amount of work is a segment of its own
        logs, rates = _log_moments(works, risk)
        for log, rate in zip(logs, rates, strict=True):
            np.minimum(found, (log + spare) / rate, out=found)
        return found
    saved, rests = segments(works, risk)
    whole = saved + rests / whole_s
    logs, rates = _log_moments(np.array([whole_s]), risk)
    for log, rate in zip(logs[:, 0], rates[:, 0], strict=True):
        if math.isfinite(log):
            np.minimum(found, (whole * log + spare) / rate, out=found)
    return found


def _log_moments(stretches: Floats, risk: Risk) -> tuple[Floats, Floats]:
    """Return ln m of stretches (columns) at some rates z (rows); infinity where there is none."""
    per_s, restart_s = risk.per_s, risk.restart_s
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        mean = math.exp(min(TOO_LARGE, per_s * restart_s)) * np.expm1(per_s * stretches) / per_s
        # Where interruptions are rare the best rate lies by the length of one, where they are many
        # by that of the whole stretch with all its tries.
        by_length = BY_LENGTH / (stretches + restart_s)[None, :]
        by_mean = BY_MEAN / mean[None, :]
        rates = np.maximum(np.concatenate([by_length, by_mean]), 1e-300)
        slack = per_s - rates
        again = _weighed(slack, restart_s, per_s)
        restart = np.exp(-slack * restart_s) / (1.0 - again)
        left = 1.0 - restart * _weighed(slack, stretches[None, :], per_s)
        logs = -slack * stretches[None, :] - np.log(left)
        is_finite = (again < 1.0) & (left > 0.0) & np.isfinite(logs)
    return np.where(is_finite, logs, np.inf), rates


def _weighed(slack: Floats, stretch_s: Floats | float, per_s: float) -> Floats:
    """Return h (1 - e^-ax)/a, which is hx where a is 0."""
    is_level = np.abs(slack) < 1e-15
    safe = np.where(is_level, 1.0, slack)
    found: Floats = np.where(
        is_level, per_s * stretch_s, -per_s * np.expm1(-safe * stretch_s) / safe
    )
    return found
