"""The cheapest plan of all for a few jobs, by trying everything."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations

from cloudwhale.spi.renting import Demand, Kind, RentalProblem

NEAR = 1e-9


@dataclass(frozen=True, slots=True)
class Placed:
    """A job's time on a machine, and what it takes there."""

    start_s: float
    end_s: float
    demand: Demand
    devices: tuple[int, ...]


def optimum_usd(problem: RentalProblem) -> float:
    """Return what the cheapest plan costs for all jobs that can be in time somewhere.

    All partitions of the jobs to machines, all kinds, all orders and all choices of devices. Job by
    job each starts as early as it can; the cheapest schedule is among these, as none becomes
    dearer by an earlier start. Budget, quotas and supply are not asked.
    """
    rows = [row for row in range(len(problem.jobs)) if math.isfinite(_alone(problem, row))]

    @cache
    def least(left: tuple[int, ...]) -> float:
        if not left:
            return 0.0
        first, others = left[0], left[1:]
        best = math.inf
        for size in range(len(others) + 1):
            for beside in combinations(others, size):
                rest = tuple(row for row in others if row not in beside)
                best = min(best, machine_usd(problem, (first, *beside)) + least(rest))
        return best

    return least(tuple(rows))


def _alone(problem: RentalProblem, row: int) -> float:
    return machine_usd(problem, (row,))


def machine_usd(problem: RentalProblem, rows: Sequence[int]) -> float:
    """Return what the cheapest machine for some jobs costs; infinity: none can take them all."""
    nodes = {problem.demands[row].nodes for row in rows}
    if len(nodes) > 1:
        return math.inf
    return min((_on(problem, column, rows) for column in range(len(problem.kinds))), default=0.0)


def _on(problem: RentalProblem, column: int, rows: Sequence[int]) -> float:
    kind, nodes = problem.kinds[column], problem.demands[rows[0]].nodes
    if not all(math.isfinite(problem.runs_s[row, column]) for row in rows):
        return math.inf
    end_s = _soonest(problem, column, tuple(rows), (), math.inf)
    extra = sum(float(problem.extra_usd[row, column]) for row in rows)
    return math.inf if math.isinf(end_s) else nodes * kind.cost_usd(end_s) + extra


def _soonest(
    problem: RentalProblem, column: int, left: tuple[int, ...], placed: tuple[Placed, ...],
    below_s: float,
) -> float:  # fmt: skip
    """Return when all could have ended at the earliest, if that is below what is known."""
    ended = max((one.end_s for one in placed), default=0.0)
    if ended >= below_s:
        return math.inf
    if not left:
        return ended
    best = below_s
    for row in left:
        rest = tuple(other for other in left if other != row)
        for one in _ways(problem, column, row, placed):
            best = min(best, _soonest(problem, column, rest, (*placed, one), best))
    return best if best < below_s else math.inf


def _ways(
    problem: RentalProblem, column: int, row: int, placed: Sequence[Placed]
) -> Iterator[Placed]:
    """Yield a job's earliest time on each choice of devices."""
    kind, demand = problem.kinds[column], problem.demands[row]
    run_s, late_s = float(problem.runs_s[row, column]), float(problem.late_s[row, column])
    latest_s = min(
        max(problem.start_by_s[row], kind.boot_s), problem.done_by_s[row] - late_s,
        problem.horizon_s - run_s,
    )  # fmt: skip
    seen: set[object] = set()
    for devices in combinations(range(kind.devices), demand.devices):
        alike = tuple(sorted(tuple(id(o) for o in placed if d in o.devices) for d in devices))
        if alike in seen:
            continue
        seen.add(alike)
        for start_s in sorted({kind.boot_s, *(one.end_s for one in placed)}):
            if start_s > latest_s + NEAR:
                break
            one = Placed(start_s, start_s + run_s, demand, devices)
            if _fits(kind, [*placed, one], start_s, one.end_s):
                yield one
                break


def _fits(kind: Kind, placed: Sequence[Placed], from_s: float, to_s: float) -> bool:
    """Return whether a machine has enough for all at every moment of a time."""
    moments = {from_s, *(one.start_s for one in placed if from_s < one.start_s < to_s - NEAR)}
    return all(
        _has(kind, [one for one in placed if one.start_s <= at < one.end_s - NEAR])
        for at in moments
    )


def _has(kind: Kind, running: Sequence[Placed]) -> bool:
    for field in ("cpu", "memory_gib", "disk_gib"):
        if sum(getattr(one.demand, field) for one in running) > getattr(kind, field) + 1e-6:
            return False
    for device in range(kind.devices):
        here = [one.demand for one in running if device in one.devices]
        gib = sum(
            kind.device_gib * one.share if one.device_gib is None else one.device_gib
            for one in here
        )
        if sum(one.share for one in here) > 1 + 1e-6 or gib > kind.device_gib + 1e-6:
            return False
    return True
