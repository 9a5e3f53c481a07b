"""A rental problem as arrays: alike jobs are folded to lots, a row each; kinds are columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from cloudwhale.spi.renting import HOUR_S, Demand, Kind, RentalProblem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]

SLACK = 1e-9
"""Demands may miss a capacity by so much: sums of thirds are no whole numbers."""


class Tables:
    """What a problem asks and offers: one row a lot, one column a kind.

    A lot is all jobs that no kind can tell apart. `weight` is what a dollar of worst case counts
    in the money that is minimised: more than nothing where the budget binds.
    """

    def __init__(
        self, problem: RentalProblem, weight: float = 0.0, like: Tables | None = None
    ) -> None:
        """Fold the jobs to lots, or take the lots of a problem with more kinds."""
        self.problem, self.weight = problem, weight
        self.kinds: Sequence[Kind] = problem.kinds
        self.lot_of: list[int]
        self.members: list[list[int]]
        self.lot_of, self.members = (
            _folded(problem) if like is None else (like.lot_of, like.members)
        )
        rows = [jobs[0] for jobs in self.members]
        self.demands = [problem.demands[row] for row in rows]
        self.nodes = [one.nodes for one in self.demands]
        self.runs_s = _taken(problem.runs_s, rows)
        self.late_s = _taken(problem.late_s, rows)
        self.extra_usd = _taken(problem.extra_usd, rows)
        self.done_by_s = np.array([problem.done_by_s[row] for row in rows], dtype=np.float64)
        self.start_by_s = np.array([problem.start_by_s[row] for row in rows], dtype=np.float64)
        self.boot_s = self.of_kinds("boot_s")
        self._per_unit = 1.0 / np.maximum(_capacities(problem.kinds), 1e-9)
        self._seconds: dict[int, Floats] = {}
        self.fits = np.isfinite(self.runs_s) & _held(self.demands, self.kinds)
        self.latest_s = self._latest()
        self.money = Money(self.kinds, problem, weight)
        self.own_usd = self._own()
        self.able_s = np.where(self.latest_s >= self.boot_s, self.runs_s, np.inf)

    def of_kinds(self, field: str) -> Floats:
        """Return a field of all kinds."""
        return np.array([getattr(kind, field) for kind in self.kinds], dtype=np.float64)

    def weighed(self, weight: float) -> Tables:
        """Return the same problem where a dollar of worst case counts so much."""
        other = object.__new__(Tables)
        other.__dict__.update(self.__dict__)
        other.weight = weight
        other.money = Money(self.kinds, self.problem, weight)
        other.own_usd = other._own()
        other.__dict__.pop("cheapest_usd", None)
        return other

    @cached_property
    def cheapest_usd(self) -> Floats:
        """Return what each lot's job costs at least, alone on a machine; infinity: nothing can."""
        if not self.kinds:
            return np.full(len(self.members), np.inf)
        least: Floats = self.own_usd.min(axis=1)
        return least

    def seconds(self, lot: int) -> Floats:
        """Return by resource and kind the seconds of a whole machine that a lot's job takes.

        A machine is used at least for the largest of the sums over its jobs: whatever the
        resource, and the same where more than half counts as all and half as half.
        """
        found = self._seconds.get(lot)
        if found is None:
            parts = self._parts(self.demands[lot])
            halves = 0.5 * (parts >= 0.5 - SLACK) + 0.5 * (parts > 0.5 + SLACK)
            runs = np.where(self.fits[lot], self.runs_s[lot], 0.0)
            found = self._seconds[lot] = np.concatenate((parts, halves)) * runs
        return found

    def parts(self, lot: int) -> Floats:
        """Return which part of devices, CPU and memory of each kind a lot's job takes."""
        demand = self.demands[lot]
        asked = np.array((demand.devices * demand.share, demand.cpu, demand.memory_gib))
        parts: Floats = asked[:, None] * self._per_unit[[0, 2, 3]]
        return parts

    def _parts(self, demand: Demand) -> Floats:
        """Return by resource and kind which part of a machine a demand takes."""
        memory = demand.share if demand.device_gib is None else 0.0
        asked = (demand.devices * demand.share, demand.devices * (demand.device_gib or 0.0))
        others = (demand.cpu, demand.memory_gib, demand.disk_gib)
        parts: Floats = np.array((*asked, *others))[:, None] * self._per_unit
        if memory:
            parts[1] = parts[0]
        return parts

    def _latest(self) -> Floats:
        """Return when each lot's job must start; before the boot has ended: it cannot."""
        start_by = np.maximum(self.start_by_s[:, None], self.boot_s)
        runs = np.where(self.fits, self.runs_s, 0.0)
        late = np.where(self.fits, self.late_s, 0.0)
        latest = np.minimum(start_by, self.done_by_s[:, None] - late)
        horizon = self.problem.horizon_s
        if np.isfinite(horizon):
            latest = np.minimum(latest, horizon - runs)
        return np.where(self.fits, latest, -np.inf)

    def _own(self) -> Floats:
        used = self.boot_s + np.where(self.fits, self.runs_s, 0.0)
        cost = self.money.of_all(used) * np.array(self.nodes, dtype=np.float64)[:, None]
        able = self.latest_s >= self.boot_s
        return np.where(able, cost + self.extra_usd, np.inf)


