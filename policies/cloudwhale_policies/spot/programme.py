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
from cloudwhale_policies.spot.spells import Law, Laws

Table: TypeAlias = NDArray[np.float32]
Steps: TypeAlias = float

AGES = (1, 2, 3, 5, 9, 17, 33, 65, 129, 257)
"""First ages of the brackets, in steps; 1 is the first step of a spell."""
BRACKETS = len(AGES)
FORBIDDEN = np.float32(1e6)
MOST_STEPS = 600
"""To a deadline; more are gathered into longer ones."""
MOST_CHANGEOVER = 4
"""Steps of a changeover, likewise."""
GRAINS = ((8.0, 0.2), (24.0, 0.5), (56.0, 1.0), (120.0, 2.0), (float("inf"), 4.0))
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
    laws: Laws

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
        of = self.changeovers()
        return min(range(len(of)), key=lambda at: abs(of[at] - left))


@dataclass(frozen=True, slots=True)
class Tables:
    """Expected costs after a step, before the next phase is seen."""

    shape: Shape
    grid: NDArray[np.float64]
    """Slack, in steps."""
    idle: Table
    """[steps left, kind, phase, slack]; phases: with machines by age, then without by age."""
    spot: Table
    """[steps left, kind, changeover, phase with machines, slack]."""
    on_demand: Table
    """[steps left, kind, changeover, phase, slack]."""


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


def phase_of(age: Steps) -> int:
    """Return the bracket of an age; 1 is the first step of a spell."""
    return max(0, int(np.searchsorted(AGES, age + 1e-9, side="right")) - 1)


def _phases(kind: tuple[Law, Law], step_s: Seconds) -> NDArray[np.float32]:
    """Return the probabilities of one phase after another."""
    found = np.zeros((2 * BRACKETS, 2 * BRACKETS))
    for at, law in ((0, kind[0]), (BRACKETS, kind[1])):
        other = BRACKETS - at
        for bracket, first in enumerate(AGES):
            last = bracket == BRACKETS - 1
            width = first if last else AGES[bracket + 1] - first
            middle = first - 1 + 0.45 * (width - 1)
            ends = law.ends(middle * step_s, step_s)
            grows = 0.0 if last else 1.0 / width
            found[at + bracket, other] = ends
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
        return np.asarray(low + self.share * (values[..., self.left + 1] - low))


class _Run:
    """A step on a machine with so much of its changeover left."""

    def __init__(self, shape: Shape, grid: NDArray[np.float64], left: Steps) -> None:
        self._lost = min(left, 1.0)
        self._rest = left - self._lost
        self.mode = shape.mode(self._rest)
        self.shift = _Shifts(grid, self._lost)
        self._grid, self._changeover = grid, shape.changeover

    def billed(self, steps: int) -> tuple[Table, NDArray[np.bool_]]:
        """Return the parts of a step that are billed, and where spot is forbidden, by slack."""
        work = steps - self._grid
        ends = (work <= 1.0 - self._lost + 1e-9) & (self._rest <= 1e-9)
        billed = np.where(ends, self._lost + np.maximum(work, 0.0), 1.0).astype(np.float32)
        return billed, ~ends & (self._grid - self._lost < self._changeover - 1e-9)


@lru_cache(maxsize=8)
def solved(shape: Shape) -> Tables:
    """Return the tables; called once for all errands of a shape, most of a CPU second."""
    return _Solving(shape).tables()


class _Solving:
    """Works backwards from the deadline."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._grid = grid_of(shape.most_slack)
        self._kinds = shape.laws.pairs()
        self._next = np.array([_phases(kind, shape.step_s) for kind in self._kinds])
        self._idles = _Shifts(self._grid, 1.0)
        self._no_idling = self._grid - 1.0 < shape.changeover - 1e-9
        self._starts = _Run(shape, self._grid, shape.changeover)
        self._runs = [_Run(shape, self._grid, left) for left in shape.changeovers()]
        self._share = np.float32(shape.spot_share)

    def tables(self) -> Tables:
        """Return the tables of all steps."""
        kinds, slacks, modes = len(self._kinds), len(self._grid), len(self._runs)
        steps = self._shape.steps + 1
        idle = np.zeros((steps, kinds, 2 * BRACKETS, slacks), np.float32)
        spot = np.zeros((steps, kinds, modes, BRACKETS, slacks), np.float32)
        on_demand = np.zeros((steps, kinds, modes, 2 * BRACKETS, slacks), np.float32)
        values: tuple[Table, Table, Table] = idle[0], spot[0], on_demand[0]
        for left in range(1, steps):
            idle[left], spot[left], on_demand[left] = self._expected(*values)
            values = self._best(left, idle[left], spot[left], on_demand[left])
        return Tables(self._shape, self._grid, idle, spot, on_demand)

    def _expected(self, idle: Table, spot: Table, on_demand: Table) -> tuple[Table, Table, Table]:
        """Return the mean over the next phase, by this phase and by what one ran on."""
        to = self._next[:, None]
        stays, goes = to[:, :, :BRACKETS, :BRACKETS], to[:, :, :BRACKETS, BRACKETS:]
        lost = goes @ idle[:, None, BRACKETS:]
        return self._next @ idle, stays @ spot + lost, to @ on_demand

    def _best(
        self, left: int, idle: Table, spot: Table, on_demand: Table
    ) -> tuple[Table, Table, Table]:
        """Return what the best choice costs with so many steps left, by what one has."""
        idling = self._idles(idle)
        idling[..., self._no_idling] = FORBIDDEN
        starting = self._run(left, self._starts, on_demand)
        to_spot = self._run_spot(left, self._starts, spot)
        without = np.minimum(idling, starting)
        without[:, :BRACKETS] = np.minimum(without[:, :BRACKETS], to_spot)
        on_spot, on_others = np.empty_like(spot), np.empty_like(on_demand)
        for mode, run in enumerate(self._runs):
            stays = self._run_spot(left, run, spot)
            on_spot[:, mode] = np.minimum(stays, without[:, :BRACKETS])
            stays = self._run(left, run, on_demand)
            on_others[:, mode] = np.minimum(stays, without)
        ended = left - self._grid <= 1e-9
        for values in (without, on_spot, on_others):
            values[..., ended] = 0.0
        return without, on_spot, on_others

    def _run(self, left: int, run: _Run, after: Table) -> Table:
        billed, _ = run.billed(left)
        return np.asarray(billed + run.shift(after[:, run.mode]))

    def _run_spot(self, left: int, run: _Run, after: Table) -> Table:
        billed, forbidden = run.billed(left)
        found = np.asarray(self._share * billed + run.shift(after[:, run.mode]))
        found[..., forbidden] = FORBIDDEN
        return found
