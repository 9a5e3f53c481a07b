"""The stochastic dynamic programme of one zone: what a tick's choice costs from there on.

A state is (steps to the deadline, slack, machine and what is left of its changeover, phase). Slack
is the time left less the work left: idling and changeovers use it up, running does not. A phase is
whether the zone has spot machines and since when, in brackets of ages that double. Costs are in
on-demand steps. All kinds of zones are solved at once; the tables hold the expectation over the
next phase, so what is chosen with them may weigh the kinds by what is believed of the zone then.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloudwhale.model.units import Seconds
from cloudwhale_policies.spot.spells import AGES, Kind

Table: TypeAlias = NDArray[np.float32]
_Rows: TypeAlias = tuple[NDArray[np.float32], NDArray[np.float32], list[NDArray[np.float32]]]
Steps: TypeAlias = float

BRACKETS = len(AGES)
"""Ages in steps are told apart as ages in ticks are."""
FORBIDDEN = np.float32(1e6)
MOST_STEPS = 600
"""To a deadline; more are gathered into longer ones."""
MOST_CHANGEOVER = 4
"""Steps of a changeover, likewise."""
KEPT = 6
"""Shapes whose tables are kept: 15 MB a kind for 80 h in ticks of ten minutes."""
GRAINS = ((8.0, 0.2), (20.0, 0.4), (48.0, 1.0), (96.0, 2.0), (float("inf"), 4.0))
"""Slack up to so many steps is told apart so finely; 0.2 makes the usual 0.2 h at 600 s exact."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What tables depend on."""

    step_s: Seconds
    steps: int
    """To the deadline, the last one whole."""
    most_slack: Steps
    changeover: Steps
    spot_share: float
    """Of the on-demand price."""
    kinds: tuple[Kind, ...]
    """How likely spells end in a step."""

    def changeovers(self) -> tuple[Steps, ...]:
        """Return what may be left of a changeover after a step; the last is 0."""
        left: list[Steps] = []
        rest = self.changeover - 1.0
        while rest > 1e-9:
            left.append(rest)
            rest -= 1.0
        return (*left, 0.0)

    def mode(self, left: Steps) -> int:
        """Return the place in `changeovers` that is nearest."""
        last = len(self.changeovers()) - 1
        return last if left <= 1e-9 else min(last, max(0, round(self.changeover - left) - 1))


@dataclass(frozen=True, slots=True)
class Tables:
    """Expected costs after a step, before the next phase is seen."""

    shape: Shape
    grid: tuple[Steps, ...]
    """Slack."""
    costs: Table
    """[steps left, row, slack, kind]."""

    def idle(self, phase: int) -> int:
        """Return the row of one who has no machine; phases: with machines by age, then without."""
        return phase

    def on_demand(self, phase: int) -> int:
        """Return the row of one on demand; what is left of a changeover is taken off the slack."""
        return 2 * BRACKETS + phase

    def spot(self, mode: int, phase: int) -> int:
        """Return the row of one on spot, by `Shape.mode`."""
        return (4 + mode) * BRACKETS + phase


def step_of(tick_s: Seconds, deadline_s: Seconds, changeover_s: Seconds) -> Seconds:
    """Return the length of a step: whole ticks, few enough to the deadline and in a changeover."""
    by_deadline = deadline_s / (MOST_STEPS * tick_s)
    by_changeover = changeover_s / (MOST_CHANGEOVER * tick_s)
    return tick_s * max(1, int(np.ceil(max(by_deadline, by_changeover) - 1e-9)))


def grid_of(most: Steps) -> NDArray[np.float64]:
    """Return the slacks that are told apart; the last is `most` or a little more."""
    found = [0.0]
    for until, grain in GRAINS:
        while found[-1] < min(until, most) - 1e-9:
            found.append(found[-1] + grain)
    return np.array(found if len(found) > 1 else [0.0, 1.0])


def _phases(kind: Kind) -> NDArray[np.float32]:
    """Return the probabilities of one phase after another."""
    found = np.zeros((2 * BRACKETS, 2 * BRACKETS))
    for at, of in ((0, kind[0]), (BRACKETS, kind[1])):
        for bracket, ends in enumerate(of):
            last = bracket == BRACKETS - 1
            grows = 0.0 if last else 1.0 / (AGES[bracket + 1] - AGES[bracket])
            found[at + bracket, BRACKETS - at] = ends
            found[at + bracket, at + bracket] = (1.0 - ends) * (1.0 - grows)
            if not last:
                found[at + bracket, at + bracket + 1] = (1.0 - ends) * grows
    return found.astype(np.float32)


