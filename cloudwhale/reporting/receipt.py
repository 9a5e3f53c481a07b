"""What a job or a run came to: times, work lost and money, as values that every `--json` prints."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from cloudwhale.clock import iso
from cloudwhale.model.job import Job
from cloudwhale.model.node import Node
from cloudwhale.model.receipt import JobReceipt, MachineReceipt, ProviderReceipt, RunReceipt
from cloudwhale.model.rental import Rental
from cloudwhale.model.requests import StoreUse
from cloudwhale.model.run import Run
from cloudwhale.model.units import NOTHING, Instant, MicroUsd, Seconds, usd
from cloudwhale.planning import ledger
from cloudwhale.reporting.rented import cost_so_far, egress_so_far


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
    one_each: MicroUsd | None = None
    """What the cheapest machine for each job alone was expected to cost; None: nobody knows."""


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
        others=job.placement.nodes[1:] if job.placement else (),
        **_place(node, rental),
        exit_code=job.exit_code,
        spent_usd=usd(spent),
        reserved_usd=usd(MicroUsd(0)),  # a machine is reserved by its payer, the run, as a whole
        budget_usd=usd(job.spec.budget) if job.spec.budget is not None else None,
        saved_usd=_saved(books.bills, job.id, now),
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
        reserved_usd=usd(MicroUsd(sum(bill.rental.reserved for bill in books.bills))),
        released_usd=usd(MicroUsd(sum(bill.released for bill in books.bills))),
        saved_usd=_saved(books.bills, None, now),
        one_each_usd=None if books.one_each is None else usd(books.one_each),
        machines=tuple(machine_receipt(bill, now) for bill in books.bills),
        providers=tuple(provider_receipts([bill.rental for bill in books.bills], now)),
    )


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


def machine_receipt(bill: Bill, now: Instant) -> MachineReceipt:
    """Return one machine's line."""
    rental = bill.rental
    offer, since = rental.taken, rental.requested_at
    price = rental.price_usd_h
    if price is None and offer is not None:
        price = offer.price_usd_h
    until = now if rental.ended_at is None else rental.ended_at
    on_demand = _on_demand(rental, now)
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
    )


def _on_demand(rental: Rental, now: Instant) -> MicroUsd | None:
    """Return what a machine's time would have cost on demand.

    The cap of a spot offer is the price of the same machine on demand: nobody is charged more.
    """
    offer, since = rental.taken, rental.requested_at
    if offer is None or since is None:
        return None if offer is None else NOTHING
    if offer.market == "on-demand":
        return cost_so_far(rental, now)
    until = now if rental.ended_at is None else rental.ended_at
    if offer.most_usd_h is None:
        return None
    accrued = ledger.accrued(
        offer.most_usd_h, until - since, step_s=offer.billing_step_s,
        least_s=offer.billing_least_s,
    )  # fmt: skip
    return MicroUsd(accrued + sum(egress_so_far(rental, now).values()))


def _saved(bills: Sequence[Bill], job: str | None, now: Instant) -> Decimal | None:
    """Return what a job, or all of them, paid less than on demand; None where nobody knows."""
    saved = 0
    found = False
    for bill in bills:
        on_demand, spent = _on_demand(bill.rental, now), cost_so_far(bill.rental, now)
        paid = spent if job is None else bill.charges.get(job)
        if paid is None:
            continue
        if on_demand is None:
            return None
        found = True
        # Each pays a part of the machine, and saves the same part.
        saved += int((on_demand - spent) * Decimal(paid) / Decimal(spent)) if spent else 0
    return usd(MicroUsd(saved)) if found else None


def job_keys(receipt: JobReceipt) -> dict[str, Any]:
    """Return a job's line under the keys that are the same in every document."""
    return receipt.model_dump(exclude={"reason": {"change"}})


def run_keys(receipt: RunReceipt) -> dict[str, Any]:
    """Return a run's receipt as the document that `run --json` ends with."""
    return receipt.model_dump(exclude={"jobs": {"__all__": {"reason": {"change"}}}})
