"""What every store does with projects' money by month, and with the time that places were held."""

from datetime import UTC, datetime
from typing import Any

import pytest
from clouding import an_offer
from makers import a_job, a_run, wants
from stories import WHY, submitted

from cloudwhale.model import event as e
from cloudwhale.model.budget import Budget
from cloudwhale.model.job import Placement
from cloudwhale.model.rental import Lease, Rental, RentalState
from cloudwhale.model.units import MicroUsd
from cloudwhale.model.world import Account
from cloudwhale.spi.errors import IllegalTransition
from cloudwhale.spi.store import Store

NOVEMBER = datetime(2026, 11, 20, tzinfo=UTC).timestamp()
DECEMBER = datetime(2026, 12, 1, tzinfo=UTC).timestamp()
OF_NOVEMBER, OF_DECEMBER = "project:nlp:2026-11", "project:nlp:2026-12"


def budget(month: int | None, at: float = NOVEMBER, **fields: Any) -> e.BudgetSet:
    limit = None if month is None else MicroUsd(month)
    made = Budget(project="nlp", month=limit, set_at=at, by="ann", **fields)
    return e.BudgetSet(at=at, budget=made)


def reserved(amount: int, account: str = OF_NOVEMBER, rental: str = "m") -> e.Reserved:
    return e.Reserved(
        at=NOVEMBER, payer="r", rental=rental, amount=MicroUsd(amount),
        projects={account: MicroUsd(amount)},
    )  # fmt: skip


def charged(amount: int, account: str = OF_NOVEMBER) -> e.Charged:
    return e.Charged(
        at=NOVEMBER, payer="r", rental="m", amount=MicroUsd(amount), job="a", project="nlp",
        account=account,
    )  # fmt: skip


def released(amount: int, account: str = OF_NOVEMBER) -> e.Released:
    return e.Released(
        at=NOVEMBER, payer="r", rental="m", amount=MicroUsd(amount),
        projects={account: MicroUsd(amount)},
    )  # fmt: skip


def accounts(store: Store, at: float = NOVEMBER) -> dict[str, Account]:
    """Return the projects' accounts; whoever replays must find the same."""
    world = store.world(at)
    assert store.world_at(store.version(), at) == world
    return {payer: one for payer, one in world.accounts.items() if payer.startswith("project:")}


@pytest.fixture
def funded(store: Store) -> Store:
    """Return a store with a run that has a hundred micro-dollars and a job that lives."""
    run = a_run("r", budget=MicroUsd(100))
    store.append([e.RunOpened(at=0.0, run=run), *submitted(a_job("a", run="r", project="nlp"))])
    return store


def test_a_budget_bounds_the_month_in_which_it_is_set(store: Store) -> None:
    store.append([budget(50, soft_share=0.5)])
    assert store.world(NOVEMBER).budgets["nlp"].month == 50
    assert accounts(store) == {
        OF_NOVEMBER: Account(
            payer=OF_NOVEMBER, limit=MicroUsd(50), needs_limit=False, soft=0.5
        )
    }  # fmt: skip


def test_a_project_sets_aside_beside_its_run_and_is_charged_the_same_money(funded: Store) -> None:
    funded.append([budget(50), reserved(40)])
    assert accounts(funded)[OF_NOVEMBER].reserved == 40
    funded.append([charged(15), released(25)])
    after = accounts(funded)[OF_NOVEMBER]
    assert (after.reserved, after.spent) == (0, 15)
    run = funded.world(NOVEMBER).accounts["r"]
    assert (run.reserved, run.spent) == (0, 15)


def test_nothing_is_set_aside_beyond_a_project_budget_and_nothing_of_it_is_stored(
    funded: Store,
) -> None:
    funded.append([budget(50), reserved(40)])
    before = funded.world(NOVEMBER)
    with pytest.raises(IllegalTransition, match="project:nlp:2026-11 has 10 left"):
        funded.append([reserved(11)])
    assert funded.world(NOVEMBER) == before


def test_a_project_without_a_budget_is_counted_and_bounded_by_nothing(funded: Store) -> None:
    funded.append([reserved(90)])
    assert accounts(funded)[OF_NOVEMBER].limit is None
    assert accounts(funded)[OF_NOVEMBER].reserved == 90


def test_a_budget_that_is_set_in_mid_month_knows_what_was_spent(funded: Store) -> None:
    funded.append([reserved(30), charged(30), budget(50)])
    with pytest.raises(IllegalTransition, match="has 20 left"):
        funded.append([reserved(21)])


def test_a_budget_below_what_is_taken_takes_nothing_back_and_lets_nothing_new_in(
    funded: Store,
) -> None:
    funded.append([reserved(40), budget(10)])
    assert accounts(funded)[OF_NOVEMBER].reserved == 40
    with pytest.raises(IllegalTransition, match="has 0 left"):
        funded.append([reserved(1)])
    funded.append([charged(40)])
    assert accounts(funded)[OF_NOVEMBER].spent == 40


def test_a_lifted_budget_bounds_nothing_and_forgets_nothing(funded: Store) -> None:
    funded.append([budget(10), reserved(10), budget(None), reserved(80)])
    assert funded.world(NOVEMBER).budgets == {}
    account = accounts(funded)[OF_NOVEMBER]
    assert (account.limit, account.reserved) == (None, 90)


def test_the_next_month_begins_anew_under_the_same_budget(funded: Store) -> None:
    funded.append([budget(50), reserved(50), charged(50), reserved(50, OF_DECEMBER)])
    found = accounts(funded, DECEMBER)
    assert list(found) == [OF_DECEMBER], "a month that is over and settled is let go of"
    assert (found[OF_DECEMBER].limit, found[OF_DECEMBER].spent) == (50, 0)


