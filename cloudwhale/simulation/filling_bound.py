"""What no policy could exceed when it fills a cluster, even if it knew every pod beforehand."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloudwhale.spi.filling import GPU_MILLI, ClusterNode, Demand, Pod, Shape

CUTS = 20
"""Dual-feasible functions per kind of node; more of them change the third digit."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Columns:
    """One pod of a demand on a node of a kind, each a column of the programme."""

    demands: NDArray[np.int64]
    kinds: NDArray[np.int64]


def most_allocated_milli(cluster: Sequence[ClusterNode], pods: Sequence[Pod]) -> float:
    """Return an upper bound of the GPU milli that any choice among the pods can occupy.

    A linear programme over numbers of pods by demand and kind of node: CPU, memory and models,
    and for every GPU the functions of Fekete and Schepers (Mathematical Programming, 2001),
    under which the sizes that share one still add up to at most 1.
    """
    kinds = Counter(node.shape for node in cluster)
    demands = Counter(pod.demand for pod in pods if pod.demand.gpus)
    pairs = [
        (d, k)
        for d, demand in enumerate(demands)
        for k, shape in enumerate(kinds)
        if could_run(demand, shape)
    ]
    if not pairs:
        return 0.0
    columns = _Columns(
        demands=np.array([d for d, _ in pairs], dtype=np.int64),
        kinds=np.array([k for _, k in pairs], dtype=np.int64),
    )
    return GPU_MILLI * _solved(_programme(kinds, demands, columns))


def could_run(demand: Demand, shape: Shape) -> bool:
    """Return whether an empty node of this shape could take the pod."""
    return (
        demand.cpu_milli <= shape.cpu_milli
        and demand.memory_mib <= shape.memory_mib
        and demand.gpus <= shape.gpus
        and (not demand.gpus or not demand.models or shape.model in demand.models)
    )


def dual_feasible(milli: int, cut: int) -> float:
    """Return the weight of a size: whatever shares a GPU adds up to at most 1."""
    parts = (cut + 1) * milli
    return milli / GPU_MILLI if parts % GPU_MILLI == 0 else parts // GPU_MILLI / cut


def _programme(kinds: Counter[Shape], demands: Counter[Demand], columns: _Columns) -> Any:
    """Return the programme; rows: CPU, memory and GPU cuts by kind, then pods by demand."""
    import highspy

    asked, shapes = list(demands), list(kinds)
    weights = [
        [d.cpu_milli / 1000.0 for d in asked],
        [d.memory_mib / 1000.0 for d in asked],
        *([d.gpus * dual_feasible(d.gpu_milli, cut) for d in asked] for cut in range(1, CUTS + 1)),
        [d.gpu_total_milli / GPU_MILLI for d in asked],
    ]
    limits = [
        [kinds[s] * s.cpu_milli / 1000.0 for s in shapes],
        [kinds[s] * s.memory_mib / 1000.0 for s in shapes],
        *([float(kinds[s] * s.gpus) for s in shapes] for _ in range(CUTS + 1)),
    ]
    height, pairs = len(weights) + 1, len(columns.kinds)
    places = [row * len(shapes) + columns.kinds for row in range(len(weights))]
    places.append(len(weights) * len(shapes) + columns.demands)
    amounts = [np.array(row)[columns.demands] for row in weights] + [np.ones(pairs)]
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = pairs, len(weights) * len(shapes) + len(asked)
    model.sense_ = highspy.ObjSense.kMaximize
    model.col_cost_ = np.array(weights[-1])[columns.demands]
    model.col_lower_, model.col_upper_ = np.zeros(pairs), np.full(pairs, np.inf)
    model.row_lower_ = np.full(model.num_row_, -np.inf)
    model.row_upper_ = np.array([x for row in limits for x in row] + list(demands.values()))
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = np.arange(0, height * pairs + 1, height)
    model.a_matrix_.index_ = np.stack(places, axis=1).ravel()
    model.a_matrix_.value_ = np.stack(amounts, axis=1).ravel()
    return model


def _solved(model: Any) -> float:
    """Return the best value of a programme."""
    import highspy

    class Quiet(highspy.Highs):
        """A solver without callbacks: to enable them prints a banner on standard output."""

        def enableCallbacks(self) -> None:
            """Leave them off."""

    # highspy has no annotations for all of its calls.
    solver: Any = Quiet()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)  # as every programme here: a process keeps its first number
    solver.passModel(model)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise ArithmeticError(f"the bound's programme ended as {solver.getModelStatus()}")
    return float(solver.getInfo().objective_function_value)
