"""Which kind of machine holds some jobs most cheaply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cloudwhale_policies.renting.machine import Machine, Yard

if TYPE_CHECKING:
    from cloudwhale_policies.renting.arrays import Flags, Floats, Tables

TRIES = 4
"""Kinds on which jobs are really packed, by the least that they could cost there."""


class Retyping:
    """Knows the least that jobs could cost on each kind, and packs them on the best few."""

    def __init__(self, tables: Tables, yard: Yard) -> None:
        self._tables, self._yard = tables, yard
        self._known: dict[tuple[int, ...], Sums] = {}
        self._kinds = np.arange(len(tables.kinds))

    def sums(self, lots: tuple[int, ...]) -> Sums:
        """Return what some jobs, sorted by lot, ask of every kind at least."""
        found = self._known.get(lots)
        if found is None:
            tables = self._tables
            rows = np.array(lots)
            seconds = tables.seconds(lots[0]).copy()
            for lot in lots[1:]:
                seconds += tables.seconds(lot)
            found = Sums(
                seconds, tables.able_s[rows].max(axis=0), tables.extra_usd[rows].sum(axis=0)
            )
            self._known[lots] = found
        return found

    def least_usd(self, sums: Sums, width: int) -> Floats:
        """Return by kind the least that jobs with these sums could cost; infinity: it cannot be."""
        used = np.maximum(sums.seconds.max(axis=-2), sums.run_s) + self._tables.boot_s
        able = np.isfinite(used)
        cost = width * self._tables.money.of_all(np.where(able, used, 0.0)) + sums.extra_usd
        return np.where(able, cost, np.inf)

    def cheapest(
        self, lots: Sequence[int], width: int, below_usd: float, allowed: Flags | None = None
    ) -> Machine | None:
        """Return a machine that holds the jobs for less; None: none was found within the tries."""
        least = self.least_usd(self.sums(tuple(sorted(lots))), width)
        if allowed is not None:
            least = np.where(allowed, least, np.inf)
        near = np.flatnonzero(least < below_usd)
        near = near[np.argsort(least[near], kind="stable")][:TRIES]
        best: Machine | None = None
        for kind in near.tolist():
            if least[kind] >= below_usd:
                break
            machine = self._yard.packed(kind, width, lots)
            if machine is not None and machine.usd < below_usd:
                best, below_usd = machine, machine.usd
        return best


class Sums:
    """What some jobs ask of every kind together."""

    __slots__ = ("extra_usd", "run_s", "seconds")

    def __init__(self, seconds: Floats, run_s: Floats, extra_usd: Floats) -> None:
        self.seconds, self.run_s, self.extra_usd = seconds, run_s, extra_usd

    def with_one(self, tables: Tables, lot: int) -> Sums:
        """Return the sums with one job more."""
        return Sums(
            self.seconds + tables.seconds(lot),
            np.maximum(self.run_s, tables.able_s[lot]),
            self.extra_usd + tables.extra_usd[lot],
        )