class _Shifts:
    """Reads values at less slack, between the points of a grid."""

    def __init__(self, grid: NDArray[np.float64], by: Steps) -> None:
        at = np.maximum(grid - by, 0.0)
        self.left = np.clip(np.searchsorted(grid, at + 1e-9, side="right") - 1, 0, len(grid) - 2)
        step = grid[self.left + 1] - grid[self.left]
        self.share = ((at - grid[self.left]) / step).astype(np.float32)
        self.is_none = by == 0.0

    def __call__(self, values: Table) -> Table:
        if self.is_none:
            return values
        low = values[..., self.left]
        high = values[..., self.left + 1]
        return np.asarray(low + self.share * (high - low), dtype=np.float32)


class _Run:
    """A step on a machine with so much of its changeover left."""

    def __init__(self, shape: Shape, grid: NDArray[np.float64], left: Steps) -> None:
        self._lost = min(left, 1.0)
        self._rest = left - self._lost
        self.mode = shape.mode(self._rest)
        self.shift = _Shifts(grid, self._lost)
        self._grid, self._changeover = grid, shape.changeover

    def billed(self, work: NDArray[np.float64]) -> tuple[Table, NDArray[np.bool_]]:
        """Return the parts of a step that are billed, and where spot is forbidden, by slack."""
        ends = (work <= 1.0 - self._lost + 1e-9) & (self._rest <= 1e-9)
        billed = np.where(ends, self._lost + np.maximum(work, 0.0), 1.0).astype(np.float32)
        return billed, ~ends & (self._grid - self._lost < self._changeover - 1e-9)


@lru_cache(maxsize=KEPT)
def solved(shape: Shape) -> Tables:
    """Return the tables; called once for all errands of a shape, most of a CPU second."""
    return _Solving(shape).tables()


class _Solving:
    """Works backwards from the deadline; arrays are [kind, phase, slack]."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._grid = grid_of(shape.most_slack)
        self._next = np.array([_phases(kind) for kind in shape.kinds])
        self._idles = _Shifts(self._grid, 1.0)
        self._no_idling = self._grid - 1.0 < shape.changeover - 1e-9
        self._to_on_demand = _Shifts(self._grid, shape.changeover)
        self._starts = _Run(shape, self._grid, shape.changeover)
        self._runs = [_Run(shape, self._grid, left) for left in shape.changeovers()]
        self._share = np.float32(shape.spot_share)

    def tables(self) -> Tables:
        """Return the tables of all steps."""
        kinds, slacks, modes = len(self._next), len(self._grid), len(self._runs)
        steps = self._shape.steps + 1
        costs = np.zeros((steps, (4 + modes) * BRACKETS, slacks, kinds), np.float32)
        idle = np.zeros((kinds, 2 * BRACKETS, slacks), np.float32)
        on_demand = idle
        spot = [idle[:, :BRACKETS]] * modes
        for left in range(1, steps):
            idle, on_demand, spot = self._expected(idle, on_demand, spot)
            rows = np.concatenate((idle, on_demand, *spot), axis=1)
            costs[left] = rows.transpose(1, 2, 0)
            idle, on_demand, spot = self._best(left, idle, on_demand, spot)
        return Tables(self._shape, tuple(self._grid.tolist()), costs)

    def _expected(self, idle: Table, on_demand: Table, spot: list[Table]) -> _Rows:
        """Return the mean over the next phase, by this phase and by what one ran on."""
        stays, goes = self._next[:, :BRACKETS, :BRACKETS], self._next[:, :BRACKETS, BRACKETS:]
        lost = goes @ idle[:, BRACKETS:]
        on_spot = [np.asarray(stays @ each + lost, dtype=np.float32) for each in spot]
        return self._next @ idle, self._next @ on_demand, on_spot

    def _best(self, left: int, idle: Table, on_demand: Table, spot: list[Table]) -> _Rows:
        """Return what the best choice costs with so many steps left, by what one has."""
        work = left - self._grid
        billed = np.clip(work, 0.0, 1.0).astype(np.float32)
        stay = billed + on_demand
        start = self._to_on_demand(stay)
        idling = self._idles(idle)
        idling[..., self._no_idling] = FORBIDDEN
        without = np.minimum(idling, start)
        to_spot = self._on_spot(work, self._starts, spot)
        without[:, :BRACKETS] = np.minimum(without[:, :BRACKETS], to_spot)
        on_demand = np.minimum(stay, without)
        on_spot = [
            np.minimum(self._on_spot(work, run, spot), without[:, :BRACKETS]) for run in self._runs
        ]
        for values in (without, on_demand, *on_spot):
            values[..., work <= 1e-9] = 0.0
        return without, on_demand, on_spot

    def _on_spot(self, work: NDArray[np.float64], run: _Run, after: list[Table]) -> Table:
        """Return what it costs to run for a step on spot, forbidden where that is not safe."""
        billed, forbidden = run.billed(work)
        found = np.asarray(self._share * billed + run.shift(after[run.mode]), dtype=np.float32)
        found[..., forbidden] = FORBIDDEN
        return found
