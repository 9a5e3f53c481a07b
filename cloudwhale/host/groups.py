"""Where this process stands among the control groups of its host, and what they let it use."""

import os
from collections.abc import Iterator
from pathlib import Path

UNLIMITED_BYTES = 1 << 60  # version 1 of control groups says "no limit" with a number near 2**63


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
                if controller in ("cpu", "memory", "devices"):
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
