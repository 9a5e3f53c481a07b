"""Who has to switch to on-demand for its deadline: by when, onto what, and what is kept for it.

The moments are those of `planning/safety`. Looked at are jobs with a deadline that wait, recover,
or are on spot, and whose market lets them have on-demand. Of the on-demand offers that would be in
time the one counts on which finishing is expected to cost least; where it cannot be had when it is
due, the next one has a later moment.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cloudwhale.model import plan as p
from cloudwhale.model.job import HOLDS_A_PLACE, Job, JobState, Wish
from cloudwhale.model.offer import Offer
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import COMES_OR_IS, Rental
from cloudwhale.model.units import NOTHING, Instant, MicroUsd, Seconds
from cloudwhale.model.world import World
from cloudwhale.planning import ledger, projects
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.giving import Matched
from cloudwhale.planning.leasing import (
    landing_s,
    pledged,
    tail,
    worst_case,
)
from cloudwhale.planning.next_machines import as_waiting, comes, seeks
from cloudwhale.planning.payers import account_in, payers_of
from cloudwhale.planning.queue import earliest
from cloudwhale.planning.reserving import clock, fixed
from cloudwhale.planning.safety import Changeover, last_safe_at
from cloudwhale.planning.speeds import model_of, run_s
from cloudwhale.planning.stock import RESTORES_S, Stock
from cloudwhale.planning.stocking import stocked

RESTORES_BYTES_S = 100e6
"""What a machine fetches of a checkpoint in a second, from another region too: a first guess."""

MAY_SWITCH = ("auto", "on-demand")


@dataclass(frozen=True, slots=True)
class Switch:
    """How a job could go on on on-demand."""

    job: Job
    """As it would wait: back at what it has saved, for on-demand alone."""
    at: Instant
    """The last moment at which that is in time for certain."""
    offer: Offer
    runs_s: Seconds
    """What is left of its work there."""
    change: Changeover
    may_cost: MicroUsd
    """The most, with what it may need late: kept for it while it is on spot."""


@dataclass(frozen=True, slots=True)
class Switches:
    """What is known of a round's jobs with deadlines."""

    known: Mapping[str, Switch] = field(default_factory=dict[str, Switch])
    """By job, for whom an on-demand machine would be in time; those that have one are not here."""
    due: frozenset[str] = frozenset()
    """Ids of those whose moment has come."""
    look_again_at: Instant | None = None

    lost: Mapping[str, Reason] = field(default_factory=dict[str, Reason])
    """By job, why it cannot be rented for though it is due: then spot is better than nothing."""
    promised: frozenset[str] = frozenset()
    """Ids of those whose money to switch nobody else may have: they are on spot, or were."""

    @property
    def keeps(self) -> Mapping[str, MicroUsd]:
        """Return what is to be kept for each of them while it is on spot."""
        return {name: one.may_cost for name, one in self.known.items()}

    def leaving(self, jobs: Collection[str]) -> tuple[tuple[Job, Reason], ...]:
        """Return some of those that are due, as they wait for on-demand, first first, and why."""
        ordered = sorted((self.known[name].at, name) for name in jobs)
        return tuple((self.known[name].job, why(self.known[name])) for _, name in ordered)

    def without(self, lost: Mapping[str, Reason]) -> Switches:
        """Return the same without some that cannot be rented for now."""
        known = {name: one for name, one in self.known.items() if name not in lost}
        return replace(
            self, known=known, due=self.due - lost.keys(), lost=lost,
            promised=self.promised - lost.keys(),
        )  # fmt: skip


