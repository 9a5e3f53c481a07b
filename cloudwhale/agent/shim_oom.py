"""Whether the kernel has just killed a process of a job because memory ran out around it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

WHOLE_MACHINE = "/proc/vmstat"
GROUPS = "/sys/fs/cgroup"
LOOK_EVERY_S = 5.0  # what was killed longer ago than twice this was no process of a job's end
KILLED = 137  # 128 + SIGKILL
SAYS = (
    "the kernel killed it: there was no memory left on its machine, or for all that its agent runs"
)


class KernelKills:
    """Counts the kernel's kills for memory in a group of processes, or on the whole machine.

    Only for an end by SIGKILL that nobody is known to have sent.
    """

    def __init__(self, now: float, counter: str = WHOLE_MACHINE) -> None:
        self._counter = counter
        self._before = self._newest = _kills(counter) or 0
        self._looked_at = now

    def look(self, now: float) -> None:
        """Count now and then; called at every turn, `now` by a clock that nobody sets."""
        if now - self._looked_at >= LOOK_EVERY_S:
            self._looked_at = now
            self._before, self._newest = self._newest, _kills(self._counter) or 0

    def explain(self, code: int | None) -> bool:
        """Say whether a job that ended with `code` was most probably killed so."""
        return code == KILLED and (_kills(self._counter) or 0) > self._before


def counter(folders: Sequence[str], own: str = "/proc/self/cgroup") -> str:
    """Return where kills of a job's processes are counted, beside those of fewest others.

    That is its own group of `folders`, or ours; else the whole machine.
    """
    named = [f"{folder}/memory.events" for folder in folders]
    for line in _lines(own):
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            named.append(f"{GROUPS}/memory{path}/memory.oom_control")
        elif not controllers:
            named.append(f"{GROUPS}{path}/memory.events.local")
    return next((name for name in named if _kills(name) is not None), WHOLE_MACHINE)


def _kills(counter: str) -> int | None:
    words = (line.split() for line in _lines(counter) if line.startswith("oom_kill "))
    return next((int(count) for _, count in words), None)


def _lines(path: str) -> list[str]:
    try:
        with open(path) as file:
            return file.read().splitlines()
    except OSError:
        return []
