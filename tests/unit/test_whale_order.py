"""Who is next: class, share, work weighed by age, and those who have waited too long."""

from collections.abc import Mapping

import pytest
from makers import a_job, wants

from cloudwhale.model.job import Job
from cloudwhale.spi.policy import Queueing, priority_class
from cloudwhale_policies.order import Fifo, Priority
from cloudwhale_policies.whale_order import AGE, Whale


def queueing(
    now: float = 0.0,
    use: Mapping[str, float] | None = None,
    shares: Mapping[str, float] | None = None,
    aged: tuple[Job, ...] = (),
) -> Queueing:
    return Queueing(
        now=now,
        remaining_s=lambda job: job.spec.duration_s or 3600.0,
        size=lambda job: job.wants.cpu / 10.0,
        use=use or {},
        shares=shares or {},
        aged=aged,
    )


def ids(classes: object) -> list[list[str]]:
    assert isinstance(classes, list)
    return [[job.id for job in some] for some in classes]


def job(name: str, duration_s: float = 600.0, **fields: object) -> Job:
    return a_job(name, duration_s=duration_s, **fields)


@pytest.mark.parametrize(
    ("priority", "found"), [(0, 0), (33, 0), (34, 1), (50, 1), (66, 1), (67, 2), (100, 2)]
)
def test_thirds_of_the_priorities_are_classes(priority: int, found: int) -> None:
    assert priority_class(priority) == found


def test_the_baselines_go_one_by_one() -> None:
    jobs = [job("a", submitted_at=2.0, priority=10), job("b", submitted_at=3.0, priority=90)]
    assert ids(Fifo().rank(jobs, queueing())) == [["a"], ["b"]]
    assert ids(Priority().rank(jobs, queueing())) == [["b"], ["a"]]


def test_class_goes_before_work_and_work_before_age() -> None:
    jobs = [
        job("batch", 1.0, priority=20),
        job("long", 9000.0, priority=50, submitted_at=-100.0),
        job("short", 60.0, priority=50),
        job("urgent", 99_000.0, priority=90),
    ]
    assert ids(Whale().rank(jobs, queueing())) == [["urgent"], ["short"], ["long"], ["batch"]]


def test_jobs_of_about_equal_work_are_one_class() -> None:
    jobs = [job(f"j{n}", 600.0 + n) for n in range(5)]
    assert ids(Whale().rank(jobs, queueing())) == [["j0", "j1", "j2", "j3", "j4"]]


def test_work_is_time_times_the_part_of_all_machines() -> None:
    wide, narrow = wants(cpu=8), wants(cpu=1)
    jobs = [job("wide", 600.0, resources=wide), job("narrow", 1000.0, resources=narrow)]
    assert ids(Whale().rank(jobs, queueing()))[0] == ["narrow"]


def test_a_job_that_has_waited_for_its_length_over_the_age_counts_half() -> None:
    jobs = [job("old", 1900.0, submitted_at=0.0), job("new", 1000.0, submitted_at=1900.0 / AGE)]
    flat = [each for some in ids(Whale().rank(jobs, queueing(1900.0 / AGE))) for each in some]
    assert flat == ["old", "new"]


def test_priority_weighs_inside_a_class() -> None:
    jobs = [job("low", 600.0, priority=40), job("high", 1000.0, priority=60)]
    assert ids(Whale().rank(jobs, queueing()))[0] == ["high"]


@pytest.mark.parametrize(
    ("shares", "first"),
    [({}, "b"), ({"a": 8.0}, "a"), ({"a": 8.0, "b": 0.0}, "a"), ({"a": 0.0, "b": 0.0}, "a")],
)
def test_the_project_goes_first_that_has_used_least_of_its_share(
    shares: dict[str, float], first: str
) -> None:
    jobs = [job("a", 60.0, project="a"), job("b", 600.0, project="b")]
    known = queueing(use={"a": 50_000.0, "b": 10_000.0}, shares=shares)
    assert ids(Whale().rank(jobs, known))[0] == [first]


def test_little_use_does_not_tell_projects_apart() -> None:
    jobs = [job("a", 60.0, project="a"), job("b", 600.0, project="b")]
    assert ids(Whale().rank(jobs, queueing(use={"a": 900.0})))[0] == ["a"]


def test_whoever_has_waited_too_long_goes_before_all_one_by_one() -> None:
    jobs = [job(f"j{n}", priority=10 * n) for n in range(9)]
    known = queueing(aged=(jobs[1], jobs[0]))
    assert ids(Whale().rank(jobs, known))[:2] == [["j1"], ["j0"]]
    assert sorted(each for some in ids(Whale().rank(jobs, known)) for each in some) == [
        f"j{n}" for n in range(9)
    ]
