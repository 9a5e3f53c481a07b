"""Who has waited too long: it grows with the work that waits, and nobody waits for ever."""

import pytest
from makers import a_job, a_node, a_world, placed, wants

from cloudwhale.model.job import HOLDS_A_PLACE, Job
from cloudwhale.planning.aging import (
    LARGE,
    LARGE_FROM,
    LARGE_WAITS,
    LEAST_S,
    MOST_S,
    PATIENCE,
    SMALL,
    SMALL_WAITS,
    Aged,
    aged,
    limits_of,
)  # fmt: skip
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.releases import Whole
from cloudwhale.planning.rules import Rules
from cloudwhale.planning.standing import queueing


def found(jobs: list[Job], now: float) -> Aged:
    world = a_world(jobs, [a_node(cpu=4.0)], now=now)
    known = queueing(world, Durations({}), Rules())
    runs = [job for job in jobs if job.state in HOLDS_A_PLACE]
    ready = [job for job in jobs if job.state not in HOLDS_A_PLACE]
    return aged(ready, runs, known, Whole(world.nodes.values(), {}))


def limit_s(jobs: list[Job], of: Job | None = None, runs: list[Job] | None = None) -> float:
    world = a_world([*jobs, *(runs or [])], [a_node(cpu=4.0)])
    known = queueing(world, Durations({}), Rules())
    limits = limits_of(jobs, runs or [], known)
    return limits.large_s if of is None else limits.of(of, known)


def whole(name: str, duration_s: float = 3600.0, **fields: object) -> Job:
    return a_job(name, duration_s=duration_s, resources=wants(cpu=4), **fields)


def test_the_limit_is_a_part_of_the_time_that_all_machines_need_for_all_that_is_here() -> None:
    runs = [placed(whole(f"r{n}")) for n in range(3)]
    assert limit_s([whole("a")], runs=runs) == LARGE * 4 * 3600.0
    halves = [a_job(f"h{n}", duration_s=3600.0, resources=wants(cpu=2)) for n in range(2)]
    assert limit_s(halves, runs=runs) == LARGE * 4 * 3600.0


def test_the_limit_is_longer_where_more_waits_than_runs() -> None:
    line = [whole("a"), whole("b")]
    assert LARGE_WAITS > LARGE
    assert limit_s(line) == LARGE_WAITS * 7200.0
    assert limit_s(line, runs=[placed(whole("r"))]) == LARGE_WAITS * 7200.0


def test_small_jobs_are_due_before_large_ones() -> None:
    large, small = whole("large", 1e5), whole("small", 1e5 * LARGE_FROM * 0.9)
    line = [large, small]
    here_s = 1e5 * (1 + LARGE_FROM * 0.9)
    assert limit_s(line, of=large) == pytest.approx(LARGE_WAITS * here_s)
    assert limit_s(line, of=small) == pytest.approx(SMALL_WAITS * here_s)
    runs = [placed(whole("r", 4e5))]
    assert limit_s(line, of=small, runs=runs) == pytest.approx(SMALL * (here_s + 4e5))
    assert [job.id for job in found(line, SMALL_WAITS * here_s + 1).first] == ["small"]


def test_what_a_job_has_run_is_no_wait() -> None:
    line = [whole("a", run_s=5000.0, priority=10), whole("b", priority=10)]
    limit = limit_s(line)
    assert [job.id for job in found(line, limit + 1).first] == ["b"]
    assert [job.id for job in found(line, limit + 5001).first] == ["b", "a"]


def test_the_limit_has_a_least_and_a_most() -> None:
    assert limit_s([]) == LEAST_S
    assert limit_s([whole(f"j{n}", 1e6) for n in range(5)]) == MOST_S


def test_a_higher_class_is_due_sooner_and_the_longest_due_is_first() -> None:
    assert sorted(PATIENCE, reverse=True) == list(PATIENCE)
    jobs = [whole("batch", priority=10), whole("urgent", priority=90, submitted_at=1.0)]
    limit = limit_s(jobs)
    assert [j.id for j in found(jobs, limit * PATIENCE[2] + 1).first] == ["urgent"]
    assert [j.id for j in found(jobs, limit + 1).first] == ["urgent", "batch"]


def test_a_node_is_kept_for_who_has_waited_as_long_again() -> None:
    jobs = [whole("batch", priority=10)]
    assert found(jobs, 1.5 * limit_s(jobs)).at_last == frozenset()
    assert found(jobs, 2 * limit_s(jobs)).at_last == {"batch"}


def test_a_job_that_no_node_could_take_is_never_due() -> None:
    jobs = [a_job("huge", duration_s=60.0, resources=wants(cpu=99)), whole("able")]
    assert [j.id for j in found(jobs, 1e6).first] == ["able"]


def test_whoever_comes_two_weeks_later_is_never_before_an_older_one() -> None:
    old = whole("old", priority=0)
    crowd = [whole(f"n{n}", 1e6, priority=100, submitted_at=MOST_S + 1) for n in range(50)]
    assert found([old, *crowd], MOST_S * 3).first[0].id == "old"
