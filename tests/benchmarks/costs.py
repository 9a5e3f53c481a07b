"""What `cost` costs on the ledger of years, and what it costs a controller beside it.

    python tests/benchmarks/costs.py [--rows 1000000] [--jobs 100000] [--rounds 50]

The charges are made up and written in bulk. Commands are measured as a person runs them, in CPU
seconds, which another's load does not change; wall seconds stand beside. A round is an event and
the tick that plans it, on an SQLite file with all the charges; each is paired with one while `cost`
reads the same file again and again, stopped for the quiet one. Exit code 1 when a bar is missed.
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import commands
import machines
from large_ledger import add_charges, spent
from makers import a_job
from sqlalchemy import create_engine

from cloudwhale.control import desk as desks
from cloudwhale.control.controller import Chosen
from cloudwhale.control.effects import InlineEffects
from cloudwhale.control.store import open_store, sqlite_url
from cloudwhale.mailbox.objects import open_objects
from cloudwhale.model import event as e
from cloudwhale.settings import Settings
from cloudwhale.simulation.clock import SteppedClock
from cloudwhale.simulation.raising import Ground, raised

BY_PROJECT_BAR_S = 3.0
PAGE_BAR_S = 5.0
PAGE_BAR_MB = 3.0
FOCUS_BAR_S = 10.0
FOCUS_LINES = 100_000
BESIDE_BAR = 1.15
MACHINES, JOBS = 20, 100

READER = """
import contextlib, io, sys
from pathlib import Path
from cloudwhale.cli.cost_asked import Wanted
from cloudwhale.cli.costing import cost, give_way
give_way()
while True:
    with contextlib.redirect_stdout(io.StringIO()):
        cost(Wanted("project", "all", "UTC", True, None, False, (), None))
    print("read", flush=True)
"""


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured figure beside its bar."""

    name: str
    value: float
    unit: str
    bar: float
    beside: str = ""

    @property
    def is_reached(self) -> bool:
        """Say whether the figure is no more than its bar."""
        return self.value <= self.bar


def fill(home: Path, rows: int) -> None:
    """Make a database with so many charges."""
    open_store(sqlite_url(home), may_migrate=True).close()
    engine = create_engine(sqlite_url(home))
    with engine.begin() as connection:
        add_charges(connection, rows)
        assert spent(connection) > 0
    engine.dispose()


def commands_figures(home: Path, rows: int, times: int = 3) -> Iterator[Figure]:
    """Measure the command, some times, on the charges that are there."""
    took = [commands.timed(home, "cost", "--by", "project") for _ in range(times)]
    assert not any(one.code for one in took)
    yield Figure(
        f"cost --by project, {rows:,} charges", statistics.median(one.cpu_s for one in took),
        "CPU s", BY_PROJECT_BAR_S, f"wall {statistics.median(one.wall_s for one in took):.1f} s",
    )  # fmt: skip


def page_figures(home: Path, jobs: int, times: int = 3) -> Iterator[Figure]:
    """Measure the page, some times, on the charges that are there."""
    page = home / "costs.html"
    took = [commands.timed(home, "cost", "--html", "-o", str(page)) for _ in range(times)]
    assert not any(one.code for one in took)
    yield Figure(
        f"cost --html, {jobs:,} jobs", statistics.median(one.cpu_s for one in took),
        "CPU s", PAGE_BAR_S, f"wall {statistics.median(one.wall_s for one in took):.1f} s",
    )  # fmt: skip
    yield Figure(f"its size, {jobs:,} jobs", page.stat().st_size / 1e6, "MB", PAGE_BAR_MB)


def focus_figures(home: Path, lines: int) -> Iterator[Figure]:
    """Measure the charges as FOCUS, for so many of them as its bar is for."""
    file = home / "focus.csv"
    took = commands.timed(home, "cost", "--focus", "-o", str(file))
    assert not took.code
    yield Figure(
        f"cost --focus, {FOCUS_LINES:,} of {lines:,} lines", took.cpu_s * FOCUS_LINES / lines,
        "CPU s", FOCUS_BAR_S, f"wall {took.wall_s:.1f} s for all",
    )  # fmt: skip


# -- beside a controller -------------------------------------------------------------------------


