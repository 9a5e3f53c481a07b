"""Deadline, lease and budget together, and the controller's death around all that it does.

Whichever cuts a job short: checkpoint first, never more money than the budget, always a reason.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import pytest
from clouding import (
    MortalCloud,
    MortalDeeds,
    a_cloudy_stage,
    adds_up,
    an_offer,
    cloud_of,
    dies,
    left_over,
    nothing_overlaps,
    rentals_of,
)
from staging import PROGRAMS, Fuse, MortalStore, jobs_of, nothing_ran_twice, pass_by

from cloudwhale.model import event as e
from cloudwhale.model.job import CheckpointRule, Job, JobState, RetryRule
from cloudwhale.model.reason import Code
from cloudwhale.model.units import Instant, micro_usd
from cloudwhale.planning.safety import TICK_S
from cloudwhale.simulation.clock import SteppedClock
from cloudwhale.simulation.cloud import Shelf, SimulatedCloud
from cloudwhale.simulation.processes import Program
from cloudwhale.simulation.stage import Stage

PROGRAMS["seldom"] = Program(work_s=900.0, saves_every_s=1e6)
"""Saves when it is told to stop, and at no other time."""

EVERY_S = 20.0
RULE = CheckpointRule(every_s=EVERY_S, grace_s=10.0)
FIRM = an_offer("firm", boot_s=60.0)
SPOT = an_offer(
    "spot", market="spot", price_usd_h=micro_usd("1.2"), cap_usd_h=micro_usd("3.6"), boot_s=30.0,
    hazard_per_h=0.01,
)  # fmt: skip
SHELVES = (Shelf(SPOT, hazard_per_h=0.0), Shelf(FIRM))
WHY = {
    Code.FINISHED, Code.OVER_BUDGET, Code.WOULD_STRAND_STARTED_WORK, Code.SOFT_LINE,
    Code.DEADLINE_PASSED, Code.TOO_LATE,
}  # fmt: skip


class FixedCloud(MortalCloud):
    """A cloud that does not move its stops: a lease is what it is."""

    def extend(self, machine: str, stop_at: Instant) -> Instant | str:  # type: ignore[override]
        return "fixed"


def a_stage(
    name: str, deadline_s: float, budget: str = "50", cloud: type[SimulatedCloud] = MortalCloud,
    **of_job: Any,
) -> Stage:  # fmt: skip
    base: dict[str, Any] = {"checkpoint": RULE, "retry": RetryRule(max=3, backoff_s=5.0)}
    deadline = SteppedClock().now() + deadline_s
    return a_cloudy_stage(
        (name,), SHELVES, budget, cloud=cloud, deadline=deadline, **{**base, **of_job}
    )


def job_of(stage: Stage) -> Job:
    (job,) = jobs_of(stage).values()
    return job


def events(stage: Stage) -> Iterator[e.Event]:
    for one in stage.scenery.store.since(0, 100_000):
        yield one.event


def is_over(stage: Stage) -> bool:
    """Say whether nothing moves any more: it has ended, or waits for money or a person."""
    world = stage.scenery.store.world(stage.scenery.clock.now())
    if world.rentals:
        return False
    job = job_of(stage)
    waits = job.state in (JobState.PENDING, JobState.PARKED)
    return job.ended or (waits and job.reason is not None and job.reason.code in WHY)


def life(made: Callable[[], Stage], fuse: Fuse, *, writes: bool = False) -> Stage:
    """Live to the end; a controller that dies is followed by another after 3 s."""
    stage = made()

    def lived(fuse: Fuse) -> None:
        cloud = cloud_of(stage)
        assert isinstance(cloud, MortalCloud)
        cloud.fuse = fuse
        store = MortalStore(stage.scenery.store, fuse) if writes else None
        stage.raise_controller(MortalDeeds(fuse), store)
        assert stage.play(partial(is_over, stage), 8000.0), (job_of(stage).state, job_of(stage))

    if dies(partial(lived, fuse)):
        stage.controller = None
        pass_by(stage, 3.0)
        lived(Fuse(None))
    return stage


def holds(stage: Stage, budget: str) -> None:
    """Check what must hold however it came out."""
    job, taken, most = job_of(stage), 0, 0
    for event in events(stage):
        if isinstance(event, e.Reserved | e.Released):
            taken += event.amount if isinstance(event, e.Reserved) else -event.amount
        most = max(most, taken)
    assert most <= micro_usd(budget)
    adds_up(stage)
    nothing_ran_twice(stage)
    nothing_overlaps(stage)
    assert not left_over(stage)
    assert job.lost_s <= job.interruptions * (EVERY_S + 5.0)
    assert job.reason is not None and job.reason.code in WHY
    missed = [event for event in events(stage) if isinstance(event, e.DeadlineMissed)]
    assert len(missed) <= 1
    stops = [event.reason.code for event in events(stage) if isinstance(event, e.StopWished)]
    assert set(stops) <= {Code.LEASE_ENDS, Code.SWITCHES}, stops


DEADLINES = {"early": 200.0, "middle": 420.0, "late": 1500.0}
BUDGETS = {"small": "0.95", "middling": "1.60", "large": "20"}


@pytest.mark.parametrize("cloud", [MortalCloud, FixedCloud])
@pytest.mark.parametrize(("deadline", "budget"), [*product(DEADLINES, BUDGETS)])
@pytest.mark.parametrize("kill", [None, 14])
def test_whichever_cuts_it_short_nothing_is_lost_or_overspent(
    deadline: str, budget: str, cloud: type[SimulatedCloud], kill: int | None
) -> None:
    """It runs for 500 s, and its file says 120: lease, money and deadline end in any order."""
    made = partial(
        a_stage, "middling", DEADLINES[deadline], BUDGETS[budget], cloud, duration_s=120.0,
    )  # fmt: skip
    stage = life(made, Fuse(kill))
    holds(stage, BUDGETS[budget])
    if budget == "large" and deadline == "late":
        assert job_of(stage).state is JobState.COMPLETED


# -- the switch ------------------------------------------------------------------------------

DUE = 900.0 + TICK_S + 60.0 + 60.0 + 40.0
"""Work, tick, boot, restore and landing of one that saves when it is told to, and never else."""


def a_switching_stage() -> Stage:
    return a_stage("seldom", DUE + 300.0, duration_s=900.0, checkpoint=RULE.but(every_s=3000.0))


def switches(stage: Stage) -> list[float]:
    began = next(event.at for event in events(stage))
    return [
        event.at - began
        for event in events(stage)
        if isinstance(event, e.StopWished) and event.reason.code is Code.SWITCHES
    ]


def test_one_that_never_saves_on_its_way_switches_at_its_last_safe_moment() -> None:
    stage = life(a_switching_stage, Fuse(None))
    (stopped,) = switches(stage)
    assert 360.0 <= stopped <= 360.0 + TICK_S
    job = job_of(stage)
    assert job.state is JobState.COMPLETED and job.interruptions == 1 and job.lost_s == 0.0
    assert [story[-1].offer for story in rentals_of(stage).values()] == ["spot", "firm"]
    adds_up(stage)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_switch_survives_the_controller_s_death_around_all_that_it_does(after: bool) -> None:
    fuse = Fuse(None)
    life(a_switching_stage, fuse, writes=True)
    assert fuse.count > 30
    for point in range(2 if after else 1, fuse.count + 1, 5):
        stage = life(a_switching_stage, Fuse(point, after), writes=True)
        job, where = job_of(stage), f"killed at {point} of {fuse.count}"
        assert job.state is JobState.COMPLETED, where
        assert job.ended_at is not None and job.spec.deadline is not None
        assert job.ended_at <= job.spec.deadline, where
        assert len(cloud_of(stage).hired) == 2, where
        holds(stage, "50")
