"""The hours of machines that jobs need at least, as a linear programme.

For each kind: the hours Y that its machines are used, how many machines N there are, and how many
jobs x of each lot run there. Every way to count the parts of jobs side by side (`areas`) is a row:
what the jobs take together is at most Y. Each job is somewhere; a lot of which one machine can run
`most` has at most `most` N there. When jobs start is left open, so no plan costs less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cloudwhale_policies.filling.prices import quiet_solver
from cloudwhale_policies.renting.areas import Areas, clique
from cloudwhale_policies.renting.costs import Costs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cloudwhale_policies.renting.arrays import Floats, Tables

    Lots = NDArray[np.intp]

Exclusion = tuple[int, int]
"""A resource, and the lot whose jobs others exclude."""
Way = int | Exclusion | str
"""What a row counts: a way of the shape by its number, an exclusion, or a sum over sets by name."""


@dataclass(slots=True)
class Block:
    """A kind in the programme, with the lots that may run on it."""

    kind: int
    lots: Lots
    hours: Floats
    side: Floats
    rows: Floats
    """Parts of a machine, a row each way to count, a column a lot of the block."""
    names: list[Way]
    """Which way to count each row is."""
    alone: NDArray[np.bool_]
    """Of which lots it is asked that a machine is used as long as one job runs."""
    linked: NDArray[np.bool_]
    """Of which lots it is asked that there is a machine."""
    used_h: float = 0.0
    machines: float = 0.0
    runs: Floats = field(default_factory=lambda: np.zeros(0))
    """Jobs of each lot that run here, as the programme was solved last."""


@dataclass(frozen=True, slots=True)
class Tariff:
    """How a kind's hour is shared out: weights of the ways to count, which sum to 1 at most."""

    ways: Floats
    exclusions: tuple[tuple[Exclusion, float], ...]
    summed: Floats
    """By lot: the weighted sum of the ways that were made for the shape, 0 on any other."""
    alone: Floats
    """By lot: weight of the rule that a machine is used as long as one job runs."""


