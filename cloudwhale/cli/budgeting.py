"""The commands about budgets: what there is, a new one, none any more."""

import getpass
import re
import sys
from dataclasses import dataclass
from decimal import Decimal
from shlex import quote

from cloudwhale.cli.exits import Exit, NotFound, WrongUsage
from cloudwhale.cli.looking import desk_here
from cloudwhale.cli.output import document_or, emit, say
from cloudwhale.control.desk import Desk
from cloudwhale.control.intake.unfit import Unfit
from cloudwhale.control.intake.words import folder_name
from cloudwhale.model import event as e
from cloudwhale.model.budget import Budget
from cloudwhale.model.units import Instant, MicroUsd, micro_usd
from cloudwhale.model.world import Account
from cloudwhale.planning.payers import account_in, account_name, month_of
from cloudwhale.reporting.budgets import budget_keys, budgets_sheet, known, set_words
from cloudwhale.spi.store import JobQuery

MOST_USD = 1_000_000_000
"""More is a slip of the finger."""

_AMOUNT = re.compile(r"(?P<sign>[-+]?)(?P<number>\d[\d_]*(?:\.\d*)?|\.\d+)\s*(?P<unit>[^/\d]*)")
_SHARE = re.compile(r"(?P<number>[0-9]{1,9}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})\s*(?P<percent>%?)")
_USD = ("", "usd", "$", "dollars", "dollar")
_MONTH = ("month", "mo", "m")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What `budget set` was given."""

    whose: str
    amount: str
    month: bool
    soft: float | None
    as_json: bool


@dataclass(frozen=True, slots=True)
class Words:
    """What `budget set` was given, as it was typed; each may be said in one of two ways."""

    whose: str | None
    amount: str | None
    month: bool
    project: str | None
    monthly: str | None
    soft: str | None


def wanted(words: Words, as_json: bool) -> Wanted:
    """Return what is meant; raise WrongUsage for what is missing, or said twice."""
    whose, amount = words.whose, words.amount
    if words.project is not None and whose is not None and amount is None and not words.monthly:
        whose, amount = None, whose  # `budget set --project nlp 500/month`
    whose = _said_once("The project", whose, words.project, "PROJECT", "--project")
    amount = _said_once("The amount", amount, words.monthly, "USD/month", "--monthly")
    soft = None if words.soft is None else read_share(words.soft)
    is_monthly = words.month or words.monthly is not None
    return Wanted(whose, amount, is_monthly, soft, as_json)


def _said_once(what: str, word: str | None, option: str | None, name: str, flag: str) -> str:
    if word is not None and option is not None:
        raise WrongUsage(
            f"{what} is said twice: {word!r} and {flag} {option!r}.",
            f"Write one of {name} and {flag}.",
        )
    found = word if option is None else option
    if found is None:
        raise WrongUsage(f"{what} is missing.", "Write `cloudwhale budget set nlp 200/month`.")
    return found


def listed(*, everything: bool, as_json: bool) -> int:
    """Show budgets, what is taken of each and what is left."""
    with desk_here() as desk:
        now = desk.clock.now()
        world = desk.store.world(now)
        rows = known(world, desk.store.accounts() if everything else ())
        document_or(
            as_json,
            lambda: {"budgets": [budget_keys(row) for row in rows]},
            lambda paper: paper.sheet(budgets_sheet(rows)),
        )
    return Exit.DONE


def put(wanted: Wanted) -> int:
    """Set the budget of a project by month, or of a run."""
    amount, is_monthly = read_amount(wanted.amount)
    said, soft = wanted.amount.partition("/")[0].strip(), wanted.soft
    with desk_here() as desk:
        run = desk.store.run(wanted.whose)
        if run is not None and not (is_monthly or wanted.month):
            return _put_run(desk, run.id, amount, wanted)
        if run is not None:
            raise WrongUsage(
                f"{run.id} is a run: its budget is for all of it.",
                f"Leave the month out: `cloudwhale budget set {run.id} {quote(said)}`.",
            )
        if not (is_monthly or wanted.month):
            raise WrongUsage(
                f"There is no run {wanted.whose!r}, and a project's budget is for each month.",
                f"Write `cloudwhale budget set {quote(wanted.whose)} {quote(f'{said}/month')}`.",
            )
        share = desk.settings.budget_soft_share if soft is None else soft
        return _put_project(desk, amount, share, wanted)


def _put_project(desk: Desk, amount: MicroUsd, share: float, wanted: Wanted) -> int:
    project, now = _project(wanted.whose), desk.clock.now()
    budget = Budget(project=project, month=amount, soft_share=share, set_at=now, by=_who(desk))
    desk.store.append([e.BudgetSet(at=now, budget=budget)])
    account = _account(desk, project, now)
    if not _is_used(desk, project):
        say(f"No job of a project {project} was submitted yet.", sys.stderr)
    return _said(account, wanted.as_json)


def _put_run(desk: Desk, run: str, amount: MicroUsd, wanted: Wanted) -> int:
    if wanted.soft is not None:
        raise WrongUsage(
            "--soft is for projects: a run has the soft line that it was submitted with.",
            "Leave it out.",
        )
    now = desk.clock.now()
    desk.store.append([e.RunBudgetSet(at=now, run=run, limit=amount, by=_who(desk))])
    found = next(one for one in desk.store.accounts() if one.payer == run)
    return _said(found, wanted.as_json)


def lifted(project: str, as_json: bool) -> int:
    """Take the budget of a project away."""
    with desk_here() as desk:
        now = desk.clock.now()
        budgets = desk.store.world(now).budgets
        if project not in budgets:
            has = ", ".join(sorted(budgets)) or "no project"
            raise NotFound(f"Project {project!r} has no budget.", f"Those that have one: {has}.")
        none = Budget(project=project, month=None, set_at=now, by=_who(desk))
        desk.store.append([e.BudgetSet(at=now, budget=none)])
        return _said(_account(desk, project, now), as_json)


def _account(desk: Desk, project: str, now: Instant) -> Account:
    return account_in(desk.store.world(now), account_name(project, month_of(now)))


def _said(account: Account, as_json: bool) -> int:
    if as_json:
        emit(budget_keys(account))
    else:
        for line in set_words(account):
            say(line)
    return Exit.DONE


def _who(desk: Desk) -> str:
    """Return who is remembered as the one who has set a budget."""
    return desk.settings.user or getpass.getuser()


def _is_used(desk: Desk, project: str) -> bool:
    return bool(desk.store.jobs(JobQuery(project=project, limit=1)))


def _project(text: str) -> str:
    try:
        return folder_name(text)
    except Unfit as no:
        raise WrongUsage(f"project: {no.says}.", no.remedy) from no


# -- shares and amounts ----------------------------------------------------------------------


def read_share(text: str) -> float:
    """Return a share of 1 that is written as `0.9` or `90%`; raise WrongUsage for what is none."""
    found = _SHARE.fullmatch(text.strip())
    number = None if found is None else Decimal(found["number"])
    if found is not None and number is not None and found["percent"]:
        number /= 100
    if number is None or not 0 < number <= 1:
        shown = f"{text[:57]}..." if len(text) > 60 else text
        is_bare = found is not None and not found["percent"]
        meant = is_bare and number is not None and 1 < number <= 100
        hint = f"Did you mean {text.strip()}%? " if meant else ""
        raise WrongUsage(
            f"--soft {shown!r} is no share.",
            f"{hint}Write a number above 0 and up to 1, or one up to 100%.",
        )
    return float(number)


def read_amount(text: str) -> tuple[MicroUsd, bool]:
    """Return an amount and whether it says that it is for each month.

    Raise WrongUsage for what is no number, is below 0, is of another currency or another time.
    """
    amount, slash, period = text.strip().partition("/")
    shown = f"{text[:57]}..." if len(text) > 60 else text
    if slash and period.strip().lower() not in _MONTH:
        raise WrongUsage(
            f"{shown!r} is for {period.strip()!r}: budgets are for months.", "Write 200/month."
        )
    amount = amount.strip()
    if amount.startswith("$"):
        amount = amount[1:].strip()
    found = _AMOUNT.fullmatch(amount)
    if found is None:
        first = re.match(r"[^\d\s.+-]+", amount)
        if first is not None and re.search(r"\d", amount):
            raise _currency(first.group())
        raise WrongUsage(f"{shown!r} is not an amount of money.", "Write dollars, like 200/month.")
    if found["unit"].strip().lower() not in _USD:
        raise _currency(found["unit"].strip())
    dollars = Decimal(found["number"].replace("_", ""))
    if found["sign"] == "-" and dollars:
        raise WrongUsage(
            f"A budget of {shown} is below 0.",
            "0/month rents nothing; `cloudwhale budget unset PROJECT` takes a budget away.",
        )
    if dollars > MOST_USD:
        raise WrongUsage(f"{shown!r} is more than a billion dollars.", "Write a smaller amount.")
    return micro_usd(dollars), bool(slash)


def _currency(unit: str) -> WrongUsage:
    return WrongUsage(
        f"{unit!r} is not US dollars.",
        "Clouds' prices are in US dollars, and so are budgets: write 200/month.",
    )
