"""Seeded days of kills, wishes and clock jumps: every job ends as it must, none runs twice."""

import random

import pytest
from staging import (
    Fuse,
    MortalEffects,
    MortalStore,
    a_stage,
    all_ended,
    jobs_of,
    nothing_ran_twice,
    pass_by,
)

from cloudwhale.model import event as e
from cloudwhale.model.job import ENDED, JobState
from cloudwhale.simulation.stage import Stage

SEEDS = range(60)
FAULTS_A_DAY = 12
ENDLESS = ("endless", "stubborn")


KINDS = ("controller", "agent", "shim", "pause", "resume", "cancel", "clock", "database")


def new_controller(stage: Stage) -> MortalStore:
    fuse = Fuse(None)
    store = MortalStore(stage.scenery.store, fuse)
    stage.raise_controller(MortalEffects(fuse), store)
    return store


def one_fault(stage: Stage, database: MortalStore, dice: random.Random) -> MortalStore:
    """Let one thing go wrong, or a person change their mind."""
    machine = stage.scenery.machines[0]
    clock, store = stage.scenery.clock, stage.scenery.store
    alive = [job for job in jobs_of(stage).values() if not job.ended]
    job = dice.choice(alive) if alive else None
    match dice.choice(KINDS):
        case "controller":
            stage.controller = None
            pass_by(stage, dice.uniform(0, 20))
            return new_controller(stage)
        case "agent":
            machine.kill_agent()
        case "shim" if job is not None:
            machine.kill_shim(job.id, stage.machine_time)
        case "pause" if job is not None:
            store.append([e.PauseAsked(at=clock.now(), job=job.id)])
        case "resume" if job is not None:
            store.append([e.ResumeAsked(at=clock.now(), job=job.id)])
        case "cancel" if job is not None and job.spec.name in ENDLESS:
            store.append([e.CancelAsked(at=clock.now(), job=job.id)])
        case "database":
            database.is_locked = True
            pass_by(stage, dice.uniform(0, 8))
            database.is_locked = False
        case "clock":
            clock.set_wall(clock.now() + 300.0)
        case _:
            pass
    return database


FLEETING = ("endless", "failing", "quick", "saving", "stubborn")
"""Eight of longer ones would take more than the half hour that is waited for their ends."""


def bring_to_an_end(stage: Stage) -> bool:
    """Resume what is paused, cancel what has no end, and wait."""
    for job in jobs_of(stage).values():
        at = stage.scenery.clock.now()
        if job.state is JobState.PAUSED or job.wish is not None:
            stage.scenery.store.append([e.ResumeAsked(at=at, job=job.id)])
        if not job.ended and job.spec.name in ENDLESS:
            stage.scenery.store.append([e.CancelAsked(at=at, job=job.id)])
    pass_by(stage, 60.0)
    return all_ended(stage)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_day_of_faults_loses_nothing_and_runs_nothing_twice(seed: int) -> None:
    dice = random.Random(seed)
    stage = a_stage(dice.choice(FLEETING) for _ in range(8))
    database = new_controller(stage)
    for _ in range(FAULTS_A_DAY):
        pass_by(stage, dice.uniform(0, 15))
        database = one_fault(stage, database, dice)
    assert any(bring_to_an_end(stage) for _ in range(30)), {
        job.id: (job.state, job.wish, job.reason) for job in jobs_of(stage).values()
    }
    nothing_ran_twice(stage)
    for job in jobs_of(stage).values():
        assert job.state in ENDED
        ran_out = job.retries >= job.spec.retry.max
        if job.spec.name in ("quick", "saving"):
            assert job.state is JobState.COMPLETED or ran_out
        if job.spec.name == "saving" and job.checkpoint is not None and job.interruptions:
            # promise 4: the job's interval, the publish interval, and what a save takes
            assert job.lost_s <= job.interruptions * (4.0 + 5.0 + 1.0)
