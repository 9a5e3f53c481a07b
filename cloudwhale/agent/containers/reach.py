"""Sees that a running container can no longer open its GPUs, although they are all there.

With a hook instead of CDI, nobody but the hook knows of the devices: when systemd reads its units
anew (`systemctl daemon-reload`, as upgrades of packages do), it writes the group's rules as it has
them, and NVML answers "Unknown Error" from then on (NVIDIA Container Toolkit, "Troubleshooting").
Only a new container helps. What the job has open goes on, so it may still save.
"""

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cloudwhale.agent.belonging import Root
from cloudwhale.agent.containers import device_look
from cloudwhale.agent.seen import Key
from cloudwhale.host import Hierarchies
from cloudwhale.model.units import Instant, Seconds

LOOK_EVERY_S: Seconds = 20.0  # some 20 ms of a CPU for each container with GPUs
ANSWERS_WITHIN_S: Seconds = 5.0  # a frozen group freezes who joins it

Look = Callable[[Root], tuple[str, ...]]


def shut_devices(root: Root) -> tuple[str, ...]:
    """Return the GPU files that a container can no longer open; none when it cannot be told."""
    devices = _devices(Path(f"/proc/{root.job}/root", "dev"))
    procs = _procs(root)
    if not devices or procs is None:
        return ()
    words = [sys.executable, "-I", "-S", str(device_look.__file__), str(procs), *devices]
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, check=True, timeout=ANSWERS_WITHIN_S
        )
    except (OSError, subprocess.SubprocessError):
        return ()  # not root, or it ends just now
    return tuple(f"/dev/{os.path.basename(one)}" for one in done.stdout.splitlines())


def _devices(folder: Path) -> list[str]:
    try:
        found = sorted(folder.glob("nvidia[0-9]*"))
        return [str(one) for one in found if stat.S_ISCHR(one.lstat().st_mode)]
    except OSError:
        return []


def _procs(root: Root) -> Path | None:
    """Return the file by which one becomes a member of the group that has a container's rules."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text()
        groups = Hierarchies(mounts, Path(f"/proc/{root.job}/cgroup").read_text())
    except OSError:
        return None
    for controller in ("devices", ""):
        for folder in groups.lineage(controller)[:1]:
            if root.container and root.container in folder.name:
                return folder / "cgroup.procs"
    return None


class Reach:
    """Looks now and then at each container with GPUs; what it says it has seen twice."""

    def __init__(self, look: Look = shut_devices) -> None:
        self._look = look
        self._look_at: dict[Key, Instant] = {}
        self._shut: dict[Key, tuple[str, ...]] = {}

    def look(self, roots: Sequence[Root], now: Instant) -> Mapping[Key, tuple[str, ...]]:
        """Return what each can no longer open; called every second with those that have GPUs."""
        keys = {root.key for root in roots}
        self._look_at = {key: at for key, at in self._look_at.items() if key in keys}
        self._shut = {key: found for key, found in self._shut.items() if key in keys}
        told: dict[Key, tuple[str, ...]] = {}
        for root in roots:
            if now < self._look_at.setdefault(root.key, now + LOOK_EVERY_S):
                continue
            found = self._look(root)
            if found and self._shut.get(root.key):
                told[root.key] = found
            self._shut[root.key] = found
            self._look_at[root.key] = now if found else now + LOOK_EVERY_S
        return told
