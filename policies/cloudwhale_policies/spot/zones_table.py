"""What the rest of an errand costs on average, for every time left, work left and state of zones.

A stochastic dynamic programme over steps of about a changeover. A *unit* is a region that is
followed: whether any zone of it has spot machines, and since when. A machine in any other region is
one that is lost some day; after that only units and on-demand are counted on.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloudwhale_policies.spot.zones_chains import ON_YOUNG, PHASES, Matrix

Values: TypeAlias = NDArray[np.float32]

NEVER = np.float32(1e9)
"""USD of what would miss the deadline; finite, so that weights of 0 take it away."""


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """A region that is followed."""

    region: int
    spot_usd_h: float
    step: Matrix
    """From phase to phase in a step; it is on while any of its zones is."""
    moves: float
    """Chance in a step that a machine is lost while another zone of the region is on."""


@dataclass(frozen=True, slots=True)
class Other:
    """A machine in a region that is not followed."""

    region: int
    spot_usd_h: float
    ends: tuple[float, float]
    """Chance that it is lost in a step, young and old."""
    grows: float
    """Chance that a young one gets old in a step."""


@dataclass(frozen=True, slots=True, eq=False)
class Prospect:
    """What the table is made for; regions are numbers."""

    step_h: float
    """At least the changeover."""
    changeover_h: float
    units: tuple[Unit, ...]
    others: tuple[Other, ...]
    on_demand_usd_h: tuple[float, ...]
    """By region."""
    egress_usd: tuple[tuple[float, ...], ...]
    """From region to region."""

    @property
    def regions(self) -> int:
        """How many there are."""
        return len(self.on_demand_usd_h)

    def idle(self, region: int) -> int:
        """Return the mode of having no machine, the checkpoint in a region."""
        return region

    def on_demand(self, region: int) -> int:
        """Return the mode of having an on-demand machine."""
        return self.regions + region

    def other(self, other: int, age: int) -> int:
        """Return the mode of having a machine in a region not followed, young 0, old 1."""
        return 2 * self.regions + 2 * other + age

    def unit(self, unit: int) -> int:
        """Return the mode of having a machine in a region that is followed."""
        return 2 * self.regions + 2 * len(self.others) + unit

    @property
    def modes(self) -> int:
        """How many there are."""
        return self.unit(len(self.units))


class Table:
    """Expected costs in USD by mode, steps left, steps of work left and phases of the units."""

    def __init__(self, prospect: Prospect, steps: int, work: int, kept: int) -> None:
        """Work out what can be reached from some steps, and work, left; keep the last layers."""
        self._prospect, self._steps, self._work = prospect, steps, work
        self._modes = prospect.modes
        self._moves = _Moves(prospect)
        self._layers: dict[int, tuple[int, Values]] = {}
        layer = np.zeros((self._modes, 1, self._moves.states), np.float32)
        low = 0
        if kept >= steps:
            self._layers[0] = (low, layer)
        for left in range(1, steps + 1):
            low, layer = self._layer(left, low, layer)
            if left >= steps - kept:
                self._layers[left] = (low, layer)

    def _reached(self, left: int) -> tuple[int, int]:
        """Return the least and most work that can be left with some steps left."""
        return max(0, self._work - (self._steps - left) - 1), min(self._work, left)

    def _layer(self, left: int, before_low: int, before: Values) -> tuple[int, Values]:
        """Return the values a step earlier."""
        low, high = self._reached(left)
        padded = np.full((self._modes, high - low + 2, before.shape[2]), NEVER, np.float32)
        first = before_low - (low - 1)
        if first < 0:
            before, first = before[:, -first:], 0
        count = min(before.shape[1], padded.shape[1] - first)
        padded[:, first : first + count] = before[:, :count]
        ahead = self._moves.ahead(padded)
        layer = self._decided(left, np.arange(low, high + 1), ahead)
        if low == 0:
            layer[:, 0] = 0.0
        return low, layer

    def _decided(self, left: int, work: NDArray[np.int64], ahead: Values) -> Values:
        """Return the values before a decision, given those after it from one work less on."""
        of, step_h = self._prospect, self._prospect.step_h
        changeover = of.changeover_h / step_h
        gains = np.float32(1.0 - changeover)
        same, done = ahead[:, 1:], ahead[:, :-1]
        begun = same + gains * (done - same) if gains else same
        covers = left - 1 >= work + changeover - 1e-6
        starts = left - 1 >= work - float(gains) + changeover - 1e-6
        stays = left >= work + changeover - 1e-6
        layer = np.full((self._modes, len(work), ahead.shape[2]), NEVER, np.float32)
        for region in range(of.regions):
            best = np.where(covers[:, None], same[of.idle(region)], NEVER)
            for there in range(of.regions):
                usd = of.on_demand_usd_h[there] * step_h + of.egress_usd[region][there]
                finish = begun[of.on_demand(there)] + np.float32(usd)
                best = np.minimum(best, np.where(stays[:, None], finish, NEVER))
            for number, unit in enumerate(of.units):
                usd = unit.spot_usd_h * step_h + of.egress_usd[region][unit.region]
                rides = starts[:, None] & self._moves.is_on[number]
                spot = begun[of.unit(number)] + np.float32(usd)
                best = np.minimum(best, np.where(rides, spot, NEVER))
            layer[of.idle(region)] = best
            usd = of.on_demand_usd_h[region] * step_h
            layer[of.on_demand(region)] = np.minimum(
                best, done[of.on_demand(region)] + np.float32(usd)
            )
        for number, other in enumerate(of.others):
            for mode in (of.other(number, 0), of.other(number, 1)):
                usd = other.spot_usd_h * step_h
                spot = np.where(stays[:, None], done[mode] + np.float32(usd), NEVER)
                layer[mode] = np.minimum(layer[of.idle(other.region)], spot)
        for number, unit in enumerate(of.units):
            mode, rides = of.unit(number), stays[:, None] & self._moves.is_on[number]
            spot = np.where(rides, done[mode] + np.float32(unit.spot_usd_h * step_h), NEVER)
            layer[mode] = np.minimum(layer[of.idle(unit.region)], spot)
        return layer

    def cost(self, mode: int, left: float, work: float) -> Values:
        """Return the values by state of the units, between whole steps along equal slack."""
        work = min(max(work, 0.0), float(self._work))
        slack = max(left - work, 0.0)
        at, part = int(work), work - int(work)
        spare, spare_part = int(slack + 1e-6), max(slack - int(slack + 1e-6), 0.0)
        found = np.zeros(self._moves.states, np.float32)
        for w, weight in ((at, 1.0 - part), (at + 1, part)):
            for s, share in ((spare, 1.0 - spare_part), (spare + 1, spare_part)):
                if weight * share > 1e-9:
                    found += np.float32(weight * share) * self._one(mode, w + s, w)
        return found

    def _one(self, mode: int, left: int, work: int) -> Values:
        left = min(max(left, min(self._layers)), self._steps)
        low, layer = self._layers[left]
        found: Values = layer[mode, min(max(work - low, 0), layer.shape[1] - 1)]
        return found


class _Moves:
    """How states of all units together follow each other."""

    def __init__(self, prospect: Prospect) -> None:
        self._prospect = prospect
        steps = [unit.step for unit in prospect.units]
        self.states = PHASES ** len(steps)
        self._all = _together(steps)
        phases = np.indices((PHASES,) * len(steps)).reshape(len(steps), self.states)
        self.is_on = [phases[unit] >= ON_YOUNG for unit in range(len(steps))]
        self._stay: list[Values] = []
        self._lose: list[Values] = []
        for number, step in enumerate(steps):
            stay, lose = np.zeros_like(step), np.zeros_like(step)
            moves = prospect.units[number].moves
            stay[ON_YOUNG:, ON_YOUNG:] = (1.0 - moves) * step[ON_YOUNG:, ON_YOUNG:]
            lose[ON_YOUNG:] = step[ON_YOUNG:] - stay[ON_YOUNG:]
            self._stay.append(_together([*steps[:number], stay, *steps[number + 1 :]]))
            self._lose.append(_together([*steps[:number], lose, *steps[number + 1 :]]))

    def ahead(self, values: Values) -> Values:
        """Return the mean values after a step of having each mode."""
        of, alike = self._prospect, self._prospect.unit(0)
        ahead = np.empty_like(values)
        ahead[:alike] = values[:alike] @ self._all
        for number, other in enumerate(of.others):
            idle = ahead[of.idle(other.region)]
            young, old = ahead[of.other(number, 0)], ahead[of.other(number, 1)]
            grown = young + np.float32(other.grows) * (old - young)
            ahead[of.other(number, 0)] = grown + np.float32(other.ends[0]) * (idle - grown)
            ahead[of.other(number, 1)] = old + np.float32(other.ends[1]) * (idle - old)
        for number, unit in enumerate(of.units):
            stays = values[of.unit(number)] @ self._stay[number]
            ahead[of.unit(number)] = stays + values[of.idle(unit.region)] @ self._lose[number]
        return ahead


def _together(matrices: list[Matrix]) -> Values:
    """Return the matrix of independent chains together, transposed."""
    joint: Matrix = np.ones((1, 1))
    for matrix in matrices:
        joint = np.asarray(np.kron(joint, matrix), np.float64)
    return joint.T.astype(np.float32)
