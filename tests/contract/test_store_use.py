"""What every store adds up from events: what projects have used, what lies cached on nodes."""

import pytest
from makers import a_device, a_job, a_node, wants
from stories import WHY, submitted

from cloudwhale.model import event as e
from cloudwhale.model.job import GpuRequest, Job, JobState, Placement
from cloudwhale.model.node import NodeState
from cloudwhale.model.world import USE_HALF_LIFE_S, Use
from cloudwhale.spi.store import Store

ON_ONE = Placement(node="host", devices=("gpu-0",))
ON_TWO = Placement(node="host", devices=("gpu-0", "gpu-1"))
HALF_A_GPU = wants(gpu=GpuRequest(count=1, share=0.5))
TWO_GPUS = wants(gpus=2)


def runs(job: str, placement: Placement, since: float, attempt: int = 1) -> list[e.Event]:
    return [
        e.Placed(at=since, job=job, attempt=attempt, placement=placement, reason=WHY),
        e.Started(at=since, job=job, attempt=attempt),
    ]


def joined(store: Store, *names: str, cpu: float = 4.0) -> None:
    devices = (a_device("gpu-0"), a_device("gpu-1"))
    nodes = [a_node(name, devices=devices, cpu=cpu) for name in names]
    store.append([e.NodeJoined(at=0.0, node=node) for node in nodes])


def used(store: Store) -> dict[str, Use]:
    """Return what projects have used; whoever replays must find the same."""
    world = store.world(1000.0)
    assert store.world_at(store.version(), 1000.0) == world
    return dict(world.use)


# -- what projects have used -----------------------------------------------------------------


def test_a_job_that_runs_has_used_nothing_yet(store: Store) -> None:
    joined(store, "host")
    store.append([*submitted(a_job("a")), *runs("a", ON_ONE, 10.0)])
    assert used(store) == {}


def test_an_attempt_counts_as_seconds_times_devices_times_share(store: Store) -> None:
    joined(store, "host")
    store.append(
        submitted(
            a_job("a", project="nlp", resources=HALF_A_GPU),
            a_job("b", project="vision", resources=TWO_GPUS),
        )
    )
    store.append([*runs("a", ON_ONE, 0.0), *runs("b", ON_TWO, 0.0)])
    store.append([e.Finished(at=30.0, job=job, attempt=1) for job in ("a", "b")])
    assert used(store) == {
        "nlp": Use(device_s=15.0, at=30.0),
        "vision": Use(device_s=60.0, at=30.0),
    }


def test_without_devices_the_part_of_the_nodes_cpus_counts(store: Store) -> None:
    joined(store, "host", cpu=8.0)
    store.append(submitted(a_job("a", resources=wants(cpu=2.0))))
    store.append([*runs("a", Placement(node="host"), 0.0), e.Finished(at=40.0, job="a", attempt=1)])
    assert used(store) == {"default": Use(device_s=10.0, at=40.0)}


def test_its_agents_word_for_how_long_it_ran_counts(store: Store) -> None:
    joined(store, "host")
    store.append([*submitted(a_job("a", resources=wants(gpus=1))), *runs("a", ON_ONE, 0.0)])
    store.append([e.Finished(at=500.0, job="a", attempt=1, ran_s=20.0)])
    assert used(store) == {"default": Use(device_s=20.0, at=500.0)}


ENDS: list[e.OfJob] = [
    e.Finished(at=9.0, job="a", attempt=1),
    e.Failed(at=9.0, job="a", attempt=1, exit_code=1, reason=WHY),
    e.Retried(at=9.0, job="a", attempt=1, exit_code=1, reason=WHY, not_before=0.0),
    e.GaveWay(at=9.0, job="a", attempt=1, reason=WHY),
    e.Cancelled(at=9.0, job="a", reason=WHY),
    e.Paused(at=9.0, job="a", reason=WHY),
]


