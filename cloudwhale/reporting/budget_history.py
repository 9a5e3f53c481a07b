"""Who has set which budget when, and what each month has spent of it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from cloudwhale.model import event as e
from cloudwhale.model.units import Instant, MicroUsd, usd
from cloudwhale.model.value import Value
from cloudwhale.model.world import Account
from cloudwhale.planning.ledger import left
from cloudwhale.planning.payers import project_and_month
from cloudwhale.reporting.budgets import state_of
from cloudwhale.reporting.figures import NOTHING, dollars, percent
from cloudwhale.reporting.sheet import Cell, Column, Sheet
from cloudwhale.spi.store import Told


class Change(Value):
    """A budget that somebody has set or lifted."""

    whose: str
    at: Instant
    by: str
    limit: MicroUsd | None
    """None: there is no bound any more."""
    soft_share: float | None
    """None of a run: it keeps that which it was submitted with."""


def changes(told: Iterable[Told]) -> Sequence[Change]:
    """Return the changes among some events, oldest first."""
    found: list[Change] = []
    for one in told:
        match one.event:
            case e.BudgetSet(budget=b):
                found.append(Change(
                    whose=b.project, at=one.event.at, by=b.by, limit=b.month,
                    soft_share=b.soft_share,
                ))  # fmt: skip
            case e.RunBudgetSet() as set_:
                found.append(
                    Change(
                        whose=set_.run, at=set_.at, by=set_.by, limit=set_.limit, soft_share=None
                    )
                )
            case e.RunOpened(run=run) if run.budget is not None:
                found.append(
                    Change(
                        whose=run.id,
                        at=run.opened_at,
                        by=run.user,
                        limit=run.budget,
                        soft_share=run.soft_share,
                    )  # fmt: skip
                )
            case _:
                continue
    return sorted(found, key=lambda change: change.at)


def changes_sheet(found: Sequence[Change]) -> Sheet:
    """Show who has set what."""
    columns = (
        Column("when"), Column("whose"), Column("budget", right=True),
        Column("soft line", right=True), Column("by"),
    )  # fmt: skip
    notes = ("Times are UTC.",) if found else ("Nobody has set a budget.",)
    return Sheet(columns, tuple(map(_row, found)), title="Budgets that were set", notes=notes)


def _row(change: Change) -> tuple[Cell, ...]:
    soft = NOTHING if change.soft_share is None else percent(change.soft_share)
    return (
        Cell(_when(change.at)),
        Cell(change.whose),
        Cell("no bound" if change.limit is None else dollars(change.limit), "strong"),
        Cell(NOTHING if change.limit is None else soft, "quiet"),
        Cell(change.by or NOTHING),
    )


def _when(at: Instant) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")


def months_sheet(accounts: Sequence[Account]) -> Sheet:
    """Show what projects have spent in each month, the newest last."""
    columns = (
        Column("project"), Column("month"), Column("budget", right=True),
        Column("spent", right=True), Column("of it", right=True), Column("set aside", right=True),
        Column("state"),
    )  # fmt: skip
    rows = tuple(_month_row(account) for account in accounts)
    return Sheet(columns, rows, title="Months" if rows else "", notes=())


def _month_row(account: Account) -> tuple[Cell, ...]:
    project, month = project_and_month(account.payer) or (account.payer, NOTHING)
    says, tone = state_of(account)
    share = percent(account.spent / account.limit) if account.limit else NOTHING
    return (
        Cell(project), Cell(month),
        Cell(NOTHING if account.limit is None else dollars(account.limit)),
        Cell(dollars(account.spent), "strong"), Cell(share, "quiet"),
        Cell(dollars(account.reserved), "quiet"), Cell(says, tone),
    )  # fmt: skip


def history_keys(found: Sequence[Change], accounts: Sequence[Account]) -> Mapping[str, Any]:
    """Return the document of `budget history --json`."""
    return {
        "changes": [_change_keys(change) for change in found],
        "months": [_month_keys(account) for account in accounts],
    }


def _change_keys(change: Change) -> Mapping[str, Any]:
    return {
        "whose": change.whose,
        "at": datetime.fromtimestamp(change.at, UTC).isoformat(),
        "by": change.by,
        "budget_usd": None if change.limit is None else usd(change.limit),
        "soft_share": change.soft_share,
    }


def _month_keys(account: Account) -> Mapping[str, Any]:
    project, month = project_and_month(account.payer) or (account.payer, None)
    return {
        "project": project,
        "month": month,
        "budget_usd": None if account.limit is None else usd(account.limit),
        "spent_usd": usd(account.spent),
        "reserved_usd": usd(account.reserved),
        "left_usd": None if account.limit is None else usd(left(account)),
        "state": state_of(account)[0],
    }
