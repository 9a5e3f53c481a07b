"""Needs as arrays: what each wants, with equal GPU requests and equal rules folded."""

from collections.abc import Sequence

import numpy as np

from cloudwhale.model.job import GpuRequest
from cloudwhale.model.node import Device
from cloudwhale.planning.columns import Bools, Floats, Ints
from cloudwhale.planning.fit import matches_model
from cloudwhale.planning.needs import Need


class Asks:
    """What each need wants, one row a need; `of_gpu` leads to its GPU request."""

    def __init__(self, needs: Sequence[Need], kinds: Sequence[Device]) -> None:
        rows = np.ascontiguousarray(np.array([_row(need) for need in needs]).reshape(-1, 10).T)
        self.rows = rows
        self.cpu, self.memory, self.disk, self.disk_io, self.network = rows[:5]
        self.length_s, self.likes, self.has_gpu, self.share, self.least_gib = rows[5:]
        """`has_gpu` is 1 or 0: what a job without GPUs says of them counts nothing."""
        self.has_secrets = np.array([bool(need.spec.secrets) for need in needs], dtype=np.int64)
        self.gpus = GpuAsks(_folded([need.wants.gpu for need in needs]), kinds)
        self.of_gpu: Ints = np.array(
            [self.gpus.number(need.wants.gpu) for need in needs], dtype=np.int64
        )
        self.speeds, self.of_speeds = _speeds(needs, kinds)
        """Relative speed by row of `of_speeds` and kind of device; 1 for no device."""


def _row(need: Need) -> tuple[float, ...]:
    wants = need.wants
    gpu = wants.gpu
    share, least_gib = (gpu.share, gpu.memory_gib.least) if gpu.count else (0.0, 0.0)
    return (
        wants.cpu, wants.memory_gib or 0.0, wants.disk_gib or 0.0,
        wants.disk_io_mb_s or 0.0, wants.network_mb_s or 0.0,
        need.length_s, float(len(need.likes)), float(gpu.count > 0), share, least_gib,
    )  # fmt: skip


class GpuAsks:
    """Distinct GPU requests as arrays, one row each."""

    def __init__(self, requests: Sequence[GpuRequest], kinds: Sequence[Device]) -> None:
        self._numbers = {gpu_key(gpu): n for n, gpu in enumerate(requests)}
        self.count = np.array([gpu.count for gpu in requests], dtype=np.int64)
        self.most = np.array([gpu.count_most or gpu.count for gpu in requests], dtype=np.int64)
        self.share = np.array([gpu.share for gpu in requests])
        self.least_gib = np.array([gpu.memory_gib.least for gpu in requests])
        self.model_suits = np.array([_models(gpu, kinds) for gpu in requests], dtype=np.bool_)
        """By request and kind of device; the last kind is no device at all."""
        self.suits: Bools = self.model_suits & np.array(
            [[*(gpu.memory_gib.holds(d.memory_gib) for d in kinds), False] for gpu in requests]
        )

    def number(self, gpu: GpuRequest) -> int:
        """Return the row of a request."""
        return self._numbers[gpu_key(gpu)]


def gpu_key(gpu: GpuRequest) -> tuple[object, ...]:
    """Return what makes two requests equal to every device."""
    span = gpu.memory_gib
    return (gpu.count, gpu.count_most, gpu.share, span.least, span.most, gpu.models)


def taken_gib(share: Floats, least_gib: Floats, packs_gib: Floats) -> Floats:
    """Return the memory that jobs take of a device: `device_memory_taken` for arrays."""
    is_whole = share >= 1.0
    said = np.where(is_whole, 0.0, least_gib)
    part = np.where(is_whole, 1.0, np.where(least_gib > 0, 0.0, share))
    # Only these two lines are as large as what is asked about.
    taken: Floats = part * packs_gib + said
    return np.minimum(taken, packs_gib)


def _folded(requests: Sequence[GpuRequest]) -> list[GpuRequest]:
    return list({gpu_key(gpu): gpu for gpu in requests}.values())


def _models(gpu: GpuRequest, kinds: Sequence[Device]) -> list[bool]:
    if not gpu.models:
        return [True] * len(kinds) + [False]
    return [*(any(matches_model(m, d.model) for m in gpu.models) for d in kinds), False]


def _speeds(needs: Sequence[Need], kinds: Sequence[Device]) -> tuple[Floats, Ints]:
    """Return distinct rows of speeds by kind of device, and which of them each need has.

    The last column, of no device, holds the best of them; a model that does not suit counts as 1.
    """
    numbers: dict[tuple[tuple[str, float], ...], int] = {}
    of = [numbers.setdefault(tuple(need.speeds.items()), len(numbers)) for need in needs]
    rows = [
        [*(dict(key).get(d.model, 1.0) for d in kinds), max((rate for _, rate in key), default=1.0)]
        for key in numbers
    ]
    return np.array(rows or [[1.0]]), np.array(of, dtype=np.int64)
