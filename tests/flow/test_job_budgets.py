"""A job's own budget from end to end: it bounds all of its machines together."""

import pytest
from clouding import a_cloudy_stage, account_of, adds_up, an_offer, cloud_of, rentals_of
from staging import jobs_of

from cloudwhale.model import event as e
from cloudwhale.model.job import CheckpointRule, JobState, RetryRule
from cloudwhale.model.reason import Code
from cloudwhale.model.units import MicroUsd, micro_usd
from cloudwhale.simulation.cloud import Shelf
from cloudwhale.simulation.stage import Stage


def taken_at_most(stage: Stage) -> MicroUsd:
    """Return the most that was ever spent and set aside together."""
    taken = most = 0
    for told in stage.scenery.store.since(0, 100_000):
        match told.event:
            case e.Reserved(amount=amount):
                taken += amount
            case e.Released(amount=amount):
                taken -= amount
            case _:
                continue
        most = max(most, taken)
    return MicroUsd(most)


def is_idle(stage: Stage) -> bool:
    world = stage.scenery.store.world(stage.scenery.clock.now())
    waits = all(job.state is JobState.PENDING for job in world.jobs.values())
    return bool(rentals_of(stage)) and waits and not world.rentals


def test_a_lease_is_lengthened_no_further_than_the_jobs_own_budget_goes() -> None:
    own = micro_usd("0.80")
    stage = a_cloudy_stage(("long",), duration_s=60.0, budget="50", own=own)
    stage.raise_controller()
    assert stage.play(lambda: is_idle(stage), 3000.0)
    (job,) = jobs_of(stage).values()
    assert job.interruptions >= 1 and job.spent == account_of(stage).spent
    assert job.reason is not None and job.reason.code is Code.OVER_BUDGET
    assert "of its own budget of 0.80 USD are left" in job.reason.says
    assert taken_at_most(stage) <= own
    adds_up(stage)


@pytest.mark.parametrize("seed", range(3))
def test_machines_that_are_taken_away_are_paid_from_the_same_budget_of_the_job(seed: int) -> None:
    own = micro_usd("2")
    shelf = Shelf(an_offer(hazard_per_h=0.0, market="spot"), hazard_per_h=30.0)
    stage = a_cloudy_stage(
        ("endless",), [shelf], duration_s=300.0, budget="50", seed=seed, own=own,
        checkpoint=CheckpointRule(every_s=1e6, grace_s=10.0), retry=RetryRule(max=100),
    )  # fmt: skip
    stage.raise_controller()
    assert stage.play(lambda: is_idle(stage), 20_000.0)
    assert len(cloud_of(stage).hired) >= 2
    assert taken_at_most(stage) <= own
    adds_up(stage)


def test_who_landed_for_want_of_money_is_not_started_again_for_the_rest_of_its_lease() -> None:
    rule = CheckpointRule(every_s=5.0, grace_s=150.0)
    stage = a_cloudy_stage(("long",), duration_s=60.0, budget="0.95", checkpoint=rule)
    stage.raise_controller()
    assert stage.play(lambda: is_idle(stage), 3000.0)
    (job,) = jobs_of(stage).values()
    assert (job.attempt, job.interruptions, job.lost_s) == (1, 1, 0.0)
    adds_up(stage)
