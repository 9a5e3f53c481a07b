"""What starting a command costs: the help, a list of ten thousand jobs, a plan that rents."""

from collections.abc import Iterator
from pathlib import Path

import commands

from cloudwhale.control.store import open_store, sqlite_url
from cloudwhale.model.event import Cancelled, Event, RunOpened, Submitted
from cloudwhale.model.job import Job, JobSpec
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.run import Run

JOBS = 10_000
ALIVE = 100
RUNS = 7

TO_BE_RENTED = "jobs:\n" + "".join(
    f"  - {{name: j{number}, command: 'true', duration: {30 + 17 * number}m, reference: A10G, "
    f"resources: {{cpu: {1 + number % 4}, memory: {4 + 2 * number}GiB, gpu: {gpu}}}, "
    "checkpoint: {every: 10m}}\n"
    for number, gpu in enumerate(
        ("{count: 1, share: 0.5, memory: 8GB..}", "{count: 1, memory: 24GB..}", "{count: 2}",
         "{count: 1, memory: 16GB..}", "{count: 4, model: [L4, A10G]}") * 2
    )
)  # fmt: skip
"""Ten jobs that a host without GPUs cannot run."""


def measure(home: Path) -> Iterator[tuple[str, list[float], str, float, bool]]:
    """Measure each."""
    commands.timed(home, "--help")
    helps = [commands.timed(home, "--help").cpu_s for _ in range(RUNS)]
    yield "cloudwhale --help, CPU", helps, "s", 0.25, False
    fill(home)
    lists = [commands.timed(home, "ps") for _ in range(RUNS)]
    if any(took.code for took in lists):
        raise SystemExit("cloudwhale ps failed")
    yield f"ps with {JOBS} jobs in the store", [took.wall_s for took in lists], "s", 0.7, False
    yield from measure_plan(home / "bare")


def measure_plan(home: Path) -> Iterator[tuple[str, list[float], str, float, bool]]:
    """Measure a plan of jobs that nothing here runs, from the catalogue that is installed."""
    home.mkdir()
    file = home / "jobs.yaml"
    file.write_text(TO_BE_RENTED)
    words = ("plan", str(file), "--budget", "500")
    commands.timed(home, *words)
    plans = [commands.timed(home, *words) for _ in range(RUNS)]
    if any(took.code for took in plans):
        raise SystemExit("cloudwhale plan failed")
    yield "plan of 10 jobs to be rented for", [took.wall_s for took in plans], "s", 1.5, False
    cpu_s = [took.cpu_s for took in plans]
    yield "plan of 10 jobs to be rented for, CPU", cpu_s, "s", 1.5, False


def fill(home: Path) -> None:
    """Store ten thousand jobs, a hundred of them alive."""
    store = open_store(sqlite_url(home), may_migrate=True)
    run = Run(id="run-bench", opened_at=0.0, user="bench", folder=str(home))
    events: list[Event] = [RunOpened(at=0.0, run=run)]
    asked = Reason(code=Code.USER_ASKED, says="cancelled, as asked")
    for number in range(JOBS):
        spec = JobSpec(name=f"job-{number % 50}", command="true")
        job = Job(id=f"job-{number:05}", run=run.id, spec=spec, submitted_at=float(number))
        events.append(Submitted(at=float(number), job=job.id, first=job))
        if number < JOBS - ALIVE:
            events.append(Cancelled(at=float(number), job=job.id, reason=asked))
    store.append(events)
    store.close()
