"""The release profile: what becomes free on a node when, as far as anybody can tell."""

import pytest
from makers import a_device, a_job, a_node, a_world, placed, wants

from cloudwhale.model.job import HOLDS_A_PLACE, Checkpoint, CheckpointRule, Job, JobState, Wish
from cloudwhale.model.node import DeviceUse, Measured, Node, NodeState
from cloudwhale.model.world import Sighting
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.inventory import free_capacity
from cloudwhale.planning.releases import GRACE_S, STOPS_WITHIN_S, Profile, Whole

NOW = 1000.0


def running(name: str, since: float, duration_s: float = 600.0, **fields: object) -> Job:
    job = placed(a_job(name, duration_s=duration_s, **fields), "host")
    return job.but(state=JobState.RUNNING, started_at=since, placed_at=since)


def profile(*jobs: Job, node: Node | None = None) -> Profile:
    world = a_world(list(jobs), [node or a_node(cpu=4.0)], now=NOW)
    here = [job for job in jobs if job.state in HOLDS_A_PLACE]
    return Profile(NOW, free_capacity(world.nodes.values(), here), here, Durations({}))


def left_s(job: Job) -> tuple[float, float]:
    (release,) = profile(job).releases("host")
    return release.at - NOW, release.late_at - NOW


def test_a_job_is_expected_to_end_when_its_length_has_passed_and_late_after_twice_that() -> None:
    assert left_s(running("j", since=NOW - 100)) == (500.0, 1100.0)


def test_a_job_that_has_not_started_is_expected_to_run_its_whole_length() -> None:
    assert left_s(placed(a_job(duration_s=600.0))) == (600.0, 1200.0)


@pytest.mark.parametrize("ran_s", [600.0, 900.0, 90_000.0])
def test_the_end_of_a_job_that_outran_its_length_moves_on_by_half_of_its_age(ran_s: float) -> None:
    at_s, late_s = left_s(running("j", since=NOW - ran_s))
    assert at_s == ran_s / 2
    assert late_s == ran_s


def test_an_end_is_never_in_the_past() -> None:
    for ran_s in (0.0, 1.0, 399.0, 401.0, 599.0, 601.0, 1e6):
        at_s, late_s = left_s(running("j", since=NOW - ran_s))
        assert 0 < at_s <= late_s


def test_no_job_is_expected_to_outrun_its_max_duration() -> None:
    assert left_s(running("j", since=NOW - 100, max_duration_s=300.0)) == (200.0, 200.0)


def test_a_job_that_stops_leaves_within_its_grace() -> None:
    job = running("j", since=NOW - 100)
    assert left_s(job.but(wish=Wish.GIVE_WAY)) == (STOPS_WITHIN_S, GRACE_S)
    short = running("j", since=NOW - 100, checkpoint=CheckpointRule(grace_s=30.0))
    assert left_s(short.but(wish=Wish.CANCEL)) == (STOPS_WITHIN_S, 30.0)


def test_what_a_checkpoint_holds_is_not_run_again() -> None:
    saved = Checkpoint(attempt=1, seq=1, name="s", size_bytes=1, saved_at=1.0, manifest="m")
    job = running("j", since=NOW).but(checkpoint=saved, run_s=450.0, lost_s=50.0)
    assert left_s(job)[0] == pytest.approx(200.0)


def test_a_start_is_the_first_release_that_leaves_room_enough() -> None:
    jobs = [running(f"j{n}", since=NOW, duration_s=100.0 * (n + 1)) for n in range(4)]
    start = profile(*jobs).start(a_job("w", resources=wants(cpu=3)), "host")
    assert start is not None
    assert (start.at, start.after) == (NOW + 300.0, "j2")
    assert start.free.cpu == 3.0


def test_a_job_that_the_empty_node_could_not_take_has_no_start() -> None:
    found = profile(running("j", since=NOW)).start(a_job("w", resources=wants(cpu=9)), "host")
    assert found is None


def test_the_late_end_of_a_start_is_that_of_the_latest_it_waits_for() -> None:
    jobs = [
        running("slow", since=NOW - 900, duration_s=1000.0),
        running("sure", since=NOW, duration_s=500.0, max_duration_s=500.0),
    ]
    start = profile(*jobs).start(a_job("w", resources=wants(cpu=4)), "host")
    assert start is not None
    assert (start.at, start.late_at) == (NOW + 500.0, NOW + 1100.0)


def test_only_nodes_that_take_jobs_count_as_whole() -> None:
    nodes = [
        a_node("a"),
        a_node("b", state=NodeState.DRAINING),
        a_node("c", state=NodeState.LOST),
        a_node("d", cpu=0.5),
        a_node("e"),
    ]
    whole = Whole(nodes, {})
    assert whole.nodes(a_job()) == ("a", "e")
    assert whole.nodes(a_job(resources=wants(cpu=99))) == ()


def test_a_device_that_others_use_is_not_there_even_on_an_empty_node() -> None:
    node = a_node(devices=(a_device("g-0"),))
    use = {"g-0": DeviceUse(used_gib=30.0, foreign_gib=30.0)}
    heard = Sighting(node="host", heard_at=NOW, measured=Measured(devices=use))
    assert Whole([node], {}).nodes(a_job(resources=wants(gpus=1))) == ("host",)
    assert Whole([node], {"host": heard}).nodes(a_job(resources=wants(gpus=1))) == ()
