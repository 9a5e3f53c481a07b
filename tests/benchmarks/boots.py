"""How long a machine of the sandbox takes to boot: from its launch to an agent that is ready.

    python tests/benchmarks/boots.py [--runs 3] [--json]

As root. `cold`: the image and what its machines read are not in memory, and the sandbox has booted
none before. `warm`: the same again. `four at once`: each of four that are launched together. CPU is
what the machine itself took, by its control group. Exit code 1 when the median misses its bar.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from booting import BootingCloud, a_booting_cloud, image_here
from live_agent import CLOCK

from cloudwhale_providers.sandbox import boots, cgroups

BARS_S = {"cold": 25.0, "warm": 12.0}
FOUR = 4
NS = 1e9


@dataclass(frozen=True, slots=True)
class Boot:
    """One machine's boot."""

    kind: str
    ready_s: float
    cpu_s: float
    phases: dict[str, float]
    """How long each took, as the machine says."""


def measure(folder: Path, runs: int) -> list[Boot]:
    """Boot machines, one after another and four at once."""
    forget(image_here(folder))
    found: list[Boot] = []
    with a_booting_cloud(folder / "box") as cloud:
        found += booted(cloud, "cold", 1)
        for _ in range(runs):
            found += booted(cloud, "warm", 1)
        found += booted(cloud, "four at once", FOUR)
    return found


def forget(image: Path) -> None:
    """Let this host's memory hold nothing of the image."""
    os.sync()
    for folder, _, names in os.walk(image):
        for name in names:
            path = Path(folder, name)
            if path.is_file() and not path.is_symlink():
                with path.open("rb") as file:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def booted(cloud: BootingCloud, kind: str, count: int) -> list[Boot]:
    """Boot some machines together, and give them back."""
    began = CLOCK.steady()
    nodes = [f"{kind[:4]}-{began:.0f}-{at}" for at in range(count)]
    machines = {node: cloud.launch(node) for node in nodes}
    ready: dict[str, tuple[float, float]] = {}

    def all_ready() -> bool:
        for node in nodes:
            if node not in ready and cloud.joined(node) is not None:
                ready[node] = (CLOCK.steady() - began, cpu_s(cloud, machines[node]))
        return len(ready) == count

    def all_over() -> bool:
        return all(cloud.boot(node)[-1].state == "done" for node in nodes)

    cloud.until(all_ready, "their agents are ready")
    cloud.until(all_over, "their boots are over")
    found = [Boot(kind, *ready[node], phases(cloud, node)) for node in nodes]
    for machine in machines.values():
        cloud.ends(machine)
    return found


def phases(cloud: BootingCloud, node: str) -> dict[str, float]:
    """Return how long each phase took; 0 where the machine has not said."""
    return {one.phase: one.took_s or 0.0 for one in cloud.boot(node) if one.state == "done"}


def cpu_s(cloud: BootingCloud, machine: str) -> float:
    """Return what a machine has computed so far; 0 where its control groups do not say."""
    for group in cgroups.left(f"cloudwhale-{boots.mark(cloud.folder)}-{machine}"):
        if (group / "cpuacct.usage").exists():
            return int((group / "cpuacct.usage").read_text()) / NS
        if (group / "cpu.stat").exists() and "usage_usec" in (group / "cpu.stat").read_text():
            return int((group / "cpu.stat").read_text().split()[1]) / 1e6
    return 0.0


def table(found: Sequence[Boot]) -> list[str]:
    """Return a line for each boot."""
    names = list(found[0].phases)
    lines = [f"{'':14}{'ready':>8}{'CPU':>8}" + "".join(f"{name:>10}" for name in names)]
    for one in found:
        took = "".join(f"{one.phases.get(name, 0.0):10.1f}" for name in names)
        lines.append(f"{one.kind:14}{one.ready_s:8.1f}{one.cpu_s:8.1f}{took}")
    return [*lines, f"seconds; {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}"]


def missed(found: Sequence[Boot]) -> list[str]:
    """Return a sentence for each bar that is missed."""
    said: list[str] = []
    for kind, bar_s in BARS_S.items():
        median = statistics.median(one.ready_s for one in found if one.kind == kind)
        if median > bar_s:
            said.append(f"MISSED: {kind} takes {median:.1f} s, the bar is {bar_s:g} s")
    return said


def main() -> int:
    """Measure and print; return the exit code."""
    words = argparse.ArgumentParser(description="From launch to a ready agent.")
    words.add_argument("--runs", type=int, default=3)
    words.add_argument("--json", action="store_true")
    asked = words.parse_args()
    with tempfile.TemporaryDirectory(prefix="cloudwhale-bench-") as folder:
        found = measure(Path(folder), asked.runs)
    bad = missed(found)
    print(json.dumps([asdict(one) for one in found]) if asked.json else "\n".join(table(found)))
    print("\n".join(bad), end="\n" if bad else "", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
