"""How much of an open GPU is left over in the end, learned by filling the cluster in rehearsal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloudwhale.spi.filling import GPU_MILLI
from cloudwhale_policies.filling.board import Seats
from cloudwhale_policies.filling.menu import Floats, Ints

STEP_MILLI = 10
"""How finely what is left of a GPU is told apart."""

GPU_STEPS = GPU_MILLI // STEP_MILLI + 1

KNOTS = np.array([0, 1, 2, 3, 4, 6, 8, 10, 12, 16, 24, 48], dtype=np.float64) * 1000.0
"""CPU milli left per free GPU; between two of them the waste is interpolated."""

SIZES_MILLI = np.array([1000, 2000, 4000], dtype=np.int64)
"""Where the free GPU of a node, in all, changes class."""

PSEUDO_VISITS = 5.0
"""A cell seen so often counts as much as the coarser one that it refines."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was left of nodes in the course of a run, and what was left of their GPUs at its end."""

    kind: Ints
    cpu: Ints
    gpus: Ints
    """A row per sight, a column per GPU."""
    final: Ints
    """The same GPUs at the end."""


def joined(parts: Sequence[Seen]) -> Seen:
    """Return what was seen in several runs as if it were one."""
    return Seen(
        kind=np.concatenate([part.kind for part in parts]),
        cpu=np.concatenate([part.cpu for part in parts]),
        gpus=np.concatenate([part.gpus for part in parts]),
        final=np.concatenate([part.final for part in parts]),
    )


class Waste:
    """Expected GPU milli that are left over in the end, by state of a node."""

    def __init__(self, table: Floats) -> None:
        self.table = table
        """By size of what is free, kind of node, knot of CPU per free GPU, and what is left."""

    def __call__(self, kind: int, cpu: Ints, gpus: Ints) -> Floats:
        """Return the expected waste of nodes of a kind, a row of GPUs for each."""
        size, knot, part = _cell(cpu, gpus.sum(axis=1))
        steps = _steps(gpus)
        low = self.table[size[:, None], kind, knot[:, None], steps].sum(axis=1)
        high = self.table[size[:, None], kind, knot[:, None] + 1, steps].sum(axis=1)
        waste: Floats = low + part * (high - low)
        return waste

    def growth(self, seats: Seats) -> Floats:
        """Return by how much every way to be seated raises the node's expected waste."""
        total = int(seats.gpus.sum())
        was = self(seats.kind, np.array([seats.cpu]), seats.gpus[None, :])[0]
        size, knot, part = _cell(seats.cpu_after, total - seats.asked)
        steps = _steps(seats.gpus)
        ends: list[Floats] = []
        for at in (knot, knot + 1):
            table = self.table[size, seats.kind, at]
            row = np.arange(len(size))
            ends.append(
                table[:, steps].sum(axis=1)
                - seats.whole * table[:, -1]
                - table[row, _steps(seats.takes)]
                + table[row, _steps(seats.left)]
            )
        low, high = ends
        growth: Floats = low + part * (high - low) - was
        return growth

    def blended(self, newer: Waste, weight: float) -> Waste:
        """Return the waste between this one and a newer one, which counts by its weight."""
        return Waste((1.0 - weight) * self.table + weight * newer.table)


def learned(seen: Seen, kinds: int) -> Waste:
    """Return the waste that was seen, shrunk from the general to the particular."""
    size, knot, part = _cell(seen.cpu, seen.gpus.sum(axis=1))
    row, device = np.nonzero(seen.gpus > 0)
    steps = _steps(seen.gpus)[row, device]
    final = seen.final[row, device].astype(np.float64)
    shape = (len(SIZES_MILLI) + 1, kinds, len(KNOTS), GPU_STEPS)
    total, visits = np.zeros(shape), np.zeros(shape)
    for side, weight in ((0, 1.0 - part[row]), (1, part[row])):
        cell = (size[row], seen.kind[row], knot[row] + side, steps)
        np.add.at(total, cell, weight * final)
        np.add.at(visits, cell, weight)
    table = _shrunk(total, visits)
    # More CPU never makes a GPU less useful.
    table = np.minimum.accumulate(table, axis=2)
    table[..., 0] = 0.0
    return Waste(table)


def _shrunk(total: Floats, visits: Floats) -> Floats:
    """Return the means, each level leaning on the one above by pseudo-visits."""
    half_of_it = 0.5 * STEP_MILLI * np.arange(GPU_STEPS)
    mean = np.broadcast_to(half_of_it, total.shape)
    for axes in ((0, 1, 2), (0, 1), (0,), ()):
        summed = total.sum(axis=axes, keepdims=True) if axes else total
        times = visits.sum(axis=axes, keepdims=True) if axes else visits
        mean = (summed + PSEUDO_VISITS * mean) / (times + PSEUDO_VISITS)
    return np.array(mean)


def _steps(gpus: Ints) -> Ints:
    return (gpus + STEP_MILLI - 1) // STEP_MILLI


def _cell(cpu: Ints, total: Ints) -> tuple[Ints, Ints, Floats]:
    """Return the class of size, the knot below and the part of the way to the next."""
    size = np.searchsorted(SIZES_MILLI, total)
    ratio = np.minimum(1000.0 * cpu / np.maximum(total, 1), KNOTS[-1])
    knot = np.minimum(np.searchsorted(KNOTS, ratio, side="right") - 1, len(KNOTS) - 2)
    return size, knot, (ratio - KNOTS[knot]) / (KNOTS[knot + 1] - KNOTS[knot])
