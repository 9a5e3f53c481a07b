"""What is free on every node after all that is already promised."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from cloudwhale.model.job import HOLDS_A_PLACE, Job, Placement, Resources
from cloudwhale.model.node import Device, Node
from cloudwhale.model.units import GiB

# Floats are summed and taken apart again: what is smaller than this is nothing.
DUST = 1e-9


@dataclass(frozen=True, slots=True)
class DeviceFree:
    """What is free on one device."""

    device: Device
    memory_gib: GiB
    share: float


@dataclass(frozen=True, slots=True)
class Free:
    """What is free on one node."""

    node: Node
    cpu: float
    memory_gib: GiB
    disk_gib: GiB
    devices: tuple[DeviceFree, ...]

    def less(self, wants: Resources, placement: Placement) -> "Free":
        """Return what is left when a job with these wants sits here."""
        taken = set(placement.devices)
        return replace(
            self,
            cpu=self.cpu - wants.cpu,
            memory_gib=self.memory_gib - (wants.memory_gib or 0.0),
            disk_gib=self.disk_gib - (wants.disk_gib or 0.0),
            devices=tuple(
                _device_less(free, wants) if free.device.id in taken else free
                for free in self.devices
            ),
        )


def device_memory_taken(wants: Resources, device: Device) -> GiB:
    """Return the memory that a job takes of one device, in GiB.

    A job that wants the whole device takes all of it; a sharing one what it asked for, or its
    share of the memory when it did not say.
    """
    if wants.gpu.share >= 1.0:
        return device.packs_gib
    return wants.gpu.memory_gib.least or wants.gpu.share * device.packs_gib


def free_capacity(nodes: Iterable[Node], jobs: Iterable[Job]) -> Mapping[str, Free]:
    """Return what is free on each node, by node id, after the jobs that hold a place."""
    free = {node.id: _all_of(node) for node in nodes}
    for job in jobs:
        place = job.placement
        if place is not None and job.state in HOLDS_A_PLACE and place.node in free:
            free[place.node] = free[place.node].less(job.wants, place)
    return free


def _all_of(node: Node) -> Free:
    facts = node.facts
    return Free(
        node=node,
        cpu=facts.cpu,
        memory_gib=facts.memory_gib,
        disk_gib=facts.disk_gib,
        devices=tuple(DeviceFree(device, device.packs_gib, 1.0) for device in facts.devices),
    )


def _device_less(free: DeviceFree, wants: Resources) -> DeviceFree:
    return replace(
        free,
        memory_gib=free.memory_gib - device_memory_taken(wants, free.device),
        share=free.share - wants.gpu.share,
    )
