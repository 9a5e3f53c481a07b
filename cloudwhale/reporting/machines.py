"""What the nodes have, what is promised of it to whom, and what is really used."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cloudwhale.clock import iso
from cloudwhale.model.job import HOLDS_A_PLACE, Job
from cloudwhale.model.node import DeviceUse, Measured, Node
from cloudwhale.model.rental import Boot, Rental
from cloudwhale.model.units import GiB, Instant
from cloudwhale.model.world import World
from cloudwhale.planning.inventory import DeviceFree, Free, device_memory_taken, free_capacity
from cloudwhale.reporting.booting import phase_s


@dataclass(frozen=True, slots=True)
class Look:
    """What an agent said last of what is really used."""

    at: Instant
    measured: Measured


@dataclass(frozen=True, slots=True)
class Occupied:
    """A node, what is free on it, and the jobs that hold a place there."""

    free: Free
    jobs: tuple[Job, ...]
    look: Look | None = None
    """None: its agent does not say, or nobody can ask now."""
    rental: Rental | None = None
    """As what it is rented; None: it is owned, or nobody knows."""

    @property
    def node(self) -> Node:
        """The node itself."""
        return self.free.node

    @property
    def measured(self) -> Measured:
        """What is really used; every part None where nobody knows."""
        return Measured() if self.look is None else self.look.measured


@dataclass(frozen=True, slots=True)
class Gauge:
    """One amount of a node that can be taken."""

    what: str
    taken: float
    whole: float
    unit: str
    used: float | None = None
    """As measured; None: nobody knows."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one job was promised of a device, and what it really uses."""

    job: Job
    share: float
    memory_gib: GiB
    used_gib: GiB | None = None


@dataclass(frozen=True, slots=True)
class Shelf:
    """One device with the jobs on it."""

    free: DeviceFree
    parts: tuple[Part, ...] = field(default_factory=tuple[Part, ...])
    use: DeviceUse | None = None

    @property
    def share(self) -> float:
        """The compute share that is promised."""
        return 1.0 - self.free.share

    @property
    def whole_gib(self) -> GiB:
        """What can be given away of its memory."""
        return self.free.device.packs_gib


def occupied(world: World, looks: Mapping[str, Look] | None = None) -> tuple[Occupied, ...]:
    """Return every node with what is on it, by name; free is what is not promised."""
    free = free_capacity(world.nodes.values(), world.jobs.values())
    here: dict[str, list[Job]] = {}
    for job in sorted(world.jobs.values(), key=lambda each: each.id):
        if job.state in HOLDS_A_PLACE and job.placement is not None:
            for name in job.placement.nodes:
                here.setdefault(name, []).append(job)
    seen = looks or {}
    rentals = {one.node: one for one in world.rentals.values()}
    return tuple(
        Occupied(free[name], tuple(here.get(name, ())), seen.get(name), rentals.get(name))
        for name in sorted(world.nodes)
    )


def gauges(place: Occupied) -> Iterator[Gauge]:
    """Yield a node's CPU, memory and disk."""
    free, facts, used = place.free, place.node.facts, place.measured
    yield Gauge("cpu", facts.cpu - free.cpu, facts.cpu, "CPUs", used.cpu)
    gib = facts.memory_gib
    yield Gauge("memory", gib - free.memory_gib, gib, "GiB", used.memory_gib)
    yield Gauge("disk", facts.disk_gib - free.disk_gib, facts.disk_gib, "GiB")


def shelves(place: Occupied) -> Iterator[Shelf]:
    """Yield a node's devices, each with the jobs on it."""
    for free in place.free.devices:
        own = free.device
        use = place.measured.devices.get(own.id)
        parts = tuple(
            Part(
                job,
                job.wants.gpu.share,
                device_memory_taken(job.wants, own),
                None if use is None else use.jobs.get(job.id),
            )
            for job in place.jobs
            if own.id in ((job.placement and job.placement.devices_on(place.node.id)) or ())
        )
        yield Shelf(free, parts, use)


def node_keys(place: Occupied, now: Instant) -> dict[str, Any]:
    """Return a node as the document that `nodes --json` prints; sizes in GiB, null: not known.

    `phase`, `phase_s`: what its boot is busy with; `boot`: how long each phase took, in seconds.
    """
    rental = place.rental
    boot = Boot() if rental is None else rental.boot
    boots_for_s = None if rental is None else phase_s(rental, now)
    node, free, used = place.node, place.free, place.measured
    return {
        "id": node.id,
        "state": node.state.value,
        "owned": node.owned,
        "provider": node.provider,
        "phase": None if boots_for_s is None else boot.phase,
        "phase_s": boots_for_s,
        "boot": {phase: round(took_s, 3) for phase, took_s in boot.took_s.items()},
        "cpu": node.facts.cpu,
        "free_cpu": _rounded(free.cpu),
        "used_cpu": _rounded(used.cpu),
        "memory_gib": node.facts.memory_gib,
        "free_memory_gib": _rounded(free.memory_gib),
        "used_memory_gib": _rounded(used.memory_gib),
        "disk_gib": node.facts.disk_gib,
        "free_disk_gib": _rounded(free.disk_gib),
        "disk_io_mb_s": node.facts.disk_io_mb_s,
        "used_disk_io_mb_s": _rounded(used.disk_io_mb_s),
        "network_mb_s": node.facts.network_mb_s,
        "used_network_mb_s": _rounded(used.network_mb_s),
        "measured_at": None if place.look is None else iso(place.look.at),
        "labels": node.facts.labels,
        "runtimes": node.facts.runtimes,
        "devices": [_device_keys(shelf) for shelf in shelves(place)],
        "jobs": [job.id for job in place.jobs],
    }


def _device_keys(shelf: Shelf) -> dict[str, Any]:
    device, use = shelf.free.device, shelf.use
    return {
        "id": device.id,
        "model": device.model,
        "declared": device.declared,
        "memory_gib": device.memory_gib,
        "free_gib": _rounded(shelf.free.memory_gib),
        "free_share": _rounded(shelf.free.share),
        "used_gib": None if use is None else _rounded(use.used_gib),
        "foreign_gib": None if use is None else _rounded(use.foreign_gib),
        "sm": None if use is None else _rounded(use.sm),
        "jobs": [
            {
                "id": part.job.id,
                "share": part.share,
                "memory_gib": _rounded(part.memory_gib),
                "used_gib": _rounded(part.used_gib),
            }
            for part in shelf.parts
        ],
    }


def _rounded(amount: float | None) -> float | None:
    return None if amount is None else round(amount, 6)
