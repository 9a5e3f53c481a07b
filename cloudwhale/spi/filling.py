"""Filling a cluster one pod at a time, for good: what a policy is told, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

GPU_MILLI = 1000
"""Parts of one GPU; a pod that takes fewer shares its one GPU with others."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a node has while it is empty."""

    cpu_milli: int
    memory_mib: int
    gpus: int
    model: str = ""
    """Of its GPUs; empty where it has none."""


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """A node of the cluster; where two are equally good, the first of the cluster is taken."""

    name: str
    shape: Shape


@dataclass(frozen=True, slots=True)
class Demand:
    """What a pod takes for good; equal demands are placed by equal rules."""

    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    """Of each of its GPUs; below 1000 only with one GPU, 0 without."""
    models: frozenset[str] = frozenset()
    """Any of these will do; empty: every model."""

    @property
    def gpu_total_milli(self) -> int:
        """Return what it takes of all its GPUs together."""
        return self.gpus * self.gpu_milli

    @property
    def shared(self) -> bool:
        """Return whether it takes a part of one GPU."""
        return self.gpus == 1 and self.gpu_milli < GPU_MILLI


@dataclass(frozen=True, slots=True)
class Pod:
    """One that asks for a place once; where it gets none it is gone."""

    name: str
    demand: Demand


@dataclass(frozen=True, slots=True)
class Mix:
    """What usually comes: known from the past, so it says nothing of what comes next."""

    demands: tuple[Demand, ...]
    counts: tuple[int, ...]
    """How often each was seen, in the order of the demands."""


@dataclass(slots=True)
class Left:
    """What is left of the cluster, by index of node; only who plays the pods in changes it."""

    cpu_milli: NDArray[np.int64]
    memory_mib: NDArray[np.int64]
    gpu_milli: NDArray[np.int64]
    """A row per node, a column per GPU; 0 beyond a node's own."""
    changed: list[int] = field(default_factory=list[int])
    """The node of every placement so far, in order."""


@dataclass(frozen=True, slots=True)
class Seat:
    """Where a pod goes."""

    node: int
    """Its index in the cluster."""
    devices: tuple[int, ...] = ()
    """Indices of its GPUs there."""


class Chooser(Protocol):
    """One run: it sees every pod once, in the order in which they come."""

    def choose(self, demand: Demand, left: Left) -> Seat | None:
        """Return a seat that holds in every dimension, or None when it takes the pod nowhere.

        Called once per pod; what is left has then changed by the seats returned before.
        """
        ...


class Rule(Protocol):
    """A policy that has studied a cluster and a mix; good for any number of runs."""

    def begin(self, shapes: Sequence[Shape]) -> Chooser:
        """Return a chooser for a run on the empty nodes of the cluster, in this order."""
        ...


class Filling(Protocol):
    """A policy for a stream of pods that never leave."""

    def study(self, shapes: Sequence[Shape], mix: Mix) -> Rule:
        """Return what it decides by; the order of the shapes says nothing. May take a minute."""
        ...
