"""The machines of a dry run: who sits where and when on them, and what each pays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cloudwhale.control.previewed import PlannedJob, PreviewMachine
from cloudwhale.control.trying import Trial
from cloudwhale.model import plan as p
from cloudwhale.model.job import Job
from cloudwhale.model.offer import Offer
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.units import NOTHING, MicroUsd, Seconds
from cloudwhale.planning.gravity import regions_of_jobs
from cloudwhale.planning.hopping import warning
from cloudwhale.planning.ledger import split

TOUCH_S: Seconds = 1.0
"""Times that are nearer than this are one: a seat begins when the one before it ends."""


@dataclass(frozen=True, slots=True)
class Seated:
    """A job's place on a machine that would be rented."""

    offer: Offer
    reason: Reason
    cost: MicroUsd
    alone: bool
    """Whether nobody else is on the machine."""
    fields: Mapping[str, Any]
    """What it says of the job's line in the preview."""


@dataclass(frozen=True, slots=True)
class Rented:
    """All that a plan would rent for the jobs of a dry run."""

    machines: tuple[PreviewMachine, ...] = ()
    seats: Mapping[str, Seated] = field(default_factory=dict[str, Seated])
    """By the job's id."""
    bound: MicroUsd | None = NOTHING
    gap: float | None = 0.0
    one_each: MicroUsd | None = NOTHING
    is_simpler: bool = False


def rented(trial: Trial, made: p.Plan) -> Rented:
    """Return what a plan rents for the trial's payers, and how good that is."""
    steps = rents_of(trial, made)
    tenders = [tender for tender in made.tenders if tender.payer in trial.payers]
    machines: list[PreviewMachine] = []
    seats: dict[str, Seated] = {}
    jobs = {job.id: job for job in trial.jobs}
    order = {job.id: number for number, job in enumerate(trial.jobs)}
    for number, step in enumerate(steps, 1):
        offer = step.rental.taken
        if offer is None:
            continue
        machine = _machine(f"m{number}", step, offer, order, jobs)
        machines.append(machine)
        for job, seat in _seats(machine, step, offer, jobs).items():
            first = seats.get(job)
            seats[job] = seat if first is None else _with_another(first, seat)
    bound = _bound(tenders, seats)
    cost = sum(machine.cost for machine in machines)
    return Rented(
        machines=tuple(machines),
        seats=seats,
        bound=bound,
        gap=_gap(MicroUsd(cost), bound),
        one_each=_sum(tender.one_each for tender in tenders),
        is_simpler=any(tender.code is Code.OUT_OF_EFFORT for tender in tenders),
    )


def rents_of(trial: Trial, made: p.Plan) -> Sequence[p.Rent]:
    """Return the machines that a plan rents for the trial's payers."""
    return [
        step
        for step in made.steps
        if isinstance(step, p.Rent) and step.rental.payer in trial.payers
    ]


def _machine(
    name: str, step: p.Rent, offer: Offer, order: Mapping[str, int], jobs: Mapping[str, Job]
) -> PreviewMachine:
    seats, begins_at = step.seats, step.rental.reserved_at
    extras = offer.extras_usd_h
    planned = tuple(
        PlannedJob(
            name=seat.job.rpartition("#")[0],
            number=order.get(seat.job, -1),
            starts_at=seat.starts_at,
            ends_at=seat.ends_at,
        )
        for seat in seats
    )
    return PreviewMachine(
        name=name,
        offer=offer.id,
        type=offer.type or offer.id,
        provider=offer.provider,
        region=offer.region,
        zone=offer.zone,
        market=offer.market,
        price_usd_h=MicroUsd((offer.price_usd_h or NOTHING) + extras),
        cap_usd_h=MicroUsd((offer.cap_usd_h or NOTHING) + extras),
        devices=tuple(device.model for device in offer.facts.devices),
        cpu=offer.facts.cpu,
        launched_at=begins_at,
        ready_at=begins_at + offer.boot_s,
        ends_at=max((seat.ends_at for seat in seats), default=begins_at),
        cost=step.cost or NOTHING,
        worst=step.rental.reserved,
        jobs=planned,
        moved=step.moved,
        moved_from=tuple(
            region
            for region in regions_of_jobs(jobs[seat.job] for seat in seats if seat.job in jobs)
            if step.moved and region != offer.region
        ),
        estimated=offer.estimated,
        priced_at=offer.priced_at,
        source=offer.source,
    )


