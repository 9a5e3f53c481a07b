"""A mix and all offers as one problem of renting, made as a planning round makes it.

Hazard and data are added here: on spot a job takes longer by saves, lost work and restores, and
later still at the quantile that a deadline asks for; data cost what they cost to bring.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from rentals_mix import REGIONS, Task
from rentals_offers import moves

from cloudwhale.model.offer import Offer
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.problems import Purse, problem_of
from cloudwhale.planning.shortlist import shortlist
from cloudwhale.planning.stock import Stock
from cloudwhale.spi.renting import RentalProblem

SAVE_EVERY_S, SAVE_S, RESTORE_S = 600.0, 10.0, 300.0
"""Of a job on spot: assumed for all; a restore counts the boot of the next machine."""
LATE_SHARE = 0.95
"""A deadline is met with this probability."""


def problem(tasks: Sequence[Task], found: Sequence[Offer], seed: int = 0) -> RentalProblem:
    """Return the problem; the offers that another beats in everything are dropped."""
    prices = moves(found, REGIONS)
    kept = shortlist(found, prices)
    stock = Stock(kept, Durations({}))
    plain = problem_of(stock, [task.job for task in tasks], 0.0, Purse(), seed)
    hazard = np.array([kind.hazard_per_h for kind in plain.kinds]) / 3600.0
    region = {offer.id: offer.region for offer in kept}
    there = [region[kind.offer] for kind in plain.kinds]
    extra = np.array(
        [
            [task.data_gb * prices.price(task.data, place) if task.data else 0.0 for place in there]
            for task in tasks
        ]
    )
    expected = _expected(plain.runs_s, hazard)
    return replace(
        plain, runs_s=expected, late_s=_late(plain.runs_s, expected, hazard), extra_usd=extra
    )


def _expected(work_s: NDArray[np.float64], hazard: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the time until the work is done: failures come by chance, at a steady rate.

    A stretch of length t until a save takes (e^(h t) - 1)(1/h + restore) on average.
    """
    stretch_s = SAVE_EVERY_S + SAVE_S
    safe = np.where(hazard > 0, hazard, 1.0)
    pace = np.expm1(safe * stretch_s) * (1.0 / safe + RESTORE_S) / SAVE_EVERY_S
    return np.where(hazard > 0, work_s * pace, work_s)


def _late(
    work_s: NDArray[np.float64], expected: NDArray[np.float64], hazard: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the time that is not passed but for a rare share, at the worst loss of each failure.

    Failures within the time that it takes anyway follow a Poisson law.
    """
    mean = np.where(np.isfinite(expected), expected, 0.0) * hazard
    failures, term = np.zeros_like(mean), np.exp(-mean)
    reached = term.copy()
    while (open_ := reached < LATE_SHARE).any():
        failures = failures + open_
        term = term * mean / np.maximum(failures, 1.0)
        reached = np.where(open_, reached + term, reached)
    saved_s = work_s * (1 + SAVE_S / SAVE_EVERY_S)
    late = saved_s + failures * (SAVE_EVERY_S + SAVE_S + RESTORE_S)
    return np.where(hazard > 0, np.maximum(late, expected), work_s)


def shape(one: RentalProblem) -> tuple[int, int, int]:
    """Return how many jobs, kinds and pairs of both that suit each other a problem has."""
    return len(one.jobs), len(one.kinds), int(np.isfinite(one.runs_s).sum())


def deadline_share(one: RentalProblem) -> float:
    """Return the share of the jobs that must have ended by some time."""
    return sum(math.isfinite(by) for by in one.done_by_s) / max(1, len(one.jobs))
