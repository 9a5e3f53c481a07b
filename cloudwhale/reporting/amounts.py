"""What a job asks for and what it used, in words."""

from cloudwhale.model.job import Peaks, Resources
from cloudwhale.reporting.figures import counted, gib, percent, plain


def wants_words(wants: Resources) -> str:
    """Return `1 GPU, 50 % of it, 12 GiB of GPU memory, 2 CPUs, 8 GiB of memory`."""
    said: list[str] = []
    gpu = wants.gpu
    if gpu.count:
        said.append(counted(gpu.count, "GPU"))
        said += [f"{percent(gpu.share)} of {'it' if gpu.count == 1 else 'each'}"] * (gpu.share < 1)
        said += [f"{gib(gpu.memory_gib.least)} of GPU memory"] * (gpu.memory_gib.least > 0)
    said.append(f"{plain(wants.cpu)} {'CPU' if wants.cpu == 1 else 'CPUs'}")
    if wants.memory_gib is not None:
        said.append(f"{gib(wants.memory_gib)} of memory")
    if wants.disk_gib is not None:
        said.append(f"{gib(wants.disk_gib)} of disk")
    return ", ".join(said)


def peaks_words(peaks: Peaks) -> str:
    """Return the same of the most that was used; what nobody measured is left out."""
    measured = (
        (peaks.gpu_gib, "GiB of GPU memory"),
        (peaks.cpu, "CPUs"),
        (peaks.memory_gib, "GiB of memory"),
        (peaks.disk_io_mb_s, "MB/s of disk"),
        (peaks.network_mb_s, "MB/s of network"),
    )
    said = [f"{_small(amount)} {what}" for amount, what in measured if _counts(amount)]
    busy = [f"its GPU {percent(peaks.sm)} of the time"] if peaks.sm is not None else []
    return ", ".join([*busy, *said]) or "next to nothing"


LEAST = 0.0005
"""What would be written as 0 is not worth a word."""


def _counts(amount: float | None) -> bool:
    return amount is not None and amount >= LEAST


def _small(amount: float | None) -> str:
    """A small program's memory would be 0 with one digit after the point."""
    if amount is None or amount >= 1:
        return plain(amount or 0.0)
    return f"{amount:.3f}".rstrip("0").rstrip(".")
