"""The least budget that is certainly enough for all that is to be rented."""

import math

from cloudwhale.spi.renting import HOUR_S, RentalProblem

CENT_USD = 0.01


def needed_usd(
    problem: RentalProblem, taken_usd: float = 0.0, soft_share: float = 1.0
) -> float | None:
    """Return a budget under which every job of a problem can be rented for.

    An upper bound: each job alone on the machine whose worst case is the least of those that are
    in time. Jobs that share machines need less, so a smaller budget may do; none is proven to be
    too small. Quotas and supply are left out. None: no money helps, as a job fits nothing in time.

    `taken_usd`: what the budget bears already, and what finishing started work may still need.
    `soft_share`: the part of a budget past which nothing new is rented; before the last machine is,
    what is taken must be below it.
    """
    import numpy as np  # as whoever made the problem did

    if not problem.jobs:
        return taken_usd
    kinds, terms = problem.kinds, problem.terms
    boots = np.array([kind.boot_s for kind in kinds])
    caps = np.array([kind.cap_usd_h for kind in kinds])
    held_s = np.maximum(terms.least_s, (boots + problem.runs_s) * terms.longer)
    unused_s = np.array([kind.unused_s for kind in kinds])
    worst = caps * (held_s + terms.beyond_s + unused_s) / HOUR_S
    done_by_s = np.array(problem.done_by_s)[:, None]
    in_time = np.isfinite(problem.runs_s) & (boots + problem.late_s <= done_by_s)
    least = np.where(in_time, worst, np.inf).min(axis=1, initial=np.inf)
    least = least * np.array([demand.nodes for demand in problem.demands])
    whole = taken_usd + float(least.sum())
    if math.isinf(whole):
        return None
    return max(whole, (whole - float(least.min())) / soft_share + CENT_USD)
