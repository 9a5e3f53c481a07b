"""Outlooks of a ledger: what the store is asked for, since when a project is known, what came."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cost_lines import a_ledger, a_line

from cloudwhale.cli.looking import desk_here
from cloudwhale.control.outlooks import outlooks
from cloudwhale.control.supply import NO_SUPPLY
from cloudwhale.model.cost import CostLine, Items, Purposes
from cloudwhale.model.units import NOTHING, micro_usd
from cloudwhale.model.world import Account
from cloudwhale.planning.outlook import HABIT_DAYS, Outlook
from cloudwhale.reporting.outlooks import outlook_keys, rests_on, state_of
from cloudwhale.spi.store import Store

if TYPE_CHECKING:
    from cloudwhale.control.store.memory import MemoryStore as Rest
else:
    Rest = object

TODAY = date(2026, 11, 30)


class WithAccounts(Rest):
    """A store that knows of some accounts, whatever its events say."""

    def __init__(self, store: Store, accounts: tuple[Account, ...]) -> None:
        self._store, self._accounts = store, accounts

    def accounts(self) -> tuple[Account, ...]:
        return self._accounts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def at(day: date, hour: int = 0) -> float:
    return datetime(day.year, day.month, day.day, hour, tzinfo=UTC).timestamp()


def a_charge(number: int, day: date, usd: str, hour: int = 12) -> CostLine:
    amount = micro_usd(usd)
    return a_line(
        number, "nlp", began_at=at(day, hour), ended_at=at(day, hour) + 60.0, spent=amount,
        items=Items(machine=amount), purposes=Purposes(useful=amount), on_demand=None,
    )  # fmt: skip


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLOUDWHALE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(
    home: Path, spent: Mapping[date, str], *accounts: Account, now: float | None = None
) -> Outlook:
    a_ledger(home, [a_charge(n, day, usd) for n, (day, usd) in enumerate(spent.items())])
    with desk_here() as desk:
        knows = replace(desk, store=WithAccounts(desk.store, accounts))
        return outlooks(knows, at(TODAY) if now is None else now, NO_SUPPLY, "nlp")["nlp"]


def before(days: int) -> date:
    return TODAY - timedelta(days=days)


def test_of_one_day_nothing_is_foretold_and_it_says_so(home: Path) -> None:
    found = told(home, {before(1): "50"}, now=at(TODAY))
    assert found.habit.days == 1 and not found.habit.is_enough
    assert (found.expected, found.to_come) == (NOTHING, NOTHING)
    keys = outlook_keys("nlp", found)
    assert (keys["rests_on"], keys["habit_days"], keys["habit_days_needed"]) == (
        "queue alone", 1, 7,
    )  # fmt: skip
    assert keys["low_usd"] is keys["high_usd"] is None
    assert "fewer than 7 are no habit" in rests_on(found)
    assert "what is there and waits is all that is counted" in rests_on(found)


def test_of_a_week_each_day_is_as_dear_as_the_mean_one(home: Path) -> None:
    found = told(home, {before(n): "7" for n in range(1, 8)})
    assert found.habit.is_enough and not found.habit.tells_weekdays
    assert found.expected == micro_usd(7)  # of the 30th
    keys = outlook_keys("nlp", found)
    assert (keys["rests_on"], keys["day_spread_usd"]) == ("queue and habit", 0)
    assert "7 days since 23 Nov (7.00 USD on a mean day" in rests_on(found)


def test_a_day_without_spending_after_an_earlier_use_is_one_on_which_nothing_was_spent(
    home: Path,
) -> None:
    found = told(home, {before(1): "28", date(2026, 11, 1): "9"})  # the 1st: before the weeks
    assert found.habit.days == HABIT_DAYS
    assert found.habit.since == before(HABIT_DAYS)


def test_a_project_that_was_used_months_ago_is_known_since(home: Path) -> None:
    earlier = Account(payer="project:nlp:2026-08", needs_limit=False, spent=micro_usd(1))
    found = told(home, {before(1): "28"}, earlier)
    assert found.habit.days == HABIT_DAYS


@pytest.mark.parametrize(
    "account",
    [
        Account(payer="project:nlp:2026-08", needs_limit=False),  # a budget, and nothing spent
        Account(payer="project:other:2026-08", needs_limit=False, spent=micro_usd(1)),
        Account(payer="run-1", spent=micro_usd(1)),
        Account(payer="project:nlp:2026-11", needs_limit=False, spent=micro_usd(28)),
    ],
)
def test_what_says_nothing_of_earlier_use_is_not_taken_for_it(home: Path, account: Account) -> None:
    assert told(home, {before(1): "28"}, account).habit.days == 1


@pytest.mark.parametrize(
    ("now", "last", "left"),
    [
        (date(2028, 2, 29), date(2028, 2, 29), 1),
        (date(2028, 2, 1), date(2028, 2, 29), 29),
        (date(2026, 12, 31), date(2026, 12, 31), 1),
        (date(2027, 1, 1), date(2027, 1, 31), 31),
    ],
)
def test_over_ends_of_months_and_years_habit_is_that_of_the_days_before(
    home: Path, now: date, last: date, left: int
) -> None:
    spent = {now - timedelta(days=n): "10" for n in range(1, 40)}
    found = told(home, spent, now=at(now))
    assert (found.last_day, found.habit.days) == (last, HABIT_DAYS)
    assert found.expected == micro_usd(10 * left)


def test_weeks_that_go_on_as_they_were_end_as_was_foretold(home: Path) -> None:
    def usd(day: date) -> int:
        return 20 + day.day % 3 if day.weekday() < 5 else 4

    begins = date(2026, 10, 1)
    days = [begins + timedelta(days=n) for n in range(61)]
    came = sum(usd(day) for day in days if day.month == 11)
    lines = [a_charge(n, day, str(usd(day))) for n, day in enumerate(days)]
    a_ledger(home, lines)
    with desk_here() as desk:
        for on in (8, 15, 22, 29):
            today = date(2026, 11, on)
            spent = sum(usd(day) for day in days if day.month == 11 and day < today)
            found = outlooks(desk, at(today), NO_SUPPLY, "nlp")["nlp"]
            expected = spent + found.expected / 1e6  # no events: its account knows of no spending
            off = abs(expected - came) / came
            print(f"on {today}: {expected:.2f} USD, came {came}: off by {off:.1%}")
            assert off < 0.02
            assert state_of(found)[0] == "no bound"
