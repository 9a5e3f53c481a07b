"""The cheapest choice among all machines that were ever seen, so that every job is on one.

A mixed-integer programme over machines: a job that two of them hold leaves one, which costs no
more. Effort is counted in nodes; what was proven does not matter, only what was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cloudwhale_policies.filling.prices import quiet_solver
from cloudwhale_policies.renting.machine import Machine

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cloudwhale_policies.renting.arrays import Floats

MOST = 1500
"""Machines that the programme chooses among: more of them make it slow, not better."""
LEAST_GAIN_USD = 1e-6


class Seen:
    """All machines of a search: of those with the same jobs the cheapest."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, tuple[int, ...]], Machine] = {}

    def add(self, machines: Iterable[Machine]) -> None:
        """Remember machines."""
        for machine in machines:
            if machine.noted:
                continue
            machine.noted = True
            key = (machine.width, tuple(sorted(machine.lots)))
            known = self._found.get(key)
            if known is None or machine.usd < known.usd:
                self._found[key] = machine

    def machines(self) -> list[Machine]:
        """Return them, in the order in which their jobs were first seen together."""
        return list(self._found.values())


def covering(
    seen: Sequence[Machine], counts: Sequence[int], below_usd: float, nodes: int
) -> list[Machine] | None:
    """Return machines that hold so many jobs of each lot, or more; None: none cheaper was found."""
    rows = np.array(counts, dtype=np.float64)
    usd = np.array([machine.usd for machine in seen])
    solver = _solver()
    solver.passModel(_model(seen, usd, rows))
    solver.run()
    reduced = np.array(solver.getSolution().col_dual, dtype=np.float64)
    room = below_usd - float(solver.getInfo().objective_function_value)
    if len(reduced) != len(seen) or room < LEAST_GAIN_USD:
        return None
    near = np.flatnonzero(reduced <= room)
    near = np.sort(near[np.argsort(reduced[near], kind="stable")[:MOST]])
    places: list[int] = near.tolist()
    chosen = [seen[place] for place in places]
    taken = _whole(chosen, usd[near], rows, nodes)
    if taken is None:
        return None
    fleet = [one for one, times in zip(chosen, taken.tolist(), strict=True) for _ in range(times)]
    held = np.bincount([lot for one in fleet for lot in one.lots], minlength=len(rows))
    enough = bool((held >= rows).all())
    cheaper = sum(one.usd for one in fleet) < below_usd - LEAST_GAIN_USD
    return fleet if enough and cheaper else None


def _whole(
    machines: Sequence[Machine], usd: Floats, rows: Floats, nodes: int
) -> NDArray[np.int64] | None:
    """Return how often each machine is taken; None: the solver found nothing."""
    import highspy

    solver = _solver()
    solver.setOptionValue("mip_max_nodes", nodes)
    model = _model(machines, usd, rows)
    model.integrality_ = [highspy.HighsVarType.kInteger] * len(machines)
    solver.passModel(model)
    solver.run()
    values = np.array(solver.getSolution().col_value, dtype=np.float64)
    if len(values) != len(machines):
        return None
    times: NDArray[np.int64] = np.round(values).astype(np.int64)
    return times


def _solver() -> Any:
    solver = quiet_solver()
    for name, value in (("threads", 1), ("random_seed", 0)):
        solver.setOptionValue(name, value)
    return solver


def _model(machines: Sequence[Machine], usd: Floats, rows: Floats) -> Any:
    """Return the programme: a column a machine, a row a lot."""
    import highspy

    columns = [np.unique(machine.lots, return_counts=True) for machine in machines]
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(machines), len(rows)
    model.col_cost_ = usd
    model.col_lower_ = np.zeros(len(machines))
    model.col_upper_ = np.full(len(machines), max(1.0, float(rows.max(initial=1.0))))
    model.row_lower_, model.row_upper_ = rows, np.full(len(rows), np.inf)
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    starts = np.cumsum([0, *(len(lots) for lots, _ in columns)])
    model.a_matrix_.start_ = starts.astype(np.int32)
    model.a_matrix_.index_ = np.concatenate([lots for lots, _ in columns]).astype(np.int32)
    model.a_matrix_.value_ = np.concatenate([times for _, times in columns]).astype(np.float64)
    return model
