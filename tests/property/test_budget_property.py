"""Budgets of runs and projects, whatever happens and in whatever order.

Nobody's money is taken beyond a limit; who has started is not landed for want of it as long as it
is not later than was foreseen; nobody waits behind money that nobody will use; more never hurts.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from clouding import RENTING, a_cloudy_stage, adds_up, an_offer, is_settled
from hypothesis import given, settings
from hypothesis import strategies as st
from makers import a_job, a_node, a_run, a_spec, a_world, wants
from staging import nothing_ran_twice, pass_by

from cloudwhale.control.controller import Chosen
from cloudwhale.control.store import MemoryStore
from cloudwhale.model import event as e
from cloudwhale.model.budget import Budget
from cloudwhale.model.job import CheckpointRule, Job, JobState
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.units import MicroUsd, micro_usd
from cloudwhale.model.world import Account, World
from cloudwhale.planning import projects
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.leasing import pledged
from cloudwhale.planning.payers import account_name, month_of, project_and_month
from cloudwhale.planning.renting import Till
from cloudwhale.planning.stock import Stock
from cloudwhale.planning.tendering import Rented, rentals
from cloudwhale.simulation.cloud import Shelf
from cloudwhale.simulation.engine import Engine
from cloudwhale.simulation.playing import Arrival, Offered, Setting, told
from cloudwhale.simulation.stage import Stage
from cloudwhale.spi.errors import IllegalTransition
from cloudwhale.spi.store import JobQuery, Store
from cloudwhale_policies.renting.one_each import OneEach

PROJECTS = ("nlp", "vision")
MONTH_S = 31 * 24 * 3600.0
WHY = Reason(code=Code.BETTER_RENTED, says="it had better not wait")
NO_TIMES = Durations({})
SEEDS = st.integers(0, 10**6)
SEEDS_OF_CLOUDS = 12

# -- no order of events takes more than a limit ----------------------------------------------

small = st.integers(0, 60).map(MicroUsd)
months = st.integers(0, 2).map(lambda number: number * MONTH_S)
names = st.sampled_from(PROJECTS)


def accounts_at(at: float, amounts: dict[str, MicroUsd]) -> dict[str, MicroUsd]:
    return {account_name(name, month_of(at)): amount for name, amount in amounts.items()}


@st.composite
def moves(draw: st.DrawFn) -> e.Event:
    at, amount = draw(months), draw(small)
    match draw(st.sampled_from(["reserve", "charge", "release", "budget", "lift", "run"])):
        case "reserve":
            beside = accounts_at(at, draw(st.dictionaries(names, small)))
            return e.Reserved(at=at, payer="r", rental="m", amount=amount, projects=beside)
        case "charge":
            theirs = account_name(draw(names), month_of(at))
            return e.Charged(at=at, payer="r", rental="m", amount=amount, account=theirs)
        case "release":
            beside = accounts_at(at, draw(st.dictionaries(names, small)))
            return e.Released(at=at, payer="r", rental="m", amount=amount, projects=beside)
        case "run":
            return e.RunBudgetSet(at=at, run="r", limit=amount)
        case kind:
            month = amount if kind == "budget" else None
            return e.BudgetSet(at=at, budget=Budget(project=draw(names), month=month, set_at=at))


def books(store: Store) -> dict[str, Account]:
    return {account.payer: account for account in store.accounts()}


@given(st.lists(moves(), max_size=40), small)
def test_no_order_of_events_takes_more_of_a_run_or_a_project_than_its_limit_then(
    events: list[e.Event], first: MicroUsd
) -> None:
    store = MemoryStore()
    store.append([e.RunOpened(at=0.0, run=a_run("r", budget=first))])
    for event in events:
        before = books(store)
        try:
            store.append([event])
        except IllegalTransition:
            assert books(store) == before
            continue
        for payer, account in books(store).items():
            was = before.get(payer, Account(payer=payer))
            taken, took = account.reserved + account.spent, was.reserved + was.spent
            assert account.reserved >= 0 and account.spent >= 0
            if taken > took and account.limit is not None:
                assert taken <= account.limit
            if isinstance(event, e.Charged):
                assert taken == took
    world = store.world(2 * MONTH_S)
    assert store.world_at(store.version(), 2 * MONTH_S) == world
    assert {payer: books(store)[payer] for payer in world.accounts} == world.accounts


# -- whatever happens in clouds, and whoever changes budgets meanwhile -----------------------


def a_stage_of_projects(drawn: random.Random) -> Stage:
    offers = [
        an_offer(
            f"offer-{number}", price_usd_h=micro_usd("3.6"), boot_s=drawn.choice((0.0, 15.0)),
            cap_usd_h=micro_usd(drawn.choice(("3.6", "7.2"))), market="spot",
            notice_s=drawn.choice((0.0, 30.0)), hazard_per_h=drawn.choice((0.0, 20.0)),
        )
        for number in range(2)
    ]  # fmt: skip
    shelves = [Shelf(offer, capacity=drawn.choice((None, 2))) for offer in offers]
    stage = a_cloudy_stage((), shelves, drawn.choice(("2", "50")), seed=drawn.randrange(99))
    for number in range(drawn.randint(2, 6)):
        queue(stage, drawn, number)
    return stage


def queue(stage: Stage, drawn: random.Random, number: int) -> None:
    now, name = stage.scenery.clock.now(), drawn.choice(("quick", "saving", "failing"))
    job = a_job(
        f"{name}-{number}", name=name, project=drawn.choice(PROJECTS),
        resources=wants(cpu=drawn.choice((2, 4, 8))), duration_s=drawn.choice((5.0, 30.0, 120.0)),
        checkpoint=CheckpointRule(every_s=5.0, grace_s=10.0),
    ).but(submitted_at=now + number)  # fmt: skip
    stage.scenery.store.append([e.Submitted(at=now, job=job.id, first=job)])


def set_budget(stage: Stage, drawn: random.Random) -> None:
    now = stage.scenery.clock.now()
    amount = drawn.choice((None, "0", "0.4", "1", "3", "20"))
    month = None if amount is None else micro_usd(amount)
    budget = Budget(project=drawn.choice(PROJECTS), month=month, set_at=now)
    stage.scenery.store.append([e.BudgetSet(at=now, budget=budget)])


def follow(store: Store) -> Iterator[dict[str, Account]]:
    """Fold what was stored event by event, in another store."""
    again = MemoryStore()
    for one in store.since(0, 100_000):
        again.append([one.event])
        yield books(again)


def is_over(stage: Stage) -> bool:
    """Say whether every machine is back and those who wait do so for want of money."""
    world = stage.scenery.store.world(stage.scenery.clock.now())
    broke = {Code.OVER_BUDGET, Code.SOFT_LINE, Code.WOULD_STRAND_STARTED_WORK}
    return not world.rentals and all(
        job.state is JobState.PENDING and job.reason is not None and job.reason.code in broke
        for job in world.jobs.values()
    )


def comes_to_rest(stage: Stage) -> bool:
    """Play until all are done, or wait for want of money also after all that is free was heard."""
    for _ in range(100):
        pass_by(stage, 10.0)
        if is_settled(stage) or is_over(stage):
            return True
        stage.play(lambda: is_settled(stage) or is_over(stage), 2000.0)
    return False


@pytest.mark.parametrize("seed", range(SEEDS_OF_CLOUDS))
def test_whatever_happens_no_account_is_overdrawn_and_all_parts_add_up(seed: int) -> None:
    drawn = random.Random(f"budgets-{seed}")
    stage = a_stage_of_projects(drawn)
    if drawn.random() < 0.7:
        set_budget(stage, drawn)
    stage.raise_controller()
    for _ in range(drawn.randint(0, 5)):
        pass_by(stage, drawn.uniform(1.0, 90.0))
        set_budget(stage, drawn)
    assert comes_to_rest(stage)
    adds_up(stage)
    nothing_ran_twice(stage)
    assert stage.controller is not None and stage.controller.incident == ""
    before: dict[str, Account] = {}
    for now in follow(stage.scenery.store):
        for payer, account in now.items():
            was = before.get(payer, Account(payer=payer))
            taken = account.reserved + account.spent
            if taken > was.reserved + was.spent and account.limit is not None:
                assert taken <= account.limit
        before = now
    theirs = [one for payer, one in before.items() if project_and_month(payer) is not None]
    assert sum(one.reserved for one in theirs) == 0
    assert sum(one.spent for one in theirs) == before["run-1"].spent
    nobody_waits_who_could_be_rented_for(stage)


def nobody_waits_who_could_be_rented_for(stage: Stage) -> None:
    """Check that what is free again is had by those who wait: nobody starves behind it."""
    store, now = stage.scenery.store, stage.scenery.clock.now()
    offers = tuple(stage.scenery.clouds["cloud"].offers(now))
    world = replace(store.world(now), offers=offers)
    if world.rentals:
        return
    times = Durations(world.durations)
    till, stock = Till(world, times), Stock(world.offers, times)
    for job in world.jobs.values():
        if job.state is JobState.PENDING and job.wish is None and not job.not_before:
            option = next(stock.options(job), None)
            if option is not None:
                assert till.refusal(job, option, world.accounts.get(job.run)) is not None, job.id


# -- started work ----------------------------------------------------------------------------


def late_arrivals(dice: random.Random) -> list[Arrival]:
    """Make jobs that take up to 1.4 times what is said of them: nine in ten take less than 1.5."""
    found: list[Arrival] = []
    for number in range(dice.randint(2, 7)):
        said_s = dice.uniform(200.0, 6000.0)
        spec = a_spec(
            f"j{number}", resources=wants(cpu=dice.choice((3, 6))), duration_s=said_s,
            project=dice.choice(PROJECTS), max_duration_s=10 * said_s,
            checkpoint=CheckpointRule(every_s=300.0, grace_s=30.0),
        )  # fmt: skip
        work_s = said_s * dice.choice((dice.uniform(0.3, 1.0), dice.uniform(1.2, 1.4)))
        at = dice.choice((0.0, dice.uniform(0, 9000.0)))
        found.append(Arrival(at, f"j{number}", spec, work_s))
    return sorted(found, key=lambda one: one.at)


def tight_budget(dice: random.Random, arrivals: Sequence[Arrival]) -> MicroUsd:
    """Return about what the leases of some jobs set aside: little is left for who is late."""
    some = arrivals[: dice.randint(1, len(arrivals))]
    leased_s = sum(1.25 * ((one.spec.duration_s or 0.0) + 60.0) + 450.0 for one in some)
    return MicroUsd(int(leased_s * dice.uniform(0.95, 1.3) * 1000))  # 3.60 USD an hour


def played(seed: int, bounds_projects: bool) -> Engine:
    dice = random.Random(f"started-{seed}")
    arrivals = late_arrivals(dice)
    clouds = [Offered("cloud", [Shelf(an_offer(boot_s=60.0))], seed)]
    setting = Setting(
        [a_node("tiny", cpu=1.0)], arrivals, clouds=clouds, at_most_s=200_000.0,
        budget=micro_usd(1000) if bounds_projects else tight_budget(dice, arrivals),
    )  # fmt: skip
    chosen = Chosen(RENTING, order="priority", score="best-fit", wait="never", rent="one-each")
    engine = Engine(setting, chosen)
    for project in PROJECTS if bounds_projects else ():
        mine = [one for one in arrivals if one.spec.project == project]
        if mine:
            month = tight_budget(dice, mine)
            made = Budget(project=project, month=month, soft_share=1.0, set_at=engine.began_at)
            engine.store.append([e.BudgetSet(at=engine.began_at, budget=made)])
    engine.play()
    return engine


def landed(engine: Engine) -> list[str]:
    return [
        one.event.job
        for one in told(engine.store)
        if isinstance(one.event, e.StopWished) and one.event.reason.code is Code.LEASE_ENDS
    ]


@settings(deadline=None, max_examples=40)
@given(SEEDS, st.booleans())
def test_who_is_no_later_than_foreseen_is_never_landed_for_want_of_money(
    seed: int, bounds_projects: bool
) -> None:
    engine = played(seed, bounds_projects)
    assert landed(engine) == []
    started = {job.id for job in engine.store.jobs(JobQuery()) if job.first_started_at}
    assert {job.id for job in engine.store.jobs(JobQuery()) if job.ended} == started


def test_jobs_do_run_late_and_money_is_short_there() -> None:
    late = lacks = longer = 0
    for seed in range(12):
        engine = played(seed, seed % 2 == 0)
        jobs = engine.store.jobs(JobQuery())
        late += sum(job.ended and job.run_s > 1.25 * (job.spec.duration_s or 0) for job in jobs)
        lacks += sum(not job.ended for job in jobs)
        changes = [
            one.event for one in told(engine.store) if isinstance(one.event, e.RentalChanged)
        ]
        longer += sum(change.rental.renewal is not None for change in changes)
    assert min(late, lacks, longer) >= 5, (late, lacks, longer)


# -- who gets the money ----------------------------------------------------------------------


def a_crowd(seed: int, offers: int, **money: Any) -> World:
    """Make a world of jobs that fit nowhere here, some of each project, and little money."""
    dice = random.Random(f"crowd-{seed}")
    jobs = [
        a_job(
            f"j{number:02}", resources=wants(cpu=dice.choice((2, 4, 8))),
            duration_s=dice.uniform(600.0, 20_000.0), project=dice.choice(PROJECTS),
        )
        for number in range(dice.randint(2, 12))
    ]  # fmt: skip
    shelf = tuple(
        an_offer(f"offer-{number}", price_usd_h=micro_usd(price), cap_usd_h=micro_usd(price))
        for number, price in enumerate(("3.6", "1.8", "5")[:offers])
    )
    limit = micro_usd(dice.choice(("3", "10", "30")))
    account = Account(payer="run-1", **{"limit": limit, **money})
    budgets = {
        name: Budget(project=name, month=micro_usd(dice.choice(("1", "8", "50"))), set_at=0.0)
        for name in PROJECTS
        if dice.random() < 0.5
    }
    return a_world(jobs, offers=shelf, accounts={"run-1": account}, budgets=budgets)


def rented(of: World) -> Rented:
    leaving = [(job, WHY) for job in of.jobs.values()]
    return rentals(of, leaving, OneEach(), NO_TIMES, Stock(of.offers, NO_TIMES))


def after(of: World, made: Rented) -> World:
    """Return the world in which what was rented is set aside and on its way."""
    for step in made.steps:
        taken = {step.rental.payer: step.rental.reserved, **step.rental.projects}
        of = replace(of, accounts=projects.less(of, taken))
    return replace(of, rentals={step.rental.id: step.rental for step in made.steps})


def without_machine(of: World, made: Rented) -> Iterable[Job]:
    return (job for job in of.jobs.values() if job.id not in made.jobs)


@given(SEEDS, st.integers(1, 3))
def test_nobody_goes_without_behind_a_larger_one_that_is_not_paid_for(
    seed: int, offers: int
) -> None:
    of = a_crowd(seed, offers)
    made = rented(of)
    left = after(of, made)
    till, stock = Till(left, NO_TIMES), Stock(of.offers, NO_TIMES)
    for job in without_machine(of, made):
        for option in stock.options(job):
            assert till.refusal(job, option, left.accounts["run-1"]) is not None


@given(SEEDS, st.integers(1, 3))
def test_what_is_rented_leaves_what_is_pledged_to_all_of_it(seed: int, offers: int) -> None:
    of = a_crowd(seed, offers)
    left = after(of, rented(of))
    for payer, account in left.accounts.items():
        if account.limit is None:
            continue
        mine = [one for one in left.rentals.values() if payer in (one.payer, *one.projects)]
        assert account.reserved + account.spent + sum(map(pledged, mine)) <= account.limit


@given(SEEDS, st.integers(1, 40).map(lambda usd: micro_usd(usd)), st.booleans())
def test_with_more_money_the_first_who_fares_otherwise_fares_better(
    seed: int, more: MicroUsd, is_one_project: bool
) -> None:
    of = a_crowd(seed, offers=1)
    if is_one_project:
        of = replace(of, jobs={name: a_job_of(PROJECTS[0], job) for name, job in of.jobs.items()})
    account = of.accounts["run-1"]
    assert account.limit is not None
    rich = replace(
        of,
        accounts={"run-1": account.but(limit=MicroUsd(account.limit + more))},
        budgets={
            name: one.but(month=MicroUsd((one.month or 0) + more))
            for name, one in of.budgets.items()
        },
    )
    then, now = rented(of).jobs, rented(rich).jobs
    if len({job.spec.project for job in of.jobs.values()}) > 1:
        return  # processes of two projects share no machines: a richer one takes more, and first
    other = next((name for name in of.jobs if (name in then) != (name in now)), None)
    assert other is None or other in now


def a_job_of(project: str, job: Job) -> Job:
    return job.but(spec=job.spec.but(project=project))