class Programme:
    """The linear programme over some kinds; rows that a solution breaks are added as it goes."""

    def __init__(self, tables: Tables, areas: Areas, costs: Costs, *, whole: bool) -> None:
        self._tables, self._areas, self._costs = tables, areas, costs
        self._counts = np.array([len(jobs) for jobs in tables.members], dtype=np.float64)
        self._whole = whole
        self.blocks: dict[int, Block] = {}
        self.tariffs: dict[int, Tariff] = {}
        self._basis: dict[object, Any] = {}
        self._made: dict[str, Floats] = {}
        """Ways to count that were made for a shape, by lot."""
        self.usd = 0.0
        self.worth = np.zeros(len(self._counts))

    def add(self, kind: int, lots: Lots) -> bool:
        """Let lots run on a kind, beside those that may already; return whether any is new."""
        if not len(lots):
            return False
        known = self.blocks.get(kind)
        if known is not None:
            lots = np.union1d(known.lots, lots)
            if len(lots) == len(known.lots):
                return False
        shape = self._areas.shape(kind)
        rows = shape.rows[:, lots]
        kept = _different(rows)
        block = Block(
            kind=kind,
            lots=lots,
            hours=self._costs.hours[lots, kind],
            side=np.minimum(shape.side[lots], self._counts[lots]),
            rows=rows[kept],
            names=[*kept],
            alone=np.full(len(lots), self._whole),
            linked=np.full(len(lots), self._whole),
        )
        if known is not None:
            self._carried(known, block)
        self.blocks[kind] = block
        return True

    def _carried(self, known: Block, block: Block) -> None:
        old = np.isin(block.lots, known.lots)
        block.alone[old], block.linked[old] = known.alone, known.linked
        for name in known.names:
            if isinstance(name, tuple):
                self._exclude(block, name)
            elif isinstance(name, str):
                self._count(block, name)

    def _exclude(self, block: Block, name: Exclusion) -> None:
        resource, lot = name
        at = int(np.searchsorted(block.lots, lot))
        part = self._areas.shape(block.kind).rows[resource, block.lots]
        row = clique(part, at, float(block.side[at]))
        block.rows = np.vstack((block.rows, row))
        block.names.append(name)

    def count(self, kind: int, weights: Floats) -> None:
        """Add a way to count to a kind of the programme: no jobs side by side exceed 1 by it.

        `weights`: by lot of its block.
        """
        block = self.blocks[kind]
        name = f"sum-{len(self._made)}"
        row = np.zeros(len(self._counts))
        row[block.lots] = weights
        self._made[name] = row
        self._count(block, name)

    def ways(self, kind: int, lots: Lots) -> Floats:
        """Return all ways to count that are known for a kind, a row each, a column a lot."""
        shape = self._areas.shape(kind)
        rows = shape.rows[:, lots]
        found = [rows[_different(rows)]]
        block = self.blocks.get(kind)
        for name in [] if block is None else block.names:
            if isinstance(name, str):
                found.append(self._made[name][lots][None, :])
            elif isinstance(name, tuple):
                resource, lot = name
                at = int(np.searchsorted(lots, lot))
                side = float(min(shape.side[lot], self._counts[lot]))
                found.append(clique(rows[resource], at, side)[None, :])
        return np.vstack(found)

    def _count(self, block: Block, name: str) -> None:
        block.rows = np.vstack((block.rows, self._made[name][block.lots]))
        block.names.append(name)

    # -- solving -----------------------------------------------------------------------------

    def solve(self) -> bool:
        """Solve it as it stands; False: the solver found no optimum, and nothing has changed."""
        import highspy

        blocks = list(self.blocks.values())
        if not blocks:
            return False
        solver = quiet_solver()
        solver.setOptionValue("threads", 1)
        model, rows = self.model(blocks)
        if solver.passModel(model) == highspy.HighsStatus.kError:
            return False
        names = self._names(blocks)
        if self._basis:
            solver.setBasis(self._started(names))
        if solver.run() == highspy.HighsStatus.kError:
            return False
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return False
        found = solver.getSolution()
        self.usd = float(solver.getInfo().objective_function_value)
        duals = np.array(found.row_dual, dtype=np.float64)
        lots = len(self._counts)
        self.worth = np.maximum(duals[:lots], 0.0)
        basis = solver.getBasis()
        held = [*basis.col_status, *basis.row_status]
        self._basis = dict(zip((*names[0], *names[1]), held, strict=True))
        self._read(blocks, np.array(found.col_value, dtype=np.float64), -duals, rows)
        return True

    def _names(self, blocks: Sequence[Block]) -> tuple[list[object], list[object]]:
        """Return names of all columns and rows that outlast a change of the programme."""
        columns: list[object] = []
        rows: list[object] = [(-1, lot) for lot in range(len(self._counts))]
        for block in blocks:
            kind, lots = block.kind, block.lots.tolist()
            columns.extend((kind, "runs", lot) for lot in lots)
            columns.extend(((kind, "machines"), (kind, "hours")))
            rows.extend((kind, name) for name in block.names)
            rows.extend((kind, "alone", lot) for lot in block.lots[block.alone].tolist())
            rows.extend((kind, "linked", lot) for lot in block.lots[block.linked].tolist())
        return columns, rows

    def _started(self, names: tuple[list[object], list[object]]) -> Any:
        """Return the last basis, with new rows basic and new columns at 0."""
        import highspy

        basis, lower = highspy.HighsBasis(), highspy.HighsBasisStatus.kLower
        basic = highspy.HighsBasisStatus.kBasic
        basis.col_status = [self._basis.get(name, lower) for name in names[0]]
        basis.row_status = [self._basis.get(name, basic) for name in names[1]]
        basis.valid = True
        return basis

    def _read(
        self, blocks: Sequence[Block], values: Floats, prices: Floats, rows: Sequence[int]
    ) -> None:
        column = 0
        for block, row in zip(blocks, rows, strict=True):
            size, ways = len(block.lots), len(block.rows)
            block.runs = values[column : column + size]
            block.machines, block.used_h = (float(v) for v in values[column + size :][:2])
            column += size + 2
            price = np.maximum(prices[row : row + ways], 0.0)
            alone = np.zeros(len(self._counts))
            spots = np.flatnonzero(block.alone)
            held = np.maximum(prices[row + ways : row + ways + len(spots)], 0.0)
            alone[block.lots[spots]] = held
            total = max(float(price.sum() + held.sum()), 1e-12)
            self.tariffs[block.kind] = self._tariff(block, price / total, alone / total)

    def _tariff(self, block: Block, price: Floats, alone: Floats) -> Tariff:
        ways = np.zeros(self._areas.shape(block.kind).rows.shape[0])
        exclusions: list[tuple[Exclusion, float]] = []
        summed = np.zeros(len(self._counts))
        for name, weight in zip(block.names, price, strict=True):
            if isinstance(name, int):
                ways[name] = weight
            elif weight > 0 and isinstance(name, str):
                summed += weight * self._made[name]
            elif weight > 0 and isinstance(name, tuple):
                exclusions.append((name, float(weight)))
        return Tariff(ways, tuple(exclusions), summed, alone)

    def model(self, blocks: Sequence[Block]) -> tuple[Any, list[int]]:
        """Return the programme, and the first row of each block; the lots' rows come first."""
        import highspy

        costs, lots = self._costs, len(self._counts)
        counts: list[NDArray[np.int64]] = []
        index: list[NDArray[np.int64]] = []
        value: list[Floats] = []
        cost: list[Floats] = []
        owners: list[Lots] = []
        spots: list[Lots] = []
        first: list[int] = []
        row, column = lots, 0
        for block in blocks:
            entries = _entries(block, column, costs)
            counts.append(entries[0])
            index.append(entries[1])
            value.append(entries[2])
            first.append(row)
            row += len(entries[0])
            size, kind = len(block.lots), block.kind
            cost.append(costs.extra_usd[block.lots, kind])
            cost.append(np.array([costs.start_usd[kind], costs.usd_h[kind]]))
            owners.append(block.lots)
            spots.append(np.arange(column, column + size))
            column += size + 2
        owner, spot = np.concatenate(owners), np.concatenate(spots)
        order = np.argsort(owner, kind="stable")
        of_lots = np.bincount(owner, minlength=lots)
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = column, row
        model.col_cost_ = np.concatenate(cost)
        model.col_lower_, model.col_upper_ = np.zeros(column), np.full(column, np.inf)
        reached = np.where(of_lots > 0, self._counts, 0.0)
        model.row_lower_ = np.concatenate((reached, np.full(row - lots, -np.inf)))
        model.row_upper_ = np.concatenate((np.full(lots, np.inf), np.zeros(row - lots)))
        lengths = np.concatenate((of_lots, *counts))
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = np.concatenate(([0], np.cumsum(lengths)))
        model.a_matrix_.index_ = np.concatenate((spot[order], *index))
        model.a_matrix_.value_ = np.concatenate((np.ones(len(order)), *value))
        return model, first

    # -- what a solution breaks ---------------------------------------------------------------

    def tighten(self, at_once: int = 6) -> int:
        """Add rows that the last solution breaks, so many of each sort a kind; return how many."""
        return sum(self._tightened(block, at_once) for block in self.blocks.values())

    def _tightened(self, block: Block, at_once: int) -> int:
        if block.used_h <= 1e-9:
            return 0
        added = 0
        most = self._costs.most[block.lots, block.kind]
        for flags, need, have in (
            (block.alone, block.hours * block.runs / block.side, block.used_h),
            (block.linked, block.runs / most, block.machines),
        ):
            broken = np.flatnonzero(~flags & (need > have + 1e-6))
            chosen = broken[np.argsort(-need[broken], kind="stable")][: 4 * at_once]
            flags[chosen] = True
            added += len(chosen)
        parts = self._areas.shape(block.kind).rows[:, block.lots]
        for resource in range(4):
            for at in self._broken(block, parts[resource], at_once):
                name = (resource, int(block.lots[at]))
                if name not in block.names:
                    self._exclude(block, name)
                    added += 1
        return added

    @staticmethod
    def _broken(block: Block, part: Floats, at_once: int) -> list[int]:
        """Return the small jobs whose cliques take more hours than there are."""
        taken = block.hours * block.runs
        order = np.argsort(-part, kind="stable")
        sums = np.concatenate(([0.0], np.cumsum(taken[order])))
        level = np.maximum(1.0 - part, 0.5) + 1e-5
        larger = np.searchsorted(-part[order], -level, side="left")
        over = sums[larger] + taken / block.side - block.used_h
        small = (part > 0) & (part <= 0.5 + 1e-5) & (larger > 0) & (taken > 0)
        over = np.where(small, over, -1.0)
        worst = np.argsort(-over, kind="stable")[:at_once]
        return [int(at) for at in worst if over[at] > 1e-6 * max(1.0, block.used_h)]