@pytest.mark.parametrize("end", ENDS, ids=lambda end: str(end.kind))
def test_however_an_attempt_ends_its_use_counts_once(store: Store, end: e.Event) -> None:
    joined(store, "host")
    store.append([*submitted(a_job("a", resources=wants(gpus=1))), *runs("a", ON_ONE, 2.0)])
    store.append([end])
    assert used(store) == {"default": Use(device_s=7.0, at=9.0)}
    late = e.Finished(at=99.0, job="a", attempt=1)
    store.append([late])
    assert used(store) == {"default": Use(device_s=7.0, at=9.0)}


def test_an_attempt_that_was_lost_counts_when_it_is_out_for_certain(store: Store) -> None:
    joined(store, "host")
    store.append([*submitted(a_job("a", resources=wants(gpus=1))), *runs("a", ON_ONE, 2.0)])
    store.append([e.AttemptLost(at=20.0, job="a", attempt=1, reason=WHY)])
    assert used(store) == {}
    store.append([e.Cleared(at=32.0, job="a", attempt=1, lost_s=18.0)])  # last heard at 20
    assert used(store) == {"default": Use(device_s=18.0, at=32.0)}


def test_an_attempt_that_never_started_has_used_nothing(store: Store) -> None:
    joined(store, "host")
    store.append([*submitted(a_job("a", resources=wants(gpus=1))), runs("a", ON_ONE, 2.0)[0]])
    store.append([e.Cancelled(at=20.0, job="a", reason=WHY)])
    assert used(store) == {}


def test_what_was_used_a_half_life_ago_counts_half(store: Store) -> None:
    joined(store, "host")
    two = [a_job(job, resources=wants(gpus=1)) for job in ("a", "b")]
    store.append([*submitted(*two), *runs("a", ON_ONE, 0.0)])
    store.append([e.Finished(at=100.0, job="a", attempt=1)])
    later = 100.0 + USE_HALF_LIFE_S
    store.append([*runs("b", ON_ONE, later - 8.0), e.Finished(at=later, job="b", attempt=1)])
    assert used(store) == {"default": Use(device_s=58.0, at=later)}


def test_an_end_that_is_told_late_has_faded_too_and_turns_no_clock_back(store: Store) -> None:
    joined(store, "host")
    two = [a_job(job, resources=wants(gpus=1)) for job in ("a", "b")]
    store.append([*submitted(*two), *runs("a", ON_ONE, 0.0), *runs("b", ON_TWO, 0.0)])
    later = 10.0 + USE_HALF_LIFE_S
    store.append([e.Finished(at=later, job="a", attempt=1, ran_s=10.0)])
    store.append([e.Finished(at=10.0, job="b", attempt=1)])
    assert used(store) == {"default": Use(device_s=20.0, at=later)}


# -- what lies cached on nodes ---------------------------------------------------------------


def cached(store: Store, node: str = "host") -> tuple[str, ...]:
    used(store)
    return store.world(1.0).nodes[node].cached


def a_llama(job: str, **fields: object) -> Job:
    return a_job(job, affinity=("llama",), image="torch:2", inputs=("s3://c/",), **fields)


def test_a_job_that_started_leaves_labels_image_and_inputs(store: Store) -> None:
    joined(store, "host", "other")
    store.append([*submitted(a_llama("a")), runs("a", ON_ONE, 1.0)[0]])
    assert cached(store) == (), "an order alone brings nothing"
    store.append(runs("a", ON_ONE, 1.0)[1:])
    assert cached(store) == ("label:llama", "image:torch:2", "input:s3://c/")
    assert cached(store, "other") == ()


def test_what_is_left_again_is_the_newest_and_there_once(store: Store) -> None:
    joined(store, "host")
    store.append(submitted(a_llama("a"), a_job("b", affinity=("bert",)), a_llama("c")))
    for job in "abc":
        store.append(runs(job, ON_ONE, 1.0))
    assert cached(store) == ("label:bert", "label:llama", "image:torch:2", "input:s3://c/")


def test_no_more_than_fifty_are_remembered(store: Store) -> None:
    joined(store, "host")
    store.append(submitted(*(a_job(f"j{n}", affinity=(f"l{n}",)) for n in range(60))))
    for number in range(60):
        store.append(runs(f"j{number}", ON_ONE, 1.0))
    assert cached(store) == tuple(f"label:l{n}" for n in range(10, 60))


