"""The checker's rules about projects' money: who sets aside what, and who pays.

Months and sums are worked out here anew: nothing of the ledger's own is asked.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from cloudwhale.model import plan as p
from cloudwhale.model.rental import Rental
from cloudwhale.model.world import World
from cloudwhale.planning.fault import Fault, Rule
from cloudwhale.planning.rules import Rules


def _account(rental: Rental, project: str) -> str:
    began = datetime.fromtimestamp(rental.reserved_at, UTC)
    return f"project:{project}:{began.year:04}-{began.month:02}"


def _more(step: p.Step) -> dict[str, int]:
    """Return what a step sets aside by account."""
    match step:
        case p.Rent():
            return {account: int(some) for account, some in step.rental.projects.items()}
        case p.Join():
            return {account: int(some) for account, some in step.projects.items()}
        case p.Renew() if step.rental.renewal is not None:
            renewal = step.rental.renewal
            return {account: int(some) for account, some in renewal.projects.items()}
        case _:
            return {}


def project_budget(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """No plan sets more aside for a project than its budget leaves in that month."""
    wanted: Counter[str] = Counter()
    for step in plan.steps:
        wanted.update(_more(step))
    for name, amount in sorted(wanted.items()):
        account = world.accounts.get(name)
        if account is not None:
            limit, taken = account.limit, account.reserved + account.spent
        else:
            project = name.removeprefix("project:")[:-8]
            budget = world.budgets.get(project)
            limit, taken = None if budget is None else budget.month, 0
        if limit is not None and amount > 0 and taken + amount > limit:
            yield Fault("project-budget", f"{name} would have {taken + amount} taken of {limit}")


def project_share(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """Whoever has a job on a machine sets it aside, and all of them together set all of it aside.

    Asked where somebody keeps such accounts: a project with a budget must.
    """
    before = {name: rental.projects for name, rental in world.rentals.items()}
    for step in plan.steps:
        if isinstance(step, p.Rent):
            yield from _shares_of_new(step.rental, world)
        elif isinstance(step, p.Renew):
            yield from _shares_of_longer(step.rental, world)
            before[step.rental.id] = step.rental.projects
        elif isinstance(step, p.Join) and step.rental.id in before:
            yield from _shares_of_joined(step, before[step.rental.id], world)
            before[step.rental.id] = step.rental.projects


def _shares_of_new(rental: Rental, world: World) -> Iterator[Fault]:
    theirs = {_account(rental, project) for project in rental.jobs.values()}
    has_budget = any(project in world.budgets for project in rental.jobs.values())
    if not rental.projects and not has_budget:
        return
    if rental.projects.keys() != theirs:
        yield Fault("project-share", f"{rental.id} is not set aside by {sorted(theirs)} alone")
    elif max(rental.projects.values()) > rental.reserved or min(rental.projects.values()) <= 0:
        yield Fault("project-share", f"a project sets aside nothing, or more than {rental.id}")
    elif max(rental.projects.values()) < rental.reserved:
        yield Fault("project-share", f"no project sets all of {rental.id} aside")


def _shares_of_longer(rental: Rental, world: World) -> Iterator[Fault]:
    renewal, old = rental.renewal, world.rentals.get(rental.id)
    if renewal is None or old is None or not old.projects:
        return
    there = {
        _account(rental, job.spec.project)
        for job in world.jobs.values()
        if job.placement is not None and rental.node in job.placement.nodes
    }
    for account in sorted(there | renewal.projects.keys()):
        more = renewal.projects.get(account, 0)
        if more < renewal.reserved:
            yield Fault("project-share", f"{account} sets {more} aside for longer: too little")
        if rental.projects.get(account, 0) != old.projects.get(account, 0) + more:
            yield Fault("project-share", f"{account} has lost count of {rental.id}")


def _shares_of_joined(step: p.Join, held: Mapping[str, int], world: World) -> Iterator[Fault]:
    """`held`: what projects have set aside for the machine before this step."""
    now = step.rental
    for account in sorted({*held, *now.projects, *step.projects}):
        before, more = held.get(account, 0), step.projects.get(account, 0)
        if now.projects.get(account, 0) != before + more or more < 0:
            yield Fault("project-share", f"{account} has lost count of {now.id}")
    job = world.jobs.get(step.job)
    if held and job is not None:
        account = _account(now, job.spec.project)
        if now.projects.get(account, 0) <= 0:
            yield Fault("project-share", f"{account} sets nothing aside for {step.job}")


def project_pays(plan: p.Plan, world: World, rules: Rules) -> Iterator[Fault]:
    """No project pays more than it has set aside, and nobody who was never there pays alone."""
    for step in plan.steps:
        old = world.rentals.get(step.rental.id) if isinstance(step, p.Settle) else None
        if not isinstance(step, p.Settle) or old is None:
            continue
        paid: Counter[str] = Counter()
        for name, part in step.charges.items():
            paid[_account(old, old.jobs.get(name, ""))] += part
        for account in sorted(paid):
            amount = paid[account]
            held = old.projects.get(account)
            if held is not None and amount > held:
                yield Fault("project-pays", f"{account} pays {amount} and has {held} set aside")
        was_there = {name for name, held_s in old.held_s.items() if held_s > 0}
        pays = {name for name, part in step.charges.items() if part > 0}
        if was_there and pays and not pays & was_there:
            yield Fault("project-pays", f"{old.id} is paid for by those who never used it")


RULES: tuple[Rule, ...] = (project_budget, project_share, project_pays)
