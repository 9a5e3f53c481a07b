import pytest
from makers import a_device, a_node, wants

from cloudwhale.model.job import GpuRequest, Placement, Resources, Span
from cloudwhale.planning.inventory import Free, free_capacity
from cloudwhale.planning.usual import MOST_KINDS, Kind, lost_gpus, usual

CARDS = (a_device("g0"), a_device("g1"))
HALF = wants(cpu=1, gpu=GpuRequest(count=1, share=0.5))


def kinds(*demands: tuple[Resources, float]) -> tuple[Kind, ...]:
    return usual(demands, CARDS)


def free(*taken: tuple[str, float], cpu: float = 16.0) -> Free:
    node = a_node(cpu=cpu, devices=CARDS)
    room = free_capacity([node], [])[node.id]
    for device, share in taken:
        gpu = GpuRequest(count=1, share=share)
        room = room.less(wants(cpu=0, gpu=gpu), Placement(node=node.id, devices=(device,)))
    return room


def test_the_weights_of_a_mix_sum_to_one_and_somebody_always_wants_a_whole_gpu() -> None:
    mix = kinds((HALF, 3.0), (wants(cpu=4), 9.0))
    assert sum(kind.weight for kind in mix) == pytest.approx(1.0)
    assert [(kind.gpu.share, kind.weight) for kind in mix] == [(0.5, 0.75), (1.0, 0.25)]


def test_demands_that_differ_in_cpu_alone_are_one_kind() -> None:
    mix = kinds((wants(cpu=2, gpu=HALF.gpu), 1.0), (wants(cpu=6, gpu=HALF.gpu), 3.0))
    assert [kind.cpu for kind in mix if kind.gpu.share == 0.5] == [5.0]


def test_only_the_most_usual_kinds_are_told_apart() -> None:
    many = [(wants(gpu=GpuRequest(count=1, share=n / 100)), float(n)) for n in range(1, 60)]
    assert len(kinds(*many)) == MOST_KINDS


def test_a_half_on_a_whole_gpu_spoils_more_than_on_a_half() -> None:
    mix = kinds((wants(gpus=1), 9.0), (HALF, 1.0))
    room = free(("g0", 0.5))
    on_half, on_whole = lost_gpus(room, HALF, ("g0",), mix), lost_gpus(room, HALF, ("g1",), mix)
    assert on_half < 0.1 < on_whole


def test_taking_the_last_cpus_takes_the_gpus_too() -> None:
    mix = kinds((wants(cpu=4, gpus=1), 99.0))
    only_cpu = wants(cpu=12)
    assert lost_gpus(free(cpu=16.0), only_cpu, (), mix) == pytest.approx(1.0, abs=0.02)
    assert lost_gpus(free(cpu=64.0), only_cpu, (), mix) == 0.0


def test_what_nobody_can_use_is_not_lost() -> None:
    large = Resources(gpu=GpuRequest(count=1, memory_gib=Span(least=60.0)))
    mix = tuple(kind for kind in kinds((large, 1.0)) if kind.gpu.memory_gib.least)
    assert lost_gpus(free(), HALF, ("g0",), mix) == 0.0


def test_a_job_for_all_gpus_of_a_node_loses_when_one_is_taken() -> None:
    mix = tuple(k for k in kinds((wants(gpus=2), 99.0)) if k.gpu.count == 2)
    assert lost_gpus(free(), wants(cpu=1, gpus=1), ("g0",), mix) == pytest.approx(2.0, abs=0.03)
