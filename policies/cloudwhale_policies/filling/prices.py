"""What free CPU, memory and GPU of each kind of node are worth to the rest of the mix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cloudwhale.spi.filling import GPU_MILLI
from cloudwhale_policies.filling.menu import Floats, Ints, Menu


@dataclass(frozen=True, slots=True)
class Prices:
    """GPU milli that a unit of each kind is worth; a number per kind."""

    cpu: Floats
    """Of a milli of CPU."""
    memory: Floats
    """Of a MiB."""
    gpu: Floats
    """Of a milli of GPU."""
    large: Floats
    """Of a GPU of which more than half is left, beside its milli."""

    def of(self, menu: Menu) -> Floats:
        """Return what every demand is worth on every kind: a row per demand, a column per kind."""
        asked = (menu.gpus * menu.milli).astype(np.float64)
        return (
            menu.cpu[:, None] * self.cpu
            + menu.memory[:, None] * self.memory
            + asked[:, None] * self.gpu
            + large(menu)[:, None] * self.large
        )


@dataclass(frozen=True, slots=True)
class Free:
    """What is free on all nodes of each kind together."""

    cpu: Ints
    memory: Ints
    gpu: Floats
    """Without what is expected to be left over."""
    large: Ints
    """GPUs of which more than half is left."""


class Market:
    """The linear programme that fills what is free with what usually comes; solved ever again."""

    def __init__(self, menu: Menu) -> None:
        import highspy

        self._menu = menu
        self._rows, self._columns = np.nonzero(menu.models & (_asked(menu) > 0)[:, None])
        self._solver = highspy.Highs()
        for name, value in (
            ("output_flag", False),
            ("threads", 1),
            ("solver", "ipm"),  # without crossover: of many duals those in the middle
            ("run_crossover", "off"),
            ("presolve", "off"),
        ):
            self._solver.setOptionValue(name, value)
        self._solver.passModel(self._model())

    def _model(self) -> object:
        """Return the programme: pods of a demand on a kind; kinds' capacity, then what comes."""
        import highspy

        menu, kinds, demands = self._menu, len(self._menu.kinds), len(self._menu.cpu)
        pairs = len(self._rows)
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = pairs, 4 * kinds + demands
        model.sense_ = highspy.ObjSense.kMaximize
        model.col_cost_ = _asked(menu)[self._rows] / 1000.0
        model.col_lower_, model.col_upper_ = np.zeros(pairs), np.full(pairs, np.inf)
        model.row_lower_ = np.full(4 * kinds + demands, -np.inf)
        model.row_upper_ = np.zeros(4 * kinds + demands)
        places = np.stack(
            [self._columns + part * kinds for part in range(4)] + [4 * kinds + self._rows], axis=1
        )
        amounts = np.stack(
            [
                menu.cpu[self._rows] / 1000.0,
                menu.memory[self._rows] / 1000.0,
                _asked(menu)[self._rows] / 1000.0,
                large(menu)[self._rows],
                np.ones(pairs),
            ],
            axis=1,
        )
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_ = np.arange(0, 5 * pairs + 1, 5)
        model.a_matrix_.index_ = places.ravel()
        model.a_matrix_.value_ = amounts.ravel()
        return model

    def prices(self, free: Free, coming: Floats) -> Prices:
        """Return the prices while so many pods of every demand are still to come."""
        kinds, demands = len(self._menu.kinds), len(self._menu.cpu)
        upper = np.concatenate((free.cpu, free.memory, free.gpu)) / 1000.0
        upper = np.concatenate((upper, free.large, coming))
        rows = np.arange(4 * kinds + demands, dtype=np.int32)
        self._solver.changeRowsBounds(len(rows), rows, np.full(len(rows), -np.inf), upper)
        self._solver.run()
        duals = np.abs(np.array(self._solver.getSolution().row_dual)[: 4 * kinds])
        return Prices(
            cpu=duals[:kinds], memory=duals[kinds : 2 * kinds], gpu=duals[2 * kinds : 3 * kinds], large=1000.0 * duals[3 * kinds :]
        )


def large(menu: Menu) -> Ints:
    """Return how many GPUs every demand takes more than half of."""
    return np.where(menu.milli > GPU_MILLI // 2, menu.gpus, 0)


def _asked(menu: Menu) -> Ints:
    return menu.gpus * menu.milli
