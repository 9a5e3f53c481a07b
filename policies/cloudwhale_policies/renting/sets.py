"""Which sets of jobs can be side by side at all: the hours that sets need, worked out exactly.

What jobs take of a machine's hours is a sum of stretches, in each of which some set stands side by
side. The least such sum is a small linear programme over sets; its prices are weights by which no
set exceeds 1, so they are one more way to count parts (`areas`), made for the jobs at hand. The
dearest set at some prices is found by a mixed-integer programme, and its proven bound is divided
by: the weights hold even where the search is cut short.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cloudwhale_policies.filling.prices import quiet_solver

if TYPE_CHECKING:
    from cloudwhale_policies.renting.arrays import Floats

ROUNDS = 40
"""Sets that are looked for at most."""
ENOUGH = 0.002
"""Rounds end when the hours are known to such a part."""
FAINT = 1e-3
"""So much of a job's hours is asked for even where none runs: it shall have a weight too."""
NODES = 50
SLACK = 1e-6


class Sets:
    """The sets of jobs that fit on a kind at once."""

    def __init__(self, rows: Floats, most: Floats) -> None:
        """`rows`: parts of a machine, each row a way to count; `most`: copies at once, by lot."""
        self._most = np.maximum(1.0, np.floor(most + SLACK))
        self._size = len(most)
        self._solver = quiet_solver()
        for name, value in (("threads", 1), ("random_seed", 0), ("mip_max_nodes", NODES)):
            self._solver.setOptionValue(name, value)
        self._solver.passModel(self._model(rows))
        self._found: list[Floats] = [
            np.where(np.arange(self._size) == at, copies, 0.0)
            for at, copies in enumerate(self._most.tolist())
        ]

    def weights(self, hours: Floats, jobs_h: Floats) -> tuple[Floats, float]:
        """Return weights and the hours that they prove to be needed.

        `hours`: that jobs run in all, by lot; `jobs_h`: of one job.
        """
        asked = hours + FAINT * jobs_h
        best, proven = np.zeros(self._size), 0.0
        for _ in range(ROUNDS):
            needed, prices = self._least(asked)
            if needed <= 0:
                break
            found, most = self._dearest(prices)
            if most <= 0:
                break
            held = float(asked @ prices) / max(most, 1.0)
            if held > proven:
                best, proven = prices / max(most, 1.0), held
            if proven >= (1.0 - ENOUGH) * needed or found is None or prices @ found <= 1.0 + SLACK:
                break
            self._found.append(found)
        return best, float(hours @ best)

    def _dearest(self, prices: Floats) -> tuple[Floats | None, float]:
        """Return the dearest set found, and what no set exceeds; 0: nothing is known."""
        import highspy

        columns = np.arange(self._size, dtype=np.int32)
        self._solver.changeColsCost(self._size, columns, prices)
        self._solver.clearSolver()
        if self._solver.run() == highspy.HighsStatus.kError:
            return None, 0.0
        info = self._solver.getInfo()
        most = float(info.mip_dual_bound)
        if not np.isfinite(most):
            return None, 0.0
        values: Floats = np.array(self._solver.getSolution().col_value, dtype=np.float64)
        found = np.rint(values) if len(values) == self._size else None
        return found, most * (1 + SLACK)

    def _least(self, asked: Floats) -> tuple[float, Floats]:
        """Return the hours that the sets found so far need, and the price of each job's hour."""
        import highspy

        sets: Floats = np.array(self._found)
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = sets.shape
        model.sense_ = highspy.ObjSense.kMaximize
        row, column = np.nonzero(sets)
        model.num_col_, model.num_row_ = self._size, len(sets)
        model.col_cost_ = asked
        model.col_lower_, model.col_upper_ = np.zeros(self._size), np.full(self._size, np.inf)
        model.row_lower_, model.row_upper_ = np.full(len(sets), -np.inf), np.ones(len(sets))
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lengths = np.bincount(row, minlength=len(sets))
        model.a_matrix_.start_ = np.concatenate(([0], np.cumsum(lengths)))
        model.a_matrix_.index_, model.a_matrix_.value_ = column, sets[row, column]
        solver = quiet_solver()
        solver.setOptionValue("threads", 1)
        solver.passModel(model)
        if solver.run() == highspy.HighsStatus.kError:
            return 0.0, np.zeros(self._size)
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return 0.0, np.zeros(self._size)
        prices: Floats = np.array(solver.getSolution().col_value, dtype=np.float64)
        prices = np.maximum(prices, 0.0)
        return float(solver.getInfo().objective_function_value), prices

    def _model(self, rows: Floats) -> Any:
        import highspy

        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = self._size, len(rows)
        model.sense_ = highspy.ObjSense.kMaximize
        model.col_cost_ = np.ones(self._size)
        model.col_lower_, model.col_upper_ = np.zeros(self._size), self._most
        model.integrality_ = [highspy.HighsVarType.kInteger] * self._size
        model.row_lower_ = np.full(len(rows), -np.inf)
        model.row_upper_ = np.full(len(rows), 1.0 + SLACK)
        row, column = np.nonzero(rows)
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lengths = np.bincount(row, minlength=len(rows))
        model.a_matrix_.start_ = np.concatenate(([0], np.cumsum(lengths)))
        model.a_matrix_.index_, model.a_matrix_.value_ = column, rows[row, column]
        return model
