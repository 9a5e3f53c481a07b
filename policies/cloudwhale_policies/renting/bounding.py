"""How much any plan costs at least, and what each job is worth in that: its shadow price.

The programme of machine hours (`hours`) finds the prices; `certificates` proves them, for all kinds
and in its own sums, so what the solver leaves out or gets wrong makes the bound lower, never wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cloudwhale_policies.renting.areas import Areas
from cloudwhale_policies.renting.arrays import Tables
from cloudwhale_policies.renting.certificates import Certificates
from cloudwhale_policies.renting.hours import Costs, Programme

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cloudwhale.spi.renting import RentalProblem

    from cloudwhale_policies.renting.arrays import Floats

SAFE = 1.0 - 1e-5
"""Machines are packed with a slack of a millionth; sums are rounded; this is given away for both."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How hard a bound is sought; all counted in rounds."""

    name: str
    near: float
    """Kinds are taken first that are so near to the cheapest for some job."""
    kinds: int
    """Rounds that add kinds of which the prices are not proven."""
    rows: int
    """Rounds that add rows, each time."""
    whole: int
    """Up to so many lots all rows are there from the start but those of exclusions."""
    goal: float = 1e-3
    """Rounds end when so small a share of the bound is not proven."""


QUICK = Effort("quick", near=1.02, kinds=3, rows=2, whole=300)
THOROUGH = Effort("thorough", near=1.15, kinds=12, rows=8, whole=300, goal=1e-5)


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """What no plan for all jobs that fit somewhere in time can cost less than."""

    usd: float
    worth: NDArray[np.float64]
    """By job, in the order of the problem; they sum to `usd`."""
    says: str


def bounded(problem: RentalProblem, effort: Effort = QUICK) -> Bound:
    """Return a proven bound for plans that place every job which some kind fits in time."""
    tables = Tables(problem)
    worth, says = worth_of(tables, effort)
    by_job = worth[np.array(tables.lot_of, dtype=np.intp)] if tables.members else worth
    return Bound(float(by_job.sum()), by_job, says)


def worth_of(tables: Tables, effort: Effort) -> tuple[Floats, str]:
    """Return what a job of each lot costs at least, and how that was found."""
    if not tables.members or not tables.kinds:
        return np.zeros(len(tables.members)), "nothing to rent for"
    areas = Areas(tables)
    costs = Costs.of(tables, areas)
    programme = Programme(tables, areas, costs, whole=len(tables.members) <= effort.whole)
    proofs = Certificates(tables, areas, costs)
    counts = np.array([len(jobs) for jobs in tables.members], dtype=np.float64)
    best, goal = np.zeros(len(counts)), 0.0
    for kind in _first(tables, areas, effort.near):
        programme.add(kind, np.flatnonzero(costs.able[:, kind]))
    rounds = 0
    for rounds in range(1, effort.kinds + 1):
        if not _solved(programme, effort.rows):
            break
        over = proofs.excess(programme.worth, programme.tariffs)
        worth = proofs.proven(programme.worth, programme.tariffs)
        if worth @ counts > best @ counts:
            best = worth
        goal = (1.0 - effort.goal) * programme.usd
        if best @ counts >= goal or not _added(programme, costs, over):
            break
    says = f"{effort.name}: {len(programme.blocks)} kinds, {rounds} rounds"
    return SAFE * best, says


def _solved(programme: Programme, rounds: int) -> bool:
    for _ in range(rounds):
        if not programme.solve():
            return False
        if not programme.tighten():
            return True
    return programme.solve()


def _first(tables: Tables, areas: Areas, near: float) -> list[int]:
    """Return kinds that are nearly the cheapest for some job, alone or well filled."""
    own = tables.own_usd
    nodes = np.array(tables.nodes, dtype=np.float64)[:, None]
    parts = np.stack(
        [areas.shape(kind).rows[:5].max(axis=0) for kind in range(len(tables.kinds))], axis=1
    )
    rate = tables.of_kinds("usd_h") / 3600.0
    runs = np.where(np.isfinite(own), tables.runs_s, 0.0)
    filled = np.where(np.isfinite(own), nodes * parts * runs * rate + tables.extra_usd, np.inf)
    keep = np.zeros(len(tables.kinds), dtype=bool)
    for usd in (own, filled):
        least = usd.min(axis=1)[:, None]
        keep |= (np.isfinite(usd) & (usd <= near * least)).any(axis=0)
    return np.flatnonzero(keep).tolist()


def _added(programme: Programme, costs: Costs, over: Floats) -> bool:
    """Add kinds whose prices are not proven, the worst of each first; return whether any is."""
    added = False
    for kind in np.argsort(-over, kind="stable")[:60].tolist():
        if over[kind] > 0:
            added |= programme.add(kind, np.flatnonzero(costs.able[:, kind]))
    return added
