from typing import Any

import pytest
from makers import a_device, a_job, a_node, a_spec, placed, wants

from cloudwhale.model.job import GpuRequest, Placement, Span, WhereRule
from cloudwhale.model.node import NodeState
from cloudwhale.model.reason import Code, Refusal
from cloudwhale.planning.fit import could_ever_fit, fit, matches_model
from cloudwhale.planning.inventory import Free, free_capacity


def free_on(*jobs: Any, **facts: Any) -> Free:
    node = a_node(**facts)
    return free_capacity([node], jobs)[node.id]


TWO_GPUS = (a_device("gpu-0"), a_device("gpu-1"))


def test_a_job_gets_the_node_and_no_devices_when_it_asks_for_none() -> None:
    assert fit(a_spec(), free_on(devices=TWO_GPUS)) == Placement(node="host", devices=())


@pytest.mark.parametrize(
    ("spec", "facts", "code", "can_wait"),
    [
        (a_spec(resources=wants(cpu=3)), {}, Code.CPU, False),
        (a_spec(resources=wants(memory_gib=17.0)), {}, Code.MEMORY, False),
        (a_spec(resources=wants(disk_gib=101.0)), {}, Code.DISK, False),
        (a_spec(resources=wants(gpus=1)), {}, Code.NO_SUCH_GPU, False),
        (a_spec(resources=wants(gpus=3)), {"devices": TWO_GPUS}, Code.GPU_COUNT, False),
        (
            a_spec(resources=wants(gpu=GpuRequest(count=1, models=("L4",)))),
            {"devices": TWO_GPUS},
            Code.NO_SUCH_GPU,
            False,
        ),
        (
            a_spec(resources=wants(gpu=GpuRequest(count=1, memory_gib=Span(least=80.0)))),
            {"devices": TWO_GPUS},
            Code.GPU_MEMORY,
            False,
        ),
        (a_spec(where=WhereRule(labels={"rack": "a"})), {}, Code.LABELS, False),
        (
            a_spec(where=WhereRule(labels={"rack": "a"})),
            {"labels": {"rack": "b"}},
            Code.LABELS,
            False,
        ),
        (a_spec(where=WhereRule(not_on=("host",))), {}, Code.EXCLUDED, False),
        (a_spec(mounts={"/data": "/data:ro"}), {"mounts": ("/scratch",)}, Code.MOUNTS, False),
        (a_spec(image="debian:12"), {}, Code.RUNTIME, False),
        (a_spec(market="spot"), {}, Code.MARKET, False),
        (a_spec(nodes=2), {}, Code.GANG, False),
    ],
)
def test_each_hard_fact_refuses_for_good(
    spec: Any, facts: dict[str, Any], code: Code, can_wait: bool
) -> None:
    answer = could_ever_fit(spec, free_on(**facts))
    assert isinstance(answer, Refusal)
    assert (answer.code, answer.can_wait) == (code, can_wait)
    assert answer.says
    assert answer.change


def test_a_mount_below_an_offered_path_fits() -> None:
    free = free_on(mounts=("/data",))
    assert isinstance(fit(a_spec(mounts={"/data/corpus": "/data"}), free), Placement)
    assert isinstance(fit(a_spec(mounts={"/database": "/data"}), free), Refusal)


def test_taken_cpus_refuse_for_now_and_say_how_many_are_free() -> None:
    running = placed(a_job(resources=wants(cpu=1.5)))
    answer = fit(a_spec(resources=wants(cpu=1)), free_on(running))
    assert isinstance(answer, Refusal)
    assert (answer.code, answer.can_wait) == (Code.CPU, True)
    assert "0.5 of 2 free" in answer.says
    assert answer.shortfall == 0.5


