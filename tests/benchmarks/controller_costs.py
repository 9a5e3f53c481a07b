"""What a controller costs: a thousand jobs submitted and drained, and doing nothing."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import commands

from cloudwhale.control.store import open_store, sqlite_url
from cloudwhale.model.job import JobState

JOBS = 1000
IDLE_S = 30.0
SETTLE_S = 3.0
"""Until a controller that has started does nothing more."""
DRAIN_LIMIT_S = 400.0


def measure_throughput(home: Path) -> Iterator[tuple[str, list[float], str, float, bool]]:
    """Submit a thousand jobs of `true` from one file, then drain them on this host."""
    file = home / "thousand.yaml"
    jobs = [{"name": f"true-{number}", "command": "true"} for number in range(JOBS)]
    file.write_text(json.dumps({"jobs": jobs}))
    warm = home / "warm.yaml"
    warm.write_text(json.dumps({"name": "warm", "command": "true"}))
    commands.run(home, "run", str(warm), "-y")
    took = commands.timed(home, "submit", str(file))
    yield f"{JOBS} jobs submitted from one file", [took.wall_s], "s", 3.0, False
    begun = time.monotonic()
    controller = commands.start(home, "controller")
    store = open_store(sqlite_url(home), may_migrate=False)
    try:
        commands.until(
            f"{JOBS} jobs to end",
            lambda: store.counts()[JobState.COMPLETED] == JOBS + 1,
            limit_s=DRAIN_LIMIT_S,
        )
        drained_s = time.monotonic() - begun
        memory = commands.peak_mb(controller.pid)
    finally:
        controller.terminate()
        controller.wait()
        store.close()
    yield f"{JOBS} jobs of `true` drained, default cpu: 1", [JOBS / drained_s], "jobs/s", 10.0, True
    yield "controller's peak memory while draining", [memory], "MB", 150.0, False


def measure_idle(home: Path) -> Iterator[tuple[str, list[float], str, float, bool]]:
    """Let a controller with nothing to do run for a while."""
    warm = home / "warm.yaml"
    warm.write_text(json.dumps({"name": "warm", "command": "true"}))
    commands.run(home, "run", str(warm), "-y")
    controller = commands.start(home, "controller")
    try:
        time.sleep(SETTLE_S)
        before = commands.cpu_s(controller.pid)
        time.sleep(IDLE_S)
        used = (commands.cpu_s(controller.pid) - before) / IDLE_S
    finally:
        controller.terminate()
        controller.wait()
    yield "idle controller, share of a core", [100 * used], "%", 1.0, False
