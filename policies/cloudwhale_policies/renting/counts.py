"""How many jobs of each lot run on each kind, in whole numbers, and machines that hold them.

The counts come from the programme of machine hours (`hours`) over the kinds that it uses, with
rows for deadlines: what must have run by some time fits before it. Then each kind's jobs are
really placed: the longest first, as early as they can, on one machine after another.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from cloudwhale_policies.renting.areas import PLAIN, Areas
from cloudwhale_policies.renting.arrays import Tables
from cloudwhale_policies.renting.bounding import begun
from cloudwhale_policies.renting.budgets import keeps_budget, start
from cloudwhale_policies.renting.costs import Costs
from cloudwhale_policies.renting.greedy import Filling, shrunk
from cloudwhale_policies.renting.hours import Block
from cloudwhale_policies.renting.limits import Limits
from cloudwhale_policies.renting.machine import Machine, Yard
from cloudwhale_policies.renting.plans import Fleet, plan_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cloudwhale.spi.renting import RentalPlan, RentalProblem
    from cloudwhale_policies.renting.arrays import Floats

    Solve = Callable[["Counting"], Floats | None]

TIMES = 8
"""Deadlines of a kind that are looked at, evenly among all."""
COUNTS = 2
"""Times that jobs are counted and placed."""
LOOSEST = 1.6
WEAVES = ((0.0, 0.0), (0.0, 0.5), (1.0, 0.5))
"""How much it counts to suit what is free, and how long a job runs, as powers."""
ROUNDS = 4
"""Rounds that add rows to the programme, or kinds."""


@dataclass(frozen=True, slots=True)
class Part:
    """A kind that the programme uses, with all that it says of it in hours and parts."""

    block: Block
    hours: Floats
    """Machine hours of a job of each of its lots."""
    usd: Floats
    """What a job costs there on top of the machine."""
    most: Floats
    """Jobs of each lot that one machine can run."""
    usd_h: float
    start_usd: float
    windows: Sequence[tuple[Floats, float]]
    """What a job takes of each hour before a deadline, by lot, and how many hours that are."""
    loose: float = 1.0
    """So many hours were really used for each that the ways to count say."""

    @property
    def lots(self) -> list[int]:
        """Return the lots that may run there."""
        numbers: list[int] = self.block.lots.tolist()
        return numbers


@dataclass(frozen=True, slots=True)
class Counting:
    """The problem of counts: how many jobs of each lot go to each part."""

    parts: Sequence[Part]
    jobs: Sequence[int]
    """Of each lot."""
    at: Sequence[NDArray[np.intp]]
    """Of each part, the columns of its lots in all pairs, which are counted through."""

    @property
    def pairs(self) -> int:
        """Return how many pairs of a lot and a kind there are."""
        return sum(len(one) for one in self.at)


def counting(tables: Tables) -> Counting:
    """Return the problem of counts over the kinds that the solved programme uses."""
    areas = Areas(tables)
    costs = Costs.of(tables, areas)
    programme = begun(tables, areas, costs)
    for _ in range(ROUNDS):
        if not programme.solve() or not programme.tighten():
            break
    used = [one for one in programme.blocks.values() if one.used_h > 1e-9]
    parts = [_part(tables, costs, one) for one in used]
    ends = np.cumsum([0, *(len(one.lots) for one in used)])
    at = [np.arange(ends[n], ends[n + 1], dtype=np.intp) for n in range(len(used))]
    return Counting(parts, [len(jobs) for jobs in tables.members], at)


def _part(tables: Tables, costs: Costs, block: Block) -> Part:
    kind, lots = block.kind, block.lots
    hours = costs.hours[lots, kind]
    return Part(
        block=block,
        hours=hours,
        usd=costs.extra_usd[lots, kind],
        most=costs.most[lots, kind],
        usd_h=float(costs.usd_h[kind]),
        start_usd=float(costs.start_usd[kind]),
        windows=_windows(tables, block, hours),
    )


def _windows(tables: Tables, block: Block, hours: Floats) -> list[tuple[Floats, float]]:
    """Return rows of what must have run by a time, even of those who start at the last moment."""
    latest_h = (tables.latest_s[block.lots, block.kind] - tables.boot_s[block.kind]) / 3600.0
    runs_h = tables.runs_s[block.lots, block.kind] / 3600.0
    ends = np.unique(latest_h[np.isfinite(latest_h)] + runs_h[np.isfinite(latest_h)])
    if len(ends) > TIMES:
        ends = ends[np.linspace(0, len(ends) - 1, TIMES).astype(np.intp)]
    rows: list[tuple[Floats, float]] = []
    for end in ends.tolist():
        share = np.clip(end - latest_h, 0.0, runs_h) / runs_h
        taken = share * hours
        rows.extend((taken * part, end) for part in block.rows[:3] if (taken * part > 0).any())
    return rows


def counted_plan(problem: RentalProblem, solve: Solve, how: str) -> RentalPlan:
    """Return the plan of the counts that a solver finds; greedy's where that is no dearer.

    Greedy's too where money or quotas leave no room for all: counts know nothing of them.
    """
    tables = Tables(problem)
    plain = start(tables)
    greedy = plan_of(plain.tables, plain.fleet, "greedy")
    if greedy.left_out or not greedy.choices:
        return greedy
    fleet = counted_fleet(tables, solve)
    if fleet is None or fleet.left or not keeps_budget(tables, fleet.machines):
        return greedy
    plan = plan_of(tables, fleet, how)
    return plan if plan.cost_usd < greedy.cost_usd else greedy


# -- machines --------------------------------------------------------------------------------


def counted_fleet(tables: Tables, solve: Solve) -> Fleet | None:
    """Return machines for all jobs by the counts that a solver finds; None: it finds none.

    Where jobs do not lie as closely as the counts have it, that is told, and they are counted anew;
    the cheapest fleet is taken. The budget is not asked. Quotas are kept; who finds no room by
    them is left out.
    """
    problem = counting(tables)
    yard, areas, best = Yard(tables), Areas(tables), None
    for _ in range(COUNTS if problem.parts else 0):
        counts = solve(problem)
        if counts is None:
            break
        fleet, parts = _placed(yard, areas, problem, counts)
        if best is None or (len(fleet.left), fleet.usd) < (len(best.left), best.usd):
            best = fleet
        problem = replace(problem, parts=parts)
    return best


def _placed(
    yard: Yard, areas: Areas, problem: Counting, counts: Floats
) -> tuple[Fleet, Sequence[Part]]:
    """Return machines for all jobs, and the parts with how closely jobs lay there."""
    tables, limits = yard.tables, Limits(yard.tables.problem)
    filling = Filling(tables, yard, limits)
    left = np.array(problem.jobs)
    loose: list[int] = []
    parts: list[Part] = []
    for part, columns in zip(problem.parts, problem.at, strict=True):
        lots: list[int] = []
        for lot, count in zip(part.lots, counts[columns].tolist(), strict=True):
            taken = min(round(count), int(left[lot]))
            left[lot] -= taken
            lots.extend([lot] * taken)
        machines = strips(yard, areas, part.block.kind, lots)
        parts.append(_seen(tables, part, counts[columns], machines))
        loose.extend(_take(filling, limits, machines))
    loose.extend(lot for lot, count in enumerate(left.tolist()) for _ in range(count))
    able = [lot for lot in loose if np.isfinite(tables.cheapest_usd[lot])]
    able.sort(key=lambda lot: (-tables.cheapest_usd[lot], lot))
    out = [lot for lot in able if not filling.add(lot)]
    return Fleet(shrunk(filling.machines, tables, yard, limits), out), parts


def _seen(tables: Tables, part: Part, counts: Floats, machines: Sequence[Machine]) -> Part:
    """Return a part with how closely its jobs lay, the mean of that and of what was thought."""
    runs = np.where(counts > 0.5, part.hours, 0.0)
    counted = max(float(((part.block.rows * part.hours) @ counts).max()), float(runs.max()))
    boot_s = float(tables.boot_s[part.block.kind])
    used_s = sum(one.width * (one.end_s - boot_s) for one in machines)
    if counted <= 0:
        return part
    seen = min(max(used_s / 3600.0 / counted, 1.0), LOOSEST)
    return replace(part, loose=(part.loose + seen) / 2)


def _take(filling: Filling, limits: Limits, machines: Iterable[Machine]) -> list[int]:
    """Take the machines that limits allow, and return the jobs of the others."""
    loose: list[int] = []
    for machine in machines:
        room = limits.room(filling.machines, machine.width)
        if room is None or room[machine.kind]:
            filling.take(machine)
        else:
            loose.extend(machine.lots)
    return loose


def strips(yard: Yard, areas: Areas, kind: int, lots: Sequence[int]) -> list[Machine]:
    """Return machines of a kind for some jobs: each takes whom the one before had no time for.

    The best of some orders; a gang has machines of its own.
    """
    tables = yard.tables
    machines: list[Machine] = []
    for width in sorted({tables.nodes[lot] for lot in lots}):
        mine = [lot for lot in lots if tables.nodes[lot] == width]
        plain = areas.shape(kind).rows[:PLAIN]
        found = [_strips(yard, kind, width, one) for one in _orders(tables, kind, plain, mine)]
        machines.extend(min(found, key=lambda fleet: sum(one.usd for one in fleet)))
    return machines


def _orders(tables: Tables, kind: int, plain: Floats, lots: Sequence[int]) -> list[list[int]]:
    """Return orders of jobs: who is in a hurry first, then the wide, the long, or woven."""
    runs, latest = tables.runs_s[:, kind], tables.latest_s[:, kind]
    wide = plain.max(axis=0)
    late = np.where(np.isfinite(np.minimum(tables.done_by_s, tables.start_by_s)), latest, np.inf)
    hurried = sorted(
        (lot for lot in lots if np.isfinite(late[lot])), key=lambda lot: (late[lot], lot)
    )
    free = [lot for lot in lots if np.isinf(late[lot])]
    return [
        sorted(lots, key=lambda lot: (late[lot], -wide[lot], -runs[lot], lot)),
        sorted(lots, key=lambda lot: (np.isinf(late[lot]), -runs[lot], lot)),
        *([*hurried, *_woven(plain, runs, free, weave)] for weave in WEAVES if free),
    ]


def _woven(
    plain: Floats, runs_s: Floats, lots: Sequence[int], weave: tuple[float, float]
) -> list[int]:
    """Return jobs as they would start on one machine that always takes who suits its rest best.

    Who takes much of what all that are left are short of suits; and of what is free, by `weave`.
    """
    some, counts = np.unique(np.array(lots), return_counts=True)
    parts, runs = plain[:, some], runs_s[some]
    taken, lengths = parts * runs, runs ** weave[1]
    free, now = np.ones(len(parts)), 0.0
    ends: list[tuple[float, int]] = []
    order: list[int] = []
    while len(order) < len(lots):
        able = (counts > 0) & (parts <= free[:, None] + 1e-9).all(axis=0)
        if not able.any() and ends:
            now, gone = heapq.heappop(ends)
            free = free + parts[:, gone]
            continue
        scarce = taken @ counts
        fit = ((np.maximum(free, 0.0) ** weave[0] * scarce) @ parts + 1e-12) * lengths
        best = int(np.where(able | (not able.any() and counts > 0), fit, -1.0).argmax())
        counts[best] -= 1
        free = free - parts[:, best]
        heapq.heappush(ends, (now + float(runs[best]), best))
        order.append(int(some[best]))
    return order


def _strips(yard: Yard, kind: int, width: int, lots: Sequence[int]) -> list[Machine]:
    machines: list[Machine] = []
    fresh = yard.empty(kind, width)
    for lot in lots:
        start = yard.earliest(fresh, lot)
        if start is None:
            continue
        best = yard.price(fresh, lot, start)
        at = len(machines)
        for place, machine in enumerate(machines):
            known = machine.starts_s.get(lot)
            if known is None:
                when = yard.earliest(machine, lot)
                known = (np.inf, 0.0) if when is None else (yard.price(machine, lot, when), when)
                machine.starts_s[lot] = known
            if known[0] < best:
                best, start, at = known[0], known[1], place
        if at == len(machines):
            machines.append(fresh)
        machines[at] = yard.placed(machines[at], lot, start)
    return machines
