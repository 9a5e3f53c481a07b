"""What a rented machine's bill was for: its lines, one for each job that pays; pure.

A machine's time is its boot until its agent has joined, then what jobs held of it, then what nobody
held: the rest of a machine that is not full, pauses between jobs, and what a provider bills beyond
the end. Every job that pays takes its part of each. What it held itself was lost, failed, asked for
in vain, or useful; no second counts twice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cloudwhale.model import event as e
from cloudwhale.model.cost import CostLine, Items, Purposes
from cloudwhale.model.job import Job
from cloudwhale.model.offer import Offer
from cloudwhale.model.rental import Part, Rental, RentalState
from cloudwhale.model.run import Run
from cloudwhale.model.units import NOTHING, Instant, MicroUsd, Seconds
from cloudwhale.model.world import World
from cloudwhale.planning import ledger, occupying, projects

NOBODY = ""
"""Stands for who has no job, and for the others of a machine of whom one line says nothing."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a machine beside itself."""

    user: str = ""
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names of jobs by their ids, as far as the machine itself does not know them."""
    offers: Sequence[Offer] = ()
    """What could be rented instead; empty: nobody has looked."""


NOTHING_KNOWN = Known()


def known_of(rental: Rental, world: World) -> Known:
    """Return what a world knows of a machine."""
    run, jobs = world.runs.get(rental.payer), world.jobs
    names = {name: jobs[name].spec.name for name in rental.jobs if name in jobs}
    return Known("" if run is None else run.user, names, world.offers)


def usd_h(rental: Rental) -> MicroUsd | None:
    """Return what an hour costs, disk and address included; None: nobody knows."""
    offer = rental.taken
    if offer is None:
        return None
    price = rental.price_usd_h if rental.price_usd_h is not None else offer.price_usd_h
    return None if price is None else MicroUsd(price + offer.extras_usd_h)


def billed(rental: Rental, until: Instant | None) -> MicroUsd:
    """Return what a machine's time until then is billed at, whatever is set aside for it."""
    offer, since = rental.taken, rental.requested_at
    if offer is None or since is None or until is None:
        return NOTHING
    price = usd_h(rental)
    if price is None:
        return rental.reserved  # nobody knows better
    return _accrued(price, until - since, offer)


def _accrued(price: MicroUsd, used_s: Seconds, offer: Offer) -> MicroUsd:
    return ledger.accrued(price, used_s, step_s=offer.billing_step_s, least_s=offer.billing_least_s)


# -- the lines of a machine ------------------------------------------------------------------


def lines(
    rental: Rental,
    charges: Mapping[str, MicroUsd],
    egress: Mapping[str, MicroUsd],
    known: Known,
    until: Instant,
) -> dict[str, CostLine]:
    """Return the line of each job that pays, by its id.

    `charges`: what each pays; `egress`: what of that is for checkpoints that it brought. `until`:
    the end of the bill, or now. Items and purposes of each line add up to what it has paid.
    """
    machine = {job: MicroUsd(paid - egress.get(job, 0)) for job, paid in charges.items()}
    on_demand = _on_demand(rental, machine, until)
    gpu_ms = _gpu_ms(rental, machine, until)
    return {
        job: _line(rental, job, known, until).but(
            spent=paid,
            items=_items(rental, machine[job], egress.get(job, NOTHING)),
            purposes=_purposes(rental, job, machine[job], known, until).but(
                moved=egress.get(job, NOTHING)
            ),
            on_demand=None if on_demand is None else on_demand[job] + egress.get(job, 0),
            gpu_s=gpu_ms[job] / 1000.0,
        )
        for job, paid in charges.items()
        if paid
    }


def _line(rental: Rental, job: str, known: Known, until: Instant) -> CostLine:
    """Return a line without its sums."""
    offer, since = rental.taken, rental.requested_at
    devices = () if offer is None else offer.facts.devices
    family = rental.parts[job].family if job in rental.parts else known.names.get(job, "")
    return CostLine(
        rental=rental.id, run=rental.payer, user=known.user, job=job or None, family=family,
        project=rental.jobs.get(job) or next(iter(rental.jobs.values()), "default"),
        provider="" if offer is None else offer.provider,
        market="" if offer is None else offer.market,
        region="" if offer is None else offer.region,
        zone="" if offer is None else offer.zone,
        type=rental.offer if offer is None else offer.type or offer.id,
        gpu=devices[0].model if devices else "",
        began_at=rental.reserved_at if since is None else since,
        ended_at=until, is_running=rental.state is not RentalState.RETURNED,
        spent=NOTHING, items=Items(), purposes=Purposes(), on_demand=None, gpu_s=0.0,
    )  # fmt: skip


def _items(rental: Rental, paid: MicroUsd, moved: MicroUsd) -> Items:
    """Return what was bought for what a job pays of a machine."""
    offer, price = rental.taken, usd_h(rental)
    if offer is None or price is None or not offer.extras_usd_h:
        return Items(machine=paid, egress=moved)
    address = min(offer.address_usd_h, offer.extras_usd_h)
    hourly = {
        "machine": price - offer.extras_usd_h, "disk": offer.extras_usd_h - address,
        "address": address,
    }  # fmt: skip
    return Items(**ledger.split(paid, hourly), egress=moved)


def _on_demand(
    rental: Rental, machine: Mapping[str, MicroUsd], until: Instant
) -> Mapping[str, MicroUsd] | None:
    """Return what each one's part of a machine's time would have cost on demand.

    The cap of a spot offer is the price of the same machine on demand: nobody is charged more.
    """
    offer, since = rental.taken, rental.requested_at
    if offer is None or since is None:
        return None
    if offer.market == "on-demand":
        return machine
    if offer.most_usd_h is None or not machine:
        return None
    return ledger.split(_accrued(offer.most_usd_h, until - since, offer), machine)


