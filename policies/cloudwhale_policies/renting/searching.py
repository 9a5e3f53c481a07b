"""Better machines for the same jobs: some are taken apart, and what is cheaper is kept."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cloudwhale_policies.renting.building import Building
from cloudwhale_policies.renting.covering import Seen, covering
from cloudwhale_policies.renting.drawing import Draws
from cloudwhale_policies.renting.inserting import Inserting
from cloudwhale_policies.renting.limits import Limits
from cloudwhale_policies.renting.machine import Machine, Yard

if TYPE_CHECKING:
    from cloudwhale_policies.renting.arrays import Floats, Tables

    Keeps = Callable[[Sequence[Machine]], bool]

IsOver = Callable[[], bool]
"""Whether the time is up that somebody has set."""

HOT, COLD = 0.02, 0.001
"""A fleet may get dearer by about this part of a machine's cost, at the start and the end."""
APART = 4
"""Machines that are taken apart at once, at most."""
WHOLE = 6
"""A machine with more jobs gives up some of them, not all."""
BUILT = 0.25
"""How often machines are built anew for the jobs, rather than found for one after the other."""
MISSED = 0.02
"""How often a job does not see a machine: else the same jobs go to the same places."""
FREE = 0.2
"""A job that adds no more than this part of its own machine's cost is not worth a repacking."""
ASKED = 24
"""Machines of which it is asked what packing anew could bring, at most."""
REPACKED = 5
"""Machines that are packed anew for a job, at most."""
FEW = 0.8
"""How often a machine with several jobs gives up one alone."""
PULLED = 0.1
"""How often a machine is built of jobs from all others."""
HOLLOW = 0.7
"""A machine is taken apart then of which the jobs left are worth a smaller part of its cost."""
STARTS = 3
"""Fleets that are built anew before the search begins."""
MANY = 300
"""Of more jobs one fleet is built anew."""
OTHERS = 8
"""Kinds, the cheapest for it alone, of which a job may get a new machine."""


def never() -> bool:
    """Say that the time is not up: there is no clock."""
    return False


