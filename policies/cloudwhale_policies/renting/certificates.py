"""What prices of jobs are proven: no machine earns more by its jobs than it costs.

Weak duality, worked out here in plain sums and not read from a solver. Given, for a kind, weights
of the ways to count a job's part that sum to 1 at most, a machine that is used for Y hours after
its boot costs at least usd_h (sum of the jobs' weighted parts x hours) + boot. So where jobs' prices
exceed their weighted part of the hours and their extra money by no more than the boot in all, no
machine of the kind costs less than the prices of its jobs. If that holds for every kind, no plan
costs less than the sum of all prices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cloudwhale_policies.renting.areas import Areas, clique
from cloudwhale_policies.renting.hours import Costs, Tariff

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cloudwhale_policies.renting.arrays import Floats, Tables

    Numbers = NDArray[np.intp]

KIN = 3
"""So many tariffs of other shapes are tried for a kind without one of its own."""


class Certificates:
    """Proves prices for all kinds, with the tariffs that a programme found for some."""

    def __init__(self, tables: Tables, areas: Areas, costs: Costs) -> None:
        self._tables, self._areas, self._costs = tables, areas, costs
        self._counts = np.array([len(jobs) for jobs in tables.members], dtype=np.float64)
        groups: dict[object, list[int]] = {}
        for kind, one in enumerate(tables.kinds):
            if costs.able[:, kind].any():
                groups.setdefault((one.model, areas.key(kind)), []).append(kind)
        self._groups = [np.array(kinds) for kinds in groups.values()]

    def excess(self, worth: Floats, tariffs: Mapping[int, Tariff]) -> Floats:
        """Return by kind by how many dollars jobs' prices can exceed a machine; 0: proven."""
        over = np.zeros(len(self._tables.kinds))
        for kinds in self._groups:
            over[kinds] = self._group(worth, kinds, tariffs)[0]
        return over

    def proven(self, worth: Floats, tariffs: Mapping[int, Tariff]) -> Floats:
        """Return prices at or below these that hold for all kinds."""
        worth = worth.copy()
        for kinds in self._groups:
            over, shares = self._group(worth, kinds, tariffs)
            for at in np.flatnonzero(over > 0):
                kind = int(kinds[at])
                self._lower(worth, kind, shares[at])
        return worth

    def _lower(self, worth: Floats, kind: int, weights: Floats) -> None:
        """Lower prices until a kind's machines cost as much as their jobs."""
        costs = self._costs
        asked = costs.extra_usd[:, kind] + costs.usd_h[kind] * costs.hours[:, kind] * weights
        over = np.where(costs.able[:, kind], np.maximum(worth - asked, 0.0), 0.0)
        total = float((over * costs.most[:, kind]).sum())
        if total > costs.start_usd[kind]:
            worth -= over * (1.0 - costs.start_usd[kind] / total)

    def _group(
        self, worth: Floats, kinds: Numbers, tariffs: Mapping[int, Tariff]
    ) -> tuple[Floats, list[Floats]]:
        """Return the least excess of each kind of one shape that some tariff proves, and which."""
        costs = self._costs
        lots = np.flatnonzero(costs.able[:, kinds].any(axis=1) & (worth > 0))
        hours = costs.hours[np.ix_(lots, kinds)] * costs.usd_h[kinds]
        room = worth[lots, None] - costs.extra_usd[np.ix_(lots, kinds)]
        room = np.where(costs.able[np.ix_(lots, kinds)], room, -np.inf)
        most = costs.most[np.ix_(lots, kinds)]
        best = np.full(len(kinds), np.inf)
        weights: list[Floats] = [np.zeros(len(worth))] * len(kinds)
        for found in self._weights(kinds, tariffs):
            gains = np.maximum(room - hours * found[lots, None], 0.0)
            over = (gains * most).sum(axis=0) - costs.start_usd[kinds]
            for at in np.flatnonzero(over < best):
                weights[at] = found
            best = np.minimum(best, over)
            if (best <= 0).all():
                break
        return np.maximum(best, 0.0), weights

    def _weights(self, kinds: Numbers, tariffs: Mapping[int, Tariff]) -> Iterator[Floats]:
        """Yield each lot's weighted part of an hour, tariffs of the same shape first."""
        own = [int(kind) for kind in kinds if int(kind) in tariffs]
        first = int(kinds[0])
        for kind in [*own, *self._kin(first, own, tariffs)]:
            yield self.weighted(first, tariffs[kind])
        rows = self._areas.shape(first).rows
        yield rows[0]
        yield rows[:4].mean(axis=0)
        yield rows[2]

    def _kin(self, kind: int, own: Sequence[int], tariffs: Iterable[int]) -> list[int]:
        """Return solved kinds that are most like one, of its model at best."""
        one, kinds = self._tables.kinds[kind], self._tables.kinds

        def far(other: int) -> tuple[float, ...]:
            that = kinds[other]
            ratio = (that.cpu / max(1, that.devices)) / (one.cpu / max(1, one.devices))
            return (
                float(that.model != one.model),
                float((that.devices > 0) != (one.devices > 0)),
                abs(float(np.log2(max(1, that.devices) / max(1, one.devices)))),
                abs(float(np.log2(ratio))),
                other,
            )

        return sorted(set(tariffs) - set(own), key=far)[:KIN]

    def weighted(self, kind: int, tariff: Tariff) -> Floats:
        """Return by lot the weighted part of a kind's hour that a job takes.

        An exclusion of a lot that the kind does not fit is left out: less is asked, which is safe.
        """
        shape = self._areas.shape(kind)
        weights: Floats = tariff.ways @ shape.rows
        side = np.minimum(shape.side, self._counts)
        weights = weights + tariff.alone / side
        for (resource, lot), weight in tariff.exclusions:
            part = shape.rows[resource]
            if part[lot] <= 1.0 + 1e-6:
                weights = weights + weight * clique(part, lot, float(side[lot]))
        return weights
