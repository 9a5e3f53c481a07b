"""What free CPU, memory and GPU of each kind of node are worth to the rest of the mix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cloudwhale_policies.filling.menu import Floats, Menu

# Whole cores, GiB and GPUs keep the numbers of the programme near 1.
CPU_UNIT = 1000.0
MEMORY_UNIT = 1024.0
GPU_UNIT = 1000.0

PARTS = 3
"""CPU, memory, GPU: so many rows of the programme per kind of node."""

CPU_STEP = 4000
GPU_STEP = 200
"""Demands that are alike to so many milli are one to the programme: it solves thrice as fast."""

OPTIONS = (
    ("threads", 1),
    ("solver", "ipm"),
    ("run_crossover", "off"),  # of many duals those in the middle, not those of a corner
)


@dataclass(frozen=True, slots=True)
class Prices:
    """GPU milli that a unit of each kind of node is worth; a number per kind."""

    cpu: Floats
    """Of a milli of CPU."""
    memory: Floats
    """Of a MiB."""
    gpu: Floats
    """Of a milli of GPU."""

    def of(self, menu: Menu) -> Floats:
        """Return what every demand is worth on every kind: a row per demand, a column per kind."""
        return (
            menu.cpu[:, None] * self.cpu
            + menu.memory[:, None] * self.memory
            + menu.asked[:, None] * self.gpu
        )


@dataclass(frozen=True, slots=True)
class Free:
    """What is free on all nodes of each kind together."""

    cpu: Floats
    memory: Floats
    gpu: Floats


class Basket:
    """Demands of a menu that are much alike, taken together at their mean."""

    def __init__(self, menu: Menu) -> None:
        alike = np.column_stack(
            (menu.cpu // CPU_STEP, menu.gpus, menu.milli // GPU_STEP, menu.fits)
        )
        first, self.number = np.unique(alike, axis=0, return_index=True, return_inverse=True)[1:]
        self.size = len(first)
        self.fits = menu.fits[first]
        weight = self.total(menu.counts.astype(np.float64))
        self.cpu = self.total(menu.counts * menu.cpu / CPU_UNIT) / weight
        self.memory = self.total(menu.counts * menu.memory / MEMORY_UNIT) / weight
        self.gpu = self.total(menu.counts * menu.asked / GPU_UNIT) / weight

    def total(self, each: Floats) -> Floats:
        """Return the sums over those that are alike."""
        return np.bincount(self.number, weights=each, minlength=self.size).astype(np.float64)


class SolverBroke(Exception):
    """The solver could not even try: prices that are silently missing would fill far less."""


class Programme:
    """The linear programme that fills what is free with what usually comes; solved ever again.

    It places numbers of pods of a demand on kinds of nodes so that most GPU is occupied. Pods
    without GPUs take no part: they are worth nothing there, and they are placed anyway.
    """

    def __init__(self, menu: Menu) -> None:
        self._basket = Basket(menu)
        self._number = len(menu.kinds)
        asks = self._basket.gpu > 0
        self._demands, self._kinds = np.nonzero(self._basket.fits & asks[:, None])
        self._solver = quiet_solver()
        for name, value in OPTIONS:
            self._solver.setOptionValue(name, value)
        self._solver.passModel(self._model())

    def prices(self, free: Free, coming: Floats) -> Prices | None:
        """Return the prices while so many pods of every demand are still to come.

        None when the solver finds none that it trusts; those of before are then the best known.
        Raise SolverBroke when it does not run at all.
        """
        import highspy

        kinds = self._number
        upper = np.concatenate(
            (
                free.cpu / CPU_UNIT,
                free.memory / MEMORY_UNIT,
                free.gpu / GPU_UNIT,
                self._basket.total(coming),
            )
        )
        rows = np.arange(len(upper), dtype=np.int32)
        self._solver.changeRowsBounds(len(upper), rows, np.full(len(upper), -np.inf), upper)
        if self._solver.run() == highspy.HighsStatus.kError:
            raise SolverBroke("HiGHS has not run: were its threads set otherwise in this process?")
        if self._solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        duals = np.abs(np.array(self._solver.getSolution().row_dual, dtype=np.float64))
        cpu, memory, gpu = duals[: PARTS * kinds].reshape(PARTS, kinds)
        return Prices(
            cpu=cpu * GPU_UNIT / CPU_UNIT, memory=memory * GPU_UNIT / MEMORY_UNIT, gpu=gpu
        )

    def _model(self) -> Any:
        """Return the programme; rows: CPU, memory and GPU by kind, then what comes by demand."""
        import highspy

        basket, kinds, pairs = self._basket, self._number, len(self._demands)
        rows = PARTS * kinds + basket.size
        places = [self._kinds + part * kinds for part in range(PARTS)]
        places.append(PARTS * kinds + self._demands)
        amounts = [basket.cpu, basket.memory, basket.gpu]
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = pairs, rows
        model.sense_ = highspy.ObjSense.kMaximize
        model.col_cost_ = amounts[-1][self._demands]
        model.col_lower_, model.col_upper_ = np.zeros(pairs), np.full(pairs, np.inf)
        model.row_lower_, model.row_upper_ = np.full(rows, -np.inf), np.zeros(rows)
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_ = np.arange(0, len(places) * pairs + 1, len(places))
        model.a_matrix_.index_ = np.stack(places, axis=1).ravel()
        model.a_matrix_.value_ = np.stack(
            [row[self._demands] for row in amounts] + [np.ones(pairs)], axis=1
        ).ravel()
        return model


def quiet_solver() -> Any:
    """Return a solver that prints nothing; highspy has no annotations for all of its calls."""
    import highspy

    class Quiet(highspy.Highs):
        """A solver without callbacks: to enable them prints a banner on standard output."""

        def enableCallbacks(self) -> None:
            """Leave them off."""

    solver: Any = Quiet()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    return solver
