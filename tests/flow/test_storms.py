"""Markets that take every machine: a job ends, or is told why not, in a bounded number of launches.

With W the job's work, p the least that an attempt saves before it is interrupted, and r its
`retry.max`: an interruption after which something is saved brings the work on by p at least, and
each other one is counted. So there are at most W/p + r + 1 attempts, and as many launches.
"""

import math

import pytest
from clouding import (
    WarningCloud,
    a_cloudy_stage,
    adds_up,
    an_offer,
    cloud_of,
    nothing_overlaps,
    settles,
)
from staging import PROGRAMS, jobs_of, pass_by

from cloudwhale.control.circuits import OPEN_MOST_S, OPEN_S, TRIPS_AFTER
from cloudwhale.model import event as e
from cloudwhale.model.job import Job, JobState, RetryRule
from cloudwhale.model.reason import Code
from cloudwhale.model.units import Instant, Seconds, micro_usd
from cloudwhale.simulation import stage as stages
from cloudwhale.simulation.cloud import Hired, Shelf
from cloudwhale.simulation.processes import Program
from cloudwhale.simulation.stage import Stage
from cloudwhale.spi.provider import LaunchRequest

DAY_S: Seconds = 86_400.0
RETRIES = RetryRule().max
LIFE_S: Seconds = 300.0
SAVES_S: Seconds = 60.0


class Storm(WarningCloud):
    """A cloud that takes every machine a while after its launch."""

    life_s: Seconds = LIFE_S

    def _hired(self, request: LaunchRequest, now: Instant) -> Hired:
        made = super()._hired(request, now)
        made.taken_at = now + self.life_s
        return made


class SuddenStorm(Storm):
    """One that takes them within their boot."""

    life_s: Seconds = 10.0


@pytest.fixture(autouse=True)
def _long_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let time move on by as much as nothing happens, since hours pass here."""
    monkeypatch.setattr(stages, "LONGEST_STEP_S", 30.0)
    monkeypatch.setitem(PROGRAMS, "hours", Program(work_s=3600.0, saves_every_s=SAVES_S))
    monkeypatch.setitem(PROGRAMS, "forgetful", Program(work_s=3600.0))


def a_storm(name: str, cloud: type[Storm], notice_s: Seconds) -> Stage:
    shelves = [
        Shelf(an_offer(f"r-{n}", zone=f"r-{n}", market="spot", notice_s=notice_s, type="g5.xlarge"))
        for n in range(3)
    ]
    stage = a_cloudy_stage((name,), shelves, budget="400", cloud=cloud, duration_s=3600.0)
    stage.raise_controller()
    return stage


def job_of(stage: Stage) -> Job:
    (job,) = jobs_of(stage).values()
    return job


@pytest.mark.parametrize("notice_s", [120.0, 0.0], ids=["noticed", "sudden"])
def test_a_job_that_saves_ends_in_as_many_launches_as_its_work_takes(notice_s: Seconds) -> None:
    stage = a_storm("hours", Storm, notice_s)
    assert settles(stage, DAY_S), job_of(stage).reason
    adds_up(stage)
    nothing_overlaps(stage)
    job = job_of(stage)
    assert job.state is JobState.COMPLETED and job.interruptions > 10
    assert job.retries == 0, "each has saved something"
    bound = math.ceil(3600.0 / SAVES_S) + RETRIES + 1
    assert len(cloud_of(stage).hired) <= bound
    lives = job.run_s / (LIFE_S - notice_s - 20.0)
    assert len(cloud_of(stage).hired) <= 1.5 * lives + 2, "and hardly any machine is for nothing"


@pytest.mark.parametrize("notice_s", [120.0, 0.0], ids=["noticed", "sudden"])
def test_one_that_saves_nothing_is_given_up_when_its_retries_are_spent(notice_s: Seconds) -> None:
    stage = a_storm("forgetful", Storm, notice_s)
    assert settles(stage, DAY_S), job_of(stage).reason
    adds_up(stage)
    job = job_of(stage)
    assert job.state is JobState.FAILED and len(cloud_of(stage).hired) == RETRIES + 1
    assert job.reason is not None and job.reason.code is Code.RETRIES_SPENT
    assert job.lost_s > 0


def tries_within(seconds: Seconds) -> int:
    """Return how often a circuit lets somebody try in a time in which all fail."""
    tries, waited_s = 0, 0.0
    while (waited_s := waited_s + min(OPEN_MOST_S, OPEN_S * 2**tries)) < seconds:
        tries += 1
    return tries


def test_machines_that_are_taken_within_their_boot_are_asked_for_ever_less_often() -> None:
    """Three in a row at most, then one each time that it is tried, twice as long after the last.

    The round that pays for one that has failed may have asked for another already.
    """
    stage = a_storm("hours", SuddenStorm, 0.0)
    pass_by(stage, DAY_S / 4)
    bound = TRIPS_AFTER + 1 + 2 * tries_within(DAY_S / 4)
    assert TRIPS_AFTER <= len(cloud_of(stage).hired) <= bound
    job = job_of(stage)
    assert (job.state, job.attempt, job.retries) == (JobState.PENDING, 0, 0)
    events = [one.event for one in stage.scenery.store.events(job.id)]
    assert Code.CIRCUIT_OPEN in [one.reason.code for one in events if isinstance(one, e.Waits)]
    assert micro_usd("0.001") < cloud_of(stage).bill() < micro_usd("2")
