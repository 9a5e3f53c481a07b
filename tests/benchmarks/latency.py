"""How soon a job's first instruction runs: after Enter, and after the event is committed."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import commands

from cloudwhale.control.store import open_store, sqlite_url
from cloudwhale.model.event import Submitted

RUNS = 15
QUIET_S = 0.5
"""Between two runs: the agent of the one before has gone, the machine is idle."""


def job_file(home: Path, stamp: Path) -> Path:
    """Write a job whose first instruction writes down the time."""
    file = home / "stamp.yaml"
    job = {"name": "stamp", "command": f"date +%s.%N > {stamp}.part; mv {stamp}.part {stamp}"}
    file.write_text(json.dumps(job))
    return file


def measure(home: Path) -> Iterator[tuple[str, list[float], str, float, bool]]:
    """Measure from Enter with nothing running, then from the event with a controller running."""
    stamp = home / "stamp"
    file = job_file(home, stamp)
    commands.run(home, "run", str(file), "-y")
    yield "from Enter to the first instruction", from_enter(home, file, stamp), "s", 1.0, False
    controller = commands.start(home, "controller")
    try:
        yield (
            "from the committed event to the first instruction",
            from_event(home, file, stamp),
            "s",
            0.25,
            False,
        )
    finally:
        controller.terminate()
        controller.wait()


def from_enter(home: Path, file: Path, stamp: Path) -> list[float]:
    """Return how long after its start `run` brought the job to its first instruction."""
    samples: list[float] = []
    for _ in range(RUNS):
        stamp.unlink(missing_ok=True)
        time.sleep(QUIET_S)
        begun = time.time()
        commands.run(home, "run", str(file), "-y", "--new")
        samples.append(float(stamp.read_text()) - begun)
    return samples


def from_event(home: Path, file: Path, stamp: Path) -> list[float]:
    """Return how long after the event was committed the job came to its first instruction.

    The event is stamped just before its transaction, so the commit itself is counted too.
    """
    samples: list[float] = []
    store = open_store(sqlite_url(home), may_migrate=False)
    commands.run(home, "submit", str(file))
    commands.until("the controller to run a first job", stamp.exists)
    for _ in range(RUNS):
        stamp.unlink()
        time.sleep(QUIET_S)
        version = store.version()
        commands.run(home, "submit", str(file))
        commands.until("the job to run", stamp.exists)
        submitted = [t.event for t in store.since(version) if isinstance(t.event, Submitted)]
        samples.append(float(stamp.read_text()) - submitted[0].at)
    store.close()
    return samples
