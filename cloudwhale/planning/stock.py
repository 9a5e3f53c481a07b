"""What can be rented, in arrays: which kinds of machines suit a job, for how long and how much."""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from cloudwhale.model.job import Data, Job, JobSpec
from cloudwhale.model.node import Device
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import MICRO_PER_USD, NOTHING, MicroUsd, Seconds
from cloudwhale.planning.bringing import Bringing
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.fit import RULE_FILTERS, suits
from cloudwhale.planning.gravity import moved_usd, moves, regions_of
from cloudwhale.planning.inventory import DUST, Free
from cloudwhale.planning.kinds import as_kind, each_once, empty, models_of, priced
from cloudwhale.planning.needs import spec_of
from cloudwhale.planning.rules import Rules
from cloudwhale.planning.speeds import speed, work_s
from cloudwhale.planning.spot import Risk, expected_each_s

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Row = NDArray[np.float64]

SURE = 0.9
"""With this probability a deadline is kept on a machine that may be taken away."""

SAVE_HOLDS_S: Seconds = 10.0
"""How long a save is taken to hold a job up, until it is measured."""

LONGEST_LEASE_S: Seconds = 14 * 24 * 3600.0
"""No machine is planned for longer: two weeks."""

RESTORES_S: Seconds = 60.0
"""From a machine that is there to work that goes on: fetching and loading a checkpoint."""


MOST_ROWS = 20_000
"""So many are kept of the times that are worked out, at most: 800 bytes each for 100 kinds."""


@dataclass(frozen=True, slots=True)
class Option:
    """An offer that fits a job."""

    offer: Offer
    runs_s: Seconds
    """Expected there, boot left out."""
    price_usd_h: MicroUsd
    """Disks and addresses included."""
    cost: MicroUsd
    """Expected, boot, billing minimum, and bringing its data there included; of a gang all."""
    brings: MicroUsd = NOTHING
    """The most that bringing what it has saved costs, from another cloud; of a gang each."""


class _Asked(NamedTuple):
    """All of a job that its times depend on."""

    demand: str
    work_s: Seconds
    reference: str | None
    speeds: tuple[tuple[str, float], ...]
    market: str
    every_s: Seconds | None
    nodes: int


