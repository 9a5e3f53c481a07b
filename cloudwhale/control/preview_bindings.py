"""What keeps a job of a dry run from costing less: the one constraint that costs it most."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from cloudwhale.control.preview_machines import Seated, called, rents_of
from cloudwhale.control.preview_places import Places
from cloudwhale.control.previewed import Binding
from cloudwhale.model.job import Job, JobSpec, Span
from cloudwhale.model.units import MicroUsd
from cloudwhale.planning.nights import night_of
from cloudwhale.planning.releases import Start, run_s
from cloudwhale.planning.stock import Stock
from cloudwhale.reporting.figures import cents, hour, span

ALL_BUT = 0.99
"""What is planned for a part of a job is shorter than this part of all of it."""

WORTH_TELLING = 0.05
"""A constraint is named when without it the job would cost less by so large a part."""


class Bindings:
    """Finds it by taking one constraint away after another; jobs that ask alike are asked once."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._known: dict[object, Binding | None] = {}

    def of(self, job: Job, seat: Seated) -> Binding | None:
        """Return what keeps a job that is rented for from costing less; None: nobody knows."""
        part = self._part(job, seat)
        if part is not None:
            return part
        if self._places.homes(job):
            return self._time(job)
        return self._money(job, seat) or self._largest(job) or self.not_here(job)

    def _part(self, job: Job, seat: Seated) -> Binding | None:
        """Say how much of a job its night does; None: all of it, or it is of no night."""
        night, stock = night_of(self._places.trial.world, job.run), self._places.stock
        if night is None or stock is None:
            return None
        whole_s = float(stock.runs_s(job)[stock.position[seat.offer.id]])
        does_s = seat.fields["ends_at"] - seat.fields["starts_at"]
        if does_s >= ALL_BUT * whole_s:
            return None
        says = f"does {span(does_s)} of {span(whole_s)}, the next night of {night.name} goes on"
        return Binding(code="night", says=says)

    def _money(self, job: Job, seat: Seated) -> Binding | None:
        """Say whether a budget keeps out the cheapest machine for a job that has one alone."""
        account = self._places.trial.world.accounts.get(job.run)
        if self._places.stock is None or not seat.alone or account is None:
            return None
        option = next(self._places.in_time(self._places.stock, job), None)
        if option is None or seat.cost - option.cost < WORTH_TELLING * seat.cost:
            return None
        worst = self._places.worst(job, option)
        if account.limit is None or worst is None or worst <= seat.fields["worst"]:
            return None
        says = f"the budget rules out {called(option.offer)}, {cents(worst)} USD at worst"
        return _binding("budget", says, float(seat.cost), float(option.cost))

    def _time(self, job: Job) -> Binding:
        """Say why a job that an owned node could run does not wait for it."""
        start = self._places.profile.earliest(job, self._places.homes(job))
        when = "later" if start is None else f"from about {hour(start.at, self._places.now)} on"
        where = self._places.homes(job)[0] if start is None else start.node
        if job.spec.deadline is not None and (start is None or self._is_late(job, start)):
            says = f"{where} could run it {when}, and not in time for its deadline"
            return Binding(code="deadline", says=says)
        value = job.spec.value_of_time_usd_h
        usd_h = self._places.trial.policies.rules.value_usd_h if value is None else value
        says = f"{where} could run it {when}: at {usd_h:g} USD an hour that wait costs more"
        return Binding(code="value-of-time", says=says)

    def _is_late(self, job: Job, start: Start) -> bool:
        took_s = run_s(job, start.placement, start.free, self._places.trial.durations)
        return job.spec.deadline is not None and start.at + took_s > job.spec.deadline

    @cached_property
    def _freer(self) -> Mapping[str, Sequence[tuple[str, str, Job]]]:
        """Return, for each job that is rented for, it without one of its constraints each."""
        trial = self._places.trial
        rented = {job for step in rents_of(trial, self._places.made) for job in step.rental.jobs}
        found = {job.id: tuple(_relaxed(job)) for job in trial.jobs if job.id in rented}
        if self._places.stock is not None:
            # Together, as one by one it takes as long as the plan itself.
            self._places.stock.look_at([job for some in found.values() for *_, job in some])
        return found

    def _largest(self, job: Job) -> Binding | None:
        stock, spec = self._places.stock, job.spec
        if stock is None:
            return None
        key = (job.demand, spec.deadline, spec.duration_s, spec.reference, spec.checkpoint)
        if key not in self._known:
            cost = self._least(stock, job, in_time=True)
            savings = [] if math.isinf(cost) else list(self._savings(stock, job, cost))
            best = max(savings, key=lambda one: (one.saves or 0, one.code), default=None)
            worth = best is not None and (best.saves or 0) >= WORTH_TELLING * cost
            self._known[key] = best if worth else None
        return self._known[key]

    def _savings(self, stock: Stock, job: Job, cost: float) -> Iterator[Binding]:
        """Yield what would be saved if one constraint alone were not there."""
        for code, says, freer in self._freer.get(job.id, ()):
            least = self._least(stock, freer, in_time=code != "deadline")
            if least < cost:
                yield _binding(code, says, cost, least)
        barred = self._places.barred
        option = None if barred is None else next(self._places.in_time(barred, job), None)
        if option is not None and option.cost < cost:
            code = self._places.bars(option)
            says = f"`{code}` keeps out {called(option.offer)}"
            yield _binding(code, says, cost, float(option.cost))

    def _least(self, stock: Stock, job: Job, *, in_time: bool) -> float:
        """Return the least that a machine for the job alone costs, in micro-dollars; infinity."""
        options = self._places.in_time(stock, job) if in_time else stock.options(job)
        option = next(options, None)
        return math.inf if option is None else float(option.cost)

    def not_here(self, job: Job) -> Binding | None:
        """Return why no owned node can run a job; None: some can."""
        no = self._places.not_at_home(job)
        return None if no is None else Binding(code=no.code.value, says=no.says)


