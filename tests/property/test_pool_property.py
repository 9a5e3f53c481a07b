"""The house beside the pool: for every order both do the same with the same jobs, to the second."""

import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import philly_jobs
import philly_pool as pool
from philly_figures import bound_s, figures

GPUS = 8


def jobs(seed: int, count: int = 12) -> list[pool.Job]:
    """Return jobs that come in a crowd; some at the same instant."""
    dice = random.Random(f"crowd-{seed}")
    at, found = 0.0, list[pool.Job]()
    for _ in range(count):
        at += dice.choice((0, 5, 20, 60))
        length_s = dice.choice((10, 30, 100, 300, 1000)) + dice.randrange(9)
        found.append((at, float(length_s), dice.choice((1, 1, 2, 4, 8))))
    return found


def ends(tasks: Sequence[pool.Task]) -> Mapping[int, tuple[float, float, int]]:
    return {
        task.number: (round(task.began or 0.0, 3), round(task.ended or 0.0, 3), task.stops)
        for task in tasks
    }


@pytest.mark.parametrize(
    "policy", ["fifo", "fit-first", "easy-backfill", "sjf", "sgf", "srtf", "srsf", "las"]
)
def test_the_house_and_the_pool_start_and_stop_the_same_jobs_at_the_same_times(policy: str) -> None:
    for seed in range(3):
        asked = jobs(seed)
        ours = ends(philly_jobs.played(policy, asked, GPUS, 0.0))
        assert ours == ends(pool.play(asked, GPUS, pool.RULES[policy]()))


@pytest.mark.parametrize("policy", sorted(pool.RULES))
def test_the_pool_gives_what_there_is_and_leaves_no_job_without_an_end(policy: str) -> None:
    for seed in range(20):
        asked = jobs(seed, 40)
        tasks = pool.play(asked, GPUS, pool.RULES[policy](), restart_s=7.0)
        for task, (at, length_s, _) in zip(tasks, asked, strict=True):
            assert task.began is not None and task.began >= at
            assert task.ended is not None
            assert task.ran_s == pytest.approx(length_s + 7.0 * task.stops)
        found = figures(tasks)
        assert found.completion_s >= bound_s(asked, GPUS) - pool.CLOSE


@pytest.mark.parametrize("policy", ["las", "srsf+restart", "whale-displacing+restart"])
def test_nobody_is_stopped_and_started_at_one_instant_or_stopped_for_nobody(policy: str) -> None:
    for seed in range(2):
        found = philly_jobs.the_play(policy, jobs(seed + 100), GPUS, 0.0)
        assert all(one.completion_s is not None for one in found.jobs.values())
        starts = {stay.since for stay in found.stays}
        for one in found.stays:
            again = [s.since for s in found.stays if s.job == one.job and s.attempt > one.attempt]
            assert all(since > one.until for since in again)
            assert not again or one.until in starts, "nobody took what it left"


def test_the_limit_is_a_part_of_all_the_work_that_is_here() -> None:
    asked: list[pool.Job] = [(0.0, 10_000.0, 8), (1.0, 20_000.0, 8), (2.0, 100.0, 8)]
    limit = pool.FollowsLoad(large=(0.5, 0.0), small=(0.1, 0.0), large_from=0.1, least_s=0.0)
    line = pool.InOrder(lambda task: -task.at, limit=limit)
    tasks = pool.play(asked, 8, line)
    # At 10,000 s the second has waited for less than half of 20,100 s, the third for a tenth.
    assert [task.began for task in tasks] == [0.0, 10_100.0, 10_000.0]


def test_the_bound_is_that_of_one_machine_as_fast_as_all() -> None:
    assert bound_s([(0.0, 10.0, 1)], 4) == 10.0
    assert bound_s([(0.0, 8.0, 4), (0.0, 8.0, 4)], 4) == 12.0
