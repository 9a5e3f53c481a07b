from makers import a_device, a_node

from cloudwhale.model.job import GpuRequest
from cloudwhale.planning.devices import chosen_devices, in_order
from cloudwhale.planning.inventory import DeviceFree

PAIRS = (("g0", "g2"), ("g1", "g3"))


def free(name: str, share: float = 1.0, model: str = "A100-40GB", gib: float = 40.0) -> DeviceFree:
    return DeviceFree(a_device(name, model, gib), gib * share, share)


def chosen(count: int, *devices: DeviceFree, links: tuple[tuple[str, str], ...] = ()) -> list[str]:
    return list(chosen_devices(GpuRequest(count=count), devices, links))


def test_the_fullest_device_is_tried_first_and_a_large_model_last() -> None:
    devices = [free("big", model="A100-80GB", gib=80.0), free("whole"), free("half", 0.5)]
    assert [d.device.id for d in in_order(devices, ())] == ["half", "whole", "big"]


def test_one_model_serves_a_job_where_one_has_enough() -> None:
    mixed = (free("a", model="L4", gib=24.0), free("b"), free("c"))
    assert chosen(2, *mixed) == ["b", "c"]
    assert chosen(3, *mixed) == ["a", "b", "c"]


def test_two_devices_that_nvlink_joins_go_to_one_job() -> None:
    assert chosen(2, *(free(f"g{n}") for n in range(4)), links=PAIRS) == ["g0", "g2"]
    assert chosen(4, *(free(f"g{n}") for n in range(4)), links=PAIRS) == ["g0", "g2", "g1", "g3"]


def test_one_device_comes_from_a_broken_pair() -> None:
    devices = (free("g0"), free("g1"), free("g2", 0.5), free("g3"))
    assert [d.device.id for d in in_order(devices, PAIRS)] == ["g2", "g0", "g1", "g3"]
    whole = tuple(d for d in devices if d.share == 1.0)
    assert chosen(1, *whole, links=PAIRS) == ["g0"]
    assert chosen(3, *whole, links=PAIRS) == ["g1", "g3", "g0"]


def test_where_all_are_joined_the_first_are_taken() -> None:
    names = [f"g{n}" for n in range(4)]
    every = tuple((a, b) for a in names for b in names if a < b)
    assert chosen(2, *(free(name) for name in names), links=every) == ["g0", "g1"]
    assert a_node(devices=()).facts.links == ()