def switches_of(world: World, durations: Durations) -> Switches:
    """Return who may have to switch; called once a round, cheap where nobody has a deadline."""
    jobs = [job for job in world.jobs.values() if may_switch(job, world)]
    offers = (world.offers or _stand_ins(world)) if jobs else ()
    if not offers:
        return Switches()
    firm = stocked(offers, durations, "on-demand")
    waiting = [(job, _for_on_demand(job, world.now)) for job in jobs if not _has_way(job, world)]
    firm.look_at([waits for _, waits in waiting])
    found: dict[str, Switch] = {}
    for job, waits in waiting:
        switch = _switch(job, waits, world, firm)
        if switch is not None:
            found[job.id] = switch
    due_at = {name: one.at - _lead_s(world.jobs[name], world) for name, one in found.items()}
    due = frozenset(name for name, at in due_at.items() if world.offers and world.now >= at)
    times = (at for at in due_at.values() if at > world.now)
    return Switches(found, due, earliest(*times), promised=_promised(found, world))


def _stand_ins(world: World) -> Sequence[Offer]:
    """Return the spot machines that we have as if they were had on-demand, at their highest price.

    For a controller that has just begun, which nothing is offered to yet: nobody is rented for, but
    what was promised is no money for longer leases.
    """
    taken = [one.taken for _, one in sorted(world.rentals.items()) if one.taken is not None]
    found = {
        offer.id: offer.but(market="on-demand", price_usd_h=offer.cap_usd_h)
        for offer in taken
        if offer.market == "spot" and offer.cap_usd_h is not None
    }
    return tuple(found.values())


def _lead_s(job: Job, world: World) -> Seconds:
    """Return how much before its moment a job is due that waits without a machine.

    A spot machine is no use whose own moment has passed once it is there: hand-over included.
    """
    if job.state is not JobState.PENDING or _has_spot(job, world):
        return 0.0
    landing = landing_s([job])
    spot = (o for o in world.offers if o.market == "spot")
    return min((o.boot_s + max(landing, o.notice_s) + RESTORES_S for o in spot), default=0.0)


def may_switch(job: Job, world: World) -> bool:
    """Say whether a job has a deadline to come that on-demand could keep, and is not safe yet."""
    spec = job.spec
    if spec.deadline is None or world.now >= spec.deadline or spec.market not in MAY_SWITCH:
        return False
    if spec.nodes > 1 or job.wish not in (None, Wish.GIVE_WAY):
        return False
    if job.state is JobState.PENDING:
        return not any(other in world.jobs for other in job.after)
    if job.state is JobState.RECOVERING:
        return seeks(job, world.rentals, world.now)
    return job.state in HOLDS_A_PLACE and is_on_spot(job, world)


def is_on_spot(job: Job, world: World) -> bool:
    """Say whether a job has its place on a machine that may be taken away."""
    rental = None if job.placement is None else world.rentals.get(job.placement.node)
    return rental is not None and rental.taken is not None and rental.taken.market == "spot"


def _has_way(job: Job, world: World) -> bool:
    """Say whether an on-demand machine is there for a job, or on its way."""
    return any(
        job.id in one.jobs and is_sure(one) and comes(job, one) for one in world.rentals.values()
    )


def is_sure(rental: Rental) -> bool:
    """Say whether a machine is on-demand, and there or on its way."""
    is_open = rental.state in COMES_OR_IS and rental.ended_at is None
    return is_open and rental.taken is not None and rental.taken.market == "on-demand"


def _switch(job: Job, waits: Job, world: World, firm: Stock) -> Switch | None:
    """Return how it could go on on on-demand in time; None: nothing that is offered would do."""
    at = _cheapest_in_time(waits, job, world, firm)
    if at is None or job.spec.deadline is None:
        return None
    offer, runs_s = firm.offers[at], float(firm.runs_s(waits)[at])
    needed_s = offer.boot_s + runs_s
    worst = worst_case(offer, needed_s, [job], world.now)
    if worst is None:
        return None
    change = changeover(job, offer, world)
    return Switch(
        waits, last_safe_at(job.spec.deadline, runs_s, change), offer, runs_s, change,
        MicroUsd(worst + tail(offer, needed_s)),
    )  # fmt: skip


