"""Who gives way: the cheapest that make the room, for a higher class, and never in vain."""

import pytest
from makers import a_device, a_job, a_node, placed, wants

from cloudwhale.model.job import (
    Checkpoint,
    CheckpointRule,
    GpuRequest,
    Job,
    JobState,
    Placement,
    Wish,
)  # fmt: skip
from cloudwhale.model.node import Node
from cloudwhale.model.reason import Code, Reason
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.inventory import Reservation, free_capacity
from cloudwhale.planning.preempting import Preempting, who_gives_way
from cloudwhale.planning.promising import Promised, promised
from cloudwhale.planning.releases import Profile, Whole
from cloudwhale.planning.reserving import nothing

NOW, AFTER_S = 10_000.0, 60.0
LONG_S = 90_000.0


def victim(name: str, cpu: float = 1.0, saved_s_ago: float | None = None, **fields: object) -> Job:
    """Make a batch job that runs since time 0 on `host`."""
    job = placed(
        a_job(name, **{"duration_s": LONG_S, "priority": 20, "resources": wants(cpu=cpu), **fields})
    )
    saved = None
    if saved_s_ago is not None:
        saved = Checkpoint(
            attempt=1, seq=1, name="s", size_bytes=1, saved_at=NOW - saved_s_ago, manifest="m"
        )
    return job.but(state=JobState.RUNNING, started_at=0.0, placed_at=0.0, checkpoint=saved)


def urgent(cpu: float = 2.0, **fields: object) -> Job:
    return a_job(
        "urgent", **{"priority": 80, "duration_s": 600.0, "resources": wants(cpu=cpu), **fields}
    )


def scene(jobs: list[Job], nodes: list[Node]) -> tuple[Profile, Whole]:
    free = free_capacity(nodes, jobs)
    return Profile(NOW, free, jobs, Durations({})), Whole(nodes, {})


def who(
    jobs: list[Job], waiting: list[Job], nodes: list[Node] | None = None,
    reserved: dict[str, Reservation] | None = None,
) -> list[tuple[str, list[str]]]:  # fmt: skip
    found = asked(jobs, waiting, nodes, reserved)
    return [(each.job.id, sorted(v.id for v in each.victims)) for each in found.gives_way]


def asked(
    jobs: list[Job], waiting: list[Job], nodes: list[Node] | None = None,
    reserved: dict[str, Reservation] | None = None,
) -> Preempting:  # fmt: skip
    profile, whole = scene(jobs, nodes or [a_node(cpu=4.0)])
    return who_gives_way(waiting, AFTER_S, profile, whole, reserved or {})


def test_the_cheapest_of_one_size_gives_way() -> None:
    jobs = [victim("a", 2.0, 900.0), victim("b", 2.0, 30.0)]
    assert who(jobs, [urgent()]) == [("urgent", ["b"])]


def test_two_cheap_ones_give_way_before_a_dear_one() -> None:
    jobs = [victim("dear", 2.0, 3000.0), victim("a", 1.0, 100.0), victim("b", 1.0, 100.0)]
    assert who(jobs, [urgent()]) == [("urgent", ["a", "b"])]


def test_a_job_without_checkpoints_loses_all_it_has_run() -> None:
    jobs = [victim("a", 2.0, None), victim("b", 2.0, 5000.0)]
    assert who(jobs, [urgent()]) == [("urgent", ["b"])]


def test_nobody_is_stopped_beyond_those_that_are_needed() -> None:
    jobs = [victim(f"v{n}", 0.5, 100.0 + n) for n in range(8)]
    assert who(jobs, [urgent(cpu=3.0)]) == [("urgent", ["v0", "v1", "v2", "v3", "v4", "v5"])]


def test_of_two_nodes_the_one_where_it_costs_less() -> None:
    there = victim("there", 4.0, 10.0).but(placement=Placement(node="next"))
    jobs = [victim("here", 4.0, 500.0), there]
    assert who(jobs, [urgent()], [a_node(cpu=4.0), a_node("next", cpu=4.0)]) == [
        ("urgent", ["there"])
    ]


@pytest.mark.parametrize("priority", [34, 50, 67, 80, 100])
def test_equal_classes_do_not_give_way_to_each_other(priority: int) -> None:
    waiting = urgent(priority=priority)
    jobs = [victim("v", 4.0, 10.0, priority=priority)]
    assert who(jobs, [waiting]) == []


def test_a_batch_job_has_nobody_stopped_for_it() -> None:
    assert who([victim("v", 4.0, 10.0, priority=0)], [urgent(priority=33)]) == []


@pytest.mark.parametrize(
    "change",
    [
        {"wish": Wish.PAUSE},
        {"state": JobState.STARTING},
        {"state": JobState.RECOVERING},
        {"started_at": NOW - AFTER_S + 1},
        {"reason": Reason(code=Code.AGED, says="waited")},
    ],
    ids=lambda change: next(iter(change)),
)
def test_some_are_not_stopped(change: dict[str, object]) -> None:
    # 2 CPUs are free of 4: the other two would have to come from it.
    assert who([victim("v", 2.0, 10.0).but(**change)], [urgent(cpu=4.0)]) == []


