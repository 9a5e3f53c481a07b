"""Jobs that go onto a machine which their payer has rented already, before another is rented.

A job joins where all that the machine was rented for has started, where it fits beside them now,
and where the time that the machine is kept longer for it costs less than a machine of its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cloudwhale.model import plan as p
from cloudwhale.model.job import Job, Placement
from cloudwhale.model.node import NodeState
from cloudwhale.model.offer import Offer
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Rental, RentalState
from cloudwhale.model.units import NOTHING, Instant, MicroUsd, Seconds, usd
from cloudwhale.model.world import World
from cloudwhale.planning import ledger, nights, projects
from cloudwhale.planning.company import may_share
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.fit import fit
from cloudwhale.planning.inventory import Free, free_capacity
from cloudwhale.planning.leasing import (
    is_fixed,
    landing_s,
    late_until,
    lease_until,
    longer_for,
    still_s,
    tenants,
)
from cloudwhale.planning.needs import spec_of
from cloudwhale.planning.next_machines import comes
from cloudwhale.planning.speeds import run_s
from cloudwhale.planning.started import Started
from cloudwhale.planning.stock import Stock


@dataclass(slots=True)
class _Open:
    """A rented machine with room, as it fills."""

    rental: Rental
    offer: Offer
    free: Free
    still_s: Seconds
    """How long it is needed anyway."""
    holders: frozenset[str]
    """Ids of the jobs that hold a place there."""


def joins(
    world: World,
    leaving: Sequence[Job],
    durations: Durations,
    stock: Stock,
    started: Started | None = None,
) -> Sequence[p.Join]:
    """Return which of the jobs that leave the queue join a machine, first come, first served.

    `started`: the forecasts of the same world, where they are known already.
    """
    opened = list(_opened(world, durations)) if leaving else []
    if not opened:
        return ()
    purses = _Purses(world, started or Started(world, durations))
    found: list[p.Join] = []
    for job in leaving:
        best = min(_costs(job, opened, world, durations), default=None, key=lambda one: one[:2])
        own = next(stock.options(job), None)
        if best is None or (own is not None and best[0] >= own.cost):
            continue
        there, runs_s = best[2], best[3]
        ends_at = late_until(world.now, runs_s, landing_s([job]))
        ends_at = min(ends_at, nights.ends_at(world, job.run))
        beside = _set_aside(job, there, runs_s, world)
        keep = NOTHING
        if there.offer.market == "spot" and job.id not in stock.promised:
            keep = stock.keeps.get(job.id, NOTHING)
        if purses.pays(there, ends_at, beside, keep):
            there.rental = there.rental.but(late_until=max(ends_at, there.rental.late_until))
            longer_s = _longer_s(job, there, runs_s, world)
            found.append(_joined(job, there, best[0], longer_s, beside))
    return found


def _opened(world: World, durations: Durations) -> Iterator[_Open]:
    for _, rental in sorted(world.rentals.items()):
        node, offer = world.nodes.get(rental.node or ""), rental.taken
        if rental.state is not RentalState.READY or rental.ended_at is not None or offer is None:
            continue
        if node is None or node.state is not NodeState.READY or rental.renewal is not None:
            continue
        here = tenants(world, rental)
        if not here or _awaits_somebody(world, rental):
            continue
        free = free_capacity([node], here, world.sightings)[node.id]
        needed_s, holders = still_s(here, rental, durations, world.now), {job.id for job in here}
        yield _Open(rental, offer, free, needed_s, frozenset(holders))


def _awaits_somebody(world: World, rental: Rental) -> bool:
    jobs = (world.jobs.get(name) for name in rental.jobs)
    return any(job is not None and comes(job, rental) for job in jobs)


Joinable = tuple[MicroUsd, str, _Open, Seconds]
"""What it costs, the rental's id, the machine, and how long the job runs there."""


def _costs(
    job: Job, opened: Sequence[_Open], world: World, durations: Durations
) -> Iterator[Joinable]:
    for there in opened:
        place = fit(spec_of(job), there.free) if _may_join(job, there, world) else None
        if not isinstance(place, Placement):
            continue
        models = {device.id: device.model for device in there.offer.facts.devices}
        model = models.get(place.devices[0]) if place.devices else None
        runs_s = run_s(job, model, 0, durations)
        if runs_s > nights.horizon_s(world, job.run, landing_s([job])):
            continue
        if is_fixed(there.rental) and _longer_s(job, there, runs_s, world) > 0:
            continue
        cost = ledger.cost(there.offer.usd_h or NOTHING, max(0.0, runs_s - there.still_s))
        yield cost, there.rental.id, there, runs_s


