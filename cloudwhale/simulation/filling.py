"""Plays pods that never leave into a cluster, one by one, each placed for good or refused."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from cloudwhale.spi.filling import (
    GPU_MILLI,
    ClusterNode,
    Demand,
    Left,
    Mix,
    Pod,
    Rule,
    Seat,
    Shape,
)


class BadSeat(Exception):
    """A policy chose a seat that does not hold; it says which and why."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Pods of one class: how many came, how many of them were refused."""

    pods: int
    refused: int
    gpu_milli: int
    refused_gpu_milli: int


@dataclass(frozen=True, slots=True)
class Filled:
    """How a cluster was filled."""

    allocated_percent: dict[int, float]
    """Of the cluster's GPUs, when so many percent of them have been asked for.

    The mean over the pods after which what was asked for, refused or not, rounds to that.
    """
    classes: dict[str, Asked]
    """By class of pod: `cpu`, `share`, `1`, `2`, ...; with a `*` where the model matters."""
    seats: tuple[Seat | None, ...]
    """Of every pod, in order; None: refused."""

    def at(self, percent: int) -> float:
        """Return the allocated percent when so many percent have been asked for.

        Where no pod rounds to it, as on a small cluster, the one before counts.
        """
        known = [each for each in self.allocated_percent if each <= percent]
        return self.allocated_percent[max(known)] if known else 0.0


def mix_of(pods: Iterable[Pod]) -> Mix:
    """Return how often each demand occurs, the most frequent first."""
    counted = Counter(pod.demand for pod in pods)
    ordered = sorted(counted.items(), key=lambda item: (-item[1], _rank(item[0])))
    return Mix(
        demands=tuple(demand for demand, _ in ordered), counts=tuple(count for _, count in ordered)
    )


def class_of(demand: Demand) -> str:
    """Return the class under which refusals are counted."""
    size = "cpu" if not demand.gpus else "share" if demand.shared else str(demand.gpus)
    return size + ("*" if demand.models else "")


def empty(shapes: Sequence[Shape]) -> Left:
    """Return what is left of a cluster while it is empty."""
    widest = max((shape.gpus for shape in shapes), default=0)
    gpus = np.zeros((len(shapes), max(widest, 1)), dtype=np.int64)
    for index, shape in enumerate(shapes):
        gpus[index, : shape.gpus] = GPU_MILLI
    return Left(
        cpu_milli=np.array([shape.cpu_milli for shape in shapes], dtype=np.int64),
        memory_mib=np.array([shape.memory_mib for shape in shapes], dtype=np.int64),
        gpu_milli=gpus,
    )


def fill(cluster: Sequence[ClusterNode], pods: Sequence[Pod], rule: Rule) -> Filled:
    """Return what becomes of the pods, in their order; raise BadSeat when a seat does not hold.

    The order of the cluster breaks ties, so it is drawn afresh for every run that is averaged.
    """
    shapes = [node.shape for node in cluster]
    capacity = GPU_MILLI * sum(shape.gpus for shape in shapes)
    left = empty(shapes)
    chooser = rule.begin(shapes)
    seats: list[Seat | None] = []
    sums: dict[int, tuple[int, int]] = {}
    arrived = allocated = 0
    for pod in pods:
        seat = chooser.choose(pod.demand, left)
        if seat is not None:
            _take(pod, seat, shapes[seat.node], left)
            allocated += pod.demand.gpu_total_milli
        seats.append(seat)
        arrived += pod.demand.gpu_total_milli
        percent = (200 * arrived + capacity) // (2 * capacity) if capacity else 0
        total, times = sums.get(percent, (0, 0))
        sums[percent] = (total + allocated, times + 1)
    curve = {
        percent: 100.0 * total / (times * capacity) if capacity else 0.0
        for percent, (total, times) in sums.items()
    }
    return Filled(allocated_percent=curve, classes=_classes(pods, seats), seats=tuple(seats))


def _rank(demand: Demand) -> tuple[int, int, int, str, int]:
    """Return what orders demands that are equally frequent: the larger one first."""
    return (
        -demand.cpu_milli,
        -demand.gpu_milli,
        -demand.gpus,
        "|".join(sorted(demand.models)),
        -demand.memory_mib,
    )


def _take(pod: Pod, seat: Seat, shape: Shape, left: Left) -> None:
    """Take what a pod takes from what is left, once it is certain that it is there."""
    wrong = _fault(pod.demand, seat, shape, left)
    if wrong:
        raise BadSeat(f"pod {pod.name} on node {seat.node}, GPUs {seat.devices}: {wrong}")
    left.cpu_milli[seat.node] -= pod.demand.cpu_milli
    left.memory_mib[seat.node] -= pod.demand.memory_mib
    for device in seat.devices:
        left.gpu_milli[seat.node, device] -= pod.demand.gpu_milli
    left.changed.append(seat.node)


def _fault(demand: Demand, seat: Seat, shape: Shape, left: Left) -> str:
    """Return why a seat does not hold, or nothing."""
    if demand.cpu_milli > left.cpu_milli[seat.node]:
        return "not enough CPU"
    if demand.memory_mib > left.memory_mib[seat.node]:
        return "not enough memory"
    if len(set(seat.devices)) != demand.gpus or len(seat.devices) != demand.gpus:
        return f"asks for {demand.gpus} GPUs"
    if demand.gpus and demand.models and shape.model not in demand.models:
        return f"asks for {'|'.join(sorted(demand.models))}, the node has {shape.model}"
    if any(
        device >= shape.gpus or left.gpu_milli[seat.node, device] < demand.gpu_milli
        for device in seat.devices
    ):
        return "not enough left of a GPU"
    return ""


def _classes(pods: Sequence[Pod], seats: Sequence[Seat | None]) -> dict[str, Asked]:
    """Return how many pods of each class came, and how many were refused."""
    found: dict[str, Asked] = {}
    for pod, seat in zip(pods, seats, strict=True):
        name, milli, no = class_of(pod.demand), pod.demand.gpu_total_milli, seat is None
        seen = found.get(name, Asked(0, 0, 0, 0))
        found[name] = Asked(
            pods=seen.pods + 1,
            refused=seen.refused + no,
            gpu_milli=seen.gpu_milli + milli,
            refused_gpu_milli=seen.refused_gpu_milli + no * milli,
        )
    return dict(sorted(found.items()))
