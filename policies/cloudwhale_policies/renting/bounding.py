"""How much any plan costs at least, and what each job is worth in that: its shadow price.

The programme of machine hours (`hours`) finds the prices; `certificates` proves them, for all kinds
and in its own sums, so what the solver leaves out or gets wrong makes the bound lower, never wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from cloudwhale_policies.renting.areas import PLAIN, Areas
from cloudwhale_policies.renting.arrays import Tables
from cloudwhale_policies.renting.certificates import Certificates, Open
from cloudwhale_policies.renting.costs import Costs
from cloudwhale_policies.renting.hours import Programme
from cloudwhale_policies.renting.patterns import Patterns
from cloudwhale_policies.renting.sets import Sets

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cloudwhale.spi.renting import RentalProblem
    from cloudwhale_policies.renting.arrays import Flags, Floats
    from cloudwhale_policies.renting.hours import Lots

SAFE = 1.0 - 1e-5
"""Given away for what is rounded: machines are packed with a slack of a millionth."""


RIDES = 1.05
"""At first a job may run on a kind where its devices alone cost so much of its cheapest machine."""
SHARPENED, WORTH_IT, NEEDED = 40, 1e-3, 1e-3
"""Kinds for which ways to count are made at most; the part of all money that one must cost for
that; and the part of its hours that must be missing."""
AT_ONCE = 60
"""Kinds that are added in a round at most."""


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
    sets: int = 0
    """Times that ways to count are made for the kinds that are used most."""
    few: int = 0
    """Up to so many jobs ways to count are made, and whole loads of machines are looked at."""


QUICK = Effort("quick", near=1.02, kinds=3, rows=1, whole=300, goal=1e-2)
FIRM = Effort("firm", near=1.15, kinds=12, rows=8, whole=300, goal=1e-5)
"""All that linear programmes can say; a second or two for a hundred jobs."""
THOROUGH = Effort("thorough", near=1.15, kinds=12, rows=8, whole=300, goal=1e-5, sets=2, few=150)


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """What no plan for all jobs that fit somewhere in time can cost less than."""

    usd: float
    worth: NDArray[np.float64]
    """By job, in the order of the problem; they sum to `usd`."""
    says: str
    runs: Mapping[int, NDArray[np.float64]] = field(
        default_factory=dict[int, "NDArray[np.float64]"]
    )
    """By kind, the part of each job that the programme last ran there, in the order of the jobs."""


def bounded(problem: RentalProblem, effort: Effort = QUICK) -> Bound:
    """Return a proven bound for plans that place every job which some kind fits in time."""
    return bound_of(Tables(problem), effort)


def bound_of(tables: Tables, effort: Effort = QUICK) -> Bound:
    """Return the same for a problem that is folded already."""
    if not tables.members or not tables.kinds:
        return Bound(0.0, np.zeros(len(tables.lot_of)), "nothing to rent for")
    worth, says, programme = _worth_of(tables, effort)
    lots = np.array(tables.lot_of, dtype=np.intp)
    by_job = worth[lots]
    counts = np.array([len(jobs) for jobs in tables.members], dtype=np.float64)
    runs: dict[int, Floats] = {}
    for kind, block in programme.blocks.items():
        if len(block.runs) == len(block.lots) and block.runs.any():
            part = np.zeros(len(counts))
            part[block.lots] = block.runs
            runs[kind] = (part / counts)[lots]
    return Bound(float(by_job.sum()), by_job, says, runs)


def _worth_of(tables: Tables, effort: Effort) -> tuple[Floats, str, Programme]:
    """Return what a job of each lot costs at least, how that was found, and the programme."""
    areas = Areas(tables)
    costs = Costs.of(tables, areas)
    proofs = Certificates(tables, areas, costs)
    counts = np.array([len(jobs) for jobs in tables.members], dtype=np.float64)
    best, rounds, sets = np.zeros(len(counts)), 0, 0
    few = len(tables.lot_of) <= effort.few
    rides = _rides(tables, areas)
    programme = begun(tables, areas, costs, effort)
    while rounds < effort.kinds and _solved(programme, effort.rows):
        rounds += 1
        found = list(proofs.open(programme.worth, programme.tariffs))
        worth = proofs.proven(programme.worth, found)
        best = max(best, worth, key=lambda one: float(one @ counts))
        new = [(one.kind, one.lots) for one in _worst(found)]
        is_done = best @ counts >= (1.0 - effort.goal) * programme.usd
        if not is_done and sum(
            [programme.add(kind, _with(lots, rides[:, kind])) for kind, lots in new]
        ):
            continue
        sets += 1
        if not few or sets > effort.sets or not _sharpened(programme, costs):
            break
    says = f"{effort.name}: {len(programme.blocks)} kinds, {rounds} rounds"
    if few:
        reached = float(best @ counts)
        best = Patterns(tables, areas, costs, programme).raised(best)
        says += f", then {float(best @ counts) - reached:.2f} USD more by whole loads"
    return SAFE * best, says, programme


def _solved(programme: Programme, rounds: int) -> bool:
    for _ in range(rounds):
        if not programme.solve():
            return False
        if not programme.tighten():
            return True
    return programme.solve()


def _sharpened(programme: Programme, costs: Costs) -> bool:
    """Make ways to count for the kinds that are used most; return whether any was needed."""
    spent = {
        kind: block.used_h * float(costs.usd_h[kind]) for kind, block in programme.blocks.items()
    }
    made = False
    for kind in sorted(spent, key=lambda one: (-spent[one], one))[:SHARPENED]:
        block = programme.blocks[kind]
        if spent[kind] < WORTH_IT * programme.usd:
            break
        weights, hours = Sets(block.rows, block.side).weights(block.hours * block.runs, block.hours)
        if hours > block.used_h * (1.0 + NEEDED):
            programme.count(kind, weights)
            made = True
    return made


def begun(tables: Tables, areas: Areas, costs: Costs, effort: Effort = QUICK) -> Programme:
    """Return a programme of the kinds that are nearly the cheapest for some job."""
    programme = Programme(tables, areas, costs, whole=len(tables.members) <= effort.whole)
    own = tables.own_usd
    keep = np.zeros(len(tables.kinds), dtype=bool)
    for usd in (own, _shared(tables, areas, slice(0, PLAIN))):
        keep |= (np.isfinite(usd) & (usd <= effort.near * usd.min(axis=1)[:, None])).any(axis=0)
    rides = _rides(tables, areas)
    for kind in np.flatnonzero(keep).tolist():
        programme.add(kind, np.flatnonzero(rides[:, kind]))
    return programme


def _rides(tables: Tables, areas: Areas) -> Flags:
    """Return on which kinds a job's devices alone cost no more than its cheapest machine.

    Jobs without devices may run wherever there are some: they could stand there for nothing.
    """
    devices = _shared(tables, areas, slice(0, 1))
    rides: Flags = np.isfinite(devices) & (devices <= RIDES * tables.cheapest_usd[:, None])
    return rides


def _shared(tables: Tables, areas: Areas, resources: slice) -> Floats:
    """Return what a job costs when others pay for what it leaves free of some resources."""
    able = np.isfinite(tables.own_usd)
    nodes = np.array(tables.nodes, dtype=np.float64)[:, None]
    rate = tables.of_kinds("usd_h") / 3600.0 * nodes * np.where(able, tables.runs_s, 0.0)
    kinds = range(len(tables.kinds))
    parts = np.stack([areas.shape(one).rows[resources].max(axis=0) for one in kinds], axis=1)
    return np.where(able, parts * rate + tables.extra_usd, np.inf)


def _with(lots: Lots, rides: Flags) -> Lots:
    return np.union1d(lots, np.flatnonzero(rides))


def _worst(found: Iterable[Open]) -> list[Open]:
    return sorted(found, key=lambda one: (-one.usd, one.kind))[:AT_ONCE]
