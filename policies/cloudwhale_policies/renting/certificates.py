"""What prices of jobs are proven: no machine earns more by its jobs than it costs.

Weak duality, worked out here in plain sums and not read from a solver. Given, for a kind, weights
of the ways to count a job's part that sum to 1 at most, a machine costs at least its boot and
usd_h x the sum of its jobs' weighted parts x hours. So where jobs' prices exceed their weighted
part of the hours and their extra money by no more than the boot in all, no machine of the kind
costs less than the prices of its jobs. If that holds for every kind, no plan costs less than the
sum of all prices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cloudwhale_policies.renting.areas import Areas, clique
from cloudwhale_policies.renting.costs import Costs
from cloudwhale_policies.renting.hours import Tariff

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cloudwhale_policies.renting.arrays import Floats, Tables

    Numbers = NDArray[np.intp]

KIN = 3
"""So many tariffs of other shapes are tried for a kind without one of its own."""


@dataclass(frozen=True, slots=True, eq=False)
class Open:
    """A kind for which prices are not proven."""

    kind: int
    usd: float
    """What jobs' prices can exceed a machine's cost by, as far as the tariffs say."""
    lots: Numbers
    """Who gains by it, by its own tariff if it has one."""
    weights: Floats
    """The weighted parts that were the best found."""


class Certificates:
    """Proves prices for all kinds, with the tariffs that a programme found for some."""

    def __init__(self, tables: Tables, areas: Areas, costs: Costs) -> None:
        self._tables, self._areas, self._costs = tables, areas, costs
        self._counts = np.array([len(jobs) for jobs in tables.members], dtype=np.float64)
        groups: dict[object, list[int]] = {}
        for kind, one in enumerate(tables.kinds):
            if costs.able[:, kind].any():
                groups.setdefault((one.model, areas.key(kind)), []).append(kind)
        self._traits = _traits(tables)
        self._groups = [np.array(kinds) for kinds in groups.values()]

    def open(self, worth: Floats, tariffs: Mapping[int, Tariff]) -> Iterator[Open]:
        """Yield the kinds for which the prices are not proven."""
        for kinds in self._groups:
            over, shares = self._group(worth, kinds, tariffs)
            for at in np.flatnonzero(over > 0):
                kind = int(kinds[at])
                own = tariffs.get(kind)
                weights = shares[at] if own is None else self.weighted(kind, own)
                gain = np.flatnonzero(self._gains(worth, kind, weights) > 0)
                yield Open(kind, float(over[at]), gain, shares[at])

    def proven(self, worth: Floats, found: Iterable[Open]) -> Floats:
        """Return prices at or below these that hold for all kinds, the open ones included.

        `found`: all that are open at these prices. Lower prices open no other kind.
        """
        worth = worth.copy()
        for one in found:
            over = self._gains(worth, one.kind, one.weights)
            total = float((over * self._costs.most[:, one.kind]).sum())
            start_usd = float(self._costs.start_usd[one.kind])
            if total > start_usd:
                worth -= over * (1.0 - start_usd / total)
        return worth

    def _gains(self, worth: Floats, kind: int, weights: Floats) -> Floats:
        """Return by lot what a job's price exceeds its weighted part of a kind's hours by."""
        costs = self._costs
        asked = costs.extra_usd[:, kind] + costs.usd_h[kind] * costs.hours[:, kind] * weights
        return np.where(costs.able[:, kind], np.maximum(worth - asked, 0.0), 0.0)

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
            yield self.weighted(first, tariffs[kind], alike=kind in own)
        rows = self._areas.shape(first).rows
        yield rows[0]
        yield rows[:4].mean(axis=0)
        yield rows[2]

    def _kin(self, kind: int, own: Sequence[int], tariffs: Iterable[int]) -> list[int]:
        """Return solved kinds that are most like one, of its model at best."""
        others = np.array([one for one in tariffs if one not in own], dtype=np.intp)
        far = np.abs(self._traits[others] - self._traits[kind]).sum(axis=1)
        nearest: list[int] = others[np.argsort(far, kind="stable")[:KIN]].tolist()
        return nearest

    def weighted(self, kind: int, tariff: Tariff, *, alike: bool = True) -> Floats:
        """Return by lot the weighted part of a kind's hour that a job takes.

        `alike`: the tariff is one of its shape, so that what was made for the shape holds.
        An exclusion of a lot that the kind does not fit is left out: less is asked, which is safe.
        """
        shape = self._areas.shape(kind)
        weights: Floats = tariff.ways @ shape.rows
        side = np.minimum(shape.side, self._counts)
        weights = weights + tariff.alone / side
        if alike:
            weights = weights + tariff.summed
        for (resource, lot), weight in tariff.exclusions:
            part = shape.rows[resource]
            if part[lot] <= 1.0 + 1e-6:
                weights = weights + weight * clique(part, lot, float(side[lot]))
        return weights


def _traits(tables: Tables) -> Floats:
    """Return numbers by which kinds that lie near each other are alike: the model weighs most."""
    models = sorted({one.model for one in tables.kinds})
    rows = [
        (
            100.0 * models.index(one.model),
            1000.0 * (one.devices > 0),
            float(np.log2(max(1, one.devices))),
            float(np.log2(one.cpu / max(1, one.devices))),
        )
        for one in tables.kinds
    ]
    return np.array(rows, dtype=np.float64).reshape(-1, 4)
