"""What budgets there are, what of them is set aside, spent and left."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cloudwhale.model.units import usd
from cloudwhale.model.world import Account, World
from cloudwhale.planning.ledger import left, soft_line
from cloudwhale.planning.payers import account_in, account_name, month_of, project_and_month
from cloudwhale.reporting.figures import NOTHING, dollars, money
from cloudwhale.reporting.sheet import Cell, Column, Sheet, Tone


def known(world: World, others: Iterable[Account] = ()) -> Sequence[Account]:
    """Return the accounts that are worth showing: projects by month first, then runs.

    Those with something alive or open, those of the projects with a budget in this month, and of
    the others those that could or did spend something.
    """
    now = month_of(world.now)
    found = {account.payer: account for account in others if _says_something(account)}
    for payer, account in world.accounts.items():
        if _is_of(payer, now) or account.reserved or project_and_month(payer) is None:
            found[payer] = account
    for project in world.budgets:
        payer = account_name(project, now)
        found[payer] = account_in(world, payer)
    shown = [account for account in found.values() if _says_something(account)]
    return sorted(shown, key=lambda account: (account.needs_limit, account.payer))


def _is_of(payer: str, month: str) -> bool:
    found = project_and_month(payer)
    return found is not None and found[1] == month


def _says_something(account: Account) -> bool:
    return account.limit is not None or bool(account.reserved or account.spent)


def state_of(account: Account) -> tuple[str, Tone]:
    """Return in a word or two how an account stands."""
    line, taken = soft_line(account), account.reserved + account.spent
    if account.limit is None or line is None:
        return ("no bound", "quiet") if not account.needs_limit else ("rents nothing", "quiet")
    if taken > account.limit:
        return "above its budget", "bad"
    if not left(account):
        return "nothing left", "bad"
    return ("past the soft line", "warn") if taken >= line else ("open", "good")


def budget_keys(account: Account) -> Mapping[str, Any]:
    """Return an account as `--json` shows it; what does not apply is null."""
    whose = project_and_month(account.payer)
    line = soft_line(account)
    return {
        "project": None if whose is None else whose[0],
        "month": None if whose is None else whose[1],
        "run": account.payer if whose is None else None,
        "budget_usd": None if account.limit is None else usd(account.limit),
        "soft_line_usd": None if line is None else usd(line),
        "reserved_usd": usd(account.reserved),
        "spent_usd": usd(account.spent),
        "left_usd": None if account.limit is None else usd(left(account)),
        "state": state_of(account)[0],
    }


def budgets_sheet(accounts: Sequence[Account]) -> Sheet:
    """Show accounts, one a row."""
    columns = (
        Column("whose"),
        Column("month"),
        Column("budget", right=True),
        Column("soft line", right=True, optional=True),
        Column("set aside", right=True),
        Column("spent", right=True),
        Column("left", right=True),
        Column("state"),
    )
    notes = (
        ("In US dollars. Months are UTC; a machine counts in that in which its lease begins.",)
        if accounts
        else (
            "No budgets: `cloudwhale budget set PROJECT 200/month` bounds a project, "
            "`cloudwhale run FILE --budget 50` a run.",
        )
    )
    return Sheet(columns, tuple(_row(account) for account in accounts), notes=notes)


def _row(account: Account) -> tuple[Cell, ...]:
    whose = project_and_month(account.payer)
    says, tone = state_of(account)
    line = soft_line(account)
    return (
        Cell(account.payer if whose is None else whose[0]),
        Cell(NOTHING if whose is None else whose[1]),
        Cell(NOTHING if account.limit is None else dollars(account.limit)),
        Cell(NOTHING if line is None else dollars(line), "quiet"),
        Cell(dollars(account.reserved)),
        Cell(dollars(account.spent)),
        Cell(NOTHING if account.limit is None else dollars(left(account)), "strong"),
        Cell(says, tone),
    )


def set_words(account: Account) -> list[str]:
    """Return what is told to who has just set a budget, or taken it away."""
    whose = project_and_month(account.payer)
    who = f"run {account.payer}" if whose is None else f"project {whose[0]}"
    when = "" if whose is None else f" in {whose[1]}"
    taken = f"{money(account.spent)} spent, {money(account.reserved)} set aside"
    line = soft_line(account)
    if account.limit is None or line is None:
        return [f"{who} has no budget of its own any more;{when} {taken}"]
    each = "" if whose is None else " in each month (UTC)"
    said = [
        f"{who} may spend {money(account.limit)} on rented machines{each}; "
        f"nothing new from {money(line)} on",
        f"{'so far' if whose is None else whose[1]}: {taken}, {money(left(account))} left",
    ]
    if account.reserved + account.spent >= account.limit:
        said.append(
            "That is no more than is taken already: nothing new is rented; machines that are there "
            "keep what is set aside for them, and none of them is kept for longer."
        )
    return said
