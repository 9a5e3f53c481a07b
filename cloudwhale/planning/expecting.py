"""What the machines and the queue of a project are expected to cost, as the planner expects it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cloudwhale.model.job import Job, JobState
from cloudwhale.model.node import Node
from cloudwhale.model.rental import Rental, RentalState
from cloudwhale.model.units import NOTHING, Instant, MicroUsd
from cloudwhale.model.world import World
from cloudwhale.planning import costing, ledger, projects
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.fit import could_ever_fit
from cloudwhale.planning.inventory import Free, free_capacity
from cloudwhale.planning.leasing import coming_s, still_s, tenants
from cloudwhale.planning.needs import spec_of
from cloudwhale.planning.outlook import Taken
from cloudwhale.planning.payers import account_in, account_name
from cloudwhale.planning.stock import Stock

WAITS = (JobState.PENDING, JobState.RECOVERING, JobState.PAUSED)
"""What may still cost something, and has no machine."""


def taken(
    world: World, project: str, month: str, stock: Stock | None, durations: Durations
) -> Taken:
    """Return what a project's account of a month holds, and what it is still expected to.

    Each job that waits is counted with the cheapest machine that suits it, alone, boot included:
    sharing makes it cheaper. Those of a run together with no more than the run may still set aside.
    `stock`: what can be rented; None: nothing can.
    """
    name = account_name(project, month)
    account = account_in(world, name)
    machines = [one for one in world.rentals.values() if name in one.projects]
    waiting = _queue(world, project, stock)
    return Taken(
        spent=account.spent,
        reserved=account.reserved,
        so_far=_parts(machines, name, {one.id: _by(one, world.now) for one in machines}),
        running=_parts(
            machines, name, {one.id: _in_all(one, world, durations) for one in machines}
        ),
        queue=MicroUsd(sum(waiting.costs)),
        waits=waiting.jobs,
        at_home=waiting.at_home,
        unpriced=waiting.unpriced,
    )


# -- machines that are there -----------------------------------------------------------------


def _parts(machines: Iterable[Rental], account: str, costs: Mapping[str, MicroUsd]) -> MicroUsd:
    """Return what an account pays of some machines that cost so much each."""
    total = NOTHING
    for rental in machines:
        paid = projects.charges(rental, min(costs[rental.id], rental.reserved))
        mine = (job for job, of in rental.jobs.items() if _is_of(rental, of, account))
        total = MicroUsd(total + sum(paid.get(job, NOTHING) for job in mine))
    return total


def _is_of(rental: Rental, project: str, account: str) -> bool:
    return projects.account_for(rental, project) == account


def _by(rental: Rental, at: Instant) -> MicroUsd:
    """Return what a machine costs by a time, with all that was brought there so far."""
    if rental.state is RentalState.RETURNED:
        return rental.spent
    until = at if rental.ended_at is None else rental.ended_at
    return MicroUsd(costing.billed(rental, until) + sum(one.cost for one in rental.egress))


def _in_all(rental: Rental, world: World, durations: Durations) -> MicroUsd:
    """Return what a machine is expected to have cost when those that it was rented for are done."""
    here = tenants(world, rental)
    coming = [world.jobs[job] for job in rental.jobs if job in world.jobs]
    coming = [job for job in coming if job.placement is None]
    boot_s = 0.0
    if rental.state is not RentalState.READY and rental.taken is not None:
        boot_s = max(0.0, rental.reserved_at + rental.taken.boot_s - world.now)
    longest_s = still_s(here, rental, durations, world.now)
    needed_s = max(longest_s, boot_s + coming_s(coming, rental, durations) if coming else 0.0)
    begun = rental if rental.requested_at is not None else rental.but(requested_at=world.now)
    return _by(begun, world.now + needed_s)


# -- the queue -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Waiting:
    jobs: int
    at_home: int
    unpriced: int
    costs: tuple[MicroUsd, ...]
    """By run."""


def _queue(world: World, project: str, stock: Stock | None) -> _Waiting:
    promised = {job for one in world.rentals.values() if one.ended_at is None for job in one.jobs}
    jobs = [
        job
        for job in world.jobs.values()
        if job.spec.project == project and job.state in WAITS and job.id not in promised
    ]
    homes = _Homes(node for node in world.nodes.values() if node.owned)
    away = [job for job in jobs if job.spec.market != "local" and not homes.fit(job)]
    costs: Mapping[str, MicroUsd] = {} if stock is None else _cheapest(away, stock)
    return _Waiting(
        len(jobs), len(jobs) - len(away), len(away) - len(costs),
        tuple(_of_runs(world, [(job, costs[job.id]) for job in away if job.id in costs])),
    )  # fmt: skip


def _cheapest(jobs: list[Job], stock: Stock) -> Mapping[str, MicroUsd]:
    stock.look_at(jobs)
    options = ((job.id, next(stock.options(job), None)) for job in jobs)
    return {job: option.cost for job, option in options if option is not None}


def _of_runs(world: World, costs: Sequence[tuple[Job, MicroUsd]]) -> Iterable[MicroUsd]:
    """Yield what the jobs of each run cost: what a run has no money for is never rented."""
    whole: dict[str, MicroUsd] = {}
    for job, cost in costs:
        whole[job.run] = MicroUsd(whole.get(job.run, NOTHING) + cost)
    for run, cost in whole.items():
        account = world.accounts.get(run)
        bounded = account is not None and account.limit is not None
        yield min(cost, ledger.left(account)) if account is not None and bounded else cost


class _Homes:
    """Says which jobs fit on a machine of ours when nothing else runs there."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._empty: tuple[Free, ...] = tuple(free_capacity(nodes, ()).values())
        self._known: dict[str, bool] = {}

    def fit(self, job: Job) -> bool:
        found = self._known.get(job.demand)
        if found is None:
            spec = spec_of(job)
            fits = (could_ever_fit(spec, free) is None for free in self._empty)
            found = self._known[job.demand] = any(fits)
        return found
