"""What the house asks of a way to run jobs on a machine: as plain processes, in containers."""

from collections.abc import Mapping
from typing import Protocol


class Runtime(Protocol):
    """Starts no job itself: it names the shim that starts one, watches it, and outlives agents.

    Every shim keeps the same promises in the attempt's folder: it begins a job once at most,
    holds `shim.lock` while it lives, obeys `control`, and writes `pids.json`, `log/`, `exit.json`.
    """

    @property
    def name(self) -> str:
        """Return what it is called among a node's runtimes."""
        ...

    def shim(self, folder: str) -> list[str]:
        """Return the command that runs a shim for an attempt's folder."""
        ...

    def passed_on(self, ours: Mapping[str, str]) -> dict[str, str]:
        """Return what a job gets of the agent's own environment."""
        ...

    def unmountable(self, mounts: Mapping[str, str]) -> str:
        """Say why mounts (host path to `path[:ro]`) cannot be given as asked; empty: they can."""
        ...
