"""What a job of a dry run could have had instead, and what forbids the cheaper of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from cloudwhale.control.preview_machines import Seated, called, rents_of
from cloudwhale.control.preview_misses import nearest_miss
from cloudwhale.control.previewed import Binding, Rival
from cloudwhale.control.supply import Supply
from cloudwhale.control.trying import Trial
from cloudwhale.model import plan as p
from cloudwhale.model.job import HOLDS_A_PLACE, Job, JobSpec, JobState, Resources, Span
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.units import NOTHING, Instant, MicroUsd
from cloudwhale.planning.fit import could_ever_fit, suits
from cloudwhale.planning.inventory import free_capacity
from cloudwhale.planning.needs import spec_of
from cloudwhale.planning.releases import Profile
from cloudwhale.planning.releases import run_s as place_s
from cloudwhale.planning.speeds import run_s
from cloudwhale.planning.stock import Option, Stock
from cloudwhale.reporting.figures import cents, moment, roughly, span

WORTH_TELLING = 0.05
"""A constraint is named when without it the job would cost less by so large a part."""


class Choices:
    """Answers for each job of a dry run; jobs that ask alike are looked at once."""

    def __init__(self, trial: Trial, made: p.Plan, supply: Supply) -> None:
        self._trial = trial
        self._made = made
        self._supply = supply
        self._homes: dict[str, tuple[str, ...]] = {}
        self._saved: dict[object, Binding | None] = {}

    @cached_property
    def _stock(self) -> Stock | None:
        offers = self._supply.offers
        if not offers:
            return None
        stock = Stock(offers, self._trial.durations)
        # Together, as one by one it takes as long as the plan itself.
        stock.look_at(
            [*self._trial.jobs, *(job for one in self._freer.values() for *_, job in one)]
        )
        return stock

    @cached_property
    def _freer(self) -> Mapping[str, Sequence[tuple[str, str, Job]]]:
        """Return, for each job that is rented for, it without one of its constraints each."""
        rented = {name for step in rents_of(self._trial, self._made) for name in step.rental.jobs}
        return {job.id: tuple(_relaxed(job)) for job in self._trial.jobs if job.id in rented}

    @cached_property
    def _barred(self) -> Stock | None:
        offers = self._supply.barred
        return Stock(offers, self._trial.durations) if offers else None

    # -- owned nodes -------------------------------------------------------------------------

    @cached_property
    def at_home(self) -> frozenset[str]:
        """Return the ids of the jobs that an owned node could run if nothing else did."""
        return frozenset(job.id for job in self._trial.jobs if self._homes_of(job))

    def _homes_of(self, job: Job) -> tuple[str, ...]:
        found = self._homes.get(job.demand)
        if found is None:
            spec = spec_of(job)
            found = self._homes[job.demand] = tuple(
                name
                for name, free in self._trial.empty.items()
                if could_ever_fit(spec, free) is None
            )
        return found

    @cached_property
    def _profile(self) -> Profile:
        """Return when what becomes free on owned nodes, who is placed by this plan included."""
        now, jobs = self._trial.world.now, dict(self._trial.world.jobs)
        for step in self._made.steps:
            if isinstance(step, p.Place):
                jobs[step.job] = jobs[step.job].but(
                    placement=step.placement, state=JobState.STARTING, started_at=now
                )
        running = [job for job in jobs.values() if job.state in HOLDS_A_PLACE]
        owned = [node for node in self._trial.world.nodes.values() if node.owned]
        free = free_capacity(owned, running, self._trial.world.sightings)
        return Profile(now, free, running, self._trial.durations)

    # -- the best that lost ------------------------------------------------------------------

    def runner_up(self, job: Job, seat: Seated) -> Rival | None:
        """Return the best place beside the one that was chosen for a job that is rented for."""
        if self._stock is None:
            return None
        for option in self._in_time(self._stock, job):
            offer = option.offer
            same = (offer.type, offer.market) == (seat.offer.type, seat.offer.market)
            ends_at = self._ends_at(option)
            if same and seat.alone:
                continue
            return Rival(
                where=called(offer),
                says=_lost(option, ends_at, seat),
                offer=offer.id,
                cost=option.cost,
                ends_at=ends_at,
            )
        return self._at_home(job)

    def _at_home(self, job: Job) -> Rival | None:
        """Return the owned node that could run a job first, once others have left it."""
        start = self._profile.earliest(job, self._homes_of(job))
        if start is None:
            return None
        took_s = place_s(job, start.placement, start.free, self._trial.durations)
        return Rival(
            where=start.node,
            says=f"free about {moment(start.at, self._trial.world.now)}",
            cost=NOTHING,
            ends_at=start.at + took_s,
        )

    def instead(self, job: Job) -> Rival | None:
        """Return the cheapest that could be rented for a job that is not rented for."""
        option = next(self._options(job), None)
        if option is None:
            return None
        return Rival(
            where=called(option.offer),
            says=f"would cost {cents(option.cost)} USD",
            offer=option.offer.id,
            cost=option.cost,
            ends_at=self._ends_at(option),
        )

    def _options(self, job: Job) -> Iterator[Option]:
        if self._stock is not None:
            yield from self._stock.options(job)

    def _ends_at(self, option: Option) -> Instant:
        return self._trial.world.now + option.offer.boot_s + option.runs_s

    # -- what forbids the cheaper ------------------------------------------------------------

    def binding(self, job: Job, seat: Seated) -> Binding | None:
        """Return what keeps a job that is rented for from costing less."""
        homes = self._homes_of(job)
        if homes:
            return self._time(job, homes[0])
        found = self._largest_saving(job)
        return found or self._not_here(job)

    def _time(self, job: Job, home: str) -> Binding:
        if job.spec.deadline is not None:
            says = f"{home} could run it, and not in time for its deadline"
            return Binding(code="deadline", says=says)
        says = f"{home} could run it later: the wait would cost more than the machine"
        return Binding(code="value-of-time", says=says)

    def _largest_saving(self, job: Job) -> Binding | None:
        if self._stock is None:
            return None
        spec = job.spec
        key = (job.demand, spec.deadline, spec.duration_s, spec.reference, spec.checkpoint)
        if key not in self._saved:
            cost = self._least(self._stock, job, in_time=True)
            found = [one for one in self._savings(job, cost) if one.saves is not None]
            best = max(found, key=lambda one: (one.saves or 0, one.code), default=None)
            worth = best is not None and (best.saves or 0) >= WORTH_TELLING * cost
            self._saved[key] = best if worth else None
        return self._saved[key]

    def _savings(self, job: Job, cost: float) -> Iterator[Binding]:
        """Yield what would be saved if one constraint alone were not there."""
        assert self._stock is not None
        if math.isinf(cost):
            return
        for code, says, freer in self._freer.get(job.id, ()):
            least = self._least(self._stock, freer, in_time=code != "deadline")
            if least < cost:
                yield _binding(code, says, cost, least)
        if self._barred is not None:
            least = self._least(self._barred, job, in_time=True)
            if least < cost:
                option = next(self._barred.options(job))
                code = self._setting(option)
                yield _binding(code, f"`{code}` keeps out {called(option.offer)}", cost, least)

    def _setting(self, option: Option) -> str:
        from cloudwhale.planning.allowing import allowed

        counts = allowed([option.offer], self._supply.limits).counts
        return next(iter(counts), "settings")

    def _least(self, stock: Stock, job: Job, *, in_time: bool) -> float:
        """Return the least that a machine for the job alone costs, in micro-dollars; infinity."""
        options = self._in_time(stock, job) if in_time else stock.options(job)
        option = next(options, None)
        return math.inf if option is None else float(option.cost)

    def _in_time(self, stock: Stock, job: Job) -> Iterator[Option]:
        """Yield what fits a job and would be done by its deadline, as surely as is asked for."""
        deadline = job.spec.deadline
        if deadline is None:
            yield from stock.options(job)
            return
        late_s = stock.late_s(job)
        for option in stock.options(job):
            took_s = option.offer.boot_s + float(late_s[stock.position[option.offer.id]])
            if self._trial.world.now + took_s <= deadline:
                yield option

    def _not_here(self, job: Job) -> Binding | None:
        spec = spec_of(job)
        refusals = [
            no
            for free in self._trial.empty.values()
            if (no := could_ever_fit(spec, free)) is not None
        ]
        nearest = min(refusals, key=lambda no: no.shortfall, default=None)
        return None if nearest is None else Binding(code=nearest.code.value, says=nearest.says)

    # -- what nothing can do -----------------------------------------------------------------

    def miss(self, job: Job) -> str | None:
        """Return why nothing that could be rented fits a job; None: something does, or nothing is.

        Names what is lacking, by how much, and the nearest offer.
        """
        if next(self._options(job), None) is not None:
            return None
        if self._barred is not None:
            option = next(self._barred.options(job), None)
            if option is not None:
                return f"`{self._setting(option)}` keeps out {called(option.offer)}, which would do"
        return None if self._stock is None else nearest_miss(spec_of(job), self._stock)

    def too_late(self, job: Job) -> Reason | None:
        """Return why nothing at all would have done a job by its deadline; None: something might.

        The earliest end is named. A length that nobody has said or seen refuses nothing.
        """
        deadline, now = job.spec.deadline, self._trial.world.now
        if deadline is None or self._trial.durations.of(job.spec).source == "nothing":
            return None
        soonest = min(self._ends(job), default=None)
        if soonest is None or soonest[0] <= deadline:
            return None
        at, where = soonest
        late_s = at - deadline
        says = (
            f"the earliest that it could be done is {moment(at, now)}, on {where}: "
            f"{span(late_s)} after its deadline"
        )
        change = f"a deadline {span(late_s)} later, or a shorter `duration` if it takes less"
        return Reason(code=Code.TOO_LATE, says=says, change=change)

    def _ends(self, job: Job) -> Iterator[tuple[Instant, str]]:
        """Yield when a job would be done if it had the best of each place at once."""
        now, spec = self._trial.world.now, spec_of(job)
        for name in self._homes_of(job):
            devices = [d.device for d in self._trial.empty[name].devices if suits(spec, d.device)]
            models = {device.model for device in devices} if spec.resources.gpu.count else {None}
            for model in sorted(models, key=str):
                yield now + run_s(job, model, 0, self._trial.durations), name
        if self._stock is not None:
            late_s = self._stock.late_s(job)
            for offer, kind, took_s in zip(
                self._stock.offers, self._stock.kinds, late_s, strict=True
            ):
                if math.isfinite(took_s):
                    yield now + kind.boot_s + float(took_s), called(offer)


def _lost(option: Option, ends_at: Instant, seat: Seated) -> str:
    """Say what the best of the others would cost, and how much dearer or later that is."""
    more, later_s = MicroUsd(option.cost - seat.cost), ends_at - seat.fields["ends_at"]
    alone = "" if seat.alone else " alone"
    dearer = f"{cents(more)} USD more" if more > 0 else "no dearer for this job"
    later = f", {roughly(later_s)} later" if later_s >= 60 else ""
    return f"{cents(option.cost)} USD{alone}, {dearer}{later}"


def _binding(code: str, says: str, cost: float, least: float) -> Binding:
    saves = MicroUsd(round(cost - least))
    return Binding(code=code, says=f"{says}: without that {cents(saves)} USD less", saves=saves)


def _relaxed(job: Job) -> Iterator[tuple[str, str, Job]]:
    """Yield a job without one of its constraints each, and what that one is in words."""
    spec, wants = job.spec, job.wants
    gpu = wants.gpu
    if spec.market in ("spot", "on-demand"):
        other = "on-demand" if spec.market == "spot" else "spot"
        yield "market", f"`market: {spec.market}` rules out {other}", _but(job, market="auto")
    if spec.deadline is not None:
        yield "deadline", "its deadline rules out slower ones", job
    if gpu.count and gpu.models:
        says = f"asks for {' or '.join(gpu.models)} alone"
        yield "no-such-gpu", says, _wanting(job, gpu=gpu.but(models=()))
    if gpu.count and gpu.memory_gib.least:
        says = f"needs {gpu.memory_gib.least:g} GiB on each GPU"
        yield "gpu-memory", says, _wanting(job, gpu=gpu.but(memory_gib=Span()))
    if gpu.count > 1:
        says = f"needs {gpu.count} GPUs on one machine"
        yield "gpu-count", says, _wanting(job, gpu=gpu.but(count=gpu.count // 2))
    if wants.memory_gib:
        says = f"needs {wants.memory_gib:g} GiB of memory"
        yield "memory", says, _wanting(job, memory_gib=None)
    if wants.cpu > 1:
        yield "cpu", f"needs {wants.cpu:g} CPUs", _wanting(job, cpu=1.0)
    if wants.disk_gib:
        yield "disk", f"needs {wants.disk_gib:g} GiB of disk", _wanting(job, disk_gib=None)


def _wanting(job: Job, **changes: Any) -> Job:
    return _but(job, resources=_anew(job.wants, changes))


def _but(job: Job, **changes: Any) -> Job:
    spec = _anew_spec(job.spec, changes)
    return job.but(spec=spec, grown=None)


def _anew(wants: Resources, changes: Mapping[str, Any]) -> Resources:
    return wants.but(**changes)


def _anew_spec(spec: JobSpec, changes: Mapping[str, Any]) -> JobSpec:
    """Return another spec; a copy would keep what was worked out of the first."""
    fields = {name: getattr(spec, name) for name in JobSpec.model_fields}
    return JobSpec.model_construct(**{**fields, **changes})