def from_spot(switch: Switch, spot: Offer) -> Switch:
    """Return how one that waits would switch from a spot machine that it is to have."""
    change = replace(switch.change, hand_over_s=max(landing_s([switch.job]), spot.notice_s))
    return replace(switch, at=switch.at - change.hand_over_s, change=change)


def _for_on_demand(job: Job, now: Instant) -> Job:
    waits = as_waiting(job, now) if job.state in HOLDS_A_PLACE else job
    return waits.but(spec=job.spec.but(market="on-demand"))


def _cheapest_in_time(waits: Job, job: Job, world: World, firm: Stock) -> int | None:
    """Return the position of the offer on which finishing in time costs least; None: there is none.

    In time is what can be as long as the controller is quick: its part is a margin for that.
    """
    import numpy as np  # only where somebody has a deadline

    runs_s = firm.runs_s(waits)
    left_s = (job.spec.deadline or math.inf) - world.now
    left_s -= _hand_over_s(job, world) + restore_s(job)
    in_time = firm.boots_s + runs_s <= left_s
    if not in_time.any():
        return None
    costs = np.where(in_time, firm.costs_usd(runs_s) + firm.moved_usd(waits), np.inf)
    return int(np.argmin(costs))


def changeover(job: Job, offer: Offer, world: World) -> Changeover:
    """Return what it takes until a job goes on on a machine of an offer that is asked for now."""
    return Changeover(offer.boot_s, restore_s(job), _hand_over_s(job, world))


def restore_s(job: Job) -> Seconds:
    """Return how long it takes from the order on a machine to work that goes on."""
    size = 0 if job.checkpoint is None else job.checkpoint.size_bytes
    return RESTORES_S + size / RESTORES_BYTES_S


def _hand_over_s(job: Job, world: World) -> Seconds:
    """Return how long it takes until a job is out of the place that it has; 0: it has none."""
    if job.state not in HOLDS_A_PLACE or job.placement is None:
        return 0.0
    rental = world.rentals.get(job.placement.node)
    notice_s = 0.0 if rental is None or rental.taken is None else rental.taken.notice_s
    return max(landing_s([job]), notice_s)


# -- what is kept ----------------------------------------------------------------------------


def _promised(found: Mapping[str, Switch], world: World) -> frozenset[str]:
    """Return for whom money to switch is kept from all others, also in the round that it is due.

    Those on spot, or on their way there. Who has begun and waits may have been there: as far as
    there is money that nobody was promised.
    """
    on_spot = {name for name in found if _has_spot(world.jobs[name], world)}
    taken = _pledged(world)
    names: list[str] = []
    for name in (*sorted(on_spot), *sorted(found.keys() - on_spot)):
        job = world.jobs[name]
        after = dict(taken)
        for payer in payers_of(job, world):
            after[payer] = MicroUsd(after.get(payer, NOTHING) + found[name].may_cost)
        if name in on_spot or (job.attempt > 0 and _holds(job, after, world)):
            taken = after
            names.append(name)
    return frozenset(names)


def _pledged(world: World) -> projects.Amounts:
    """Return what runs and projects have pledged to their machines beyond their leases."""
    found = dict(projects.pledges(world, but=""))
    for rental in world.rentals.values():
        found[rental.payer] = MicroUsd(found.get(rental.payer, NOTHING) + pledged(rental))
    return found


def _holds(job: Job, amounts: projects.Amounts, world: World) -> bool:
    """Say whether the accounts that pay for a job have so much that is not set aside."""
    accounts = {payer: account_in(world, payer) for payer in payers_of(job, world)}
    return all(
        account.limit is None or ledger.left(account) >= amounts.get(payer, NOTHING)
        for payer, account in accounts.items()
    )


