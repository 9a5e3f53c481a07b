"""The problem of renting for the jobs of one payer, as rent policies see it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cloudwhale.model.job import Job, Resources
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.model.world import World
from cloudwhale.planning.company import companies
from cloudwhale.planning.leasing import LATE, LEAST_LEASE_S, LONGER, STOP_AFTER_S, landing_s
from cloudwhale.planning.ledger import LEAST_CHARGE_S, STOP_LAG_S
from cloudwhale.planning.stock import LONGEST_LEASE_S, Stock
from cloudwhale.spi.renting import Demand, RentalProblem, Terms

if TYPE_CHECKING:
    from cloudwhale.planning.stock import Row


def demand_of(wants: Resources, nodes: int = 1) -> Demand:
    """Return what a job takes of a machine."""
    gpu = wants.gpu
    whole = gpu.share >= 1.0
    return Demand(
        devices=gpu.count,
        share=min(1.0, gpu.share),
        device_gib=None if whole or not gpu.memory_gib.least else gpu.memory_gib.least,
        cpu=wants.cpu,
        memory_gib=wants.memory_gib or 0.0,
        disk_gib=wants.disk_gib or 0.0,
        nodes=nodes,
    )


def by_payer(jobs: Sequence[Job], world: World, stock: Stock) -> Sequence[Sequence[Job]]:
    """Return the jobs that may share machines: of one payer, without a budget of their own.

    Processes of different projects may not (`company`).

    Those of a project with a budget have machines to themselves: nobody else goes without one
    because that project's money is spent. Nor do those who switch as they were promised share:
    their money is admitted by another rule.
    """
    found: dict[tuple[str, str, str, str, bool], list[Job]] = {}
    company = companies(jobs)
    for job in jobs:
        alone = "" if job.spec.budget is None else job.id
        project = job.spec.project if job.spec.project in world.budgets else ""
        key = (job.run, project, company[job.id], alone, stock.is_promised_now(job))
        found.setdefault(key, []).append(job)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class Purse:
    """What a payer may still set aside."""

    left_usd: float | None = None
    """None: no bound."""
    horizon_s: Seconds = math.inf
    """No machine is planned for longer, as a night ends."""
    rented: Mapping[str, float] = field(default_factory=dict[str, float])
    """What was taken of each quota group in this round already."""


def problem_of(
    stock: Stock, jobs: Sequence[Job], now: Instant, purse: Purse, seed: int = 0
) -> RentalProblem:
    """Return the problem of renting for some jobs of one payer; kinds that suit nobody left out."""
    import numpy as np

    stock.look_at(jobs)
    runs_s = np.array([stock.runs_s(job) for job in jobs]).reshape(len(jobs), len(stock.kinds))
    keeps = [bool(some) for some in np.atleast_1d(np.isfinite(runs_s).any(axis=0))]
    late_s = np.array([_late_s(stock, job) for job in jobs]).reshape(len(jobs), len(stock.kinds))
    extra_usd = np.array([stock.moved_usd(job) for job in jobs]).reshape(runs_s.shape)
    runs_s, late_s, extra_usd = runs_s[:, keeps], late_s[:, keeps], extra_usd[:, keeps]
    return RentalProblem(
        jobs=tuple(job.id for job in jobs),
        demands=tuple(demand_of(job.wants, job.spec.nodes) for job in jobs),
        kinds=tuple(kind for kind, kept in zip(stock.kinds, keeps, strict=True) if kept),
        runs_s=runs_s,
        late_s=late_s,
        extra_usd=extra_usd,
        done_by_s=tuple(_done_by_s(job, now) for job in jobs),
        start_by_s=tuple(_start_by_s(job, stock, now) for job in jobs),
        horizon_s=min(LONGEST_LEASE_S, purse.horizon_s),
        budget_usd=purse.left_usd,
        quotas=_quotas(stock, purse),
        terms=terms_of(jobs),
        seed=seed,
    )


def _late_s(stock: Stock, job: Job) -> Row:
    """Return how long a job takes at most; who can switch to on-demand in time may hope on spot."""
    return stock.runs_s(job) if job.id in stock.keeps else stock.late_s(job)


def _quotas(stock: Stock, purse: Purse) -> Mapping[str, float]:
    """Return what is left of each quota group that is known."""
    return {
        offer.quota: max(0.0, offer.quota_left - purse.rented.get(offer.quota, 0.0))
        for offer in stock.offers
        if offer.quota_left is not None
    }


def terms_of(jobs: Iterable[Job]) -> Terms:
    """Return how a lease for some jobs is made longer than what they are expected to take."""
    # What runs late counts, as admission has it: whoever starts must be able to end.
    beyond_s = landing_s(jobs) + STOP_AFTER_S + LEAST_CHARGE_S + STOP_LAG_S
    return Terms(longer=LATE, least_s=LEAST_LEASE_S * LATE / LONGER, beyond_s=beyond_s)


def _done_by_s(job: Job, now: Instant) -> Seconds:
    deadline = job.spec.deadline
    return math.inf if deadline is None else deadline - now


def _start_by_s(job: Job, stock: Stock, now: Instant) -> Seconds:
    """Return until when it may wait for a machine's time: `wait.max`, or as long as it runs."""
    if job.id in stock.at_once:
        return 0.0
    most_s = job.spec.wait_max_s
    if most_s is None:
        runs_s = stock.runs_s(job)
        most_s = float(runs_s.min()) if runs_s.size else 0.0
    return max(0.0, job.submitted_at + most_s - now) if math.isfinite(most_s) else math.inf