def test_a_month_that_is_over_is_kept_while_a_lease_of_it_is_open(funded: Store) -> None:
    funded.append([budget(50), reserved(20), reserved(5, OF_DECEMBER)])
    assert set(accounts(funded, DECEMBER)) == {OF_NOVEMBER, OF_DECEMBER}
    funded.append([budget(7, DECEMBER)])
    found = accounts(funded, DECEMBER)
    assert (found[OF_NOVEMBER].limit, found[OF_DECEMBER].limit) == (50, 7)
    funded.append([charged(20)])
    assert set(accounts(funded, DECEMBER)) == {OF_DECEMBER}


def test_a_budget_is_a_subject_of_its_own(store: Store) -> None:
    store.append([budget(50), budget(60)])
    assert [told.event for told in store.events("project:nlp")] == [budget(50), budget(60)]


# -- how long a place was held ---------------------------------------------------------------


def a_rental(**fields: Any) -> Rental:
    lease = Lease(number=1, watched_until=1.0, away_until=9e9, stop_at=9e9)
    base: dict[str, Any] = {
        "id": "m", "node": "m", "payer": "r", "offer": "big", "lease": lease, "taken": an_offer(),
        "reserved": MicroUsd(9), "jobs": {"a": "nlp", "b": "nlp"},
    }  # fmt: skip
    return Rental(**{**base, **fields})


@pytest.mark.parametrize("end", [RentalState.RETURNED, RentalState.NEEDS_ATTENTION])
def test_a_run_whose_jobs_have_ended_is_taken_up_until_its_machines_are_settled(
    store: Store, end: RentalState
) -> None:
    run = a_run("r", digest="d")
    store.append([e.RunOpened(at=0.0, run=run), *submitted(a_job("a", run="r"))])
    on_the_way = ("reserved", "requested", "booting", "ready")
    for state in map(RentalState, on_the_way):
        store.append([e.RentalChanged(at=0.0, rental=a_rental(state=state))])
    store.append([*runs("a", 1.0), e.Finished(at=9.0, job="a", attempt=1)])
    assert store.unfinished_run("/lab", "d") == run
    store.append([e.RentalChanged(at=10.0, rental=a_rental(state=RentalState.DRAINING))])
    assert store.unfinished_run("/lab", "d") == run
    store.append([e.RentalChanged(at=20.0, rental=a_rental(state=end))])
    assert store.unfinished_run("/lab", "d") is None


def runs(job: str, since: float) -> list[e.Event]:
    place = Placement(node="m")
    return [
        e.Placed(at=since, job=job, attempt=1, placement=place, reason=WHY),
        e.Started(at=since + 5.0, job=job, attempt=1),
    ]


def test_a_rental_knows_for_how_long_and_how_much_of_it_each_job_has_held(store: Store) -> None:
    half, all_of_it = wants(cpu=4.0), wants(cpu=8.0)
    store.append(submitted(a_job("a", resources=half), a_job("b", resources=all_of_it)))
    store.append([e.RentalChanged(at=0.0, rental=a_rental()), *runs("a", 100.0)])
    assert store.world(100.0).rentals["m"].held_s == {}
    # Its agent says that it ran for 55 s, whenever that is read.
    store.append([e.Finished(at=900.0, job="a", attempt=1, ran_s=55.0), *runs("b", 1000.0)])
    store.append([e.GaveWay(at=1105.0, job="b", attempt=1, reason=WHY, ran_s=100.0)])
    held_s = store.world(2000.0).rentals["m"].held_s
    assert held_s == {"a": 30.0, "b": 105.0}
    assert store.world_at(store.version(), 2000.0) == store.world(2000.0)


def test_who_reports_of_a_machine_does_not_forget_who_has_left_it(store: Store) -> None:
    store.append(submitted(a_job("a", resources=wants(cpu=8.0)), a_job("b")))
    store.append([e.RentalChanged(at=0.0, rental=a_rental()), *runs("a", 100.0)])
    store.append([e.Finished(at=200.0, job="a", attempt=1, ran_s=10.0)])
    gone = a_rental(state=RentalState.REQUESTED, ended_at=150.0)
    store.append([e.RentalChanged(at=200.0, rental=gone)])
    assert store.world(200.0).rentals["m"].held_s == {"a": 15.0}


# -- budgets of runs, and all accounts -------------------------------------------------------


def test_a_run_whose_budget_is_raised_may_set_more_aside(funded: Store) -> None:
    funded.append([reserved(100)])
    with pytest.raises(IllegalTransition, match="r has 0 left"):
        funded.append([reserved(1)])
    funded.append([e.RunBudgetSet(at=NOVEMBER, run="r", limit=MicroUsd(150)), reserved(50)])
    world = funded.world(NOVEMBER)
    assert (world.accounts["r"].limit, world.accounts["r"].reserved) == (150, 150)
    assert world.runs["r"].budget == 150
    assert funded.run("r") == world.runs["r"]
    assert funded.world_at(funded.version(), NOVEMBER) == world
    with pytest.raises(IllegalTransition, match="nobody knows run s"):
        funded.append([e.RunBudgetSet(at=NOVEMBER, run="s", limit=MicroUsd(1))])


def test_every_account_is_remembered(funded: Store) -> None:
    funded.append([budget(50), reserved(20), charged(20), reserved(5, OF_DECEMBER)])
    assert [one.payer for one in funded.accounts()] == [OF_NOVEMBER, OF_DECEMBER, "r"]
    assert [one.spent for one in funded.accounts()] == [20, 0, 20]