def with_less(world: World, switches: Switches) -> World:
    """Return the world without the money that is promised to those who may have to switch.

    Each takes its own from there, see `renting.Till.back`.
    """
    found: projects.Amounts = {}
    jobs = dict(world.jobs)
    for name in sorted(switches.promised):
        job, one = world.jobs[name], switches.known[name]
        found = projects.with_more(found, dict.fromkeys(payers_of(job, world), one.may_cost))
        if job.spec.budget is not None:
            jobs[name] = job.but(spent=MicroUsd(job.spent + one.may_cost))
    if not found:
        return world
    return replace(world, jobs=jobs, accounts=projects.less(world, found))


def _has_spot(job: Job, world: World) -> bool:
    """Say whether a job is on a spot machine, or one is there or on its way for it."""
    if is_on_spot(job, world):
        return True
    return any(
        job.id in one.jobs and one.state in COMES_OR_IS and one.ended_at is None and comes(job, one)
        for one in world.rentals.values()
    )


# -- what is done ----------------------------------------------------------------------------


def why(switch: Switch) -> Reason:
    """Return what a job is told that is to be rented on-demand for its deadline."""
    deadline = switch.job.spec.deadline or 0.0
    says = (
        f"its deadline at {fixed(deadline)} needs on-demand from {clock(switch.at)} on: "
        f"{switch.change.takes_s:.0f} s until it goes on there and {switch.runs_s:.0f} s of work"
    )
    return Reason(code=Code.SWITCHES, says=says, change="a later deadline")


def settled(found: Matched, switches: Switches, world: World, durations: Durations) -> Matched:
    """Return what was found for a round, where those that are due leave for on-demand, first.

    But for those that get a place of ours in it on which they would be in time.
    """
    stay = {
        job.id
        for job, decision in found.places
        if job.id in switches.due and _is_in_time(job, decision, world, durations)
    }
    goes = switches.due - stay
    if not goes:
        return found
    return replace(
        found,
        places=tuple(one for one in found.places if one[0].id not in goes),
        holds=tuple(one for one in found.holds if one.job.id not in goes),
        gives_way=tuple(one for one in found.gives_way if one.job.id not in goes),
        refused=tuple(one for one in found.refused if one[0].id not in goes),
        waits=tuple(one for one in found.waits if one[0].id not in goes),
        leaving=(*switches.leaving(goes), *(a for a in found.leaving if a[0].id not in goes)),
    )


def _is_in_time(job: Job, decision: p.Decision, world: World, durations: Durations) -> bool:
    place = None if decision.chosen is None else decision.chosen.placement
    node = None if place is None else world.nodes.get(place.node)
    if place is None or node is None or job.spec.deadline is None:
        return False
    model = model_of(place, node.facts.devices)
    return world.now + restore_s(job) + run_s(job, model, 0, durations) <= job.spec.deadline


def not_had(
    switches: Switches, gets: Collection[str], refused: Mapping[str, Reason]
) -> Mapping[str, Reason]:
    """Return who is due and gets nothing in a round after all, and why."""
    left = switches.due.difference(gets)
    return {name: refused.get(name, why(switches.known[name])) for name in sorted(left)}


def explained(switches: Switches, world: World) -> Iterator[p.Explain]:
    """Yield what those are told that run and cannot be rented for though they are due, once."""
    for name, reason in switches.lost.items():
        job = world.jobs[name]
        if job.state is JobState.PENDING or (job.reason and job.reason.code is reason.code):
            continue
        says = f"its deadline asks for on-demand, which it does not get: {reason.says}"
        yield p.Explain(job=name, reason=reason.but(says=says))


def told(step: p.Rent, switches: Switches) -> p.Rent:
    """Return a step that rents for those who switch, with their reason."""
    mine = [name for name in step.rental.jobs if name in switches.due]
    if not mine:
        return step
    reason = why(switches.known[mine[0]])
    says = f"{reason.says}; {step.reason.says}"
    return step.model_copy(update={"reason": reason.but(says=says, change=step.reason.change)})
