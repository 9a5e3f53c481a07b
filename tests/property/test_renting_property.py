"""Random clouds, budgets and controllers that come and go: never over budget, never a leak."""

import random

import pytest
from clouding import (
    RENTING,
    a_cloudy_stage,
    adds_up,
    an_offer,
    cloud_of,
    is_settled,
    rentals_of,
    settles,
)
from staging import nothing_ran_twice, pass_by

from cloudwhale.control.offers import kept
from cloudwhale.control.replay import world_of
from cloudwhale.model import event as e
from cloudwhale.model.job import JobState
from cloudwhale.model.plan import Round
from cloudwhale.model.reason import Code
from cloudwhale.model.rental import RentalState
from cloudwhale.model.units import micro_usd
from cloudwhale.model.world import Account
from cloudwhale.planning import ledger
from cloudwhale.planning.planner import plan
from cloudwhale.simulation.cloud import Shelf
from cloudwhale.simulation.stage import Stage

SEEDS = range(16)
BEGINS = 1_000_000.0


def a_random_shelf(drawn: random.Random, number: int) -> Shelf:
    price = micro_usd(drawn.choice(("0.9", "1.8", "3.6", "7.2")))
    at = BEGINS + drawn.uniform(0.0, 300.0)
    offer = an_offer(
        f"offer-{number}", price_usd_h=price, cap_usd_h=price * drawn.choice((1, 2)),
        market=drawn.choice(("spot", "on-demand")), boot_s=drawn.choice((0.0, 15.0, 60.0)),
        billing_step_s=drawn.choice((0.0, 1.0, 60.0)), billing_least_s=drawn.choice((0.0, 60.0)),
        notice_s=drawn.choice((0.0, 30.0, 120.0)), hazard_per_h=drawn.choice((0.0, 20.0, 120.0)),
    )  # fmt: skip
    return Shelf(
        offer,
        capacity=drawn.choice((None, 1, 3)),
        prices=((at, micro_usd(drawn.choice(("0.8", "2.0", "7.0")))), (at + 900.0, price)),
        droughts=((at, at + drawn.uniform(0.0, 400.0)),),
        slow_boots=drawn.choice((0.0, 0.3)),
        failed_boots=drawn.choice((0.0, 0.3)),
    )


def a_random_stage(seed: int) -> tuple[Stage, random.Random]:
    drawn = random.Random(f"cloud-{seed}")
    kinds = ("quick", "saving", "failing", "quick", "saving")
    names = [drawn.choice(kinds) for _ in range(drawn.randint(1, 6))]
    shelves = [a_random_shelf(drawn, n) for n in range(drawn.randint(1, 3))]
    budget = drawn.choice(("0.5", "1.5", "5", "50"))
    duration_s = drawn.choice((5.0, 30.0, 120.0))
    stage = a_cloudy_stage(names, shelves, budget, seed=seed, duration_s=duration_s)
    return stage, drawn


def never_over_budget(stage: Stage) -> None:
    """Fold the events of money one by one, in the order in which they were stored."""
    run = stage.scenery.store.run("run-1")
    assert run is not None and run.budget is not None
    account = Account(payer="run-1", limit=run.budget)
    for told in stage.scenery.store.since(0, 100_000):
        if isinstance(told.event, e.Reserved | e.Charged | e.Released):
            account = ledger.after(account, told.event)
            assert account.reserved + account.spent <= run.budget


def no_job_has_two_machines(stage: Stage) -> None:
    """Follow the rentals: of those on their way, no two are for one job."""
    state: dict[str, tuple[RentalState, frozenset[str]]] = {}
    for told in stage.scenery.store.since(0, 100_000):
        if isinstance(told.event, e.RentalChanged):
            rental = told.event.rental
            state[rental.id] = (rental.state, frozenset(rental.jobs))
            coming = [
                job
                for at, jobs in state.values()
                if at in (RentalState.RESERVED, RentalState.REQUESTED, RentalState.BOOTING)
                for job in jobs
            ]
            assert len(coming) == len(set(coming))


def is_broke(stage: Stage) -> bool:
    """Say whether all that still wait do so for want of money, and every machine is back."""
    world = stage.scenery.store.world(stage.scenery.clock.now())
    codes = {job.reason.code for job in world.jobs.values() if job.reason is not None}
    waits = all(job.state is JobState.PENDING for job in world.jobs.values())
    return waits and not world.rentals and bool(codes) and codes <= FOR_MONEY


def is_hopeless(stage: Stage) -> bool:
    """Say whether every machine is back and so many were taken that no luck is to be waited for."""
    world = stage.scenery.store.world(stage.scenery.clock.now())
    hired = cloud_of(stage).hired.values()
    return not world.rentals and sum(one.ended_at == one.taken_at for one in hired) >= ENOUGH_TAKEN


ENOUGH_TAKEN = 15

FOR_MONEY = {Code.OVER_BUDGET, Code.SOFT_LINE, Code.WOULD_STRAND_STARTED_WORK}


def rounds_of(stage: Stage) -> list[Round]:
    numbers = range(1, 10_000)
    found: list[Round] = []
    for number in numbers:
        stored = stage.scenery.store.round(number)
        if stored is None:
            return found
        found.append(Round.model_validate_json(stored.model_dump_json()))
    return found


def made_again(stage: Stage, stored: Round) -> bool:
    world = world_of(stage.scenery.store, stored)
    assert kept(world.offers).digest == stored.offers
    return plan(world, RENTING).model_dump_json() == stored.plan.model_dump_json()


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_happens_in_a_cloud_the_money_holds_and_nothing_is_left(seed: int) -> None:
    stage, drawn = a_random_stage(seed)
    stage.raise_controller()
    for _ in range(drawn.randint(0, 3)):
        pass_by(stage, drawn.uniform(1.0, 90.0))
        stage.controller = None
        pass_by(stage, drawn.choice((0.5, 5.0, 100.0)))
        stage.raise_controller()
    assert stage.play(lambda: is_settled(stage) or is_broke(stage) or is_hopeless(stage), 20_000.0)
    adds_up(stage)
    never_over_budget(stage)
    no_job_has_two_machines(stage)
    nothing_ran_twice(stage)
    assert stage.controller is not None and stage.controller.incident == ""
    rounds = rounds_of(stage)
    assert rounds
    assert all(made_again(stage, stored) for stored in rounds[::5])


def test_the_random_clouds_are_wild_enough() -> None:
    gone = late = 0
    for seed in range(8):
        stage, _ = a_random_stage(seed)
        stage.raise_controller()
        settles(stage, 1000.0)
        stories = [[rental.state for rental in story] for story in rentals_of(stage).values()]
        gone += sum(RentalState.LOST in story for story in stories)
        late += sum(RentalState.READY not in story for story in stories)
    assert gone >= 3 and late >= 3, (gone, late)
