"""Which part of a machine a job takes, counted so that jobs side by side never exceed a whole.

For each resource the plain part, and dual-feasible functions of it (Fekete and Schepers, Math.
Program. 91, 2001): u -> u where (k + 1) u is whole, else floor((k + 1) u) / k, for k = 1, 2, 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from cloudwhale.spi.renting import Kind
    from cloudwhale_policies.renting.arrays import Floats, Tables

NEAR = 1e-6
"""Parts that are so near to a fraction count as it: machines are packed with such a slack."""
CLEAR = 1e-5
"""Only what exceeds a fraction by so much counts as more: many times what the slack can add."""
STEPS = (1, 2, 3)
PLAIN = 5
"""Devices, memory of all devices, CPU, memory, disk."""
EXCLUSIVE = 4
"""Disks are large: what excludes a neighbour is one of the first four."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How the jobs of all lots lie on machines that have the same of everything."""

    rows: Floats
    """All ways to count a job's part, a row each, the plain ones first; a column a lot."""
    side: Floats
    """How many jobs of a lot fit on a machine at once, at least 1."""


class Areas:
    """The shapes of a problem's kinds, each worked out once."""

    def __init__(self, tables: Tables) -> None:
        demands = tables.demands
        self._devices = np.array([one.devices for one in demands], dtype=np.float64)
        self._share = np.array([one.share for one in demands], dtype=np.float64)
        gib = [np.nan if one.device_gib is None else one.device_gib for one in demands]
        self._gib = np.array(gib, dtype=np.float64)
        self._others = np.array(
            [[one.cpu, one.memory_gib, one.disk_gib] for one in demands], dtype=np.float64
        ).reshape(-1, 3)
        self._kinds = tables.kinds
        self._shapes: dict[object, Shape] = {}

    def key(self, kind: int) -> object:
        """Return what kinds of one shape have in common."""
        one = self._kinds[kind]
        return (one.devices, one.device_gib, one.cpu, one.memory_gib, one.disk_gib)

    def shape(self, kind: int) -> Shape:
        """Return how jobs lie on a kind; what it says of lots that do not fit means nothing."""
        key = self.key(kind)
        found = self._shapes.get(key)
        if found is None:
            found = self._shapes[key] = self._shape(self._kinds[kind])
        return found

    def _shape(self, one: Kind) -> Shape:
        devices, share = self._devices, self._share
        if one.devices:
            counts = devices / one.devices
            memory = np.where(np.isnan(self._gib), share, self._gib / max(one.device_gib, 1e-9))
        else:
            counts, memory = np.zeros_like(devices), np.zeros_like(devices)
        capacity = np.array([one.cpu, one.memory_gib, one.disk_gib], dtype=np.float64)
        others = (self._others / np.maximum(capacity, 1e-9)).T
        plain = [counts * share, counts * memory, *others]
        rows = [*plain]
        rows.extend(stepped(part, steps) for part in plain[:EXCLUSIVE] for steps in STEPS)
        rows.extend(counts * stepped(part, steps) for part in (share, memory) for steps in STEPS)
        largest = np.maximum(np.max(plain, axis=0), 1e-3)
        return Shape(np.vstack(rows), np.maximum(1.0, np.floor(1.0 / largest + 1e-3)))


def stepped(part: Floats, steps: int) -> Floats:
    """Return the dual-feasible function with so many steps; sums at or below 1 stay there."""
    scaled = part * (steps + 1)
    whole = np.rint(scaled)
    off = scaled - whole
    is_whole = (off >= -NEAR * (steps + 1)) & (off <= CLEAR * (steps + 1))
    value: Floats = np.where(is_whole, whole / (steps + 1), np.floor(scaled) / steps)
    return value


def clique(part: Floats, lot: int, copies: float) -> Floats:
    """Return a row of those of whom no two are side by side: a small job, and who excludes it.

    `part`: of one resource, by lot. `copies`: so many of the small one's lot can be side by side,
    and count as one together.
    """
    row: Floats = (part > max(1.0 - float(part[lot]), 0.5) + CLEAR).astype(np.float64)
    row[lot] = 1.0 / copies
    return row
