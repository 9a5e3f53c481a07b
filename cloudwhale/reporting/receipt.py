"""What a job or a run came to: times, work lost and money, as values that every `--json` prints."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cloudwhale.clock import iso
from cloudwhale.model.cost import CostLine, CostSum, Items, Purposes
from cloudwhale.model.job import Job
from cloudwhale.model.node import Node
from cloudwhale.model.receipt import (
    JobReceipt,
    LineReceipt,
    MachineReceipt,
    Parts,
    ProviderReceipt,
    RunReceipt,
    TollReceipt,
)
from cloudwhale.model.rental import Rental
from cloudwhale.model.requests import StoreUse
from cloudwhale.model.run import Run
from cloudwhale.model.units import NOTHING, Instant, MicroUsd, Seconds, usd
from cloudwhale.planning.cost_sums import ITEMS, sums
from cloudwhale.reporting.costs import WASTE_KEYS, saved, wasted, wasted_on
from cloudwhale.reporting.rented import cost_so_far, egress_so_far
from cloudwhale.spi.store import CostQuery


@dataclass(frozen=True, slots=True)
class Story:
    """What is told of a job that was interrupted."""

    restores: int = 0
    tolls: tuple[TollReceipt, ...] = ()


@dataclass(frozen=True, slots=True)
class Bill:
    """A machine that a run has or had, and the money that moved for it."""

    rental: Rental
    charges: Mapping[str, MicroUsd] = field(default_factory=dict[str, MicroUsd])
    """By job."""
    released: MicroUsd = NOTHING
    used: StoreUse = StoreUse()
    """What its agents have asked of the store, as far as they have said it."""


@dataclass(frozen=True, slots=True)
class Books:
    """What is known beside the jobs themselves."""

    spent: Mapping[str | None, int] = field(default_factory=dict[str | None, int])
    """Micro-dollars by job; None: the run's own."""
    nodes: Mapping[str, Node] = field(default_factory=dict[str, Node])
    rentals: Mapping[str, Rental] = field(default_factory=dict[str, Rental])
    """Rented machines by the names of their nodes, those that went back too."""
    bills: tuple[Bill, ...] = ()
    """Of all machines of a run."""
    planned: MicroUsd | None = None
    """What its machines were expected to cost when they were rented; None: nobody knows."""
    one_each: MicroUsd | None = None
    """What the cheapest machine for each job alone was expected to cost; None: nobody knows."""
    lines: tuple[CostLine, ...] = ()
    """Of all machines of a run; of those that are not back what they would be now."""
    sums: Mapping[str, CostSum] = field(default_factory=dict[str, CostSum])
    """What was charged, by job."""
    stories: Mapping[str, Story] = field(default_factory=dict[str, Story])
    """What is told of jobs beside, by job, where it was asked for."""


NO_BOOKS = Books()


def waited_s(job: Job, now: Instant) -> Seconds:
    """Return how long a job waited for its first start, or waits already."""
    until = next((at for at in (job.first_started_at, job.ended_at) if at is not None), now)
    return max(0.0, until - job.submitted_at)


def job_receipt(job: Job, now: Instant, books: Books = NO_BOOKS) -> JobReceipt:
    """Return one job's line; what is unknown is None."""
    spent = MicroUsd(books.spent.get(job.id, 0))
    paid, story = books.sums.get(job.id, NO_SUM), books.stories.get(job.id, Story())
    less = saved(paid) if paid.lines else None
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
        others=job.placement.nodes[1:] if job.placement else (),
        **_place(node, rental),
        exit_code=job.exit_code,
        spent_usd=usd(spent),
        reserved_usd=usd(MicroUsd(0)),  # a machine is reserved by its payer, the run, as a whole
        budget_usd=usd(job.spec.budget) if job.spec.budget is not None else None,
        saved_usd=None if less is None else usd(less),
        wasted_usd=usd(wasted(paid)),
        submitted_at=iso(job.submitted_at),
        started_at=iso(job.first_started_at),
        ended_at=iso(job.ended_at),
        run_s=round(job.ran_s(now), 3),
        wait_s=round(waited_s(job, now), 3),
        lost_work_s=round(job.lost_s, 3),
        interruptions=job.interruptions,
        parts=parts_of(paid),
        gpu_s=paid.gpu_s,
        restores=story.restores,
        tolls=story.tolls,
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


def run_receipt(run: Run, jobs: Sequence[Job], now: Instant, books: Books = NO_BOOKS) -> RunReceipt:
    """Return what a run came to; jobs in the order they are given."""
    paid = summed(one for one in books.lines if not one.is_running)
    less = saved(paid) if paid.lines else None
    return RunReceipt(
        run=run.id,
        jobs=tuple(job_receipt(job, now, books) for job in jobs),
        spent_usd=usd(MicroUsd(sum(books.spent.values()))),
        budget_usd=usd(run.budget) if run.budget is not None else None,
        lost_work_s=round(sum(job.lost_s for job in jobs), 3),
        interruptions=sum(job.interruptions for job in jobs),
        reserved_usd=usd(MicroUsd(sum(bill.rental.reserved for bill in books.bills))),
        released_usd=usd(MicroUsd(sum(bill.released for bill in books.bills))),
        saved_usd=None if less is None else usd(less),
        planned_usd=None if books.planned is None else usd(books.planned),
        one_each_usd=None if books.one_each is None else usd(books.one_each),
        machines=tuple(_machines(books, now)),
        providers=tuple(provider_receipts([bill.rental for bill in books.bills], now)),
        running_usd=usd(MicroUsd(sum(one.spent for one in books.lines if one.is_running))),
        wasted_usd=usd(wasted(paid)),
        parts=parts_of(paid),
    )


