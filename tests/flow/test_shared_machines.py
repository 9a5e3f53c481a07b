"""Several jobs on one rented machine, side by side and in turn, while controllers die."""

from dataclasses import replace

import pytest
from clouding import RENTING, a_cloudy_stage, adds_up, an_offer, cloud_of, rentals_of, settles
from makers import a_job, wants
from staging import (
    ControllerDied,
    Fuse,
    MortalEffects,
    MortalStore,
    jobs_of,
    nothing_ran_twice,
    pass_by,
)

from cloudwhale.control.controller import Chosen
from cloudwhale.model import event as e
from cloudwhale.model.budget import Budget
from cloudwhale.model.job import CheckpointRule, JobState
from cloudwhale.model.units import micro_usd
from cloudwhale.simulation.cloud import Shelf
from cloudwhale.simulation.stage import Stage
from cloudwhale_policies.renting.greedy import Greedy

LENGTHS = {"quick": 30.0, "saving": 60.0, "long": 60.0}  # `long` says too little: its lease grows


def a_busy_stage(limit: str | None = None) -> Stage:
    """Make a stage whose jobs share few machines; `limit`: the budget of one of the projects."""
    hourly = an_offer(boot_s=15.0, billing_least_s=600.0)
    hourly = hourly.but(facts=hourly.facts.but(runtimes=("process", "container")))
    stage = a_cloudy_stage((), [Shelf(hourly, capacity=2)], budget="50")
    policies = replace(RENTING, rent=Greedy())
    chosen = Chosen(policies, order="priority", score="best-fit", wait="never", rent="greedy")
    stage.scenery = replace(stage.scenery, chosen=chosen)
    now = stage.scenery.clock.now()
    if limit is not None:
        budget = Budget(project="nlp", month=micro_usd(limit), set_at=now)
        stage.scenery.store.append([e.BudgetSet(at=now, budget=budget)])
    for number, name in enumerate(("long", "quick", "saving", "quick", "saving")):
        job = a_job(
            f"{name}-{number}", name=name, resources=wants(cpu=4), duration_s=LENGTHS[name],
            project=("nlp", "vision")[number % 2], image="net:1",
            checkpoint=CheckpointRule(every_s=5.0, grace_s=10.0),
        ).but(submitted_at=now + number)  # fmt: skip
        stage.scenery.store.append([e.Submitted(at=now, job=job.id, first=job)])
    return stage


def lived(fuse: Fuse, stage: Stage) -> Stage:
    """Play to the end; a controller that dies is followed by another after 3 s."""
    for mortal in (fuse, Fuse(None)):
        try:
            stage.raise_controller(MortalEffects(mortal), MortalStore(stage.scenery.store, mortal))
            assert settles(stage, 6000.0), [(j.id, j.reason) for j in jobs_of(stage).values()]
            break
        except ControllerDied:
            stage.controller = None
            pass_by(stage, 3.0)
    assert stage.controller is not None and stage.controller.incident == ""
    adds_up(stage)
    nothing_ran_twice(stage)
    assert {job.state for job in jobs_of(stage).values()} == {JobState.COMPLETED}
    return stage


def test_jobs_of_one_payer_share_a_machine_in_turn_and_join_while_it_is_kept() -> None:
    stage = lived(Fuse(None), a_busy_stage())
    assert len(cloud_of(stage).hired) <= 2
    shared = [story[-1].jobs for story in rentals_of(stage).values()]
    assert max(map(len, shared)) >= 3, "of two places that it has"
    assert {job.attempt for job in jobs_of(stage).values()} == {1}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("limit", [None, "5"], ids=["unbounded", "bounded"])
def test_whenever_a_controller_dies_a_shared_machine_is_rented_once_and_paid_by_all(
    limit: str | None, after: bool
) -> None:
    counting = Fuse(None)
    calm = lived(counting, a_busy_stage(limit))
    for point in range(2, counting.count + 1, max(1, counting.count // 4)):
        stage = lived(Fuse(point, after), a_busy_stage(limit))
        assert len(cloud_of(stage).hired) <= len(cloud_of(calm).hired) + 1, f"killed at {point}"
        attempts = [job.attempt for job in jobs_of(stage).values()]
        assert max(attempts) == 1, f"killed at {point}: somebody was moved about"
