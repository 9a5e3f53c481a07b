"""Whose account is which: runs pay for machines, projects beside them, month by month.

The month is that (UTC) in which a machine's lease begins, for all that the machine costs until it
is given back. A project without a budget is counted all the same and stops nothing, so that a
budget which is set in mid-month knows what is spent.
"""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

from cloudwhale.model.budget import Budget
from cloudwhale.model.job import Job
from cloudwhale.model.units import Instant
from cloudwhale.model.world import Account, World

PREFIX = "project:"


@lru_cache(maxsize=256)
def month_of(at: Instant) -> str:
    """Return the month of a time in UTC, `2026-11`."""
    return datetime.fromtimestamp(at, tz=UTC).strftime("%Y-%m")


def month_after(month: str) -> str:
    """Return the month that follows."""
    first = datetime.strptime(f"{month}-01", "%Y-%m-%d").replace(tzinfo=UTC)
    return (first + timedelta(days=31)).strftime("%Y-%m")


def account_name(project: str, month: str) -> str:
    """Return the payer of a project's account in a month, `project:nlp:2026-11`."""
    return f"{PREFIX}{project}:{month}"


def project_and_month(payer: str) -> tuple[str, str] | None:
    """Return whose account it is; None for a run's."""
    if not payer.startswith(PREFIX):
        return None
    project, _, month = payer.removeprefix(PREFIX).rpartition(":")
    return project, month


def opened(payer: str, budget: Budget | None) -> Account:
    """Return the account of a payer of whom nothing was reserved yet, under a project's budget."""
    if project_and_month(payer) is None:
        return Account(payer=payer)
    return bounded(Account(payer=payer, needs_limit=False), budget)


def bounded(account: Account, budget: Budget | None) -> Account:
    """Return a project's account under a budget; what it has taken already stays taken."""
    if budget is None or budget.month is None:
        return account.but(limit=None)
    return account.but(limit=budget.month, soft=budget.soft_share)


def payers_of(job: Job, world: World) -> tuple[str, ...]:
    """Return who pays for a job now: its run, and its project where that has a budget."""
    if job.spec.project not in world.budgets:
        return (job.run,)
    return (job.run, account_name(job.spec.project, month_of(world.now)))


def account_in(world: World, payer: str) -> Account:
    """Return a payer's account as it is, or as it would be opened now."""
    found = world.accounts.get(payer)
    if found is not None:
        return found
    whose = project_and_month(payer)
    return opened(payer, None if whose is None else world.budgets.get(whose[0]))


def called(payer: str) -> str:
    """Return how a person calls a payer."""
    found = project_and_month(payer)
    return payer if found is None else f"project {found[0]} in {found[1]}"
