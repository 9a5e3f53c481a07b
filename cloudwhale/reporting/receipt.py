"""What a job or a run came to: times, work lost and money, as values that every `--json` prints."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from cloudwhale.clock import iso
from cloudwhale.model.job import Job
from cloudwhale.model.node import Node
from cloudwhale.model.receipt import JobReceipt, RunReceipt
from cloudwhale.model.rental import Rental
from cloudwhale.model.run import Run
from cloudwhale.model.units import Instant, MicroUsd, Seconds, usd


@dataclass(frozen=True, slots=True)
class Books:
    """What is known beside the jobs themselves."""

    spent: Mapping[str | None, int] = field(default_factory=dict[str | None, int])
    """Micro-dollars by job; None: the run's own."""
    nodes: Mapping[str, Node] = field(default_factory=dict[str, Node])
    rentals: Mapping[str, Rental] = field(default_factory=dict[str, Rental])
    """Rented machines by the names of their nodes, those that went back too."""


NO_BOOKS = Books()


def waited_s(job: Job, now: Instant) -> Seconds:
    """Return how long a job waited for its first start, or waits already."""
    until = next((at for at in (job.first_started_at, job.ended_at) if at is not None), now)
    return max(0.0, until - job.submitted_at)


def job_receipt(job: Job, now: Instant, books: Books = NO_BOOKS) -> JobReceipt:
    """Return one job's line; what is unknown is None."""
    spent = MicroUsd(books.spent.get(job.id, 0))
    node = books.nodes.get(job.placement.node) if job.placement else None
    rental = books.rentals.get(job.placement.node) if job.placement else None
    return JobReceipt(
        id=job.id,
        name=job.spec.name,
        project=job.spec.project,
        state=job.state.value,
        reason=job.reason,
        attempt=job.attempt,
        node=job.placement.node if job.placement else None,
        devices=job.placement.devices if job.placement else (),
        **_place(node, rental),
        exit_code=job.exit_code,
        spent_usd=usd(spent),
        reserved_usd=usd(MicroUsd(0)),  # a machine is reserved by its payer, the run, as a whole
        budget_usd=usd(job.spec.budget) if job.spec.budget is not None else None,
        saved_usd=None,
        wasted_usd=usd(wasted(job, spent)),
        submitted_at=iso(job.submitted_at),
        started_at=iso(job.first_started_at),
        ended_at=iso(job.ended_at),
        run_s=round(job.ran_s(now), 3),
        wait_s=round(waited_s(job, now), 3),
        lost_work_s=round(job.lost_s, 3),
        interruptions=job.interruptions,
    )


def _place(node: Node | None, rental: Rental | None) -> dict[str, Any]:
    """Return whose machine a job is or was on, where that stands, and what an hour of it costs."""
    offer = rental.taken if rental is not None else None
    if rental is None or offer is None:
        # Owned machines stand in no region of anybody.
        return {
            "provider": node.provider if node else None,
            "market": "local" if node and node.owned else None,
            "region": None, "zone": None, "price_usd_h": None,
        }  # fmt: skip
    price = rental.price_usd_h if rental.price_usd_h is not None else offer.price_usd_h
    return {
        "provider": offer.provider, "market": offer.market, "region": offer.region,
        "zone": offer.zone, "price_usd_h": None if price is None else usd(price),
    }  # fmt: skip


def wasted(job: Job, spent: MicroUsd) -> MicroUsd:
    """Return the part of what was spent that paid for work which was lost."""
    if job.run_s <= 0:
        return MicroUsd(0)
    return MicroUsd(int(spent * Decimal(min(1.0, job.lost_s / job.run_s))))


def run_receipt(run: Run, jobs: Sequence[Job], now: Instant, books: Books = NO_BOOKS) -> RunReceipt:
    """Return what a run came to; jobs in the order they are given."""
    return RunReceipt(
        run=run.id,
        jobs=tuple(job_receipt(job, now, books) for job in jobs),
        spent_usd=usd(MicroUsd(sum(books.spent.values()))),
        budget_usd=usd(run.budget) if run.budget is not None else None,
        lost_work_s=round(sum(job.lost_s for job in jobs), 3),
        interruptions=sum(job.interruptions for job in jobs),
    )


def job_keys(receipt: JobReceipt) -> dict[str, Any]:
    """Return a job's line under the keys that are the same in every document."""
    return receipt.model_dump(exclude={"reason": {"change"}})


def run_keys(receipt: RunReceipt) -> dict[str, Any]:
    """Return a run's receipt as the document that `run --json` ends with."""
    return receipt.model_dump(exclude={"jobs": {"__all__": {"reason": {"change"}}}})
