"""Nodes as bars, as plain rows and as a document."""

from makers import a_device, a_job, a_node, a_world, placed, wants

from cloudwhale.model.job import GpuRequest
from cloudwhale.reporting.machines import Occupied, node_keys, node_lines, nodes_sheet, occupied
from cloudwhale.reporting.sheet import plain_lines, text_of


def a_busy_node() -> Occupied:
    node = a_node(devices=(a_device("gpu-0"), a_device("gpu-1")))
    half = wants(cpu=0.5, gpu=GpuRequest(count=1, share=0.5))
    job = placed(a_job("train-1", resources=half), "host", "gpu-0")
    waiting = a_job("other-1")
    return occupied(a_world([job, waiting], [node]))[0]


def test_only_jobs_that_hold_a_place_stand_on_a_node() -> None:
    assert [job.id for job in a_busy_node().jobs] == ["train-1"]


def test_a_device_shows_what_is_taken_of_it_and_by_whom() -> None:
    lines = [text_of(line) for line in node_lines([a_busy_node()])]
    taken, free = (next(line for line in lines if name in line) for name in ("gpu-0", "gpu-1"))
    assert "50 %" in taken and "20 of 40 GiB" in taken
    assert "0 %" in free
    assert lines[-1].split(None, 1) == ["jobs", "train-1 (gpu-0)"]


def test_a_pipe_gets_one_thing_a_row() -> None:
    lines = plain_lines(nodes_sheet([a_busy_node()]))
    assert [line.split()[2] for line in lines[1:6]] == ["cpu", "memory", "disk", "gpu-0", "gpu-1"]
    assert lines[-1] == "1 node, 2 GPUs, 1 job on them."


def test_a_document_has_free_amounts_in_gib_and_shares() -> None:
    keys = node_keys(a_busy_node())
    assert (keys["free_cpu"], keys["cpu"]) == (1.5, 2.0)
    assert keys["devices"][0]["free_share"] == 0.5
    assert keys["devices"][0]["free_gib"] == 20.0
    assert keys["jobs"] == ["train-1"]
