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
from cloudwhale.planning.shortlist import Moves, shortlist
from cloudwhale.planning.stock import Stock
from cloudwhale.spi.renting import RentalProblem


class Market:
    """All offers, and what it costs to move data to them: read once, used for every mix."""

    def __init__(self, found: Sequence[Offer]) -> None:
        self.offers = found
        self.moves: Moves = moves(found, REGIONS)

    def problem(self, tasks: Sequence[Task], seed: int = 0) -> RentalProblem:
        """Return the problem; the offers that another beats in everything are dropped."""
        return self._made(tasks, shortlist(self.offers, self.moves), seed)

    def calm(self, tasks: Sequence[Task], one: RentalProblem) -> RentalProblem:
        """Return a problem with the same kinds, of which none is ever taken away."""
        kinds = {kind.offer for kind in one.kinds}
        kept = [offer.but(hazard_per_h=0.0) for offer in self.offers if offer.id in kinds]
        return self._made(tasks, sorted(kept, key=lambda offer: offer.id), one.seed)

    def _made(self, tasks: Sequence[Task], kept: Sequence[Offer], seed: int) -> RentalProblem:
        stock = Stock(kept, Durations({}))
        plain = problem_of(stock, [task.job for task in tasks], 0.0, Purse(), seed)
        region = {offer.id: offer.region for offer in kept}
        there = [region[kind.offer] for kind in plain.kinds]
        usd_gb = {
            source: np.array([self.moves.price(source, place) for place in there])
            for source in REGIONS
        }
        free = np.zeros(len(there))
        extra = [task.data_gb * usd_gb[task.data] if task.data else free for task in tasks]
        return replace(plain, extra_usd=np.array(extra))


def problem(tasks: Sequence[Task], found: Sequence[Offer], seed: int = 0) -> RentalProblem:
    """Return the problem of a mix that is asked for once."""
    return Market(found).problem(tasks, seed)


def shape(one: RentalProblem) -> tuple[int, int, int]:
    """Return how many jobs, kinds and pairs of both that suit each other a problem has."""
    return len(one.jobs), len(one.kinds), int(np.isfinite(one.runs_s).sum())


def deadline_share(one: RentalProblem) -> float:
    """Return the share of the jobs that must have ended by some time."""
    return sum(math.isfinite(by) for by in one.done_by_s) / max(1, len(one.jobs))
