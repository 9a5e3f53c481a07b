"""Whole jobs on whole machines: prices of jobs that the programme of hours is too loose to reach.

That programme may run half a job on half a machine. Here each machine holds whole jobs: what the
dearest load of a kind earns beyond its cost is found by a mixed-integer programme with the rows of
`hours` for one machine, deadlines included. Prices are raised by column generation (Dantzig and
Wolfe, Operations Research 8(1), 1960), half way between the best prices and those of the loads
found so far, as these alone jump about. In the end every kind's prices are proven by the bound of
its own programme or by `certificates`, and lowered where they are not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cloudwhale_policies.filling.prices import quiet_solver
from cloudwhale_policies.renting.areas import Areas
from cloudwhale_policies.renting.certificates import Certificates
from cloudwhale_policies.renting.costs import Costs
from cloudwhale_policies.renting.hours import Programme

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cloudwhale_policies.renting.arrays import Floats, Tables

    Lots = NDArray[np.intp]

STEPS = 60
"""Times that all kinds are priced."""
MORE_STEPS = (15, 15, 15)
"""The same, each time that other kinds turn out to earn something."""
CENTRE = 0.85
"""How far prices stay with the best ones known."""
REACH = 1.03
"""Kinds are looked at whose machines could earn something were all prices so much higher."""
ENOUGH = 1e-3
"""Steps end when the prices cannot rise by more than such a part."""
NODES, GAP = 300, 1e-3
LOWER = 40
"""Times that prices are lowered for a kind before all of its gains are taken away."""
TINY = 1e-7


@dataclass(frozen=True, slots=True)
class Load:
    """Jobs on one machine of a kind."""

    kind: int
    lots: Lots
    counts: Floats
    usd: float


class Kind:
    """What one machine of a kind can hold, as a programme that is solved for many prices."""

    def __init__(self, tables: Tables, costs: Costs, rows: Floats, kind: int, lots: Lots) -> None:
        """`rows`: all ways to count a job's part of the kind, by lot."""
        self.kind, self.lots = kind, lots
        self._nodes = np.array(tables.nodes, dtype=np.float64)[lots]
        self._extra = costs.extra_usd[lots, kind] / self._nodes
        self._hours = costs.hours[lots, kind] / self._nodes
        self._most = np.maximum(np.floor(costs.most[lots, kind] * self._nodes + 1e-6), 1.0)
        self._usd_h, self._start_usd = float(costs.usd_h[kind]), float(costs.start_usd[kind])
        self._solver = quiet_solver()
        for name, value in (
            ("threads", 1), ("random_seed", 0), ("mip_max_nodes", NODES), ("mip_rel_gap", GAP),
        ):  # fmt: skip
            self._solver.setOptionValue(name, value)
        self._solver.passModel(self._model(rows, _windows(tables, kind, lots)))

    def dearest(self, worth: Floats) -> tuple[float, Load | None]:
        """Return what no load earns more than, infinity when that is unknown, and a good load."""
        import highspy

        value = worth[self.lots] / self._nodes - self._extra
        size = len(self.lots)
        cost = np.concatenate((value, [-self._usd_h]))
        self._solver.changeColsCost(size + 1, np.arange(size + 1, dtype=np.int32), cost)
        upper = np.where(value > TINY, self._most, 0.0)
        columns = np.arange(size, dtype=np.int32)
        self._solver.changeColsBounds(size, columns, np.zeros(size), upper)
        self._solver.clearSolver()
        if self._solver.run() == highspy.HighsStatus.kError:
            return np.inf, None
        most = float(self._solver.getInfo().mip_dual_bound)
        if not np.isfinite(most):
            return np.inf, None
        values = np.array(self._solver.getSolution().col_value, dtype=np.float64)
        load = self._load(values) if len(values) == size + 1 else None
        return most * (1 + TINY) - self._start_usd, load

    def _load(self, values: Floats) -> Load | None:
        counts, size = np.rint(values[:-1]), len(self.lots)
        held = np.flatnonzero(counts > 0)
        if not len(held) or size != len(counts):
            return None
        usd = self._start_usd + self._usd_h * float(values[-1])
        usd += float((self._extra * counts).sum())
        return Load(self.kind, self.lots[held], counts[held] / self._nodes[held], usd)

    def _model(self, rows: Floats, windows: tuple[Floats, Floats]) -> Any:
        import highspy

        size = len(self.lots)
        before, within = windows
        alone = np.diag(self._hours / np.maximum(self._most, 1.0))
        ways = np.vstack((rows * self._hours, alone))
        matrix = np.vstack(
            (
                np.hstack((ways, np.full((len(ways), 1), -1.0))),
                np.hstack((before, np.zeros((len(before), 1)))),
            )
        )
        row, column = np.nonzero(matrix)
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = size + 1, len(matrix)
        model.sense_ = highspy.ObjSense.kMaximize
        model.col_cost_ = np.zeros(size + 1)
        model.col_lower_ = np.zeros(size + 1)
        model.col_upper_ = np.concatenate((self._most, [np.inf]))
        integer, real = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
        model.integrality_ = [integer] * size + [real]
        model.row_lower_ = np.full(len(matrix), -np.inf)
        model.row_upper_ = np.concatenate((np.zeros(len(ways)), within))
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lengths = np.bincount(row, minlength=len(matrix))
        model.a_matrix_.start_ = np.concatenate(([0], np.cumsum(lengths)))
        model.a_matrix_.index_, model.a_matrix_.value_ = column, matrix[row, column]
        return model


