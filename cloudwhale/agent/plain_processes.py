"""Plain processes as a runtime: which shim starts them, and what they cannot be given."""

import os
import sys
from collections.abc import Mapping

from cloudwhale.agent import shim

PASSED_ON = ("PATH", "HOME", "LANG", "USER")  # of our environment; nothing else reaches a job


class PlainProcesses:
    """Runs a job as a process of this host; see `spi/runtime`."""

    name = "process"

    def shim(self, folder: str) -> list[str]:
        """Return the command that runs a shim for an attempt's folder.

        Without site-packages and environment (-I -S) it starts in a third of the time.
        """
        return [sys.executable, "-I", "-S", str(shim.__file__), folder]

    def passed_on(self, ours: Mapping[str, str]) -> dict[str, str]:
        """Return where programs and the home are, the language, and the user's name."""
        return {name: ours[name] for name in PASSED_ON if name in ours}

    def unmountable(self, mounts: Mapping[str, str]) -> str:
        """Say what a process cannot be given: it sees the host's paths as they are."""
        for host, inside in mounts.items():
            path, _, mode = inside.partition(":")
            if path != host:
                return f"a plain process cannot see {host} as {path}; write {host}: {host}"
            if not os.path.exists(host):
                return f"{host} is not on this machine"
            if mode == "ro" and os.access(host, os.W_OK):
                return (
                    f"a plain process could write to {host}, and the job wants it read-only;"
                    " give the job an `image`, or leave `:ro` out"
                )
        return ""
