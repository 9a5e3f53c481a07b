from makers import a_device, a_job, a_node, placed, wants

from cloudwhale.model.job import GpuRequest, Job, Placement, Resources, Span
from cloudwhale.model.node import Device, DeviceUse, Measured, Node
from cloudwhale.model.world import Sighting
from cloudwhale.planning.inventory import Free, device_memory_taken, free_capacity

CARD = a_device("g0", "RTX4090", 24.0)


def sharing(job_id: str = "j", share: float = 0.25, gib: float = 6.0) -> Job:
    gpu = GpuRequest(count=1, share=share, memory_gib=Span(least=gib))
    return placed(a_job(job_id, resources=wants(cpu=1, gpu=gpu)), "host", "g0")


def seen(**use: object) -> dict[str, Sighting]:
    measured = Measured(devices={"g0": DeviceUse.model_validate({"used_gib": 0.0, **use})})
    return {"host": Sighting(node="host", heard_at=0.0, measured=measured)}


def free_on(node: Node, *jobs: Job, sightings: dict[str, Sighting] | None = None) -> Free:
    return free_capacity([node], jobs, sightings)[node.id]


def test_of_promised_and_measured_memory_the_larger_is_gone() -> None:
    node = a_node(devices=(CARD,))
    modest = free_on(node, sharing(), sightings=seen(jobs={"j": 2.0}))
    grown = free_on(node, sharing(), sightings=seen(jobs={"j": 9.0}))
    assert modest.devices[0].memory_gib == 18.0
    assert grown.devices[0].memory_gib == 15.0


def test_what_others_use_of_a_device_is_gone_but_for_what_a_driver_takes() -> None:
    node = a_node(devices=(CARD,))
    driver = free_on(node, sightings=seen(foreign_gib=0.5)).devices[0]
    game = free_on(node, sightings=seen(foreign_gib=8.0, sm=0.9)).devices[0]
    assert (driver.memory_gib, driver.foreign_gib) == (24.0, 0.0)
    assert (game.memory_gib, game.foreign_gib, game.sm) == (16.0, 8.0, 0.9)


def test_without_sightings_the_promises_alone_count() -> None:
    free = free_on(a_node(devices=(CARD,)), sharing())
    assert (free.devices[0].memory_gib, free.devices[0].share, free.devices[0].jobs) == (
        18.0, 0.75, 1,
    )  # fmt: skip


def test_what_the_driver_shows_is_what_is_packed() -> None:
    shown = Device(id="g0", model="RTX4090", memory_gib=24.0, usable_gib=23.5)
    asked = GpuRequest(count=1, share=0.5, memory_gib=Span(least=24.0))
    assert device_memory_taken(Resources(gpu=asked), shown) == 23.5
    assert device_memory_taken(wants(gpus=1), shown) == 23.5
    assert device_memory_taken(wants(gpu=GpuRequest(count=1, share=0.5)), shown) == 11.75


def test_what_comes_and_goes_leaves_everything_as_it_was() -> None:
    node = a_node(devices=(CARD,), disk_io_mb_s=500.0)
    job = sharing()
    job = job.but(spec=job.spec.but(resources=job.wants.but(disk_io_mb_s=100.0, disk_gib=5.0)))
    assert job.placement is not None
    before = free_on(node)
    after = before.less(job.wants, job.placement)
    assert (after.disk_io_mb_s, after.disk_gib) == (400.0, 95.0)
    assert after.more(job.wants, job.placement) == before


def test_of_a_soft_dimension_the_smaller_remainder_counts_and_unknown_stays_unknown() -> None:
    known, unknown = a_node(disk_io_mb_s=500.0), a_node()
    busy = Measured(disk_io_mb_s=450.0)
    sightings = {"host": Sighting(node="host", heard_at=0.0, measured=busy)}
    assert free_on(known, sightings=sightings).disk_io_mb_s == 50.0
    assert free_on(unknown, sightings=sightings).disk_io_mb_s is None


def test_within_two_songs_of_a_node_the_lesser_of_each_counts() -> None:
    node = a_node(devices=(CARD, a_device("g1", "RTX4090", 24.0)))
    free = free_on(node)
    one = free.less(wants(cpu=1, gpus=1), Placement(node="host", devices=("g0",)))
    both = free.within(one)
    assert (both.cpu, [d.share for d in both.devices]) == (1.0, [0.0, 1.0])
