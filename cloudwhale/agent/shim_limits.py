"""What a job may use: control groups where the host lets us, else rlimits and watching."""

from __future__ import annotations

import os
import resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PERIOD_US = 100_000  # the kernel's default period of CPU quotas
LEAST_QUOTA_US = 1_000  # the kernel refuses less
WATCH_EVERY_S = 0.5  # how often memory is summed up where no control group does it
ALLOCATE_TIMES = 2  # an rlimit counts what is allocated, not what is used: be generous


class Limits:
    """The limits of one job; made before its process, closed after the last one is gone."""

    def __init__(self, wanted: Mapping[str, Any], name: str) -> None:
        self._cpu: float | None = wanted.get("cpu")
        self.memory_bytes: int | None = wanted.get("memory_bytes")
        self.folders: list[str] = []
        self._memory = ""
        self._version = 0
        groups: Mapping[str, Any] = wanted.get("groups") or {}
        try:
            self._make(groups, name)
        except OSError:  # the host lets us make none, or not set them: we watch ourselves
            self.close()
            self.folders, self._memory = [], ""

    @property
    def watches(self) -> bool:
        """Say whether nobody but us looks at the job's memory."""
        return self.memory_bytes is not None and not self._memory

    def enter(self) -> None:
        """Put the calling process under the limits; what it starts inherits them."""
        for folder in self.folders:
            _write(f"{folder}/cgroup.procs", "0")
        if self.watches and self.memory_bytes is not None:
            most = ALLOCATE_TIMES * self.memory_bytes
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))

    def killed(self) -> bool:
        """Say whether the kernel killed a process of the job because memory ran out."""
        if not self._memory:
            return False
        name = "memory.oom_control" if self._version == 1 else "memory.events"
        for line in _lines(f"{self._memory}/{name}"):
            if line.startswith("oom_kill "):
                return int(line.split()[1]) > 0
        return False

    def close(self) -> bool:
        """Remove the groups; False when the kernel still counts a process in one: try again."""
        left: list[str] = []
        for folder in self.folders:
            try:
                os.rmdir(folder)
            except FileNotFoundError:
                continue
            except OSError:
                left.append(folder)
        self.folders = left
        return not left

    def _make(self, groups: Mapping[str, Any], name: str) -> None:
        self._version = groups.get("version", 0)
        if self._version == 1:
            self._make_v1(groups, name)
        elif self._version == 2:
            self._make_v2(groups, name)

    def _make_v1(self, groups: Mapping[str, Any], name: str) -> None:
        if self._cpu is not None and groups.get("cpu"):
            folder = self._folder(groups["cpu"], name)
            _write(f"{folder}/cpu.cfs_period_us", str(PERIOD_US))
            _write(f"{folder}/cpu.cfs_quota_us", str(_quota_us(self._cpu)))
        if self.memory_bytes is not None and groups.get("memory"):
            folder = self._folder(groups["memory"], name)
            _write(f"{folder}/memory.limit_in_bytes", str(self.memory_bytes))
            if os.path.exists(f"{folder}/memory.memsw.limit_in_bytes"):
                _write(f"{folder}/memory.memsw.limit_in_bytes", str(self.memory_bytes))
            self._memory = folder

    def _make_v2(self, groups: Mapping[str, Any], name: str) -> None:
        folder = self._folder(groups["all"], name)
        if self._cpu is not None:
            _write(f"{folder}/cpu.max", f"{_quota_us(self._cpu)} {PERIOD_US}")
        if self.memory_bytes is not None:
            _write(f"{folder}/memory.max", str(self.memory_bytes))
            if os.path.exists(f"{folder}/memory.swap.max"):
                _write(f"{folder}/memory.swap.max", "0")
            _write(f"{folder}/memory.oom.group", "1")
            self._memory = folder

    def _folder(self, parent: str, name: str) -> str:
        folder = f"{parent}/{name}"
        os.makedirs(folder, exist_ok=True)
        self.folders.append(folder)
        return folder


def _quota_us(cpu: float) -> int:
    return max(LEAST_QUOTA_US, round(cpu * PERIOD_US))


def _write(path: str, text: str) -> None:
    file = os.open(path, os.O_WRONLY)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


def _lines(path: str) -> list[str]:
    try:
        with open(path) as file:
            return file.read().splitlines()
    except OSError:
        return []