def _windows(tables: Tables, kind: int, lots: Lots) -> tuple[Floats, Floats]:
    """Return what jobs take at least of a machine's hours before each deadline, and those hours."""
    latest = (tables.latest_s[lots, kind] - tables.boot_s[kind]) / 3600.0
    runs = tables.runs_s[lots, kind] / 3600.0
    known = np.isfinite(latest)
    rows: list[Floats] = []
    hours: list[float] = []
    parts = np.stack([tables.parts(int(lot))[:, kind] for lot in lots], axis=1)
    for end in np.unique(latest[known] + runs[known]).tolist():
        taken = np.clip(np.where(known, end - latest, 0.0), 0.0, runs) * parts
        for row in taken:
            if row.sum() > end:
                rows.append(row)
                hours.append(end * (1 + 1e-6))
    return np.array(rows).reshape(-1, len(lots)), np.array(hours)


class Patterns:
    """Raises the prices that a programme of hours found."""

    def __init__(self, tables: Tables, areas: Areas, costs: Costs, programme: Programme) -> None:
        self._tables, self._areas, self._costs = tables, areas, costs
        self._programme = programme
        self._proofs = Certificates(tables, areas, costs)
        self._counts = np.array([len(jobs) for jobs in tables.members], dtype=np.float64)
        self._kinds: dict[int, Kind] = {}
        self._loads: list[Load] = []

    def raised(self, worth: Floats) -> Floats:
        """Return proven prices, those given at worst."""
        if not worth.any():
            return worth
        best = self._risen(worth)
        proven = self._lowered(best)
        return proven if proven @ self._counts > worth @ self._counts else worth

    def _kind(self, kind: int) -> Kind:
        found = self._kinds.get(kind)
        if found is None:
            lots = np.flatnonzero(self._costs.able[:, kind])
            rows = self._programme.ways(kind, lots)
            found = self._kinds[kind] = Kind(self._tables, self._costs, rows, kind, lots)
        return found

    def _risen(self, worth: Floats) -> Floats:
        """Return better prices, which nobody has proven yet.

        Once they have risen, other kinds may earn something: these are priced too from then on.
        """
        near = self._open(REACH * worth)
        self._loads = self._singles()
        centre, usd = worth, float(worth @ self._counts)
        for steps in (STEPS, *MORE_STEPS):
            centre = self._climbed(centre, usd, near, steps)
            new = [kind for kind in self._open(centre) if kind not in near]
            if not new:
                break
            near += new
            over = sum(max(0.0, self._asked(kind, centre)) for kind in new)
            usd = float(centre @ self._counts) - over
        return centre

    def _open(self, worth: Floats) -> list[int]:
        return [one.kind for one in self._proofs.open(worth, self._programme.tariffs)]

    def _climbed(self, centre: Floats, centre_usd: float, near: list[int], steps: int) -> Floats:
        """Return better prices, or those given, by so many rounds over some kinds."""
        for step in range(steps):
            total, prices = self._master()
            if total <= centre_usd * (1 + ENOUGH):
                break
            stays = CENTRE if step < steps * 3 // 4 else CENTRE / 2
            trial = stays * centre + (1 - stays) * prices
            over = sum(max(0.0, self._asked(kind, trial)) for kind in near)
            usd = float(trial @ self._counts) - over
            if usd > centre_usd:
                centre, centre_usd = trial, usd
        return centre

    def _asked(self, kind: int, worth: Floats) -> float:
        """Return what no load of a kind earns more than, and keep a good one."""
        gain, load = self._kind(kind).dearest(worth)
        if load is not None and gain > TINY:
            self._loads.append(load)
        return gain

    def _singles(self) -> list[Load]:
        own = self._tables.own_usd
        return [
            Load(int(own[lot].argmin()), np.array([lot]), np.ones(1), float(own[lot].min()))
            for lot in range(len(own))
            if np.isfinite(own[lot].min())
        ]

    def _master(self) -> tuple[float, Floats]:
        """Return what the loads found so far cost for all jobs, and the prices of jobs by that."""
        import highspy

        lots = len(self._counts)
        able = np.isfinite(self._tables.cheapest_usd)
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = lots, len(self._loads)
        model.sense_ = highspy.ObjSense.kMaximize
        model.col_cost_ = np.where(able, self._counts, 0.0)
        model.col_lower_ = np.zeros(lots)
        model.col_upper_ = np.where(able, np.inf, 0.0)
        model.row_lower_ = np.full(len(self._loads), -np.inf)
        model.row_upper_ = np.array([load.usd for load in self._loads])
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lengths = [len(load.lots) for load in self._loads]
        model.a_matrix_.start_ = np.concatenate(([0], np.cumsum(lengths)))
        model.a_matrix_.index_ = np.concatenate([load.lots for load in self._loads])
        model.a_matrix_.value_ = np.concatenate([load.counts for load in self._loads])
        solver = quiet_solver()
        solver.setOptionValue("threads", 1)
        solver.passModel(model)
        if solver.run() == highspy.HighsStatus.kError:
            return 0.0, np.zeros(lots)
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return 0.0, np.zeros(lots)
        prices = np.maximum(np.array(solver.getSolution().col_value, dtype=np.float64), 0.0)
        return float(solver.getInfo().objective_function_value), prices

    def _lowered(self, worth: Floats) -> Floats:
        """Return prices that hold for all kinds: of those not proven each is asked by itself."""
        worth = worth.copy()
        for one in list(self._proofs.open(worth, self._programme.tariffs)):
            kind = self._kind(one.kind)
            for _ in range(LOWER):
                gain, load = kind.dearest(worth)
                if gain <= TINY:
                    break
                self._lower(worth, kind, gain, load)
            else:
                worth = self._proofs.proven(worth, [one])
        return worth

    @staticmethod
    def _lower(worth: Floats, kind: Kind, gain: float, load: Load | None) -> None:
        """Take a gain away: from the jobs of the load that earns it, where that is known.

        From all jobs of the kind when only the bound of its programme says that some load could.
        """
        if load is None:
            worth[kind.lots] *= 0.5
            return
        value = float(worth[load.lots] @ load.counts)
        if value - load.usd > gain / 2:
            worth[load.lots] *= load.usd / value
        else:
            worth[kind.lots] *= min(load.usd / (load.usd + gain), 1 - TINY)