def test_a_whole_gpu_is_not_given_beside_a_share_of_it() -> None:
    sharing = placed(
        a_job(resources=wants(cpu=0, gpu=GpuRequest(count=1, share=0.25))), "host", "gpu-0"
    )
    one_gpu = free_on(sharing, devices=(a_device("gpu-0"),))
    answer = fit(a_spec(resources=wants(gpus=1)), one_gpu)
    assert isinstance(answer, Refusal)
    assert (answer.code, answer.can_wait) == (Code.GPU_SHARE, True)


def test_shares_fill_a_gpu_to_the_last_tenth() -> None:
    tenth = GpuRequest(count=1, share=0.1)
    sharing = [
        placed(a_job(f"j-{n}", resources=wants(cpu=0, gpu=tenth)), "host", "gpu-0")
        for n in range(9)
    ]
    free = free_on(*sharing, devices=(a_device("gpu-0"),))
    last = fit(a_spec(resources=wants(cpu=0, gpu=tenth)), free)
    assert last == Placement(node="host", devices=("gpu-0",))


def test_memory_of_a_shared_gpu_refuses_when_shares_would_still_fit() -> None:
    big = GpuRequest(count=1, share=0.25, memory_gib=Span(least=30.0))
    sharing = placed(a_job(resources=wants(cpu=0, gpu=big)), "host", "gpu-0")
    answer = fit(a_spec(resources=wants(gpu=big)), free_on(sharing, devices=(a_device("gpu-0"),)))
    assert isinstance(answer, Refusal)
    assert answer.code is Code.GPU_MEMORY
    assert "30 GiB" in answer.says
    assert "10" in answer.says


def test_a_share_goes_to_the_fullest_gpu_that_still_holds_it() -> None:
    half = GpuRequest(count=1, share=0.5)
    sharing = placed(a_job(resources=wants(cpu=0, gpu=half)), "host", "gpu-1")
    free = free_on(sharing, devices=TWO_GPUS)
    assert fit(a_spec(resources=wants(gpu=half)), free) == Placement(
        node="host", devices=("gpu-1",)
    )


def test_two_gpus_of_one_model_are_preferred_to_a_mixed_pair() -> None:
    mixed = (a_device("a", "L4", 24.0), a_device("b"), a_device("c", "L4", 24.0))
    answer = fit(a_spec(resources=wants(gpus=2)), free_on(devices=mixed))
    assert answer == Placement(node="host", devices=("a", "c"))


def test_a_count_range_takes_what_is_there() -> None:
    request = GpuRequest(count=1, count_most=4)
    answer = fit(a_spec(resources=wants(gpu=request)), free_on(devices=TWO_GPUS))
    assert answer == Placement(node="host", devices=("gpu-0", "gpu-1"))


@pytest.mark.parametrize("state", [NodeState.DRAINING, NodeState.LOST])
def test_a_node_that_drains_or_is_lost_takes_nothing_for_now(state: NodeState) -> None:
    node = a_node(state=state)
    answer = fit(a_spec(), free_capacity([node], [])[node.id])
    assert isinstance(answer, Refusal)
    assert answer.can_wait


def test_a_job_with_secrets_waits_for_the_key_of_a_node_that_was_never_heard() -> None:
    node = a_node(state=NodeState.EXPECTED)
    free = free_capacity([node], [])[node.id]
    assert isinstance(fit(a_spec(), free), Placement)
    answer = fit(a_spec(secrets=("HF_TOKEN",)), free)
    assert isinstance(answer, Refusal)
    assert answer.code is Code.NODE_NOT_READY


@pytest.mark.parametrize(
    ("asked", "model", "is_it"),
    [
        ("A100", "A100-40GB", True),
        ("A100", "A100-80GB", True),
        ("A100-40GB", "A100-80GB", False),
        ("A10", "A100-40GB", False),
        ("L4", "L40S", False),
    ],
)
def test_a_model_means_its_memory_variants_and_nothing_that_begins_like_it(
    asked: str, model: str, is_it: bool
) -> None:
    assert matches_model(asked, model) is is_it