def _seats(
    machine: PreviewMachine, step: p.Rent, offer: Offer, jobs: Mapping[str, Job]
) -> Mapping[str, Seated]:
    """Return each job's place; money is split by what it takes of the machine, times its time."""
    weights = {
        seat.job: _part(jobs[seat.job], offer) * max(1.0, seat.ends_at - seat.starts_at)
        for seat in step.seats
        if seat.job in jobs
    }
    if not weights:
        return {}
    costs, worsts = split(machine.cost, weights), split(machine.worst, weights)
    found: dict[str, Seated] = {}
    for seat in step.seats:
        if seat.job not in weights:
            continue
        fields = {
            "machine": machine.name,
            "others": (),
            "offer": machine.offer,
            "starts_at": seat.starts_at,
            "ends_at": seat.ends_at,
            "after": _before(seat, step.seats, machine),
            "beside": tuple(_name(other.job) for other in step.seats if _meets(seat, other)),
            "cost": costs[seat.job],
            "worst": worsts[seat.job],
        }
        warns = warning(jobs[seat.job], step)
        reason = step.reason.but(says=f"{_says(machine)}{'; ' if warns else ''}{warns}")
        found[seat.job] = Seated(offer, reason, costs[seat.job], len(weights) == 1, fields)
    return found


def _with_another(first: Seated, seat: Seated) -> Seated:
    """Return a gang's place, of which one more machine is counted in: the first one names it."""
    fields = dict(first.fields)
    for name in ("cost", "worst"):
        fields[name] = MicroUsd(fields[name] + seat.fields[name])
    fields["others"] = (*fields["others"], seat.fields["machine"])
    says = first.reason.says.partition(", at once ")[0]
    reason = first.reason.but(says=f"{says}, at once {len(fields['others']) + 1} of them")
    return Seated(first.offer, reason, fields["cost"], first.alone, fields)


def _part(job: Job, offer: Offer) -> float:
    """Return the largest part of a machine that a job takes: 0 to 1, never 0."""
    wants, facts = job.wants, offer.facts
    parts = [1e-3]
    if facts.devices:
        parts.append(wants.gpu.count * wants.gpu.share / len(facts.devices))
    if facts.cpu > 0:
        parts.append(wants.cpu / facts.cpu)
    if facts.memory_gib > 0:
        parts.append((wants.memory_gib or 0.0) / facts.memory_gib)
    return min(1.0, max(parts))


def _before(
    seat: p.PlannedSeat, seats: Iterable[p.PlannedSeat], machine: PreviewMachine
) -> str | None:
    """Return the job whose end a seat waits for: the last that ends before it starts."""
    if seat.starts_at <= machine.ready_at + TOUCH_S:
        return None
    ended = [other for other in seats if other.ends_at <= seat.starts_at + TOUCH_S]
    last = max(ended, key=lambda other: (other.ends_at, other.job), default=None)
    return None if last is None else _name(last.job)


def _meets(one: p.PlannedSeat, other: p.PlannedSeat) -> bool:
    if one is other:
        return False
    begins, ends = max(one.starts_at, other.starts_at), min(one.ends_at, other.ends_at)
    return ends - begins > TOUCH_S


def _name(job: str) -> str:
    return job.rpartition("#")[0]


def _says(machine: PreviewMachine) -> str:
    others = len(machine.jobs) - 1
    shared = f", with {others} more" if others > 1 else ", with another" if others else ""
    return f"rents {called(machine)}{shared}"


def called(machine: PreviewMachine | Offer) -> str:
    """Return what a person calls a machine that could be rented."""
    kind = machine.type or (machine.id if isinstance(machine, Offer) else machine.offer)
    return f"{machine.provider} {kind} {machine.market} in {machine.region}"


def _bound(tenders: Sequence[p.Tender], seats: Mapping[str, Seated]) -> MicroUsd | None:
    """Return what no plan for the same jobs could cost less than; None: nobody knows.

    A bound is of the jobs that it was worked out for: if not all of them got their machine, it
    says nothing.
    """
    total = NOTHING
    for tender in tenders:
        if not any(job in seats for job in tender.jobs):
            continue
        chosen = {job for job in tender.jobs if job not in tender.left_out}
        if tender.bound is None or any(job not in seats for job in chosen):
            return None
        total = MicroUsd(total + tender.bound)
    return total


def _gap(cost: MicroUsd, bound: MicroUsd | None) -> float | None:
    if bound is None or (cost and not bound):
        return None
    return max(0.0, cost / bound - 1) if bound else 0.0


def _sum(amounts: Iterable[MicroUsd | None]) -> MicroUsd | None:
    total = NOTHING
    for amount in amounts:
        if amount is None:
            return None
        total = MicroUsd(total + amount)
    return total