class Money:
    """What machines cost, with so much weight on what they could cost at worst."""

    def __init__(self, kinds: Sequence[Kind], problem: RentalProblem, weight: float) -> None:
        self._terms, self._weight = problem.terms, weight
        self._rates = [
            (kind.usd_h / HOUR_S, kind.billing_step_s, kind.billing_least_s) for kind in kinds
        ]
        self._kinds = kinds
        rates = np.array(self._rates, dtype=np.float64).reshape(-1, 3)
        self._usd_s, self._least_s = rates[:, 0], rates[:, 2]
        steps = rates[:, 1]
        self._whole = np.where(steps > 0, steps, 1.0)
        self._steps = None if (steps > 0).all() else steps > 0
        caps = np.array([kind.cap_usd_h for kind in kinds], dtype=np.float64)
        self._caps_s = caps / HOUR_S
        self._unused = np.array([kind.unused_s for kind in kinds], dtype=np.float64)

    def of(self, kind: int, used_s: float) -> float:
        """Return what a machine counts that is used so long, boot included."""
        usd_s, step_s, least_s = self._rates[kind]
        billed_s = used_s if step_s <= 0 else -(-used_s // step_s) * step_s
        cost = usd_s * (billed_s if billed_s > least_s else least_s)
        if self._weight:
            cost += self._weight * self._terms.worst_usd(self._kinds[kind], used_s)
        return cost

    def of_all(self, used_s: Floats) -> Floats:
        """Return the same for the use of every kind, one column each."""
        billed = np.ceil(used_s / self._whole) * self._whole
        if self._steps is not None:
            billed = np.where(self._steps, billed, used_s)
        cost: Floats = self._usd_s * np.maximum(billed, self._least_s)
        if self._weight:
            terms = self._terms
            held = np.maximum(terms.least_s, used_s * terms.longer) + terms.beyond_s + self._unused
            cost = cost + self._weight * self._caps_s * held
        return cost


def _folded(problem: RentalProblem) -> tuple[list[int], list[list[int]]]:
    """Return the lot of each job, and the jobs of each lot, both in the order of the jobs."""
    found: dict[object, int] = {}
    lot_of: list[int] = []
    members: list[list[int]] = []
    for row, key in enumerate(_keys(problem)):
        lot = found.setdefault(key, len(members))
        if lot == len(members):
            members.append([])
        members[lot].append(row)
        lot_of.append(lot)
    return lot_of, members


def _keys(problem: RentalProblem) -> Iterator[object]:
    matrices = [
        np.ascontiguousarray(one) for one in (problem.runs_s, problem.late_s, problem.extra_usd)
    ]
    for row, demand in enumerate(problem.demands):
        times = (problem.done_by_s[row], problem.start_by_s[row])
        yield (demand, times, *(one[row].tobytes() for one in matrices))


def _taken(matrix: Floats, rows: list[int]) -> Floats:
    taken: Floats = np.asarray(matrix, dtype=np.float64)[rows]
    return taken


def _column(demands: Sequence[Demand], field: str) -> Floats:
    return np.array([getattr(one, field) for one in demands], dtype=np.float64)[:, None]


def _held(demands: Sequence[Demand], kinds: Sequence[Kind]) -> Flags:
    """Return which kinds have at least what each demand asks of one machine."""
    held = np.ones((len(demands), len(kinds)), dtype=bool)
    for field in ("devices", "cpu", "memory_gib", "disk_gib"):
        have = np.array([getattr(kind, field) for kind in kinds], dtype=np.float64)
        held &= _column(demands, field) <= have * (1 + SLACK) + SLACK
    gib = np.array([one.device_gib or 0.0 for one in demands])[:, None]
    have = np.array([kind.device_gib for kind in kinds], dtype=np.float64)
    enough: Flags = (gib <= have * (1 + SLACK) + SLACK) | (_column(demands, "devices") == 0)
    return np.logical_and(held, enough)


def _capacities(kinds: Sequence[Kind]) -> Floats:
    """Return devices, memory of all of them, CPU, memory and disk: a row each, a column a kind."""
    rows = [
        (one.devices, one.devices * one.device_gib, one.cpu, one.memory_gib, one.disk_gib)
        for one in kinds
    ]
    return np.array(rows, dtype=np.float64).reshape(-1, 5).T