def beside_figures(home: Path, rounds: int) -> Iterator[Figure]:
    """Measure rounds of a controller with `cost` beside it, each paired with a quiet one."""
    quiet, beside = paired_rounds(home, rounds)
    pairs = list(zip(quiet, beside, strict=True))
    wall = statistics.median(two.wall_s / one.wall_s for one, two in pairs)
    cpu = statistics.median(two.cpu_s / one.cpu_s for one, two in pairs)
    held = statistics.median(two.held_s / one.held_s for one, two in pairs)
    yield Figure(
        f"a round while cost reads, of one without, median of {rounds} pairs",
        wall, "times", BESIDE_BAR,
        f"{1000 * statistics.median(one.wall_s for one in quiet):.0f} ms without; {held:.2f} times "
        f"without what it waits for a core, {cpu:.2f} times its CPU time; "
        f"load {os.getloadavg()[0]:.1f}",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Round:
    """What a round took."""

    wall_s: float
    cpu_s: float
    """Of the one thread that ticks."""
    held_s: float
    """Wall time less what that thread was ready and no core was free: disks and locks are in it."""


def _for_a_core_s() -> float:
    """Return how long this thread was ready and had to wait for a core, so far."""
    return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9


def paired_rounds(home: Path, rounds: int) -> tuple[list[Round], list[Round]]:
    """Return rounds without and with `cost` beside them, pair by pair."""
    store = open_store(sqlite_url(home), may_migrate=False)
    clock, objects = SteppedClock(), open_objects("memory://")
    machines.world(store, clock.now(), MACHINES, JOBS)
    cloud = machines.a_cloud(objects, MACHINES, clock.now())
    settings = Settings(home=home)
    chosen = Chosen(
        desks.policies(settings), settings.order, settings.score,
        wait=settings.wait, rent=settings.rent,
    )  # fmt: skip
    ground = Ground(clock, objects, {"cloud": cloud})
    controller = raised(ground, store, chosen, InlineEffects()).controller
    number = 0

    def a_round() -> Round:
        nonlocal number
        number += 1
        clock.advance_to(clock.now() + 1.0)
        first = a_job(f"new-{number}", name="new").but(submitted_at=clock.now())
        begun, computed, waited = time.perf_counter(), time.thread_time(), _for_a_core_s()
        store.append([e.Submitted(at=clock.now(), job=first.id, first=first)])
        controller.tick()
        wall_s = time.perf_counter() - begun
        return Round(wall_s, time.thread_time() - computed, wall_s - _for_a_core_s() + waited)

    for _ in range(5):
        a_round()  # solvers are imported, what is cached is cached
    found: dict[str, list[Round]] = {"quiet": [], "beside": []}
    reader = _reader(home)
    try:
        for pair in range(rounds):
            for what in _in_turns(pair):
                os.kill(reader.pid, signal.SIGCONT if what == "beside" else signal.SIGSTOP)
                found[what].append(a_round())
    finally:
        os.kill(reader.pid, signal.SIGCONT)
        reader.kill()
        reader.communicate()
        store.close()
    assert not controller.incident, controller.incident
    return found["quiet"], found["beside"]


def _in_turns(pair: int) -> Sequence[str]:
    """Return which of a pair is first: each as often, as a world grows from round to round."""
    return ("quiet", "beside") if pair % 2 else ("beside", "quiet")


def _reader(home: Path) -> "subprocess.Popen[str]":
    """Start a process that reads costs again and again; it has read them once."""
    reader = subprocess.Popen(
        [sys.executable, "-c", READER], env=commands.environment(home), cwd=home, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert reader.stdout is not None
    if reader.stdout.readline() != "read\n":
        raise SystemExit("cost cannot be read here")
    return reader


def main() -> int:
    """Measure and print; return 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=50)
    given = parser.parse_args()
    is_reached = True
    with tempfile.TemporaryDirectory() as folder:
        large, smaller = Path(folder) / "large", Path(folder) / "smaller"
        large.mkdir()
        smaller.mkdir()
        fill(large, given.rows)
        fill(smaller, given.jobs * 4 // 3)  # of four charges three have a job of their own
        for measured in (
            commands_figures(large, given.rows),
            page_figures(smaller, given.jobs),
            focus_figures(smaller, given.jobs * 4 // 3),
            beside_figures(large, given.rounds),
        ):
            for one in measured:
                is_reached &= one.is_reached
                mark = "reached" if one.is_reached else "MISSED"
                print(
                    f"{one.name}: {one.value:.2f} {one.unit} (bar {one.bar:g}, {mark}) {one.beside}"
                )
    return 0 if is_reached else 1


if __name__ == "__main__":
    raise SystemExit(main())
