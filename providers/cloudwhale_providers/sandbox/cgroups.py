"""The control groups of a machine in the box: one in each hierarchy, removed with all below it."""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")
INHERITED = ("cpuset.cpus", "cpuset.mems")
"""A new group of cgroup v1 has none, and no process may enter it then."""


def hierarchies() -> Sequence[Path]:
    """Return this process' own group in each hierarchy that is mounted where it usually is."""
    found: list[Path] = []
    for line in OWN.read_text().splitlines():
        _, names, place = line.split(":", 2)
        mounted = ROOT / names.removeprefix("name=") if names else _unified()
        if (mounted / "cgroup.procs").exists():
            found.append(mounted / place.lstrip("/"))
    return found


def make(name: str) -> Sequence[Path]:
    """Make a machine's groups; raise OSError where that is not allowed."""
    found = [one / name for one in hierarchies()]
    for group in found:
        group.mkdir(exist_ok=True)
        for file in INHERITED:
            if (group / file).exists() and not (group / file).read_text().strip():
                (group / file).write_text((group.parent / file).read_text())
    return found


def remove(prefix: str) -> None:
    """Remove all groups beside ours whose names begin so, with all below; busy ones stay."""
    for parent in hierarchies():
        for group in parent.glob(f"{prefix}*"):
            for folder, _, _ in os.walk(group, topdown=False):
                with contextlib.suppress(OSError):  # the kernel still lets go of a process
                    os.rmdir(folder)


def left(prefix: str) -> Sequence[Path]:
    """Return the groups whose names begin so."""
    return [group for parent in hierarchies() for group in parent.glob(f"{prefix}*")]


def _unified() -> Path:
    return ROOT / "unified" if (ROOT / "unified").is_dir() else ROOT