def test_an_agent_that_comes_back_finds_what_was_left(store: Store) -> None:
    joined(store, "host")
    store.append([*submitted(a_llama("a")), *runs("a", ON_ONE, 1.0)])
    joined(store, "host")
    assert cached(store) == ("label:llama", "image:torch:2", "input:s3://c/")


# -- nodes that come and go ------------------------------------------------------------------


def test_a_removed_node_is_in_no_world_and_no_list(store: Store) -> None:
    joined(store, "host", "other")
    store.append([e.NodeRemoved(at=5.0, node="host")])
    assert list(store.world(6.0).nodes) == ["other"]
    assert [node.id for node in store.nodes()] == ["other"]
    assert [told.event.kind for told in store.events("host")] == ["node-joined", "node-removed"]


LATE: list[e.Event] = [
    e.NodeLost(at=6.0, node="host", silent_s=1.0),
    e.NodeDrained(at=6.0, node="host"),
    e.NodeResumed(at=6.0, node="host"),
    e.NodeRemoved(at=6.0, node="host"),
]


@pytest.mark.parametrize("late", LATE, ids=lambda event: str(event.kind))
def test_a_removed_node_swallows_what_is_said_of_it_late(store: Store, late: e.Event) -> None:
    joined(store, "host")
    store.append([e.NodeRemoved(at=5.0, node="host")])
    store.append([late])
    assert store.world(6.0).nodes == {}
    assert store.nodes() == []


def test_a_job_that_starts_on_a_removed_node_does_not_bring_it_back(store: Store) -> None:
    joined(store, "host")
    store.append([*submitted(a_llama("a")), runs("a", ON_ONE, 1.0)[0]])
    store.append([e.NodeRemoved(at=5.0, node="host"), e.Started(at=6.0, job="a", attempt=1)])
    assert store.world(6.0).nodes == {}
    store.append([e.Finished(at=16.0, job="a", attempt=1)])
    assert store.world(16.0).jobs == {}


def test_an_agent_that_joins_under_a_removed_name_makes_a_new_node(store: Store) -> None:
    joined(store, "host")
    store.append([*submitted(a_llama("a")), *runs("a", ON_ONE, 1.0)])
    store.append([e.NodeRemoved(at=5.0, node="host")])
    joined(store, "host")
    assert store.world(6.0).nodes["host"].state is NodeState.READY
    assert cached(store) == ()


def test_a_drained_node_takes_jobs_again_when_it_is_resumed(store: Store) -> None:
    joined(store, "host")
    store.append([e.NodeDrained(at=2.0, node="host")])
    assert store.world(2.0).nodes["host"].state is NodeState.DRAINING
    store.append([e.NodeResumed(at=3.0, node="host")])
    assert store.world(3.0).nodes["host"].state is NodeState.READY


def test_a_node_that_was_never_heard_is_expected_again_when_it_is_resumed(store: Store) -> None:
    store.append([e.NodeJoined(at=0.0, node=a_node("far", state=NodeState.EXPECTED))])
    store.append([e.NodeDrained(at=2.0, node="far"), e.NodeResumed(at=3.0, node="far")])
    assert store.world(3.0).nodes["far"].state is NodeState.EXPECTED


@pytest.mark.parametrize("silent", [True, False])
def test_a_node_that_takes_jobs_or_is_lost_is_not_changed_by_being_resumed(
    store: Store, silent: bool
) -> None:
    joined(store, "host")
    if silent:
        store.append([e.NodeLost(at=2.0, node="host", silent_s=9.0)])
    before = store.world(3.0).nodes
    store.append([e.NodeResumed(at=3.0, node="host")])
    assert store.world(3.0).nodes == before


def test_a_job_that_is_held_says_until_when_and_its_place_ends_that(store: Store) -> None:
    joined(store, "host")
    store.append([*submitted(a_job("a")), e.Held(at=1.0, job="a", until=50.0, reason=WHY)])
    held = store.world(1.0).jobs["a"]
    assert (held.state, held.held_until, held.reason) == (JobState.PENDING, 50.0, WHY)
    store.append(runs("a", ON_ONE, 9.0))
    assert store.world(9.0).jobs["a"].held_until is None
    used(store)
