"""What this host has for jobs, counted in one way by its provider and by its agent."""

import os
import shutil
from pathlib import Path

from cloudwhale.host.containers import images_here, runtimes
from cloudwhale.host.gpus import gpus_here
from cloudwhale.host.groups import Hierarchies
from cloudwhale.host.options import HostOptions, declared
from cloudwhale.model.node import Facts
from cloudwhale.model.units import GiB

BYTES_PER_GIB = 2**30


def facts(folder: Path, options: HostOptions) -> Facts:
    """Return what this host has for jobs that are kept in a folder."""
    hierarchies = Hierarchies.of_this_process()
    gpus, images = gpus_here(), images_here()
    return Facts(
        cpu=_cpu(options.cpu, hierarchies),
        memory_gib=_memory_gib(options.memory_gib, hierarchies),
        disk_gib=_free_gib(folder),
        devices=(*gpus.devices, *declared(options.devices)),
        links=gpus.links,
        labels=options.labels,
        mounts=("/",),
        runtimes=runtimes(images),
        images=images or (),
    )


def _cpu(wanted: float | None, hierarchies: Hierarchies) -> float:
    here = float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else _count())
    most = hierarchies.cpu_most()
    have = here if most is None else min(here, most)
    return have if wanted is None else wanted


def _count() -> int:
    return os.cpu_count() or 1


def _memory_gib(wanted: GiB | None, hierarchies: Hierarchies) -> GiB:
    if wanted is not None:
        return wanted
    here = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    most = hierarchies.memory_most_bytes()
    return (here if most is None else min(here, most)) / BYTES_PER_GIB


def _free_gib(folder: Path) -> GiB:
    """Return the free disk of a folder, or of the nearest one above it that exists."""
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(nearest).free / BYTES_PER_GIB
