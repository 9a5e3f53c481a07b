"""The distinct demands of a mix as arrays: what a node can be asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cloudwhale.spi.filling import GPU_MILLI, Demand, Mix, Shape

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

Key = tuple[int, int, int, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Menu:
    """Distinct demands but for memory, which no score looks at; and the kinds of nodes."""

    kinds: tuple[Shape, ...]
    index: dict[Key, int]
    cpu: Ints
    gpus: Ints
    milli: Ints
    memory: Floats
    """Mean of those that are equal in all else."""
    counts: Ints
    asked: Ints
    """GPU milli of all its GPUs together."""
    shared: Bools
    """Whether it takes a part of one GPU."""
    whole: Ints
    """How many GPUs it takes that must be wholly free."""
    models: Bools
    """A row per demand, a column per kind: whether the model will do."""
    fits: Bools
    """Likewise: whether an empty node could take it, memory aside."""

    def number(self, demand: Demand) -> int | None:
        """Return the row of a demand, or None when the mix does not know it."""
        return self.index.get(key_of(demand))


def key_of(demand: Demand) -> Key:
    """Return what a score can tell demands apart by."""
    return demand.cpu_milli, demand.gpus, demand.gpu_milli, demand.models


def menu_of(shapes: Sequence[Shape], mix: Mix) -> Menu:
    """Return the menu of a mix: the most frequent first, equals by size, larger first."""
    kinds = tuple(sorted(set(shapes), key=lambda s: (s.model, s.gpus, s.cpu_milli, s.memory_mib)))
    counts: dict[Key, int] = {}
    memory: dict[Key, int] = {}
    for demand, count in zip(mix.demands, mix.counts, strict=True):
        key = key_of(demand)
        counts[key] = counts.get(key, 0) + count
        memory[key] = memory.get(key, 0) + count * demand.memory_mib
    keys = sorted(counts, key=lambda key: (counts[key], key[0], key[2], key[1], _spec(key)))[::-1]
    models = [[_will_do(key, kind) for kind in kinds] for key in keys]
    fits = [[_would_fit(key, kind) for kind in kinds] for key in keys]
    shared = [key[1] == 1 and key[2] < GPU_MILLI for key in keys]
    return Menu(
        kinds=kinds,
        index={key: row for row, key in enumerate(keys)},
        cpu=np.array([key[0] for key in keys], dtype=np.int64),
        gpus=np.array([key[1] for key in keys], dtype=np.int64),
        milli=np.array([key[2] for key in keys], dtype=np.int64),
        memory=np.array([memory[key] / counts[key] for key in keys], dtype=np.float64),
        counts=np.array([counts[key] for key in keys], dtype=np.int64),
        asked=np.array([key[1] * key[2] for key in keys], dtype=np.int64),
        shared=np.array(shared, dtype=np.bool_),
        whole=np.array([key[1] * (not part) for key, part in zip(keys, shared, strict=True)]),
        models=np.array(models, dtype=np.bool_).reshape(len(keys), len(kinds)),
        fits=np.array(fits, dtype=np.bool_).reshape(len(keys), len(kinds)),
    )


def _spec(key: Key) -> str:
    return "|".join(sorted(key[3]))


def _will_do(key: Key, kind: Shape) -> bool:
    """Return whether a kind has the model; a pod without GPUs does not ask for one."""
    _, gpus, _, models = key
    return not gpus or not models or kind.model in models


def _would_fit(key: Key, kind: Shape) -> bool:
    """Return whether an empty node of a kind has enough of what scores look at."""
    cpu, gpus, _, _ = key
    return _will_do(key, kind) and cpu <= kind.cpu_milli and gpus <= kind.gpus