def test_who_may_not_be_preempted_is_not() -> None:
    assert who([victim("v", 4.0, 10.0, preemptible=False)], [urgent()]) == []


def test_nobody_gives_way_where_that_would_not_suffice() -> None:
    jobs = [victim("v", 2.0, 10.0), victim("firm", 2.0, 10.0, preemptible=False)]
    assert who(jobs, [urgent(cpu=3.0)]) == []


def test_nobody_is_stopped_for_who_starts_soon_anyway() -> None:
    ending = victim("ending", 2.0, 10.0, duration_s=NOW + 20, max_duration_s=NOW + 20)
    assert who([ending, victim("v", 2.0, 10.0)], [urgent()]) == []


def test_nobody_is_stopped_who_ends_soon_anyway() -> None:
    ending = victim("ending", 2.0, 0.0, duration_s=NOW + 20, max_duration_s=NOW + 20)
    assert who([ending, victim("v", 2.0, 900.0)], [urgent(cpu=4.0)]) == [("urgent", ["v"])]


def test_nobody_is_stopped_when_that_costs_more_than_it_saves() -> None:
    rule = CheckpointRule(every_s=1e5)
    jobs = [victim("v", 4.0, 9000.0, duration_s=NOW + 500, checkpoint=rule)]
    assert who(jobs, [urgent()]) == []
    assert who([jobs[0].but(checkpoint=victim("w", 4.0, 10.0).checkpoint)], [urgent()]) == [
        ("urgent", ["v"])
    ]


def test_a_victim_that_is_too_young_is_looked_at_again_when_it_is_not() -> None:
    young = victim("v", 4.0, 10.0).but(started_at=NOW - 20)
    found = asked([young, victim("firm", 0.5, preemptible=False)], [urgent()])
    assert found == Preempting((), NOW + 40)


def test_a_start_that_should_come_soon_is_looked_at_again_when_it_should_have_come() -> None:
    ending = victim("ending", 4.0, 10.0, duration_s=NOW + 20, max_duration_s=NOW + 20)
    assert asked([ending], [urgent()]) == Preempting((), NOW + 20)


def test_each_waiting_job_gets_a_node_of_its_own() -> None:
    there = victim("there", 4.0, 10.0).but(placement=Placement(node="next"))
    jobs = [victim("here", 4.0, 20.0), there]
    waiting = [urgent(), urgent(cpu=3.0).but(id="other")]
    assert who(jobs, waiting, [a_node(cpu=4.0), a_node("next", cpu=4.0)]) == [
        ("urgent", ["there"]),
        ("other", ["here"]),
    ]


def test_a_node_that_is_kept_for_somebody_else_is_left_alone() -> None:
    jobs = [victim("v", 4.0, 10.0)]
    profile, _ = scene(jobs, [a_node(cpu=4.0)])
    kept = Reservation(node="host", start_at=NOW, job="old", left=nothing(profile.free["host"]))
    assert who(jobs, [urgent()], reserved={"host": kept}) == []


def test_gpus_are_made_free_by_the_devices_that_are_needed() -> None:
    node = a_node(cpu=64.0, devices=(a_device("g-0"), a_device("g-1")))
    half = wants(gpu=GpuRequest(count=1, share=0.5))

    def on(name: str, device: str, saved_s_ago: float) -> Job:
        place = Placement(node="host", devices=(device,))
        return victim(name, saved_s_ago=saved_s_ago, resources=half).but(placement=place)

    jobs = [on("a", "g-0", 10.0), on("b", "g-0", 500.0), on("c", "g-1", 60.0), on("d", "g-1", 70.0)]
    assert who(jobs, [urgent(resources=wants(gpus=1))], [node]) == [("urgent", ["c", "d"])]


def waits(cpu: float) -> Job:
    return urgent(cpu).but(reason=Reason(code=Code.MAKES_ROOM, says="others give way"))


def of(ready: list[Job], jobs: list[Job]) -> Promised:
    profile, whole = scene(jobs, [a_node(cpu=4.0)])
    return promised(ready, profile, whole)


def test_room_that_is_being_made_is_kept_for_whom_it_is_made() -> None:
    found = of([waits(cpu=3.0)], [victim("v", 4.0).but(wish=Wish.GIVE_WAY)])
    assert [job.id for job in found.first] == ["urgent"]
    assert found.reserved["host"].left.cpu == 1.0
    assert found.waits == {"urgent"}


def test_room_that_has_been_made_is_taken_before_anybody_else_can() -> None:
    found = of([waits(cpu=3.0)], [])
    assert [job.id for job in found.first] == ["urgent"]
    assert (dict(found.reserved), found.waits) == ({}, frozenset())


def test_a_promise_that_came_to_nothing_is_none() -> None:
    found = of([waits(cpu=3.0)], [victim("v", 4.0)])
    assert found == Promised()
