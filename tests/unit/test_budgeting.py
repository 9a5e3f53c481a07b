"""Amounts as they are typed, and budgets as they are shown."""

import re
from typing import Any

import pytest
from makers import a_world

from cloudwhale.cli.budgeting import Words, read_amount, read_share, wanted
from cloudwhale.cli.exits import Exit, WrongUsage, for_error
from cloudwhale.model.budget import Budget
from cloudwhale.model.units import MicroUsd, micro_usd
from cloudwhale.model.world import Account
from cloudwhale.planning.ledger import soft_line
from cloudwhale.reporting.budgets import (
    budget_keys,
    budgets_sheet,
    known,
    set_words,
    state_of,
)
from cloudwhale.reporting.sheet import plain_lines

NOVEMBER = 1_795_000_000.0


@pytest.mark.parametrize(
    ("text", "amount", "is_monthly"),
    [
        ("200/month", "200", True),
        ("$200/month", "200", True),
        (" 1_000.50 USD / month ", "1000.50", True),
        ("0/month", "0", True),
        ("-0", "0", False),
        (".5", "0.5", False),
        ("80 dollars", "80", False),
    ],
)
def test_an_amount_is_read_as_people_write_it(text: str, amount: str, is_monthly: bool) -> None:
    assert read_amount(text) == (micro_usd(amount), is_monthly)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("-5/month", "below 0"),
        ("200EUR/month", "'EUR' is not US dollars"),
        ("€200/month", "'€' is not US dollars"),
        ("EUR 200", "'EUR' is not US dollars"),
        ("200 /week", "for 'week': budgets are for months"),
        ("200/", "budgets are for months"),
        ("nan/month", "not an amount"),
        ("1e9/month", "'e' is not US dollars|not an amount"),
        ("", "not an amount"),
        ("ten", "not an amount"),
        ("1.2.3/month", "not an amount|not US dollars"),
        ("2000000000/month", "a billion"),
        ("\x1b[31m5", "not US dollars|not an amount"),
    ],
)
def test_what_is_no_amount_is_wrong_usage_with_a_remedy(text: str, says: str) -> None:
    with pytest.raises(WrongUsage) as refused:
        read_amount(text)
    assert re.search(says, refused.value.says)
    assert refused.value.remedy
    assert for_error(refused.value) is Exit.WRONG_USAGE


@pytest.mark.parametrize(("text", "share"), [("90%", 0.9), ("0.9", 0.9), (" 50 % ", 0.5), ("1", 1)])
def test_a_soft_line_is_read_as_a_share_or_in_per_cent(text: str, share: float) -> None:
    assert read_share(text) == share


@pytest.mark.parametrize("text", ["90", "0", "0%", "101%", "-5%", "nan", "inf", "1e400", "", "%"])
def test_what_is_no_share_is_wrong_usage_with_a_remedy(text: str) -> None:
    with pytest.raises(WrongUsage) as refused:
        read_share(text)
    assert "is no share" in refused.value.says and refused.value.remedy


def test_project_and_amount_may_be_words_or_options_and_are_said_once() -> None:
    both = [("nlp", "5", None, None), (None, None, "nlp", "5"), ("5", None, "nlp", None)]
    for whose, amount, project, monthly in both:
        found = wanted(Words(whose, amount, True, project, monthly, "90%"), as_json=False)
        assert (found.whose, found.amount, found.month, found.soft) == ("nlp", "5", True, 0.9)
    wrong = [("a", "5", "b", None), ("a", "5", None, "6"), ("a", None, None, None)]
    for whose, amount, project, monthly in wrong:
        with pytest.raises(WrongUsage, match="said twice|is missing"):
            wanted(Words(whose, amount, False, project, monthly, None), as_json=False)


def account(payer: str = "project:nlp:2026-11", limit: int | None = 100, **sums: Any) -> Account:
    amount = None if limit is None else MicroUsd(limit)
    return Account(payer=payer, limit=amount, needs_limit=not payer.startswith("project:"), **sums)


@pytest.mark.parametrize(
    ("of", "state"),
    [
        (account(), "open"),
        (account(reserved=MicroUsd(90)), "past the soft line"),
        (account(reserved=MicroUsd(50), spent=MicroUsd(50)), "nothing left"),
        (account(spent=MicroUsd(101)), "above its budget"),
        (account(limit=None, spent=MicroUsd(7)), "no bound"),
        (account("run-1", None, spent=MicroUsd(7)), "rents nothing"),
        (account(limit=0), "nothing left"),
    ],
)
def test_how_an_account_stands_is_one_of_a_few_words(of: Account, state: str) -> None:
    assert state_of(of)[0] == state


def test_the_soft_line_is_where_the_ledger_stops() -> None:
    for limit, soft in ((100, 0.9), (7, 0.5), (1, 0.3), (0, 0.9)):
        of = account(limit=limit, soft=soft)
        line = soft_line(of)
        assert line is not None
        assert line >= limit * soft - 1e-9 > line - 1 - 1e-6


def test_projects_come_before_runs_and_months_that_are_over_only_when_asked() -> None:
    old, run = account("project:nlp:2026-10", spent=MicroUsd(5)), account("run-1")
    now = account("project:cv:2026-11", None, spent=MicroUsd(3))
    accounts = {one.payer: one for one in (old, run, now)}
    budgets = {"nlp": Budget(project="nlp", month=MicroUsd(9), set_at=0.0)}
    world = a_world(now=NOVEMBER, accounts=accounts, budgets=budgets)
    names = [one.payer for one in known(world)]
    assert names == ["project:cv:2026-11", "project:nlp:2026-11", "run-1"]
    everything = [one.payer for one in known(world, [old, account("run-0", spent=MicroUsd(1))])]
    assert everything == [
        "project:cv:2026-11", "project:nlp:2026-10", "project:nlp:2026-11", "run-0", "run-1",
    ]  # fmt: skip


def test_a_row_and_a_document_say_the_same() -> None:
    of = account(limit=2_000_000, reserved=MicroUsd(500_000), spent=MicroUsd(250_000))
    keys = budget_keys(of)
    assert (keys["project"], keys["month"], keys["run"]) == ("nlp", "2026-11", None)
    assert [str(keys[name]) for name in ("budget_usd", "soft_line_usd", "left_usd")] == [
        "2.00", "1.80", "1.25",
    ]  # fmt: skip
    row = plain_lines(budgets_sheet([of]))[1].split()
    assert row == ["nlp", "2026-11", "2.00", "1.80", "0.50", "0.25", "1.25", "open"]


def test_who_sets_less_than_is_taken_is_told_what_happens() -> None:
    lines = set_words(account(limit=10, reserved=MicroUsd(40)))
    assert "keep what is set aside for them" in lines[-1]
    assert len(set_words(account())) == 2