def _entries(
    block: Block, column: int, costs: Costs
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Return a block's rows: how many entries each has, their columns and their values."""
    size = len(block.lots)
    dense = np.hstack((block.rows * block.hours, np.full((len(block.rows), 1), -1.0)))
    row, at = np.nonzero(dense)
    lengths = [np.bincount(row, minlength=len(block.rows))]
    columns = [column + np.where(at == size, size + 1, at)]
    values = [dense[row, at]]
    most = costs.most[block.lots, block.kind]
    for flags, amount, end in (
        (block.alone, block.hours / block.side, size + 1),
        (block.linked, 1.0 / most, size),
    ):
        spots = np.flatnonzero(flags)
        pairs = np.stack((spots, np.full(len(spots), end)), axis=1) + column
        lengths.append(np.full(len(spots), 2, dtype=np.int64))
        columns.append(pairs.ravel())
        values.append(np.stack((amount[spots], np.full(len(spots), -1.0)), axis=1).ravel())
    return np.concatenate(lengths), np.concatenate(columns), np.concatenate(values)


def _different(rows: Floats) -> list[int]:
    """Return the rows that say something, and something new."""
    seen: set[bytes] = set()
    kept: list[int] = []
    for number, row in enumerate(rows):
        key = row.tobytes()
        if key not in seen and (row > 0).any():
            seen.add(key)
            kept.append(number)
    return kept