def _came(bill: Bill) -> tuple[bool, Instant, str]:
    at = bill.rental.requested_at
    return at is None, at or 0.0, bill.rental.id


def _machines(books: Books, now: Instant) -> Iterator[MachineReceipt]:
    """Yield the machines as they came, those that never came last."""
    lines: dict[str, list[CostLine]] = {}
    for line in books.lines:
        lines.setdefault(line.rental, []).append(line)
    for bill in sorted(books.bills, key=_came):
        yield machine_receipt(bill, now, lines.get(bill.rental.id, ()))


def provider_receipts(rentals: Iterable[Rental], now: Instant) -> Iterator[ProviderReceipt]:
    """Yield each cloud's part of some machines' cost, by name: what leaves a cloud is billed there.

    Those of which nobody remembers where they were from have no name.
    """
    machines, spent, egress = Counter[str](), Counter[str](), Counter[str]()
    for rental in rentals:
        name = "" if rental.taken is None else rental.taken.provider
        left = egress_so_far(rental, now)
        machines[name] += rental.requested_at is not None
        spent[name] += cost_so_far(rental, now) - sum(left.values())
        egress.update(left)
    for name in sorted({*machines, *egress}):
        yield ProviderReceipt(
            provider=name,
            spent_usd=usd(MicroUsd(spent[name] + egress[name])),
            machines=machines[name],
            egress_usd=usd(MicroUsd(egress[name])),
        )


def machine_receipt(bill: Bill, now: Instant, lines: Sequence[CostLine] = ()) -> MachineReceipt:
    """Return one machine's line; `lines`: what each job pays of it."""
    rental = bill.rental
    offer, since = rental.taken, rental.requested_at
    price = rental.price_usd_h
    if price is None and offer is not None:
        price = offer.price_usd_h
    until = now if rental.ended_at is None else rental.ended_at
    on_demand = _on_demand(rental, lines)
    return MachineReceipt(
        id=rental.id,
        state=rental.state.value,
        provider=offer.provider if offer else "",
        type=(offer.type or offer.id) if offer else rental.offer,
        market=offer.market if offer else "",
        region=offer.region if offer else "",
        zone=offer.zone if offer else "",
        price_usd_h=None if price is None else usd(price),
        extras_usd_h=usd(NOTHING if offer is None else offer.extras_usd_h),
        billed_s=0.0 if since is None else round(max(0.0, until - since), 3),
        billed_least_s=0.0 if offer is None else offer.billing_least_s,
        started_at=iso(since),
        ended_at=iso(rental.ended_at),
        spent_usd=usd(cost_so_far(rental, now)),
        reserved_usd=usd(rental.reserved),
        released_usd=usd(bill.released),
        on_demand_usd=None if on_demand is None else usd(on_demand),
        egress_usd=usd(MicroUsd(sum(egress_so_far(rental, now).values()))),
        jobs={job: usd(amount) for job, amount in sorted(bill.charges.items())},
        boot={phase: round(took_s, 3) for phase, took_s in rental.boot.took_s.items()},
        store_requests=bill.used.requests,
        store_usd=usd(bill.used.cost),
        parts=parts_of(summed(lines)),
        lines=tuple(_line_receipt(line) for line in lines),
    )


def _line_receipt(line: CostLine) -> LineReceipt:
    return LineReceipt(
        rental=line.rental,
        job=line.job,
        spent_usd=usd(line.spent),
        on_demand_usd=None if line.on_demand is None else usd(line.on_demand),
        gpu_s=line.gpu_s,
        parts=parts_of(summed([line])),
    )


def _on_demand(rental: Rental, lines: Sequence[CostLine]) -> MicroUsd | None:
    """Return what a machine's time would have cost on demand; nothing for one that never came."""
    if rental.requested_at is None and rental.taken is not None:
        return NOTHING
    known = [line.on_demand for line in lines if line.on_demand is not None]
    return MicroUsd(sum(known)) if known and len(known) == len(lines) else None


# -- what it was for -------------------------------------------------------------------------


def summed(lines: Iterable[CostLine]) -> CostSum:
    """Return lines as one sum."""
    return next(iter(sums(lines, CostQuery())), NO_SUM)


def parts_of(paid: CostSum) -> Parts:
    """Return what a sum was for."""
    wastes = {f"{key}_usd": usd(wasted_on(paid, cause)) for cause, key in WASTE_KEYS.items()}
    bought = {f"{name}_usd": usd(getattr(paid.items, name)) for name in ITEMS}
    return Parts(**bought, **wastes, useful_usd=usd(paid.purposes.useful))


NO_SUM = CostSum(
    key=(), lines=0, jobs=0, spent=NOTHING, items=Items(), purposes=Purposes(), saved=NOTHING,
    unpriced=0, gpu_s=0.0,
)  # fmt: skip


# -- as documents ----------------------------------------------------------------------------


def job_keys(receipt: JobReceipt) -> dict[str, Any]:
    """Return a job's line under the keys that are the same in every document."""
    return receipt.model_dump(exclude={"reason": {"change"}})


def run_keys(receipt: RunReceipt) -> dict[str, Any]:
    """Return a run's receipt as the document that `run --json` ends with."""
    return receipt.model_dump(exclude={"jobs": {"__all__": {"reason": {"change"}}}})
