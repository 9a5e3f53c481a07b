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


class Market:
    """The linear programme that fills what is free with what usually comes; solved ever again.

    It places numbers of pods of a demand on kinds of nodes so that most GPU is occupied. Pods
    without GPUs take no part: they are worth nothing there, and they are placed anyway.
    """

    def __init__(self, menu: Menu) -> None:
        self._menu = menu
        self._demands, self._kinds = np.nonzero(menu.models & (menu.asked > 0)[:, None])
        self._solver = quiet_solver()
        for name, value in OPTIONS:
            self._solver.setOptionValue(name, value)
        self._solver.passModel(self._model())

    def prices(self, free: Free, coming: Floats) -> Prices:
        """Return the prices while so many pods of every demand are still to come."""
        kinds = len(self._menu.kinds)
        upper = np.concatenate(
            (free.cpu / CPU_UNIT, free.memory / MEMORY_UNIT, free.gpu / GPU_UNIT, coming)
        )
        rows = np.arange(len(upper), dtype=np.int32)
        self._solver.changeRowsBounds(len(upper), rows, np.full(len(upper), -np.inf), upper)
        self._solver.run()
        duals = np.abs(np.array(self._solver.getSolution().row_dual, dtype=np.float64))
        cpu, memory, gpu = duals[: PARTS * kinds].reshape(PARTS, kinds)
        return Prices(
            cpu=cpu * GPU_UNIT / CPU_UNIT, memory=memory * GPU_UNIT / MEMORY_UNIT, gpu=gpu
        )

    def _model(self) -> Any:
        """Return the programme; rows: CPU, memory and GPU by kind, then what comes by demand."""
        import highspy

        menu, kinds, pairs = self._menu, len(self._menu.kinds), len(self._demands)
        rows = PARTS * kinds + len(menu.cpu)
        places = [self._kinds + part * kinds for part in range(PARTS)]
        places.append(PARTS * kinds + self._demands)
        amounts = [menu.cpu / CPU_UNIT, menu.memory / MEMORY_UNIT, menu.asked / GPU_UNIT]
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
