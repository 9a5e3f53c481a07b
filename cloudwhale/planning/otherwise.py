"""The world of a round as it would have been otherwise, and what its plan comes to then; pure.

All that is changed is named: who waits, what is offered, which machines take jobs. Money is no
bound there, as it is asked what the same jobs would have cost, not what a budget holds.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from cloudwhale.model import plan as p
from cloudwhale.model.job import HOLDS_A_PLACE, Job
from cloudwhale.model.node import Node, NodeState
from cloudwhale.model.plan import Plan
from cloudwhale.model.units import MICRO_PER_USD, MicroUsd
from cloudwhale.model.world import Account, World

NO_BOUND = MicroUsd(10**9 * MICRO_PER_USD)
"""More than anything costs; the arithmetic of budgets stays the same with it."""


@dataclass(frozen=True, slots=True)
class Course:
    """What a plan comes to for some jobs of one run."""

    cost: MicroUsd | None
    """Expected, of all that is rented for them; None: nobody knows."""
    bound: MicroUsd | None
    """No plan that rents for the same jobs is cheaper; None: nobody has worked it out."""
    without: tuple[str, ...]
    """Those that get no machine."""


def with_jobs(world: World, run: str, jobs: Collection[str]) -> World:
    """Return the world in which these jobs of a run have to be rented for, and nobody else waits.

    Machines of ours take nobody new: who ran there goes on. What others hold they keep.
    """
    kept = {
        name: _unbounded(job)
        for name, job in world.jobs.items()
        if name in jobs or job.state in HOLDS_A_PLACE
    }
    account = world.accounts.get(run, Account(payer=run))
    return replace(
        world,
        jobs=kept,
        nodes={name: _taking_nobody(node) for name, node in world.nodes.items()},
        accounts={run: account.but(limit=NO_BOUND)},
        budgets={},
    )


def _unbounded(job: Job) -> Job:
    return job if job.spec.budget is None else job.but(spec=job.spec.but(budget=None))


def _taking_nobody(node: Node) -> Node:
    takes = node.owned and node.state in (NodeState.READY, NodeState.EXPECTED)
    return node.but(state=NodeState.DRAINING) if takes else node


def on_demand(world: World) -> World:
    """Return the world in which nothing is offered on spot, and nobody has asked for that."""
    jobs = {name: _of_any_market(job) for name, job in world.jobs.items()}
    offers = tuple(offer for offer in world.offers if offer.market == "on-demand")
    return replace(world, jobs=jobs, offers=offers)


def _of_any_market(job: Job) -> Job:
    return job.but(spec=job.spec.but(market="auto")) if job.spec.market == "spot" else job


def away(world: World, jobs: Collection[str]) -> World:
    """Return the world in which these jobs may be rented for, though they were to stay here."""
    changed = {
        name: job.but(spec=job.spec.but(market="auto"))
        for name, job in world.jobs.items()
        if name in jobs and job.spec.market == "local"
    }
    return replace(world, jobs={**world.jobs, **changed})


def rented_in(plan: Plan, run: str) -> Mapping[str, tuple[str, ...]]:
    """Return the jobs of each machine that a plan rents for a run, by the machine's id."""
    steps = (step for step in plan.steps if isinstance(step, p.Rent))
    return {one.rental.id: tuple(one.rental.jobs) for one in steps if one.rental.payer == run}


def course_of(plan: Plan, jobs: frozenset[str], machines: Collection[str] = ()) -> Course:
    """Return what a plan comes to for some jobs.

    `machines`: those that count, where others were rented and never came; empty: all that are
    for these jobs. A machine of a plan that was stored by an older program has no expected cost.
    """
    steps = [step for step in plan.steps if isinstance(step, p.Rent) and _counts(step, jobs)]
    steps = [step for step in steps if not machines or step.rental.id in machines]
    served = {job for step in steps for job in step.rental.jobs}
    served |= {step.job for step in plan.steps if isinstance(step, p.Join)}
    return Course(
        cost=_sum([step.cost for step in steps]),
        bound=_bound(plan, jobs),
        without=tuple(sorted(jobs - served)),
    )


def _counts(step: p.Rent, jobs: frozenset[str]) -> bool:
    return not jobs.isdisjoint(step.rental.jobs)


def _sum(costs: Collection[MicroUsd | None]) -> MicroUsd | None:
    if any(cost is None for cost in costs):
        return None
    return MicroUsd(sum(cost for cost in costs if cost is not None))


def _bound(plan: Plan, jobs: frozenset[str]) -> MicroUsd | None:
    """Return the sum of the bounds of all that was asked for these jobs; None: one is missing."""
    mine = [one for one in plan.tenders if not jobs.isdisjoint(one.jobs)]
    if not mine or any(not jobs.issuperset(one.jobs) for one in mine):
        return None  # it says nothing of these jobs alone
    return _sum([one.bound for one in mine])