class Stock:
    """What can be rented, in arrays: asked for every job that waits."""

    def __init__(self, offers: Iterable[Offer], durations: Durations) -> None:
        import numpy as np

        self.offers = tuple(priced(offers))
        self.kinds = tuple(as_kind(offer) for offer in self.offers)
        self.position = {offer.id: at for at, offer in enumerate(self.offers)}
        self._durations = durations
        self._frees = tuple(empty(offer) for offer in self.offers)
        devices = {models_of(offer): each_once(offer) for offer in reversed(self.offers)}
        self._models = sorted(devices)
        """Names of models of GPU, those of a machine together; of most there is one."""
        known = {names: at for at, names in enumerate(self._models)}
        self._model_at = np.array([known[models_of(o)] for o in self.offers], dtype=np.intp)
        self._model_devices = [devices[names] for names in self._models]
        self._rules, self._rule_at = self._ruled()
        self._rows: dict[tuple[_Asked, bool], Row] = {}
        self._ranks: dict[tuple[_Asked, tuple[Data, ...], object], tuple[Row, Any]] = {}
        self.bringing = Bringing(self.offers)
        self._dangers = self._endangered()
        self._amounts = np.array(
            [[k.devices, k.cpu, k.memory_gib, k.disk_gib] for k in self.kinds]
        ).reshape(len(self.kinds), 4)
        self._money = np.array(
            [
                [k.usd_h, k.boot_s, max(k.billing_step_s, 1e-9), k.billing_least_s, k.cap_usd_h]
                for k in self.kinds
            ]
        ).reshape(len(self.kinds), 5)
        self._markets = np.array([k.market for k in self.kinds])
        self._moved: dict[tuple[Data, ...], Row] = {}
        """By data: what bringing them to each kind costs."""
        self.keeps: Mapping[str, MicroUsd] = {}
        """By job: what is kept beside a spot machine of its, as its deadline may ask for more."""

        self.at_once: Collection[str] = ()
        """Ids of those that have to start right after their machine has booted."""

        self.promised: Collection[str] = ()
        """Ids of those for whom it is kept already: it is in no account of the world any more."""

        self.shares: Mapping[str, float] = {}
        """Of those of whom a night does a part: how much of what is left of each that is."""

        self.value_usd_h: float = Rules().value_usd_h
        """What an hour of a job's waiting is worth, where its file does not say."""

    def lasting(self, durations: Durations) -> Stock:
        """Return the same with other durations; what is worked out is shared, as it stays true."""
        if len(self._rows) > MOST_ROWS:
            self._rows.clear()
            self._ranks.clear()
        other = copy.copy(self)
        other._durations = durations
        return other

    def keeping(
        self, keeps: Mapping[str, MicroUsd], at_once: Collection[str], promised: Collection[str]
    ) -> Stock:
        """Return the same where so much is kept for each job that goes to a spot machine.

        `at_once`: ids of those that have to start right after their machine has booted.
        `promised`: ids of those for whom it is kept already.
        """
        if not keeps and not at_once:
            return self
        kept = copy.copy(self)
        kept.keeps, kept.at_once, kept.promised = keeps, at_once, promised
        return kept

    def is_promised_now(self, job: Job) -> bool:
        """Say whether a job is rented for at once with money that was kept for it."""
        return job.id in self.at_once and job.id in self.promised

    def _ruled(self) -> tuple[list[Free], Any]:
        """Return one offer for all that stand under the same rules, and which is whose."""
        import numpy as np

        found: dict[object, int] = {}
        firsts: list[Free] = []
        at: list[int] = []
        for free in self._frees:
            facts = free.node.facts
            key = (tuple(sorted(facts.labels.items())), facts.mounts, facts.runtimes)
            if key not in found:
                found[key] = len(firsts)
                firsts.append(free)
            at.append(found[key])
        return firsts, np.array(at, dtype=np.intp)

    def _endangered(self) -> list[tuple[float, Seconds, Any]]:
        """Return which kinds may be taken away: hazard, time to start anew, positions."""
        import numpy as np

        found: dict[tuple[float, Seconds], list[int]] = {}
        for at, kind in enumerate(self.kinds):
            if kind.hazard_per_h:
                found.setdefault((kind.hazard_per_h, kind.boot_s), []).append(at)
        return [
            (hazard, boot_s + RESTORES_S, np.array(where, dtype=np.intp))
            for (hazard, boot_s), where in found.items()
        ]

    # -- one job -----------------------------------------------------------------------------

    def runs_s(self, job: Job) -> Row:
        """Return how long a job is expected to run on each kind; infinity where it cannot.

        Where a machine may be taken away, what is done again then is in it.
        """
        return self._with_copy_s(job, late=False)

    def late_s(self, job: Job) -> Row:
        """Return how long it takes at most, at the quantile that a deadline asks for."""
        return self._with_copy_s(job, late=job.spec.deadline is not None)

    def look_at(self, jobs: Collection[Job]) -> None:
        """Work out the times of many jobs together, which costs less than one by one."""
        asked = dict.fromkeys((self._key(job), job.spec.deadline is not None) for job in jobs)
        # The plain times of a job do not depend on how it saves, or on a deadline.
        by_rule: dict[tuple[Seconds | None, int, bool], list[_Asked]] = {}
        firsts = {self._key(job): job for job in jobs}
        for key, has_deadline in asked:
            for late in (False, True) if has_deadline else (False,):
                if (key, late) not in self._rows:
                    by_rule.setdefault((key.every_s, key.nodes, late), []).append(key)
        for (every_s, nodes, late), keys in by_rule.items():
            specs = [(spec_of(firsts[key]), key.work_s) for key in keys]
            saving = Risk(every_s=every_s, save_s=SAVE_HOLDS_S)
            rows = self._at_risk(specs, saving, nodes, late=late)
            for key, row in zip(keys, rows, strict=True):
                row.setflags(write=False)  # from round to round it is shared
                self._rows[key, late] = row

    def _with_copy_s(self, job: Job, *, late: bool) -> Row:
        """Return times with that of bringing what a job has saved from another cloud."""
        runs_s = self._known(job, late=late)
        is_asked = self.bringing.is_asked(job)
        return runs_s + self.bringing.takes_s(job) if is_asked else runs_s

    def _known(self, job: Job, *, late: bool) -> Row:
        key = (self._key(job), late)
        if key not in self._rows:
            self.look_at([job])
        return self._rows[key]

    def _key(self, job: Job) -> _Asked:
        spec = job.spec
        every_s = None if spec.checkpoint is None else spec.checkpoint.every_s
        speeds = tuple(sorted(spec.speeds.items()))
        return _Asked(
            job.demand, work_s(job, self._durations), spec.reference, speeds, spec.market, every_s,
            spec.nodes,
        )  # fmt: skip

    def _at_risk(
        self, specs: Sequence[tuple[JobSpec, Seconds]], saving: Risk, nodes: int, *, late: bool
    ) -> Sequence[Row]:
        """Return the times of jobs, with their work, what is done again included.

        A gang begins anew when any of its machines goes.
        """
        import numpy as np

        # Kinds of one model and hazard are alike, so it is worked out for models.
        of_model = np.array([self._times(spec, work) for spec, work in specs])
        found = of_model[:, self._model_at]
        for hazard, restart_s, where in self._dangers:
            risk = Risk(hazard, saving.every_s, saving.save_s, restart_s).of_gang(nodes)
            models, backs = np.unique(self._model_at[where], return_inverse=True)
            runs_s = of_model[:, models]
            some = np.isfinite(runs_s)
            at_risk_s = _with_risk(runs_s[some], risk, late)
            # Who would be interrupted again and again before it saves would as good as never end.
            at_risk_s[at_risk_s > np.maximum(runs_s[some], LONGEST_LEASE_S)] = math.inf
            runs_s[some] = at_risk_s
            found[:, where] = runs_s[:, backs]
        for row, (spec, _) in zip(found, specs, strict=True):
            row[~self._fits(spec)] = math.inf
        return list(found)

    def _times(self, spec: JobSpec, work: Seconds) -> Sequence[Seconds]:
        """Return how long some work takes on each model when nothing interrupts it."""
        if not spec.resources.gpu.count:
            return [work] * len(self._models)
        return [work * self._pace(spec, devices) for devices in self._model_devices]

    def _fits(self, spec: JobSpec) -> Any:
        """Return which kinds have what a job wants, and may have it; its models apart."""
        import numpy as np

        wants = spec.resources
        asks = [wants.gpu.count, wants.cpu, wants.memory_gib or 0.0, wants.disk_gib or 0.0]
        fits = (self._amounts + DUST >= asks).all(axis=1)
        rules = np.array([_is_allowed(spec, free) for free in self._rules], dtype=bool)
        fits &= rules[self._rule_at]
        if spec.market != "auto":
            fits &= self._markets == spec.market
        return fits

    @staticmethod
    def _pace(spec: JobSpec, devices: Sequence[Device]) -> float:
        """Return how many times its work a job runs on a machine; infinity: not at all.

        `devices`: one of each model, first of which there are most: the others are not counted on,
        but where one suits and is slower, that may be what the job gets.
        """
        if not devices or not suits(spec, devices[0]):
            return math.inf
        return max(1.0 / speed(spec, one.model) for one in devices if suits(spec, one))

    def moved_usd(self, job: Job) -> Row:
        """Return what bringing a job's data to a machine of each kind costs; to all of a gang.

        And what it has saved, from another cloud.
        """
        found = self._data_usd(job)
        if self.bringing.is_asked(job):
            found = found + self.bringing.costs_usd(job)
        return found if job.spec.nodes == 1 else found * job.spec.nodes

    def _data_usd(self, job: Job) -> Row:
        import numpy as np

        found = self._moved.get(job.spec.data)
        if found is None:
            prices = moves(self.offers, regions_of([job.spec]))
            each = [moved_usd(job.spec, offer.region, prices) for offer in self.offers]
            found = self._moved[job.spec.data] = np.array(each, dtype=np.float64)
        return found

    @property
    def boots_s(self) -> Row:
        """Return how long each kind boots."""
        boots: Row = self._money[:, 1]
        return boots

    def costs_usd(self, runs_s: Row) -> Row:
        """Return what a machine of each kind costs that is there for one run, boot included."""
        import numpy as np

        usd_h, boot_s, step_s, least_s, _ = self._money.T
        used_s = np.ceil((runs_s + boot_s) / step_s - DUST) * step_s
        costs: Row = usd_h * np.maximum(used_s, least_s) / 3600.0
        return costs

    def shares_usd(self, job: Job) -> Row:
        """Return what a job's own part of a machine of each kind costs while it runs, at least.

        Boot, and what of the machine nobody uses, left out; infinity where it cannot run.
        """
        import numpy as np

        found: Row = self._money[:, 0] * self.runs_s(job) / 3600.0 * np.minimum(1, self._parts(job))
        return found

    def part(self, job: Job, offer: str) -> float:
        """Return how large a part of a machine a job takes: of what it takes most of."""
        return min(1.0, float(self._parts(job)[self.position[offer]]))

    def _parts(self, job: Job) -> Row:
        import numpy as np

        wants = job.wants
        asks = np.array(
            [
                wants.gpu.count * min(1.0, wants.gpu.share), wants.cpu, wants.memory_gib or 0.0,
                wants.disk_gib or 0.0,
            ]
        )  # fmt: skip
        has = np.maximum(self._amounts, DUST)
        parts: Row = np.where(asks > 0, asks / has, 0.0).max(axis=1, initial=0.0)
        return parts

    def options(self, job: Job) -> Iterator[Option]:
        """Yield the offers that fit a job, the cheapest first; ties end at the offer's id."""
        runs_s = self.runs_s(job)
        costs, order = self._ranked(job, runs_s)
        for at in map(int, order):
            if math.isinf(runs_s[at]):
                return
            offer, kind = self.offers[at], self.kinds[at]
            yield Option(
                offer=offer,
                runs_s=float(runs_s[at]),
                price_usd_h=MicroUsd(round(kind.usd_h * MICRO_PER_USD)),
                cost=MicroUsd(math.ceil(costs[at] * MICRO_PER_USD - DUST)),
                brings=self.bringing.worst(job, offer),
            )

    def _ranked(self, job: Job, runs_s: Row) -> tuple[Row, Any]:
        """Return what each kind costs a job, and their positions, the cheapest first."""
        import numpy as np

        left = (job.saved_from, job.checkpoint) if self.bringing.is_asked(job) else None
        key = (self._key(job), job.spec.data, left)
        if key not in self._ranks:
            costs = self.costs_usd(runs_s) * job.spec.nodes + self.moved_usd(job)
            self._ranks[key] = (costs, np.argsort(costs, kind="stable"))
        return self._ranks[key]

    def empty(self, offer: str) -> Free:
        """Return what would be free on a machine of an offer that nobody uses."""
        return self._frees[self.position[offer]]


def _with_risk(works_s: Row, risk: Risk, late: bool) -> Row:
    import numpy as np

    runs_s = expected_each_s(works_s, risk)
    if late:
        from cloudwhale.planning.lateness import quantile_each_s

        runs_s = np.maximum(runs_s, quantile_each_s(works_s, risk, SURE))
    return runs_s


def _is_allowed(spec: JobSpec, free: Free) -> bool:
    return all(forbids(spec, free, ()) is None for forbids in RULE_FILTERS)
