"""What this host has for jobs, counted in one way by its provider and by its agent."""

import argparse
import math
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from cloudwhale.model.gpus import canonical
from cloudwhale.model.node import Device, Facts
from cloudwhale.model.units import GiB
from cloudwhale.model.value import Value
from cloudwhale.spi.errors import SettingsError

BYTES_PER_GIB = 2**30
UNLIMITED_BYTES = 1 << 60  # version 1 of control groups says "no limit" with a number near 2**63
DECLARED = re.compile(r"(?:(\d+)\s*x\s+)?(\S.*?)\s+(\d+(?:\.\d+)?)\s*(?:GB|GiB)", re.IGNORECASE)


class HostOptions(Value):
    """What a user says of a host; None and empty: as it is."""

    devices: tuple[str, ...] = ()
    """Declared stand-ins for GPUs: "2x RTX4090 24GB"."""
    cpu: float | None = None
    memory_gib: GiB | None = None
    labels: dict[str, str] = {}


AS_IT_IS = HostOptions()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Let a command line say what a user says of a host."""
    parser.add_argument("--device", action="append", default=[], metavar='"2x RTX4090 24GB"')
    parser.add_argument("--cpu", type=float)
    parser.add_argument("--memory-gib", type=float)
    parser.add_argument("--label", action="append", default=[], metavar="KEY=VALUE")


def options_from(arguments: argparse.Namespace) -> HostOptions:
    """Return what a parsed command line says; raise SettingsError for what none has."""
    for name, amount in (("--cpu", arguments.cpu), ("--memory-gib", arguments.memory_gib)):
        if amount is not None and not 0 < amount < math.inf:
            raise SettingsError(
                f"{name} must be a number above 0, and {amount} is not",
                "Write digits, like 4, or leave it out: all of the host is used then.",
            )
    labels: dict[str, str] = {}
    for label in arguments.label:
        key, equals, value = label.partition("=")
        if not equals:
            raise SettingsError(f"the label {label!r} has no value", "Write KEY=VALUE.")
        labels[key] = value
    return HostOptions(
        devices=tuple(arguments.device),
        cpu=arguments.cpu,
        memory_gib=arguments.memory_gib,
        labels=labels,
    )


def as_arguments(options: HostOptions) -> list[str]:
    """Return the arguments that an agent's command line says the same with."""
    words = [f"--device={device}" for device in options.devices]
    words += [f"--label={key}={value}" for key, value in options.labels.items()]
    if options.cpu is not None:
        words.append(f"--cpu={options.cpu}")
    if options.memory_gib is not None:
        words.append(f"--memory-gib={options.memory_gib}")
    return words


def facts(folder: Path, options: HostOptions) -> Facts:
    """Return what this host has for jobs that are kept in a folder."""
    hierarchies = Hierarchies.of_this_process()
    return Facts(
        cpu=_cpu(options.cpu, hierarchies),
        memory_gib=_memory_gib(options.memory_gib, hierarchies),
        disk_gib=_free_gib(folder),
        devices=declared(options.devices),
        labels=options.labels,
        mounts=("/",),
    )


def declared(texts: Sequence[str]) -> tuple[Device, ...]:
    """Return stand-ins for GPUs; raise SettingsError for a text that describes none."""
    devices: list[Device] = []
    for text in texts:
        match = DECLARED.fullmatch(text.strip())
        if match is None or int(match[1] or 1) < 1:
            raise SettingsError(
                f"{text!r} describes no devices", 'Write them like "2x RTX4090 24GB".'
            )
        count, name, size = match.groups()
        model = canonical(name, float(size)) or name
        for _ in range(int(count or 1)):
            number = f"declared-{len(devices)}"
            devices.append(Device(id=number, model=model, memory_gib=float(size), declared=True))
    return tuple(devices)


def _cpu(wanted: float | None, hierarchies: "Hierarchies") -> float:
    here = float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else _count())
    most = hierarchies.cpu_most()
    have = here if most is None else min(here, most)
    return have if wanted is None else wanted


def _count() -> int:
    return os.cpu_count() or 1


def _memory_gib(wanted: GiB | None, hierarchies: "Hierarchies") -> GiB:
    if wanted is not None:
        return wanted
    here = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    most = hierarchies.memory_most_bytes()
    return (here if most is None else min(here, most)) / BYTES_PER_GIB


def _free_gib(folder: Path) -> GiB:
    """Return the free disk of a folder, or of the nearest one above it that exists."""
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(nearest).free / BYTES_PER_GIB


# -- control groups --------------------------------------------------------------------------


class Hierarchies:
    """Where this process stands among the control groups; texts are those of /proc/self."""

    def __init__(self, mounts: str, own: str) -> None:
        self._mounts = dict(_mounted(mounts))
        self._own = dict(_memberships(own))

    @classmethod
    def of_this_process(cls) -> "Hierarchies":
        """Read them; a host without /proc has none."""
        try:
            mounts = Path("/proc/self/mountinfo").read_text()
            own = Path("/proc/self/cgroup").read_text()
        except OSError:
            return cls("", "")
        return cls(mounts, own)

    def lineage(self, controller: str) -> list[Path]:
        """Return our group of a controller and those above it, nearest first; "" is version 2."""
        if controller not in self._mounts:
            return []
        root, point = self._mounts[controller]
        own = self._own.get(controller, "/")
        inside = os.path.relpath(own, root) if own.startswith(root) else "."
        nearest = point / inside
        if not nearest.is_dir():
            nearest = point  # in a container, the file shows a path that is not mounted
        above = [nearest, *nearest.parents]
        return above[: above.index(point) + 1]

    def memory_most_bytes(self) -> int | None:
        """Return how much memory our groups let us use; None: all there is."""
        found = [
            *_numbers(self.lineage("memory"), "memory.limit_in_bytes"),
            *_numbers(self.lineage(""), "memory.max"),
        ]
        return min((most for most in found if most < UNLIMITED_BYTES), default=None)

    def cpu_most(self) -> float | None:
        """Return how many CPUs our groups let us use; None: all there are."""
        found: list[float] = []
        for folder in self.lineage("cpu"):
            quota = _number(folder / "cpu.cfs_quota_us")
            period = _number(folder / "cpu.cfs_period_us")
            if quota is not None and period and quota > 0:
                found.append(quota / period)
        for folder in self.lineage(""):
            quota_text, _, period_text = text_of(folder / "cpu.max").partition(" ")
            if quota_text.isdigit() and period_text.isdigit():
                found.append(int(quota_text) / int(period_text))
        return min(found, default=None)


def _mounted(mountinfo: str) -> Iterator[tuple[str, tuple[str, Path]]]:
    """Return for each controller the root that is mounted, and where; "" is version 2."""
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        root, point = fields[3], Path(fields[4])
        if kind[0] == "cgroup2":
            yield "", (root, point)
        elif kind[0] == "cgroup":
            for controller in kind[2].split(","):
                if controller in ("cpu", "memory"):
                    yield controller, (root, point)


def _memberships(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            yield controller, path


def _numbers(folders: list[Path], name: str) -> Iterator[int]:
    for folder in folders:
        number = _number(folder / name)
        if number is not None:
            yield number


def _number(path: Path) -> int | None:
    text = text_of(path)
    return int(text) if text.lstrip("-").isdigit() else None


def text_of(path: Path) -> str:
    """Return what a file says, without space around it; empty when it cannot be read."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""