def _gpu_ms(
    rental: Rental, machine: Mapping[str, MicroUsd], until: Instant
) -> Mapping[str, MicroUsd]:
    """Return milliseconds of devices by job; they add up to the machine's."""
    devices = 0 if rental.taken is None else len(rental.taken.facts.devices)
    since = until if rental.requested_at is None else rental.requested_at
    whole = round(max(0.0, until - since) * 1000.0) * devices
    return ledger.split(MicroUsd(whole), machine) if machine else {}


# -- what it was for -------------------------------------------------------------------------


def _purposes(rental: Rental, job: str, paid: MicroUsd, known: Known, until: Instant) -> Purposes:
    boot_s, busy_s, idle_s = _times(rental, until)
    held_s, part = rental.held_s.get(job, 0.0), rental.parts.get(job, Part())
    mine_s = held_s or 1.0  # of who paid and never was there nothing was lost
    failed = min(1.0, part.failed_s / mine_s)
    lost = min(1.0 - failed, part.lost_s / mine_s)
    over = (1.0 - failed - lost) * _over(rental, part, known.offers)
    weights = {
        "boot": boot_s, "idle": idle_s, "failed": busy_s * failed, "lost": busy_s * lost,
        "over": busy_s * over, "useful": busy_s * max(0.0, 1.0 - failed - lost - over),
    }  # fmt: skip
    if not any(weights.values()):
        weights["boot" if rental.ready_at is None else "idle"] = 1.0
    return Purposes(**ledger.split(paid, weights))


def _times(rental: Rental, until: Instant) -> tuple[Seconds, Seconds, Seconds]:
    """Return for how long a machine has booted, was held as a whole, and was idle, as billed."""
    offer, since = rental.taken, rental.requested_at
    if since is None:
        return 0.0, 0.0, 0.0
    used_s = max(0.0, until - since)
    billed_s = used_s
    if offer is not None:
        step_s = offer.billing_step_s
        billed_s = math.ceil(used_s / step_s) * step_s if step_s > 0 else used_s
        billed_s = max(billed_s, offer.billing_least_s)
    if rental.ready_at is None:
        busy_s = min(billed_s, sum(rental.held_s.values()))
        return billed_s - busy_s, busy_s, 0.0
    boot_s = min(used_s, max(0.0, rental.ready_at - since))
    busy_s = min(billed_s - boot_s, sum(rental.held_s.values()))
    return boot_s, busy_s, billed_s - boot_s - busy_s


def _over(rental: Rental, part: Part, offers: Sequence[Offer]) -> float:
    """Return which part of a job's money a smaller GPU would have saved, as offers are now.

    By the price of a device in the same market; 0 where nobody knows.
    """
    own, price = rental.taken, usd_h(rental)
    if not part.smaller_gib or own is None or not own.facts.devices or not price:
        return 0.0
    cheapest = min(
        (
            one.usd_h / len(one.facts.devices)
            for one in offers
            if one.usd_h is not None and one.market == own.market and one.facts.devices
            and one.facts.devices[0].memory_gib >= part.smaller_gib
        ),
        default=math.inf,
    )  # fmt: skip
    return max(0.0, 1.0 - cheapest * len(own.facts.devices) / price)


# -- machines that are not back, and charges of old ------------------------------------------


def so_far(rental: Rental, world: World) -> list[CostLine]:
    """Return the lines of a machine that is not back, as if it went back now; by job.

    None of one that nothing is billed for yet.
    """
    now = world.now if rental.ended_at is None else rental.ended_at
    held_s = dict(rental.held_s)
    for job in world.jobs.values():
        if job.id in rental.jobs and job.placement and rental.node in job.placement.nodes:
            more_s = occupying.held_s(job, job, rental, now, is_there=True)
            held_s[job.id] = held_s.get(job.id, 0.0) + more_s
    rental = rental.but(held_s=held_s)
    machine = min(rental.reserved, billed(rental, now))
    egress = projects.egress_paid(rental, machine)
    if not machine and not egress:
        return []
    charges: Mapping[str, MicroUsd] = {NOBODY: machine}
    if rental.jobs:
        charges = projects.charges(rental, machine, egress)
    found = lines(rental, charges, egress, known_of(rental, world), now)
    return [found[job] for job in sorted(found)]


def of_charge(
    event: e.Charged, rental: Rental | None, job: Job | None, run: Run | None
) -> CostLine:
    """Return the line of a charge: as it was frozen, or what is known of one without a line."""
    name = "" if job is None else job.spec.name
    if event.line is not None:
        return event.line if event.line.family else event.line.but(family=name)
    known = Known("" if run is None else run.user)
    payer, paid = event.job or NOBODY, event.amount
    if rental is None:
        line = CostLine(
            rental=event.rental, run=event.payer, user=known.user, project=event.project,
            job=event.job, family=name, provider="", market="", region="", zone="", type="",
            gpu="", began_at=event.at, ended_at=event.at, spent=paid, items=Items(machine=paid),
            purposes=Purposes(useful=paid), on_demand=None, gpu_s=0.0,
        )  # fmt: skip
        return line
    until = event.at if rental.ended_at is None else rental.ended_at
    machine = min(rental.reserved, billed(rental, until))
    egress = projects.egress_paid(rental, machine)
    charges = {payer: paid}
    if (others := machine + sum(egress.values()) - paid) > 0:
        charges["the others"] = MicroUsd(others)
    mine = {payer: min(paid, egress.get(payer, NOTHING))}
    found = lines(rental, charges, mine, known, until).get(payer)
    empty = _line(rental, payer, known, until) if found is None else found
    return empty.but(project=event.project, job=event.job, family=name, is_running=False)