def _binding(code: str, says: str, cost: float, least: float) -> Binding:
    saves = MicroUsd(round(cost - least))
    return Binding(code=code, says=f"{says}: without that {cents(saves)} USD less", saves=saves)


def _relaxed(job: Job) -> Iterator[tuple[str, str, Job]]:
    """Yield a job without one of its constraints each, and what that one is in words."""
    spec, wants = job.spec, job.wants
    if spec.market in ("spot", "on-demand"):
        other = "on-demand" if spec.market == "spot" else "spot"
        yield "market", f"`market: {spec.market}` rules out {other}", with_spec(job, market="auto")
    if spec.deadline is not None:
        yield "deadline", "its deadline rules out slower ones", job
    yield from _relaxed_gpu(job)
    if wants.memory_gib:
        says = f"needs {wants.memory_gib:g} GiB of memory"
        yield "memory", says, _wanting(job, memory_gib=None)
    if wants.cpu > 1:
        yield "cpu", f"needs {wants.cpu:g} CPUs", _wanting(job, cpu=1.0)
    if wants.disk_gib:
        yield "disk", f"needs {wants.disk_gib:g} GiB of disk", _wanting(job, disk_gib=None)


def _relaxed_gpu(job: Job) -> Iterator[tuple[str, str, Job]]:
    gpu = job.wants.gpu
    if not gpu.count:
        return
    if gpu.models:
        says = f"asks for {' or '.join(gpu.models)} alone"
        yield "no-such-gpu", says, _wanting(job, gpu=gpu.but(models=()))
    if gpu.memory_gib.least:
        says = f"needs {gpu.memory_gib.least:g} GiB on each GPU"
        yield "gpu-memory", says, _wanting(job, gpu=gpu.but(memory_gib=Span()))
    if gpu.count > 1:
        says = f"needs {gpu.count} GPUs on one machine"
        yield "gpu-count", says, _wanting(job, gpu=gpu.but(count=gpu.count // 2))


def _wanting(job: Job, **changes: Any) -> Job:
    return with_spec(job, resources=job.wants.but(**changes))


def with_spec(job: Job, **changes: Any) -> Job:
    """Return a job whose spec differs; a copy would keep what was worked out of the first."""
    fields = {name: getattr(job.spec, name) for name in JobSpec.model_fields}
    return job.but(spec=JobSpec.model_construct(**{**fields, **changes}), grown=None)
