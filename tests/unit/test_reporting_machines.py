"""Nodes as bars, as plain rows and as a document."""

import pytest
from makers import a_device, a_job, a_node, a_world, placed, wants

from cloudwhale.model.job import GpuRequest, Job, Span
from cloudwhale.model.node import DeviceUse, Measured, NodeState
from cloudwhale.reporting.bars import stacked
from cloudwhale.reporting.machines import Look, Occupied, node_keys, occupied
from cloudwhale.reporting.machines_text import node_lines, nodes_sheet
from cloudwhale.reporting.sheet import plain_lines, text_of


def a_sharer(job: str, share: float, memory_gib: float) -> Job:
    gpu = GpuRequest(count=1, share=share, memory_gib=Span(least=memory_gib))
    return placed(a_job(job, resources=wants(cpu=0.5, gpu=gpu)), "host", "gpu-0")


def a_busy_node(look: Look | None = None) -> Occupied:
    """Two jobs on the first of two GPUs, one without a GPU, one that waits."""
    node = a_node(devices=(a_device("gpu-0"), a_device("gpu-1").but(declared=True)))
    jobs = [a_sharer("train-1", 0.5, 10.0), a_sharer("tune-1", 0.25, 20.0)]
    jobs += [placed(a_job("plain-1", resources=wants(cpu=0.25))), a_job("other-1")]
    looks = {} if look is None else {"host": look}
    return occupied(a_world(jobs, [node]), looks)[0]


def a_look() -> Look:
    use = DeviceUse(used_gib=33.5, foreign_gib=4.0, sm=0.7, jobs={"train-1": 9.5, "tune-1": 20.0})
    return Look(96.0, Measured(devices={"gpu-0": use}, cpu=1.2, memory_gib=3.0))


def text(place: Occupied, width: int = 80) -> list[str]:
    return [text_of(line).rstrip() for line in node_lines([place], 100.0, width)]


def test_only_jobs_that_hold_a_place_stand_on_a_node() -> None:
    assert [job.id for job in a_busy_node().jobs] == ["plain-1", "train-1", "tune-1"]


def test_a_device_has_a_bar_of_share_and_one_of_memory_each_by_job() -> None:
    lines = text(a_busy_node())
    at = lines.index("  gpu-0  A100-40GB")
    assert lines[at + 1 : at + 5] == [
        "    share  ██████████▓▓▓▓▓·····  75 %",
        "    memory █████▓▓▓▓▓▓▓▓▓▓·····  75 %  30 of 40 GiB",
        "    █ train-1  starting  50 %, 10 GiB",
        "    ▓ tune-1  starting  25 %, 20 GiB",
    ]


def test_what_was_measured_stands_beside_what_was_promised() -> None:
    lines = "\n".join(text(a_busy_node(a_look())))
    assert "measured 4.0 s ago" in lines
    assert "30 of 40 GiB, 33.5 used (4 by others)" in lines
    assert "75 %  busy 70 % of the time" in lines
    assert "10 GiB, 9.5 used" in lines
    assert "of 2 CPUs, 1.2 used" in lines


def test_a_declared_device_is_marked_everywhere() -> None:
    place = a_busy_node()
    assert "  gpu-1  A100-40GB, declared: no real GPU" in text(place)
    assert "A100-40GB (declared)" in "\n".join(plain_lines(nodes_sheet([place])))
    assert [device["declared"] for device in node_keys(place, 0.0)["devices"]] == [False, True]


def test_a_job_without_a_gpu_is_named_below_the_devices() -> None:
    assert text(a_busy_node())[-1] == "  jobs     without GPU: plain-1"


@pytest.mark.parametrize("state", NodeState)
def test_every_state_of_a_node_is_shown(state: NodeState) -> None:
    place = occupied(a_world([], [a_node(state=state)]))[0]
    assert f"host  {state.value}" in text(place)[0]


@pytest.mark.parametrize("width", [80, 140])
def test_nodes_fit_their_terminal(width: int) -> None:
    lines = text(a_busy_node(a_look()), width)
    assert max(map(len, lines)) <= width


def test_a_wide_terminal_has_both_bars_of_a_device_in_one_line() -> None:
    (line,) = (line for line in text(a_busy_node(), 140) if "share" in line and "█" in line)
    assert "memory" in line


def test_a_pipe_gets_one_thing_a_row() -> None:
    lines = plain_lines(nodes_sheet([a_busy_node(a_look())]))
    assert [line.split()[2] for line in lines[1:6]] == ["cpu", "memory", "disk", "gpu-0", "gpu-1"]
    assert lines[4].split()[3:8] == ["30", "40", "GiB", "75%", "33.5"]
    assert lines[4].split()[-1] == "train-1,tune-1"
    assert lines[-1] == "1 node, 2 GPUs, 3 jobs on them."


def test_a_document_has_free_amounts_in_gib_and_shares() -> None:
    keys = node_keys(a_busy_node(), 0.0)
    assert (keys["free_cpu"], keys["cpu"], keys["used_cpu"]) == (0.75, 2.0, None)
    device = keys["devices"][0]
    assert (device["free_share"], device["free_gib"], device["used_gib"]) == (0.25, 10.0, None)
    assert keys["jobs"] == ["plain-1", "train-1", "tune-1"]


def test_a_document_has_what_each_job_uses_of_a_device() -> None:
    keys = node_keys(a_busy_node(a_look()), 0.0)
    device = keys["devices"][0]
    assert (device["used_gib"], device["foreign_gib"], device["sm"]) == (33.5, 4.0, 0.7)
    assert device["jobs"][0] == {
        "id": "train-1", "share": 0.5, "memory_gib": 10.0, "used_gib": 9.5,
    }  # fmt: skip
    assert keys["devices"][1]["used_gib"] is None


def test_the_parts_of_a_bar_are_as_long_as_their_sum() -> None:
    assert stacked([1 / 3, 1 / 3, 1 / 3], 20) == ((7, 6, 7), 0)
    assert stacked([0.001, 0.5], 20) == ((1, 9), 10)
    assert stacked([], 20) == ((), 20)


def test_the_parts_of_a_bar_never_overflow_it() -> None:
    sizes, empty = stacked([0.9, 0.9, 0.001], 20)
    assert sum(sizes) + empty == 20


def test_a_job_on_several_nodes_is_one_job() -> None:
    lines = plain_lines(nodes_sheet([a_busy_node(), a_busy_node()]))
    assert lines[-1] == "2 nodes, 4 GPUs, 3 jobs on them."
