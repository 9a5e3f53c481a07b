"""The board for many needs and nodes: totals in a matrix, of which only what changed is redone."""

from collections.abc import Callable, Collection, Sequence

import numpy as np

from cloudwhale.model.node import Device
from cloudwhale.model.plan import Scored
from cloudwhale.planning.board import Top
from cloudwhale.planning.columns import Floats, Ints
from cloudwhale.planning.ground import Ground, Seat
from cloudwhale.planning.refusals import Verdict
from cloudwhale.planning.sight import Sight
from cloudwhale.planning.tallies import verdicts_of

MOST_ROWS = 512
"""Needs whose totals are kept at once: those of two windows."""

NODES_A_SEAT = 8
"""For so many nodes one more job is seated at once: they rarely want the same."""

TRIES_BY_NODES, LEAST_TRIES = 800, 12
"""Changes that a round tries, times nodes, and how many at least."""

NO_PLACE = -np.inf


class LargeBoard:
    """Totals of needs on nodes, kept as they were asked for and renewed where the ground moved."""

    def __init__(self, ground: Ground, devices: Sequence[Device]) -> None:
        self.ground = ground
        self._sight = Sight(ground, devices)
        self._nodes = np.arange(len(ground.songs))
        self._row_of: dict[int, int] = {}
        """Rows of the needs that were asked for last; only those are kept up to date."""
        self._next_row = 0
        self._needs = np.zeros(MOST_ROWS, dtype=np.int64)
        self._totals = np.full((MOST_ROWS, len(ground.songs)), NO_PLACE)
        self._best = np.zeros(MOST_ROWS, dtype=np.int64)
        self._first = np.full(MOST_ROWS, NO_PLACE)
        self._second = np.full(MOST_ROWS, NO_PLACE)
        self._second_node = np.zeros(MOST_ROWS, dtype=np.int64)

    @property
    def tries(self) -> int:
        """Return how many changes a round may try: fewer where nodes are many and each costs."""
        return max(LEAST_TRIES, TRIES_BY_NODES // max(1, len(self.ground.songs)))

    @property
    def at_once(self) -> int:
        """Return how many jobs may be seated before the totals are looked at again."""
        return max(1, len(self.ground.songs) // NODES_A_SEAT)

    def tops(self, needs: Sequence[int]) -> Sequence[Top | None]:
        """Return the best place of each need."""
        rows = self._only(needs)
        best, first, second = self._best[rows], self._first[rows], self._second[rows]
        found = zip(best.tolist(), first.tolist(), second.tolist(), strict=True)
        return [
            None if one == NO_PLACE else Top(node, one, None if two == NO_PLACE else two)
            for node, one, two in found
        ]

    def best(self, need: int, but_for: Collection[int] = ()) -> int | None:
        """Return the node with the best place but for some."""
        self._renew()
        return self.as_good(need, but_for, 0.0)

    def as_good(self, need: int, but_for: Collection[int], least: float) -> int | None:
        """Return the same if its total is at least so much, as it was when it was worked out."""
        totals = self._totals[self._rows([need])[0]].copy()
        totals[list(but_for)] = NO_PLACE
        best = int(totals.argmax())
        return None if totals[best] < least or totals[best] == NO_PLACE else best

    def fitting(self, needs: Sequence[int]) -> Callable[[int], Sequence[int]]:
        """Return the function from each of the needs to the nodes where it fits now."""
        fits = self._totals[self._only(needs)] > NO_PLACE
        rows = {need: row for row, need in enumerate(needs)}

        def nodes(need: int) -> list[int]:
            found: list[int] = np.flatnonzero(fits[rows[need]]).tolist()
            return found

        return nodes

    def scored(self, seats: Sequence[Seat]) -> Sequence[Scored]:
        """Return what each of the seated has."""
        self._renew()
        return self._sight.scored(seats)

    def rivals(self, seats: Sequence[Seat]) -> Sequence[tuple[Scored, ...]]:
        """Return the best three places on other nodes of each of the seated."""
        self._renew()
        return self._sight.rivals(seats)

    def verdicts(self, asked: Sequence[tuple[int, int | None]]) -> Sequence[Verdict]:
        """Return why the nodes refuse each need."""
        self._renew()
        return verdicts_of(asked, self._sight)

    def _only(self, needs: Sequence[int]) -> Ints:
        """Return the up-to-date rows of some needs, and forget those of others."""
        known = self._row_of
        self._row_of = {need: known[need] for need in needs if need in known}
        self._renew()
        return self._rows(needs)

    def _rows(self, needs: Sequence[int]) -> Ints:
        """Return the rows of some needs, after working out those that are new."""
        new = [need for need in needs if need not in self._row_of]
        if self._next_row + len(new) > MOST_ROWS:
            self._row_of.clear()
            self._next_row, new = 0, list(needs)
        if new:
            start = self._next_row
            self._next_row += len(new)
            rows = np.arange(start, start + len(new))
            self._row_of |= dict(zip(new, range(start, start + len(new)), strict=True))
            self._needs[rows] = new
            self._totals[rows] = self._sight.totals(self._needs[rows], self._nodes)
            self._find_best(rows)
        return np.array([self._row_of[need] for need in needs], dtype=np.int64)

    def _renew(self) -> None:
        """Work out again what the ground's changes have changed."""
        if not self.ground.changed:
            return
        nodes = np.array(sorted(self.ground.changed))
        self.ground.changed.clear()
        self._sight.look_again(nodes)
        rows = np.array(list(self._row_of.values()), dtype=np.int64)
        if not len(rows):
            return
        new = self._sight.totals(self._needs[rows], nodes)
        self._totals[rows[:, None], nodes[None, :]] = new
        touched = np.zeros(len(self._nodes), dtype=np.bool_)
        touched[nodes] = True
        old = touched[self._best[rows]] | touched[self._second_node[rows]]
        self._find_best(rows[old | (new.max(axis=1) > self._second[rows])])

    def _find_best(self, rows: Ints) -> None:
        if not len(rows):
            return
        totals: Floats = self._totals[rows]
        each = np.arange(len(rows))
        best = totals.argmax(axis=1)
        self._best[rows], self._first[rows] = best, totals[each, best]
        totals[each, best] = NO_PLACE
        second = totals.argmax(axis=1)
        self._second_node[rows], self._second[rows] = second, totals[each, second]
