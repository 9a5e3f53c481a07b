"""Whole lives of renting under every trouble at once: what must hold whoever pays and meddles.

The plays themselves refuse every plan that the checker has a fault with.
"""

from collections import Counter
from collections.abc import Mapping

import pytest
from simulating import nothing_runs_twice
from whole_worlds import Payers, a_whole_world, sleeps_s

from cloudwhale.control.replay import world_of
from cloudwhale.control.store.memory import MemoryStore
from cloudwhale.model import event as e
from cloudwhale.model.job import JobState
from cloudwhale.model.world import Account
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.payers import project_and_month
from cloudwhale.planning.planner import plan
from cloudwhale.planning.renting import Till
from cloudwhale.planning.stock import Stock
from cloudwhale.simulation.cloud import Hired
from cloudwhale.simulation.playing import told
from cloudwhale.spi.store import JobQuery

OF_MONEY = (
    e.Reserved, e.Charged, e.Released, e.BudgetSet, e.RunBudgetSet, e.RunOpened, e.RentalChanged
)  # fmt: skip
TURNS_S = 130.0  # a start is only rejected after that; a store that is slow holds everybody up
STARTS_AGAIN = 4  # as often is a job landed, moved or rented for anew without anybody's fault

SOME = [("greedy", seed) for seed in range(24)] + [("whale-rent", seed) for seed in range(24, 34)]


def played(rent: str, seed: int) -> Payers:
    play = a_whole_world(seed, rent)
    play.play()
    return play


def books_of(play: Payers) -> Mapping[str, Account]:
    """Fold what was stored, event by event; nobody's money is ever taken beyond a limit."""
    again, before = MemoryStore(), dict[str, Account]()
    for one in told(play.store):
        again.append([one.event])
        if not isinstance(one.event, OF_MONEY):
            continue
        now = {account.payer: account for account in again.accounts()}
        for payer, account in now.items():
            was = before.get(payer, Account(payer=payer))
            taken = account.reserved + account.spent
            assert account.reserved >= 0 and account.spent >= 0
            if taken > was.reserved + was.spent and account.limit is not None:
                assert taken <= account.limit, (payer, one.event)
        before = now
    return before


@pytest.mark.parametrize(("rent", "seed"), SOME)
def test_whatever_happens_money_adds_up_nothing_outlives_its_lease_and_nobody_is_stuck(
    rent: str, seed: int
) -> None:
    play = played(rent, seed)
    cloud, books = play.clouds["cloud"], books_of(play)
    whole = sum(one.spent for payer, one in books.items() if project_and_month(payer) is None)
    parts = sum(one.spent for payer, one in books.items() if project_and_month(payer) is not None)
    assert whole == parts == cloud.bill()
    assert cloud.running == 0 and not any(one.reserved for one in books.values())
    assert not play.store.world(play.now).rentals
    for machine in cloud.hired.values():
        assert machine.ended_at is not None and machine.ended_at <= machine.stop_at + 1.0
    for job in play.store.jobs(JobQuery()):
        assert job.spec.budget is None or job.spent <= job.spec.budget
    nothing_runs_twice(play)
    nobody_waits_who_could_be_rented_for(play)
    nobody_is_moved_about(play)
    no_machine_idles(play)


def nobody_waits_who_could_be_rented_for(play: Payers) -> None:
    """Check that those who wait at the end have no money, no offer, or wait for others."""
    world, cloud = play.store.world(play.now), play.clouds["cloud"]
    shelves = {one.offer.id: one for each in play.setting.clouds for one in each.shelves}
    offers = [one for one in cloud.offers(play.now) if shelves[one.id].capacity != 0]
    times = Durations(world.durations)
    till, stock = Till(world, times), Stock(offers, times)
    for job in world.jobs.values():
        if job.state is not JobState.PENDING:
            assert job.state in (JobState.PARKED, JobState.PAUSED), (job.id, job.state)
        elif not any(other in world.jobs for other in job.after):
            for option in stock.options(job):
                no = till.refusal(job, option, world.accounts.get(job.run))
                assert no is not None, (job.id, option.offer.id, job.reason)


def was_taken(machine: Hired) -> bool:
    """Say whether a cloud took a machine back, or told that it would."""
    assert machine.ended_at is not None
    return machine.noticed_at <= machine.ended_at


def nobody_is_moved_about(play: Payers) -> None:
    """Check that no job is rented for, landed and placed again without end."""
    hired, rented, taken = play.clouds["cloud"].hired, Counter[str](), Counter[str]()
    for name, jobs in jobs_of(play).items():
        if name in hired:
            (taken if was_taken(hired[name]) or not hired[name].is_up else rented).update(jobs)
    for job in play.store.jobs(JobQuery()):
        assert rented[job.id] <= STARTS_AGAIN, (job.id, job.reason)
        assert job.attempt <= STARTS_AGAIN + job.retries + taken[job.id], (job.id, job.reason)


def jobs_of(play: Payers) -> Mapping[str, frozenset[str]]:
    """Return whom each machine was rented for, by its id."""
    events = [one.event for one in told(play.store)]
    return {
        one.rental.id: frozenset(one.rental.jobs)
        for one in events
        if isinstance(one, e.RentalChanged)
    }


def no_machine_idles(play: Payers) -> None:
    """Check that nobody pays for a machine that is there and has no job, beyond a turn."""
    held: dict[str, list[tuple[float, float]]] = {}
    at: dict[str, tuple[str, float]] = {}
    for one in told(play.store):
        event = one.event
        if isinstance(event, e.Placed):
            at[event.job] = (event.placement.node, event.at)
        elif isinstance(event, e.Leaves | e.Cleared | e.GaveUp) and event.job in at:
            node, since = at.pop(event.job)
            held.setdefault(node, []).append((since, event.at))
    bears_s = TURNS_S + sleeps_s(play.setting.faults)
    for name, machine in play.clouds["cloud"].hired.items():
        if not machine.is_up or machine.ended_at is None:
            continue
        busy_to = machine.boots_at
        for since, until in [*sorted(held.get(name, [])), (machine.ended_at, machine.ended_at)]:
            assert since - busy_to <= bears_s, (name, jobs_of(play)[name], since, busy_to)
            busy_to = max(busy_to, until)


@pytest.mark.parametrize(("rent", "seed"), [("greedy", 100), ("whale-rent", 101)])
def test_every_round_of_a_whole_world_is_made_again(rent: str, seed: int) -> None:
    play, number = a_whole_world(seed, rent), 1
    play.play()
    while (stored := play.store.round(number)) is not None:
        again = plan(world_of(play.store, stored), play.policies)
        assert again.model_dump_json() == stored.plan.model_dump_json()
        number += 1
    assert number > 3
