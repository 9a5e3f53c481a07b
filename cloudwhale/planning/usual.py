"""What waiting and usual jobs could use of a node's GPUs, and what of that a job takes away.

After FGD (Weng et al., ATC 2023): the typical demands of the round stand for those that will come.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cloudwhale.model.job import GpuRequest, Resources
from cloudwhale.model.node import Device
from cloudwhale.model.units import GiB
from cloudwhale.planning.fit import matches_model
from cloudwhale.planning.inventory import DeviceFree, Free, device_memory_taken, gpu_memory_taken

MOST_KINDS = 8
"""Kinds of demands that a mix tells apart; the rest are too rare to count."""

# Sums of shares miss whole numbers by a little.
SLACK = 1e-4

# A job for one whole GPU is always to be expected, as if this many of them were waiting.
EXPECTED_ANYWAY = 1.0
ANYBODY = Resources(gpu=GpuRequest(count=1))


@dataclass(frozen=True, slots=True)
class Kind:
    """A typical demand for GPUs."""

    weight: float
    """How usual it is; the weights of a mix sum to 1."""
    gpu: GpuRequest
    cpu: float
    """Of one job, the mean of those that were folded."""
    memory_gib: GiB
    suits: frozenset[tuple[str, GiB]]
    """Models of devices, with their nominal memory, that are here and that it could run on."""

    @property
    def gpus(self) -> float:
        """Return the devices that one job uses."""
        return self.gpu.count * self.gpu.share


def usual(
    demands: Iterable[tuple[Resources, float]], devices: Iterable[Device]
) -> tuple[Kind, ...]:
    """Fold demands with their counts into the most usual kinds; those without GPUs do not count."""
    counts: dict[GpuKey, list[float]] = {}
    requests: dict[GpuKey, GpuRequest] = {}
    for wants, count in (*demands, (ANYBODY, EXPECTED_ANYWAY)):
        if wants.gpu.count:
            key = _key(wants.gpu)
            requests.setdefault(key, wants.gpu)
            sums = counts.setdefault(key, [0.0, 0.0, 0.0])
            sums[0] += count
            sums[1] += count * wants.cpu
            sums[2] += count * (wants.memory_gib or 0.0)
    kept = sorted(counts, key=lambda key: (-counts[key][0], key))[:MOST_KINDS]
    total = sum(counts[key][0] for key in kept)
    models = {(d.model, d.memory_gib): d for d in devices}
    return tuple(
        Kind(n / total, requests[key], cpu / n, memory / n, _suits(requests[key], models.values()))
        for key in kept
        for n, cpu, memory in (counts[key],)
    )


def _suits(gpu: GpuRequest, devices: Iterable[Device]) -> frozenset[tuple[str, GiB]]:
    return frozenset(
        (d.model, d.memory_gib)
        for d in devices
        if (not gpu.models or any(matches_model(name, d.model) for name in gpu.models))
        and gpu.memory_gib.holds(d.memory_gib)
    )


GpuKey = tuple[int, float, float, float, tuple[str, ...]]


def _key(gpu: GpuRequest) -> GpuKey:
    span = gpu.memory_gib
    most = math.inf if span.most is None else span.most
    return (gpu.count, gpu.share, span.least, most, gpu.models)


def lost_gpus(free: Free, wants: Resources, devices: Sequence[str], kinds: Iterable[Kind]) -> float:
    """Return the devices that the usual jobs could use before a job came and not after it.

    A job that gets several devices takes of each what it takes of the first of them.
    """
    at = free.node.facts.positions.get(devices[0]) if devices else None
    given = None if at is None else free.devices[at]
    return sum(kind.weight * _lost_to(kind, free, wants, (given, len(devices))) for kind in kinds)


def _lost_to(
    kind: Kind, free: Free, wants: Resources, given: tuple[DeviceFree | None, int]
) -> float:
    device, count = given
    copies = sum(copies_on(kind, d, d.share, d.memory_gib) * many for d, many in free.alike)
    taken = 0
    if device is not None:
        share = device.share - wants.gpu.share
        memory = device.memory_gib - device_memory_taken(wants, device.device)
        before = copies_on(kind, device, device.share, device.memory_gib)
        taken = count * (before - copies_on(kind, device, share, memory))
    memory_gib = wants.memory_gib or 0.0
    after = _usable(kind, copies - taken, free.cpu - wants.cpu, free.memory_gib - memory_gib)
    return _usable(kind, copies, free.cpu, free.memory_gib) - after


def copies_on(kind: Kind, device: DeviceFree, share: float, memory_gib: GiB) -> int:
    """Return how many jobs of a kind a device with this much free could hold."""
    one = device.device
    if (one.model, one.memory_gib) not in kind.suits:
        return 0
    by_share = share / kind.gpu.share
    by_memory = memory_gib / gpu_memory_taken(kind.gpu, one)
    return max(0, math.floor(min(by_share, by_memory) + SLACK))


def _usable(kind: Kind, copies: int, cpu: float, memory_gib: GiB) -> float:
    """Return the devices that jobs of a kind could use; CPU and memory limit them smoothly.

    Jobs of one kind differ in both, so that half of what a job needs on average is worth half.
    """
    jobs = float(copies // kind.gpu.count)
    if kind.cpu > 0:
        jobs = min(jobs, max(0.0, cpu) / kind.cpu)
    if kind.memory_gib > 0:
        jobs = min(jobs, max(0.0, memory_gib) / kind.memory_gib)
    return jobs * kind.gpus
