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
    said = [
        None if peaks.gpu_gib is None else f"{_small(peaks.gpu_gib)} GiB of GPU memory",
        None if peaks.sm is None else f"its GPU {percent(peaks.sm)} of the time",
        None if peaks.cpu is None else f"{plain(peaks.cpu)} CPUs",
        None if peaks.memory_gib is None else f"{_small(peaks.memory_gib)} GiB of memory",
        None if peaks.disk_io_mb_s is None else f"{plain(peaks.disk_io_mb_s)} MB/s of disk",
        None if peaks.network_mb_s is None else f"{plain(peaks.network_mb_s)} MB/s of network",
    ]
    return ", ".join(each for each in said if each is not None)


def _small(amount: float) -> str:
    """A small program's memory would be 0 with one digit after the point."""
    return plain(amount) if amount >= 1 else f"{amount:.3f}".rstrip("0").rstrip(".") or "0"
