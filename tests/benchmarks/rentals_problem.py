"""A mix and all offers as one problem of renting, made as a planning round makes it.

What spot machines make a job do again is in its times (`planning/stock`). Data are added here: they
cost what they cost to bring.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from rentals_mix import REGIONS, Task
from rentals_offers import moves

from cloudwhale.model.offer import Offer
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.problems import Purse, problem_of
from cloudwhale.planning.shortlist import shortlist
from cloudwhale.planning.stock import Stock
from cloudwhale.spi.renting import RentalProblem


def problem(tasks: Sequence[Task], found: Sequence[Offer], seed: int = 0) -> RentalProblem:
    """Return the problem; the offers that another beats in everything are dropped."""
    prices = moves(found, REGIONS)
    kept = shortlist(found, prices)
    stock = Stock(kept, Durations({}))
    plain = problem_of(stock, [task.job for task in tasks], 0.0, Purse(), seed)
    region = {offer.id: offer.region for offer in kept}
    there = [region[kind.offer] for kind in plain.kinds]
    extra = np.array(
        [
            [task.data_gb * prices.price(task.data, place) if task.data else 0.0 for place in there]
            for task in tasks
        ]
    )
    return replace(plain, extra_usd=extra)


def shape(one: RentalProblem) -> tuple[int, int, int]:
    """Return how many jobs, kinds and pairs of both that suit each other a problem has."""
    return len(one.jobs), len(one.kinds), int(np.isfinite(one.runs_s).sum())


def deadline_share(one: RentalProblem) -> float:
    """Return the share of the jobs that must have ended by some time."""
    return sum(math.isfinite(by) for by in one.done_by_s) / max(1, len(one.jobs))
