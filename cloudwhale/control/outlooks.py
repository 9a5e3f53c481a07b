"""How projects' months are expected to end: read from the store, changes nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime

from cloudwhale.control import desk as desks
from cloudwhale.control.supply import Supply
from cloudwhale.control.this_host import with_this_host
from cloudwhale.model.units import Instant, MicroUsd
from cloudwhale.model.world import Account, World
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.expecting import taken
from cloudwhale.planning.ledger import soft_line
from cloudwhale.planning.outlook import HABIT_DAYS, Bound, Outlook, day_of, habit_of, outlook
from cloudwhale.planning.payers import account_in, account_name, month_of, project_and_month
from cloudwhale.planning.stocking import stocked
from cloudwhale.spi.store import CostQuery, Store

DAY_S = 86_400.0


def outlooks(
    desk: "desks.Desk", now: Instant, supply: Supply, project: str | None = None
) -> Mapping[str, Outlook]:
    """Return the outlook of this month by project: of one, or of all that there is something of.

    `supply`: what those that wait could be rented.
    """
    world = with_this_host(desk, desk.store.world(now))
    world = replace(world, offers=supply.offers)
    accounts = desk.store.accounts()
    names = (project,) if project is not None else _names(world, accounts)
    durations = Durations(world.durations)
    stock = stocked(world.offers, durations) if world.offers else None
    spent, month = _by_day(desk.store, now, project), month_of(now)
    found: dict[str, Outlook] = {}
    for name in names:
        has = taken(world, name, month, stock, durations)
        habit = habit_of(spent.get(name, {}), day_of(now), _since(accounts, name, now))
        account = account_in(world, account_name(name, month))
        found[name] = outlook(month, now, has, habit, _bound(account))
    return found


def _names(world: World, accounts: Sequence[Account]) -> Sequence[str]:
    """Return the projects with a budget, with jobs that live, or with money in this month."""
    month = month_of(world.now)
    whose = (project_and_month(account.payer) for account in accounts)
    spending = {of[0] for of in whose if of is not None and of[1] == month}
    return sorted({*world.budgets, *spending, *(one.spec.project for one in world.jobs.values())})


def _by_day(
    store: Store, now: Instant, project: str | None
) -> Mapping[str, Mapping[date, MicroUsd]]:
    asked = CostQuery(
        by=("project", "day"), since=_month_begins(now - HABIT_DAYS * DAY_S), zone="UTC",
        project=project, counts_jobs=False,
    )  # fmt: skip
    found: dict[str, dict[date, MicroUsd]] = {}
    for one in store.costs(asked):
        name, day = one.key
        found.setdefault(name, {})[date.fromisoformat(day)] = one.spent
    return found


def _since(accounts: Sequence[Account], project: str, now: Instant) -> date | None:
    """Return a day before those that were asked for on which a project was in use; None: none was.

    Then a day of the last weeks without spending is one on which nothing was spent, not a gap.
    """
    whose = (project_and_month(account.payer) for account in accounts if account.spent)
    asked_from = month_of(now - HABIT_DAYS * DAY_S)
    months = [of[1] for of in whose if of is not None and of[0] == project and of[1] < asked_from]
    return date.fromisoformat(f"{min(months)}-01") if months else None


def _month_begins(at: Instant) -> Instant:
    """Return the beginning of the month of a time: accounts tell of whole months before."""
    return datetime.fromisoformat(f"{month_of(at)}-01T00:00:00+00:00").timestamp()


def _bound(account: Account) -> Bound | None:
    line = soft_line(account)
    if account.limit is None or line is None:
        return None
    return Bound(limit=account.limit, soft_line=line)
