"""Who has waited too long: it grows with the work that waits, and nobody waits for ever."""

from makers import a_job, a_node, a_world, wants

from cloudwhale.model.job import Job
from cloudwhale.planning.aging import BACKLOG, LEAST_S, MOST_S, PATIENCE, Aged, aged, too_long_s
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.releases import Whole
from cloudwhale.planning.rules import Rules
from cloudwhale.planning.standing import queueing


def found(jobs: list[Job], now: float) -> Aged:
    world = a_world(jobs, [a_node(cpu=4.0)], now=now)
    known = queueing(world, Durations({}), Rules())
    return aged(jobs, known, Whole(world.nodes.values(), {}))


def limit_s(jobs: list[Job]) -> float:
    world = a_world(jobs, [a_node(cpu=4.0)])
    return too_long_s(jobs, queueing(world, Durations({}), Rules()))


def whole(name: str, duration_s: float = 3600.0, **fields: object) -> Job:
    return a_job(name, duration_s=duration_s, resources=wants(cpu=4), **fields)


def test_the_limit_is_the_time_that_all_machines_need_for_all_that_waits() -> None:
    assert limit_s([whole("a"), whole("b")]) == BACKLOG * 7200.0
    halves = [a_job(f"h{n}", duration_s=3600.0, resources=wants(cpu=2)) for n in range(4)]
    assert limit_s(halves) == BACKLOG * 7200.0


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


def test_whoever_comes_a_day_later_is_never_before_an_older_one() -> None:
    old = whole("old", priority=0)
    crowd = [whole(f"n{n}", 1e6, priority=100, submitted_at=MOST_S + 1) for n in range(50)]
    assert found([old, *crowd], MOST_S * 3).first[0].id == "old"
