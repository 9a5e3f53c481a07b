"""Where the control groups of jobs can be made on this machine."""

import os
from dataclasses import dataclass
from pathlib import Path

from cloudwhale.host import Hierarchies, text_of


@dataclass(frozen=True, slots=True)
class Groups:
    """Folders in which a job's groups can be made."""

    version: int
    cpu: Path | None = None
    memory: Path | None = None

    def sweep(self) -> None:
        """Remove the empty groups of shims that were killed, of any home on this host.

        Their names end with the process id of who made them.
        """
        for parent in {folder for folder in (self.cpu, self.memory) if folder}:
            for group in parent.glob("cloudwhale-*"):
                maker = group.name.rsplit("-", 1)[1]
                if maker.isdecimal() and not Path(f"/proc/{maker}").exists():
                    _remove(group)

    def told(self) -> dict[str, str | int]:
        """Return it in the words that a shim understands."""
        if self.version == 2:
            return {"version": 2, "all": str(self.cpu or self.memory)}
        folders = {"cpu": self.cpu, "memory": self.memory}
        return {"version": 1} | {name: str(one) for name, one in folders.items() if one}


def groups(hierarchies: Hierarchies) -> Groups | None:
    """Return where groups for jobs can be made, by trying it; None: nowhere."""
    cpu = _nearest(hierarchies, "cpu", "cpu.cfs_quota_us")
    memory = _nearest(hierarchies, "memory", "memory.limit_in_bytes")
    if cpu or memory:
        return Groups(1, cpu, memory)
    for folder in hierarchies.lineage(""):
        # A group with processes in it cannot have limited children, so our parents are next.
        given = text_of(folder / "cgroup.subtree_control").split()
        if {"cpu", "memory"} <= set(given) and _can_make(folder, "memory.max"):
            return Groups(2, folder, folder)
    return None


def _nearest(hierarchies: Hierarchies, controller: str, needed: str) -> Path | None:
    own = hierarchies.lineage(controller)[:1]
    return next((folder for folder in own if _can_make(folder, needed)), None)


def _can_make(folder: Path, needed: str) -> bool:
    trial = folder / f"cloudwhale-trial-{os.getpid()}"
    try:
        trial.mkdir()
    except OSError:
        return False
    try:
        return (trial / needed).exists() and os.access(trial / "cgroup.procs", os.W_OK)
    finally:
        trial.rmdir()


def _remove(group: Path) -> None:
    try:
        group.rmdir()
    except OSError:
        pass  # a process is left in it, or another agent was quicker