def _longer_s(job: Job, there: _Open, runs_s: Seconds, world: World) -> Seconds:
    """Return how much longer a lease has to be for a job that joins."""
    ends_at = world.now + runs_s * longer_for(there.offer) + landing_s([job])
    return max(0.0, ends_at - there.rental.lease.away_until)


def _set_aside(job: Job, there: _Open, runs_s: Seconds, world: World) -> projects.Amounts:
    """Return what the job's project sets aside, beside the payer, whose money is there."""
    until = lease_until(0, world.now, runs_s, landing_s([job])).stop_at
    return projects.for_joining(there.rental, job.spec.project, world.now, until)


def _may_join(job: Job, there: _Open, world: World) -> bool:
    """Say whether payer and market are the same; who has a budget of its own has nobody beside."""
    spec = job.spec
    others = [one for name in there.rental.jobs if (one := world.jobs.get(name)) is not None]
    is_alone = any(one.spec.budget is not None for one in others)
    is_theirs = job.run == there.rental.payer and spec.budget is None and not is_alone
    is_gang = spec.nodes > 1 or bool(there.rental.gang)
    # What it would bring from another cloud is set aside for none but new ones.
    is_near = job.saved_from is None or job.saved_from.provider == there.offer.provider
    if job.id in there.holders:
        return False  # whether it still runs there is not known; if it does, it needs no other
    suits = is_theirs and not is_gang and is_near and spec.market in ("auto", there.offer.market)
    return suits and may_share(job, others)


class _Purses:
    """What payers can still set aside for longer leases, as it is given away.

    A lease itself is lengthened when it is about to end; what has started can be finished.
    """

    def __init__(self, world: World, started: Started) -> None:
        self._world = world
        runs = {rental.payer for rental in world.rentals.values()}
        self._started: projects.Amounts = {
            **{run: started.of(run) for run in runs},
            **started.of_projects,
        }
        """What finishing its work may need beyond its leases, by account."""

    def pays(
        self, there: _Open, ends_at: Instant, beside: projects.Amounts, keep: MicroUsd
    ) -> bool:
        """Say whether a machine can be had for so long at the highest price, and keep the money.

        `beside`: what the project of who joins has to set aside at once. What all who are there may
        need it for longer is pledged to it, as if it was rented for longer. `keep`: what whoever
        joins may need besides, to switch to on-demand for its deadline.
        """
        rental, most_usd_h = there.rental, there.offer.most_usd_h
        kept_until = max(rental.late_until, rental.lease.away_until)
        if most_usd_h is None:
            return ends_at <= kept_until and not beside and not keep
        more = MicroUsd(ledger.cost(most_usd_h, ends_at - kept_until) + keep)
        payers = {rental.payer, *rental.projects, *beside}
        started = projects.with_more(self._started, dict.fromkeys(payers, more))
        others = dict.fromkeys(payers - beside.keys(), NOTHING) if more else {}
        if projects.refusal(self._world, beside, started) is not None:
            return False
        if projects.refusal(self._world, others, started, anew=False) is not None:
            return False
        self._world = replace(self._world, accounts=projects.less(self._world, beside))
        self._started = started
        return True


def _joined(
    job: Job, there: _Open, cost: MicroUsd, longer_s: Seconds, beside: projects.Amounts
) -> p.Join:
    rental = there.rental
    with_it = {**rental.jobs, job.id: job.spec.project}
    there.rental = rental.but(jobs=with_it, projects=projects.with_more(rental.projects, beside))
    place = fit(spec_of(job), there.free)
    if isinstance(place, Placement):
        there.free = there.free.less(job.wants, place)
    longer = f", kept {longer_s:.0f} s longer" if longer_s else ""
    says = (
        f"goes onto {rental.id} ({rental.offer}), which its run has rented and which has room: "
        f"{usd(cost)} USD more{longer}"
    )
    reason = Reason(code=Code.JOINS, says=says)
    return p.Join(rental=there.rental, job=job.id, projects=dict(beside), reason=reason)
