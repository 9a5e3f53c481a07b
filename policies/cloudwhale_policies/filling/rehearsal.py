"""Filling the cluster with pods drawn from the usual mix, to see what comes of a rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloudwhale.spi.filling import GPU_MILLI, Demand, Left, Mix, Rule, Shape
from cloudwhale_policies.filling.learned_waste import Seen
from cloudwhale_policies.filling.menu import Floats, Ints, Menu

SCORED = (0.97, 1.03)
"""A rehearsal is judged by what was placed while so much of the cluster had been asked for."""

OVERFULL = 1.3
"""A scene asks for so many times the GPUs of the cluster, so that its end is the end."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A cluster in some order, and pods that could come."""

    shapes: tuple[Shape, ...]
    demands: tuple[Demand, ...]


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """What came of a rule in a scene."""

    allocated: float
    """Of the cluster's GPUs; the mean over the part of the scene that is scored."""
    seen: Seen


def scenes(shapes: Sequence[Shape], mix: Mix, number: int, seed: int) -> list[Scene]:
    """Return scenes drawn from the mix, the same ones from the same seed."""
    dice = np.random.default_rng(seed)
    # Whatever the order of the cluster is, the draws are the same.
    cluster = sorted(shapes, key=lambda s: (s.model, s.gpus, s.cpu_milli, s.memory_mib))
    chances: Floats = np.array(mix.counts, dtype=np.float64) / max(sum(mix.counts), 1)
    asked = np.array([demand.gpu_total_milli for demand in mix.demands], dtype=np.float64)
    mean = float(chances @ asked)
    capacity = GPU_MILLI * sum(shape.gpus for shape in shapes)
    pods = int(OVERFULL * capacity / mean) if mean else 0
    found: list[Scene] = []
    for _ in range(number):
        order: list[int] = list(map(int, dice.permutation(len(cluster))))
        drawn: list[int] = list(map(int, dice.choice(len(chances), size=pods, p=chances)))
        found.append(
            Scene(
                shapes=tuple(cluster[index] for index in order),
                demands=tuple(mix.demands[index] for index in drawn),
            )
        )
    return found


def rehearsed(scene: Scene, menu: Menu, rule: Rule) -> Rehearsed:
    """Play a scene and return what came of it."""
    left = _empty(scene.shapes)
    capacity = float(left.gpu_milli.sum())
    chooser = rule.begin(scene.shapes)
    arrived = allocated = 0.0
    scored: list[float] = []
    cpu: list[int] = []
    gpus: list[Ints] = []
    for demand in scene.demands:
        arrived += demand.gpu_total_milli / capacity
        seat = chooser.choose(demand, left)
        if seat is not None:
            left.cpu_milli[seat.node] -= demand.cpu_milli
            left.memory_mib[seat.node] -= demand.memory_mib
            left.gpu_milli[seat.node, list(seat.devices)] -= demand.gpu_milli
            left.changed.append(seat.node)
            allocated += demand.gpu_total_milli / capacity
            cpu.append(int(left.cpu_milli[seat.node]))
            gpus.append(left.gpu_milli[seat.node].copy())
        if SCORED[0] <= arrived <= SCORED[1]:
            scored.append(allocated)
    kinds = {kind: number for number, kind in enumerate(menu.kinds)}
    seen = Seen(
        kind=np.array([kinds[scene.shapes[node]] for node in left.changed], dtype=np.int64),
        cpu=np.array(cpu, dtype=np.int64),
        gpus=np.array(gpus, dtype=np.int64).reshape(len(gpus), left.gpu_milli.shape[1]),
        final=left.gpu_milli[left.changed],
    )
    return Rehearsed(float(np.mean(scored)) if scored else allocated, seen)


def _empty(shapes: Sequence[Shape]) -> Left:
    gpus = np.zeros((len(shapes), max((shape.gpus for shape in shapes), default=0)), dtype=np.int64)
    for node, shape in enumerate(shapes):
        gpus[node, : shape.gpus] = GPU_MILLI
    return Left(
        cpu_milli=np.array([shape.cpu_milli for shape in shapes], dtype=np.int64),
        memory_mib=np.array([shape.memory_mib for shape in shapes], dtype=np.int64),
        gpu_milli=gpus,
    )
