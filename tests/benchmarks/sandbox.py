"""How soon a job runs on a rented machine, in a warm sandbox: from approval to first instruction.

    python tests/benchmarks/sandbox.py [--runs 10] [--json]

Each run asks for a machine of its own, on the real program: `run --sandbox -y` in a fresh home
whose sandbox has rented once before. The approval is the moment the run is stored, the first
instruction what the job writes down. Between them events say where the time goes. Exit code 1 when
the median misses the bar.
"""

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import commands

from cloudwhale.control.store import open_store, sqlite_url
from cloudwhale.model import event as e
from cloudwhale.model.rental import RentalState
from cloudwhale.spi.store import Store

BAR_S = 4.0
RUNS = 10
JOB = {
    "name": "stamp",
    "command": "date +%s.%N > {stamp}.part; mv {stamp}.part {stamp}",
    "resources": {"gpu": {"count": 1, "model": ["L4"]}},
    "duration": "1m",
}
PARTS = (
    "look, decide and reserve", "launch", "boot and join", "place", "post the order",
    "fetch it and start", "in all",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sample:
    """When each step of one run came, in seconds since the approval."""

    steps: tuple[float, ...]

    @property
    def parts(self) -> tuple[float, ...]:
        """Return how long each step took; the last is the sum."""
        each = [
            after - before for before, after in zip((0.0, *self.steps), self.steps, strict=False)
        ]
        return (*each, self.steps[-1])


def measure(home: Path, runs: int) -> list[Sample]:
    """Warm the sandbox, then measure."""
    stamp = home / "stamp"
    file = home / "stamp.yaml"
    file.write_text(json.dumps({**JOB, "command": str(JOB["command"]).format(stamp=stamp)}))
    words = ("run", str(file), "--budget", "50", "--sandbox", "-y", "--new")
    commands.run(home, *words)
    samples: list[Sample] = []
    try:
        for _ in range(runs):
            stamp.unlink()
            with closing(open_store(sqlite_url(home / "sandbox"), may_migrate=False)) as store:
                version = store.version()
                commands.run(home, *words)
                samples.append(sample(store, version, float(stamp.read_text())))
    finally:
        commands.run(home, "sandbox", "stop")
    return samples


def sample(store: Store, version: int, began_at: float) -> Sample:
    """Return the steps of the run that came after a version; `began_at`: its first instruction."""
    events = [told.event for told in store.since(version)]
    (opened_at,) = [event.at for event in events if isinstance(event, e.RunOpened)]
    changed = [event for event in events if isinstance(event, e.RentalChanged)]

    def state_at(state: RentalState) -> float:
        return next(event.at for event in changed if event.rental.state is state)

    times = (
        state_at(RentalState.RESERVED),
        state_at(RentalState.BOOTING),
        state_at(RentalState.READY),
        next(event.at for event in events if isinstance(event, e.Placed)),
        next(event.at for event in events if isinstance(event, e.OrderPosted)),
        began_at,
    )
    return Sample(tuple(at - opened_at for at in times))


def table(samples: Sequence[Sample]) -> list[str]:
    """Return the median and the worst of every part."""
    lines = [f"{'':26}{'median':>9}{'worst':>9}   seconds, {len(samples)} runs"]
    for name, values in zip(PARTS, zip(*(one.parts for one in samples), strict=True), strict=True):
        lines.append(f"{name:26}{statistics.median(values):9.2f}{max(values):9.2f}")
    return lines


def main() -> int:
    """Measure and print; return the exit code."""
    words = argparse.ArgumentParser(description="From approval to first instruction.")
    words.add_argument("--runs", type=int, default=RUNS)
    words.add_argument("--json", action="store_true")
    asked = words.parse_args()
    home = Path(tempfile.mkdtemp(prefix="cloudwhale-bench-"))
    try:
        samples = measure(home, asked.runs)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    median = statistics.median(one.steps[-1] for one in samples)
    if asked.json:
        parts = {name: [one.parts[at] for one in samples] for at, name in enumerate(PARTS)}
        print(json.dumps({"median_s": median, "bar_s": BAR_S, "parts_s": parts}))
    else:
        print("\n".join(table(samples)))
        verdict = "ok" if median <= BAR_S else "MISSED"
        print(f"{verdict}: from approval to first instruction {median:.2f} s, bar {BAR_S:g} s")
    return 0 if median <= BAR_S else 1


if __name__ == "__main__":
    sys.exit(main())