class Search:
    """Ruin and recreate over a fleet; what was found out about a machine is kept with it."""

    def __init__(
        self, tables: Tables, worth: Floats, filled: Floats, is_over: IsOver = never
    ) -> None:
        self.tables, self._is_over = tables, is_over
        self._worth = worth.tolist()
        self._filled: list[list[float]] = filled.tolist()
        self._draws = Draws(tables.problem.seed)
        self._yard = Yard(tables)
        self.inserting = Inserting(tables, self._yard)
        self._building = Building(self.inserting, worth, filled, self._draws)
        self._limits = Limits(tables.problem)
        self._seen = Seen()
        self._dear = tables.cheapest_usd.tolist()
        own = np.argsort(tables.own_usd, axis=1, kind="stable")[:, :OTHERS]
        self._own = own.tolist()
        self._own_usd = np.take_along_axis(tables.own_usd, own, axis=1).tolist()
        runs = np.where(np.isfinite(tables.own_usd), tables.runs_s, np.inf).min(axis=1).tolist()
        done = np.minimum(tables.done_by_s, tables.start_by_s).tolist()
        self._orders: list[list[tuple[float, ...]]] = [
            [(-usd, lot) for lot, usd in enumerate(self._dear)],
            [(-run, lot) for lot, run in enumerate(runs)],
            [(by, -self._dear[lot], lot) for lot, by in enumerate(done)],
        ]

    def better(self, machines: Sequence[Machine], tries: int, keeps: Keeps) -> list[Machine]:
        """Return a fleet that costs no more, found with so many tries to place a job.

        Whoever stops it before that takes none of it: a clock is no measure of effort.
        """
        here = self._begun(machines, keeps)
        best, usd = here, _usd(here)
        best_usd, first = usd, self.inserting.work
        while (done := self.inserting.work - first) < tries and not self._is_over():
            heat = usd / max(1, len(here)) * HOT * (COLD / HOT) ** (done / tries)
            there = self._step(here)
            self._seen.add(there)
            self.inserting.work += len(here)
            there_usd = _usd(there)
            if there_usd >= usd - heat * math.log(1.0 - self._draws.part()):
                continue
            if not keeps(there):
                continue
            here, usd = there, there_usd
            if usd < best_usd - 1e-9:
                best, best_usd = here, usd
        return best

    def covered(self, fleet: Sequence[Machine], nodes: int, keeps: Keeps) -> list[Machine]:
        """Return the cheapest choice among all machines seen, where it is cheaper and allowed."""
        counts = [0] * len(self.tables.members)
        for machine in fleet:
            for lot in machine.lots:
                counts[lot] += 1
        self._seen.add(fleet)
        self._seen.add(self.inserting.packs)
        found = covering(self._seen.machines(), counts, _usd(fleet), nodes)
        if found is None:
            return list(fleet)
        once = self._once(found, counts)
        return once if keeps(once) and _usd(once) < _usd(fleet) else list(fleet)

    def _once(self, fleet: Sequence[Machine], counts: Sequence[int]) -> list[Machine]:
        """Return a fleet where no job is on a second machine, dear machines relieved first."""
        over = Counter(lot for machine in fleet for lot in machine.lots)
        over.subtract({lot: count for lot, count in enumerate(counts)})
        kept: list[Machine] = []
        for machine in sorted(fleet, key=lambda one: -one.usd):
            gone = _taken(machine, over)
            if len(gone) == len(machine.lots):
                continue
            rest = self.inserting.without(machine, gone) if gone else machine
            if rest is None:
                over.update(gone)
                rest = machine
            kept.append(rest)
        return kept

    def _begun(self, machines: Sequence[Machine], keeps: Keeps) -> list[Machine]:
        """Return the cheapest of what there is, retyped, and of some fleets built anew."""
        lots = [lot for machine in machines for lot in machine.lots]
        retyped = [self.inserting.retyped(one) for one in machines]
        built = [self._built([], lots) for _ in range(STARTS if len(lots) <= MANY else 1)]
        allowed = [fleet for fleet in (retyped, *built) if keeps(fleet)]
        return min(allowed, key=_usd, default=list(machines))

    def _step(self, fleet: Sequence[Machine]) -> list[Machine]:
        kept, lots = self._pulled(fleet) if self._draws.part() < PULLED else self._ruined(fleet)
        if self._draws.part() < BUILT:
            return self._built(kept, lots)
        return self._settled(kept, lots)

    def _settled(self, kept: Sequence[Machine], lots: list[int]) -> list[Machine]:
        old = set(map(id, kept))
        new = self._recreated(kept, lots)
        return [one if id(one) in old else self.inserting.retyped(one) for one in new]

    def _built(self, kept: Sequence[Machine], lots: Sequence[int]) -> list[Machine]:
        """Return a fleet with new machines for some jobs; where one would be hollow, none is."""
        good, loose = list(kept), list[int]()
        for machine in self._building.machines(lots):
            worth = sum(self._worth[lot] for lot in machine.lots)
            if worth < HOLLOW * machine.usd:
                loose.extend(machine.lots)
            else:
                good.append(machine)
        return self._settled(good, loose)

    def _pulled(self, fleet: Sequence[Machine]) -> tuple[list[Machine], list[int]]:
        """Return a fleet with one machine more, built of jobs that suit it from all others.

        A machine that has not much of its worth left is taken apart.
        """
        machine = fleet[self._draws.weighed(self._waste(fleet))]
        first = machine.lots[self._draws.below(len(machine.lots))]
        lots = [lot for one in fleet for lot in one.lots]
        built = self._building.around(first, lots)
        taken, kept, loose = Counter(built.lots), [built], list[int]()
        for one in fleet:
            gone = _taken(one, taken)
            if not gone:
                kept.append(one)
                continue
            if len(gone) == len(one.lots):
                continue
            rest = self.inserting.without(one, gone)
            worth = 0.0 if rest is None else sum(self._worth[lot] for lot in rest.lots)
            if rest is None or worth < rest.usd * HOLLOW:
                left = Counter(one.lots) - Counter(gone)
                loose.extend(left.elements())
            else:
                kept.append(rest)
        return kept, loose

    def _ruined(self, fleet: Sequence[Machine]) -> tuple[list[Machine], list[int]]:
        """Return what stays of a fleet, and the jobs that have no machine any more."""
        kept: list[Machine] = []
        lots: list[int] = []
        chosen = self._chosen(fleet)
        few = self._draws.part() < FEW
        for place, machine in enumerate(fleet):
            if place not in chosen:
                kept.append(machine)
                continue
            gone = self._leaving(machine, few)
            rest = self.inserting.without(machine, gone) if len(gone) < len(machine.lots) else None
            if rest is not None:
                kept.append(rest)
            lots.extend(gone if rest is not None else machine.lots)
        return kept, lots

    def _waste(self, fleet: Sequence[Machine]) -> list[float]:
        """Return what each machine costs beyond the worth of its jobs, and a little more."""
        return [
            max(one.usd - sum(self._worth[lot] for lot in one.lots), 0.0) + 0.01 * one.usd + 1e-9
            for one in fleet
        ]

    def _chosen(self, fleet: Sequence[Machine]) -> set[int]:
        """Return some machines, wasteful ones rather."""
        waste = self._waste(fleet)
        count = min(len(fleet), 1 + self._draws.below(APART))
        chosen = {self._draws.weighed(waste)}
        while len(chosen) < count:
            even = self._draws.part() < 0.5
            chosen.add(self._draws.below(len(fleet)) if even else self._draws.weighed(waste))
        return chosen

    def _leaving(self, machine: Machine, few: bool) -> Sequence[int]:
        lots = machine.lots
        count = len(lots)
        if few and count > 3:
            return [lots[self._draws.below(count)]]
        if count == 1 or (count <= WHOLE and self._draws.part() < 0.7):
            return lots
        some = 1 + self._draws.below(min(count, 2 * WHOLE) - 1)
        if self._draws.part() < 0.5:
            first = self._draws.below(count)
            return [lots[(first + place) % count] for place in range(some)]
        places = list(range(count))
        self._draws.shuffle(places)
        return [lots[place] for place in places[:some]]

    def _recreated(self, kept: Sequence[Machine], lots: list[int]) -> list[Machine]:
        fleet, order = list(kept), self._draws.below(len(self._orders) + 1)
        if order < len(self._orders):
            lots.sort(key=self._orders[order].__getitem__)
        else:
            self._draws.shuffle(lots)
        for lot in lots:
            self._seat(fleet, lot)
        return fleet

    def _seat(self, fleet: list[Machine], lot: int) -> None:
        """Put a job where it adds least, on a machine of its own if nowhere else."""
        nodes, inserting = self.tables.nodes[lot], self.inserting
        seen = sorted(
            (inserting.least_added(machine, lot), place)
            for place, machine in enumerate(fleet)
            if machine.width == nodes and self._draws.part() >= MISSED
        )
        rank = self._rank(fleet, lot)
        usd, at, start = self._own_usd[lot][rank], -1, 0.0
        for least, place in seen:
            if least >= usd:
                break
            added, start_s = inserting.added(fleet[place], lot)
            if added < usd:
                usd, at, start = added, place, start_s
        found = self._repacked(fleet, [place for _, place in seen], lot, usd)
        if found is not None:
            at, new = found
            fleet[at] = new
        elif at >= 0:
            fleet[at] = self._yard.placed(fleet[at], lot, start)
        else:
            empty = self._yard.empty(self._own[lot][rank], nodes)
            fleet.append(self._yard.placed(empty, lot, empty.times[0]))

    def _repacked(
        self, fleet: Sequence[Machine], seen: Sequence[int], lot: int, below_usd: float
    ) -> tuple[int, Machine] | None:
        """Return which machine takes a job for less when its jobs are packed anew."""
        if below_usd <= FREE * self._dear[lot]:
            return None
        places, filled = seen, self._filled[lot]
        if len(seen) > ASKED:
            places = sorted(seen, key=lambda place: (filled[fleet[place].kind], place))[:ASKED]
        near = sorted(
            (floor, place)
            for place in places
            if (floor := self.inserting.floor(fleet[place], lot)) < below_usd
        )
        best: tuple[int, Machine] | None = None
        for floor, place in near[:REPACKED]:
            if floor >= below_usd:
                break
            found = self.inserting.repacked(fleet[place], lot, below_usd)
            if found is not None:
                best, below_usd = (place, found), found.usd - fleet[place].usd
        return best

    def _rank(self, fleet: Sequence[Machine], lot: int) -> int:
        """Return which kind, by its cost for the job alone, a new machine would be of."""
        usd, draws = self._own_usd[lot], self._draws
        rank = 0
        if draws.part() < 0.3:
            rank = min(int(-2.0 * math.log(1.0 - draws.part())), len(usd) - 1)
        room = self._limits.room(fleet, self.tables.nodes[lot])
        if room is not None:
            while rank < len(usd) - 1 and not room[self._own[lot][rank]]:
                rank += 1
        return rank if math.isfinite(usd[rank]) else 0


def _taken(machine: Machine, taken: Counter[int]) -> list[int]:
    """Return those of a machine's jobs that another takes, and count them off."""
    gone: list[int] = []
    for lot in machine.lots:
        if taken[lot] > 0:
            taken[lot] -= 1
            gone.append(lot)
    return gone


def _usd(fleet: Sequence[Machine]) -> float:
    return sum(machine.usd for machine in fleet)
