"""The cheapest fleet of very few jobs, by trying everything: all sets, kinds and orders."""

from __future__ import annotations

import math
from itertools import combinations, permutations
from typing import TYPE_CHECKING

import numpy as np

from cloudwhale_policies.renting.plans import Fleet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cloudwhale_policies.renting.arrays import Tables
    from cloudwhale_policies.renting.machine import Machine, Yard

MOST = 40_000
"""Jobs that are placed at most, in all that is tried: a quarter of a second."""


def cheapest_fleet(tables: Tables, yard: Yard) -> Fleet | None:
    """Return a fleet for all jobs that some kind can do, None where there is too much to try.

    Budgets and quotas are not its question.
    """
    jobs = [lot for lot in tables.lot_of if np.isfinite(tables.cheapest_usd[lot])]
    if not jobs or _work(len(jobs), len(tables.kinds)) > MOST:
        return None
    loads = {some: _cheapest(tables, yard, lots) for some, lots in _sets(jobs)}
    best: dict[int, tuple[float, tuple[Machine, ...]]] = {0: (0.0, ())}
    for held in range(1, 1 << len(jobs)):
        first = held & -held
        found: list[tuple[float, tuple[Machine, ...]]] = []
        some = held
        while some:
            machine = loads[some]
            if some & first and machine is not None:
                usd, others = best[held ^ some]
                found.append((usd + machine.usd, (*others, machine)))
            some = (some - 1) & held
        best[held] = min(found, key=lambda one: one[0], default=(math.inf, ()))
    usd, machines = best[(1 << len(jobs)) - 1]
    return Fleet(list(machines), []) if math.isfinite(usd) else None


def _work(jobs: int, kinds: int) -> int:
    """Return how many jobs are placed when everything is tried."""
    return kinds * sum(
        math.comb(jobs, size) * math.factorial(size) * size for size in range(1, jobs + 1)
    )


def _sets(jobs: Sequence[int]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield each set of jobs: a bit for each of them, and their lots."""
    for size in range(1, len(jobs) + 1):
        for places in combinations(range(len(jobs)), size):
            yield sum(1 << place for place in places), tuple(jobs[place] for place in places)


def _cheapest(tables: Tables, yard: Yard, lots: tuple[int, ...]) -> Machine | None:
    widths = {tables.nodes[lot] for lot in lots}
    if len(widths) > 1:
        return None
    best: Machine | None = None
    for kind in range(len(tables.kinds)):
        if not all(tables.fits[lot, kind] for lot in lots):
            continue
        for order in dict.fromkeys(permutations(lots)):
            machine = yard.packed(kind, next(iter(widths)), order)
            if machine is not None and (best is None or machine.usd < best.usd):
                best = machine
    return best
