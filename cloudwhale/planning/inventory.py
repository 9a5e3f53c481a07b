"""What is free on every node after all that is already promised or was seen to be used."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import NamedTuple

from cloudwhale.model.job import HOLDS_A_PLACE, GpuRequest, Job, Placement, Resources
from cloudwhale.model.node import Device, DeviceUse, Measured, Node
from cloudwhale.model.units import GiB, Instant
from cloudwhale.model.world import Sighting

# Floats are summed and taken apart again: what is smaller than this is nothing.
DUST = 1e-9

# A driver and a display take a few hundred MiB of every GPU: that is nobody's use of it.
FOREIGN_BORNE = 0.05


class DeviceFree(NamedTuple):
    """What is free on one device; a tuple, as there are hundreds of them in every round."""

    device: Device
    memory_gib: GiB
    share: float
    foreign_gib: GiB = 0.0
    """Memory that others than our jobs were seen to use; it is not in `memory_gib`."""
    jobs: int = 0
    """Jobs of ours that sit on it."""
    sm: float = 0.0
    """Share of time in which kernels were seen to run; 0 where nobody has looked."""


Alike = tuple[tuple[DeviceFree, int], ...]
"""Devices with the same left of them, one for all, and how many there are."""


@dataclass(frozen=True, slots=True)
class Free:
    """What is free on one node: its song, the release profile left out."""

    node: Node
    cpu: float
    memory_gib: GiB
    disk_gib: GiB
    devices: tuple[DeviceFree, ...]
    disk_io_mb_s: float | None = None
    """Soft, may fall below 0; None: nobody has said what the node can do."""
    network_mb_s: float | None = None
    _groups: list[Alike] = field(default_factory=list[Alike], init=False, repr=False, compare=False)
    """Worked out when they are asked for, and then kept."""
    _summed: list[tuple[float, GiB]] = field(
        default_factory=list[tuple[float, GiB]], init=False, repr=False, compare=False
    )

    @property
    def alike(self) -> Alike:
        """Return one device for all that have the same left, with their count: asked often."""
        if not self._groups:
            # One comprehension each, as there are hundreds of devices: [1:4] is what is left.
            keys = [(d[0].model, d[0].memory_gib, d[0].usable_gib, d[1:4]) for d in self.devices]
            first = dict(zip(reversed(keys), reversed(self.devices), strict=True))
            self._groups.append(tuple((first[key], many) for key, many in Counter(keys).items()))
        return self._groups[0]

    @property
    def shares(self) -> float:
        """Return the devices that are free, each by its share."""
        return self._sums[0]

    @property
    def gpu_gib(self) -> GiB:
        """Return the memory that is free on all devices."""
        return self._sums[1]

    @property
    def _sums(self) -> tuple[float, GiB]:
        if not self._summed:
            share, memory_gib = sum([d[2] for d in self.devices]), sum([d[1] for d in self.devices])
            self._summed.append((share, memory_gib))
        return self._summed[0]

    def less(self, wants: Resources, placement: Placement) -> "Free":
        """Return what is left when a job with these wants sits here."""
        return self._moved(wants, placement, -1)

    def more(self, wants: Resources, placement: Placement) -> "Free":
        """Return what there is when a job with these wants leaves; the opposite of `less`."""
        return self._moved(wants, placement, 1)

    def more_of(self, gone: Sequence[tuple[Resources, Placement]]) -> "Free":
        """Return what there is when several leave: the same sums as `more` for one after another.

        The devices are copied once, however many leave.
        """
        cpu, memory_gib, disk_gib = self.cpu, self.memory_gib, self.disk_gib
        disk_io, network = self.disk_io_mb_s, self.network_mb_s
        devices, positions = list(self.devices), self.node.facts.positions
        for wants, placement in gone:
            cpu += wants.cpu
            memory_gib += wants.memory_gib or 0.0
            disk_gib += wants.disk_gib or 0.0
            disk_io = _soft(disk_io, wants.disk_io_mb_s, 1)
            network = _soft(network, wants.network_mb_s, 1)
            for at in [positions[name] for name in placement.devices if name in positions]:
                devices[at] = _device_moved(devices[at], wants, 1)
        return Free(self.node, cpu, memory_gib, disk_gib, tuple(devices), disk_io, network)

    def within(self, other: "Free") -> "Free":
        """Return what is free here and in the other song of the same node."""
        return Free(
            self.node,
            min(self.cpu, other.cpu),
            min(self.memory_gib, other.memory_gib),
            min(self.disk_gib, other.disk_gib),
            tuple(
                one._replace(
                    memory_gib=min(one.memory_gib, two.memory_gib),
                    share=min(one.share, two.share),
                )
                for one, two in zip(self.devices, other.devices, strict=True)
            ),
            self.disk_io_mb_s,
            self.network_mb_s,
        )

    def _moved(self, wants: Resources, placement: Placement, sign: int) -> "Free":
        return Free(
            self.node,
            self.cpu + sign * wants.cpu,
            self.memory_gib + sign * (wants.memory_gib or 0.0),
            self.disk_gib + sign * (wants.disk_gib or 0.0),
            self._devices_moved(wants, placement.devices, sign),
            _soft(self.disk_io_mb_s, wants.disk_io_mb_s, sign),
            _soft(self.network_mb_s, wants.network_mb_s, sign),
        )

    def _devices_moved(
        self, wants: Resources, given: Sequence[str], sign: int
    ) -> tuple[DeviceFree, ...]:
        if not given:
            return self.devices
        devices, positions = list(self.devices), self.node.facts.positions
        for name in given:
            position = positions.get(name)
            if position is not None:
                devices[position] = _device_moved(devices[position], wants, sign)
        return tuple(devices)


@dataclass(frozen=True, slots=True)
class Reservation:
    """Room that is kept on a node for a job that does not fit yet."""

    node: str
    start_at: Instant
    """When the job is expected to start."""
    job: str
    left: Free
    """What it will not need of what is free by then."""


def device_memory_taken(wants: Resources, device: Device) -> GiB:
    """Return the memory that a job takes of one device, in GiB.

    A job that wants the whole device takes all of it; a sharing one what it asked for, or its
    share of the memory when it did not say. Sizes are asked for by a model's nominal memory, of
    which the driver keeps a little, so nobody takes more than can be given away.
    """
    return gpu_memory_taken(wants.gpu, device)


def gpu_memory_taken(gpu: GpuRequest, device: Device) -> GiB:
    """Return the same for the GPU part of what a job wants."""
    packs_gib = device.packs_gib
    if gpu.share >= 1.0:
        return packs_gib
    return min(packs_gib, gpu.memory_gib.least or gpu.share * packs_gib)


def free_capacity(
    nodes: Iterable[Node],
    jobs: Iterable[Job],
    sightings: Mapping[str, Sighting] | None = None,
) -> Mapping[str, Free]:
    """Return what is free on each node, by node id, after the jobs that hold a place.

    Of a device's memory the larger of what each job was promised and was seen to use is gone,
    and what others were seen to use. Without sightings the promises alone count.
    """
    seen = sightings or {}
    measured = {name: heard.measured for name, heard in seen.items() if heard.measured is not None}
    here: dict[str, list[Job]] = {}
    for job in jobs:
        if job.placement is not None and job.state in HOLDS_A_PLACE:
            here.setdefault(job.placement.node, []).append(job)
            for other in job.placement.others:
                here.setdefault(other.node, []).append(job)
    return {node.id: _after(node, here.get(node.id, ()), measured.get(node.id)) for node in nodes}


def _after(node: Node, jobs: Iterable[Job], measured: Measured | None) -> Free:
    """Return what the jobs on a node leave; the same sums as `less` for each, in one pass."""
    facts = node.facts
    cpu, memory_gib, disk_gib = facts.cpu, facts.memory_gib, facts.disk_gib
    disk_io, network = facts.disk_io_mb_s, facts.network_mb_s
    left = [device.packs_gib for device in facts.devices]
    shares, counts = [1.0] * len(left), [0] * len(left)
    for job in jobs:
        wants, place = job.wants, job.placement
        given = None if place is None else place.devices_on(node.id)
        if given is None:
            continue
        cpu -= wants.cpu
        memory_gib -= wants.memory_gib or 0.0
        disk_gib -= wants.disk_gib or 0.0
        disk_io = _soft(disk_io, wants.disk_io_mb_s, -1)
        network = _soft(network, wants.network_mb_s, -1)
        for at in [facts.positions[name] for name in given if name in facts.positions]:
            left[at] -= gpu_memory_taken(wants.gpu, facts.devices[at])
            shares[at] -= wants.gpu.share
            counts[at] += 1
    rows = zip(facts.devices, left, shares, repeat(0.0), counts, repeat(0.0), strict=False)
    devices = tuple(map(DeviceFree._make, rows))
    free = Free(node, cpu, memory_gib, disk_gib, devices, disk_io, network)
    return free if measured is None else _as_measured(free, jobs, measured)


def _as_measured(free: Free, jobs: Iterable[Job], measured: Measured) -> Free:
    facts = free.node.facts
    return Free(
        free.node,
        free.cpu,
        free.memory_gib,
        free.disk_gib,
        tuple(
            _device_as_measured(d, jobs, use, free.node.id)
            if (use := measured.devices.get(d.device.id)) is not None
            else d
            for d in free.devices
        ),
        _least(free.disk_io_mb_s, facts.disk_io_mb_s, measured.disk_io_mb_s),
        _least(free.network_mb_s, facts.network_mb_s, measured.network_mb_s),
    )


def _device_as_measured(
    free: DeviceFree, jobs: Iterable[Job], use: DeviceUse, node: str
) -> DeviceFree:
    outgrown = 0.0
    for job in jobs:
        given = None if job.placement is None else job.placement.devices_on(node)
        if given is not None and free.device.id in given:
            promised = device_memory_taken(job.wants, free.device)
            outgrown += max(0.0, use.jobs.get(job.id, 0.0) - promised)
    foreign = use.foreign_gib if use.foreign_gib > FOREIGN_BORNE * free.device.packs_gib else 0.0
    memory = free.memory_gib - outgrown - foreign
    return DeviceFree(free.device, memory, free.share, foreign, free.jobs, use.sm or 0.0)


def _device_moved(free: DeviceFree, wants: Resources, sign: int) -> DeviceFree:
    return DeviceFree(
        free.device,
        free.memory_gib + sign * device_memory_taken(wants, free.device),
        free.share + sign * wants.gpu.share,
        free.foreign_gib,
        free.jobs - sign,
        free.sm,
    )


def _soft(left: float | None, wanted: float | None, sign: int) -> float | None:
    return left if left is None or wanted is None else left + sign * wanted


def _least(left: float | None, can: float | None, measured: float | None) -> float | None:
    """Return what is left of a soft dimension by promise or by measure, whichever is less."""
    return left if left is None or can is None or measured is None else min(left, can - measured)
