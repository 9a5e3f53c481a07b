"""What a job asks for after it has run out of memory: the next size up; pure.

GPU memory of a job that shares its devices: the larger of 1.5 times what was measured and the next
step of `STEPS_GIB` above what it had. Of a job with its devices to itself: the next larger GPU that
there is. Host memory: 1.5 times the larger of what was measured and its limit.
"""

from dataclasses import dataclass

from cloudwhale.model.gpus import MODELS
from cloudwhale.model.job import Ending, Job, Peaks, Resources, Span
from cloudwhale.model.units import GiB

GROWS_MOST = 3
FACTOR = 1.5
SMALL_STEPS_GIB = (1.0, 2.0, 3.0, 4.0, 6.0)  # below the smallest GPU that is known
SIZES_GIB: tuple[GiB, ...] = tuple(sorted({float(one.memory_gib) for one in MODELS.values()}))
"""Nominal memories of the GPUs that are known, least first."""
STEPS_GIB: tuple[GiB, ...] = (*SMALL_STEPS_GIB, *SIZES_GIB)
OF_MEMORY: frozenset[Ending] = frozenset({"oom", "gpu-oom", "gpu-outgrown"})
"""Endings that more memory answers."""


@dataclass(frozen=True, slots=True)
class Grown:
    """What the job needs now, and a sentence that names the old and the new size."""

    wants: Resources
    says: str


@dataclass(frozen=True, slots=True)
class TooLarge:
    """There is no larger size, or its file allows none; `says` why."""

    says: str
    change: str


def growth(job: Job, how: Ending, peaks: Peaks, device_gib: GiB | None) -> Grown | TooLarge | None:
    """Return what a job needs after it ran out of memory; None: nobody knows what it used.

    `device_gib`: nominal memory of the smallest device that it had.
    """
    if how == "oom":
        return _host(job.wants, peaks.memory_gib)
    if job.wants.gpu.share >= 1.0:
        return _whole_device(job.wants, device_gib)
    return _part_of_device(job.wants, peaks.gpu_gib, device_gib)


def _host(wants: Resources, used_gib: GiB | None) -> Grown | None:
    base = max((one for one in (wants.memory_gib, used_gib) if one is not None), default=0.0)
    if base <= 0:
        return None
    new = round(FACTOR * base, 2)
    had = "no limit" if wants.memory_gib is None else f"{wants.memory_gib:g} GiB"
    return Grown(wants.but(memory_gib=new), f"its memory grows from {had} to {new:g} GiB")


def _part_of_device(
    wants: Resources, used_gib: GiB | None, device_gib: GiB | None
) -> Grown | TooLarge | None:
    had = wants.gpu.memory_gib.least
    if not had and device_gib is not None:
        had = wants.gpu.share * device_gib
    if not had:
        return None
    step = _above(had, STEPS_GIB)
    measured = None if used_gib is None else FACTOR * used_gib
    new = max((one for one in (step, measured) if one is not None), default=None)
    largest = max(sizes(wants))
    if new is None or new > largest:
        return TooLarge(
            f"it would need more than the {largest:g} GiB of the largest GPU it may have",
            "make the job smaller, or let it use several GPUs",
        )
    return _with(wants, had, round(new, 2))


def _whole_device(wants: Resources, device_gib: GiB | None) -> Grown | TooLarge | None:
    if device_gib is None:
        return None
    new = _above(device_gib, sizes(wants))
    if new is None:
        return TooLarge(
            f"it had all {device_gib:g} GiB of its GPU, and none that it may have is larger",
            "allow larger models in resources.gpu, make the job smaller, or use several GPUs",
        )
    return _with(wants, device_gib, new)


def _with(wants: Resources, had: GiB, new: GiB) -> Grown | TooLarge:
    gpu, most = wants.gpu, wants.gpu.memory_gib.most
    if most is not None and new > most:
        return TooLarge(
            f"it needs {new:g} GiB per GPU, and its file allows {most:g} at most",
            "raise the upper end of resources.gpu.memory",
        )
    grown = gpu.but(memory_gib=Span(least=new, most=most))
    says = f"its memory per GPU grows from {had:g} GiB to {new:g} GiB"
    return Grown(wants.but(gpu=grown), says)


def sizes(wants: Resources) -> tuple[GiB, ...]:
    """Return the sizes of the GPUs that it may have, least first; never none."""
    models = [MODELS[name] for name in wants.gpu.models if name in MODELS]
    return tuple(sorted({float(one.memory_gib) for one in models})) or SIZES_GIB


def _above(size: GiB, sizes: tuple[GiB, ...]) -> GiB | None:
    return next((one for one in sizes if one > size), None)
