"""Whether the machines of a box really boot here, or are processes; and why."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cloudwhale.spi.errors import Denied, Unreachable
from cloudwhale.spi.sandbox import Machines as Wish
from cloudwhale_providers.sandbox import cgroups, image, namespaces

TOOLS = ("nsenter", "unshare", "setpriv", "mount", "pivot_root", "chroot", "ip")
PROBE = """
set -eu
cd "$1"
mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work,volatile overlay root
mount -t proc proc root
"""
"""An overlay needs a disk of its own: on another overlay there is none."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How machines run."""

    image: Path | None
    """The root of those that boot; None: machines are processes."""
    note: str
    """A sentence for whoever starts the box."""


def chosen(wish: Wish, folder: Path, speed: float, told: Callable[[str], None]) -> Choice:
    """Return how machines run; making their image takes minutes, once, and `told` says how far.

    Raise Denied when machines are to boot and cannot.
    """
    if wish == "processes":
        return Choice(None, "")
    why = _why_not(folder, speed)
    found: Path | None = None
    if not why:
        try:
            found = image.ready(told)
        except Unreachable as error:
            why = str(error.says)
    if found is None and wish == "boots":
        raise Denied(
            f"machines of the sandbox cannot boot here: {why}",
            "With sandbox_machines = processes they are processes of this host.",
        )
    if found is None:
        return Choice(None, f"machines of the sandbox are processes and do not boot: {why}")
    return Choice(found, "machines of the sandbox boot: Debian, cloud-init, a network of their own")


def _why_not(folder: Path, speed: float) -> str:
    """Say why no machine can boot here; empty when one can, with an image."""
    if os.geteuid() != 0:
        return "that needs root"
    if speed != 1.0:
        return f"time goes {speed:g} times as fast there, and a system boots in real time"
    missing = [name for name in TOOLS if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)} is not installed"
    try:
        _probe(folder)
    except OSError as error:
        return f"this host does not allow it: {error}"
    return "" if image.is_there() else image.lacks()


def _probe(folder: Path) -> None:
    """Do once what a machine needs; raise OSError when something of it is not allowed."""
    os.close(namespaces.new_network())
    name = f"cloudwhale-probe-{os.getpid()}"
    try:
        cgroups.make(name)
    finally:
        cgroups.remove(name)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        for part in ("lower", "upper", "work", "root"):
            (Path(place) / part).mkdir()
        words = ["unshare", "--mount", "--pid", "--uts", "--ipc", "--cgroup", "--fork"]
        namespaces.run_here([*words, "sh", "-c", PROBE, "sh", place])
        with contextlib.suppress(OSError):
            (Path(place) / "work" / "work").rmdir()
