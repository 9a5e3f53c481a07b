"""What a controller costs with many rented machines: its ticks, and its share of a core.

    python tests/benchmarks/machines.py [--machines 100] [--jobs 500] [--seconds 60] [--profile]

Machines are pretended by heartbeats that another process posts into a mailbox over HTTP; store,
controller, planner and checker are the real ones, on an SQLite file. Exit code 1 when a bar is
missed. The share is measured over `--seconds`; what happens less often than that (a lease told
each 7.5 min, a sweep each 5 min) is in a run of 600 s.
"""

import argparse
import cProfile
import multiprocessing
import os
import pstats
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[1]))

import small_s3
from clouding import an_offer
from makers import a_job, a_run, wants

from cloudwhale.clock import SystemClock
from cloudwhale.control import desk as desks
from cloudwhale.control.controller import Chosen
from cloudwhale.control.effects import InlineEffects
from cloudwhale.control.host import ControllerHost
from cloudwhale.control.store import open_store, sqlite_url
from cloudwhale.mailbox.box import inbox_from
from cloudwhale.mailbox.documents import Heartbeat
from cloudwhale.mailbox.objects import Objects, open_objects
from cloudwhale.model import event as e
from cloudwhale.model.job import CheckpointRule, Job, JobState, Placement
from cloudwhale.model.node import Node, NodeState
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Lease, Rental, RentalState
from cloudwhale.model.units import Instant, micro_usd
from cloudwhale.settings import Settings
from cloudwhale.simulation.clock import SteppedClock
from cloudwhale.simulation.cloud import Shelf, SimulatedCloud
from cloudwhale.simulation.processes import Program
from cloudwhale.simulation.raising import Ground, raised
from cloudwhale.spi.errors import NoCapacity
from cloudwhale.spi.provider import LaunchRequest, Machine
from cloudwhale.spi.store import Store

TICK_BAR_S = 0.5
SHARE_BAR = 5.0
WAITING = 5  # one job in so many waits: its machine is full
BEATS_S = 10.0
WHY = Reason(code=Code.PLACED, says="for the benchmark")
MAILBOX = "s3://bench/mailbox"


def world(store: Store, now: Instant, machines: int, jobs: int) -> None:
    """Store machines that are ready, jobs that run there, and some that wait."""
    budget = micro_usd(100_000)
    store.append([e.RunOpened(at=now, run=a_run(budget=budget).but(opened_at=now))])
    here = [jobs // machines + (n < jobs % machines) for n in range(machines)]
    first = 0
    for n, many in enumerate(here):
        names = [f"train-{first + k}" for k in range(many)]
        store.append(_machine(f"rent-1-{n}", names, now))
        first += many


def _machine(name: str, jobs: Sequence[str], now: Instant) -> Iterator[e.Event]:
    lease = Lease(number=1, watched_until=now + 900, away_until=now + 14_400, stop_at=now + 14_520)
    reserved = micro_usd(20)
    rental = Rental(
        id=name, node=name, payer="run-1", offer="big", lease=lease, reserved=reserved,
        taken=an_offer(), jobs=dict.fromkeys(jobs, "default"), reserved_at=now, told=lease,
    )  # fmt: skip
    for job in jobs:
        first = _job(job, now)
        yield e.Submitted(at=now, job=job, first=first)
    yield e.Reserved(at=now, payer="run-1", rental=name, amount=reserved)
    yield e.RentalChanged(at=now, rental=rental)
    hired = rental.but(machine=f"m-{name}", requested_at=now)
    for state in (RentalState.REQUESTED, RentalState.BOOTING, RentalState.READY):
        yield e.RentalChanged(at=now, rental=hired.but(state=state))
    facts = an_offer().facts
    node = Node(
        id=name, facts=facts, state=NodeState.READY, owned=False, provider="cloud",
        agent=f"{name}-1",
    )  # fmt: skip
    yield e.NodeJoined(at=now, node=node)
    for job in jobs[: len(jobs) - len(jobs) // WAITING]:
        place = Placement(node=name)
        yield e.Placed(at=now, job=job, attempt=1, placement=place, reason=WHY)
        yield e.OrderPosted(at=now, job=job, attempt=1, number=1)
        yield e.Started(at=now, job=job, attempt=1)


def _job(name: str, now: Instant) -> Job:
    rule = CheckpointRule(every_s=300.0)
    made = a_job(name, name="train", resources=wants(cpu=2), duration_s=7200.0, checkpoint=rule)
    return made.but(submitted_at=now)


class Pretended(SimulatedCloud):
    """A cloud that lists the machines which are in the store."""

    listed: Sequence[Machine] = ()

    def launch(self, request: LaunchRequest) -> Machine:
        raise NoCapacity("there is none left")

    def machines(self) -> Sequence[Machine]:
        return self.listed


def a_cloud(objects: Objects, machines: int, now: Instant) -> Pretended:
    """Return a cloud with so many machines that run."""
    made = Pretended([Shelf(an_offer())], objects, lambda order: Program(1.0), lambda: now)
    made.listed = [
        Machine(id=f"m-rent-1-{n}", node=f"rent-1-{n}", state="running", owned=False)
        for n in range(machines)
    ]
    return made


# -- ticks -----------------------------------------------------------------------------------


def measure_ticks(folder: Path, machines: int, jobs: int) -> Mapping[str, list[float]]:
    """Return how long ticks take in simulated time, by what has happened before each.

    As CPU time of the one thread that ticks: what it takes where nobody else computes.
    """
    store = open_store(sqlite_url(folder), may_migrate=True)
    clock, objects = SteppedClock(), open_objects("memory://")
    world(store, clock.now(), machines, jobs)
    cloud = a_cloud(objects, machines, clock.now())
    settings = Settings(home=folder)
    chosen = Chosen(desks.policies(settings), settings.order, settings.score,
                    wait=settings.wait, rent=settings.rent)  # fmt: skip
    controller = raised(
        Ground(clock, objects, {"cloud": cloud}), store, chosen, InlineEffects()
    ).controller
    found: dict[str, list[float]] = {"first": [], "nothing": [], "an end": [], "a submission": []}
    beats, last = [inbox_from(objects, f"rent-1-{n}") for n in range(machines)], [0] * machines

    def tick(what: str) -> None:
        begun = time.thread_time()
        controller.tick()
        found[what].append(time.thread_time() - begun)

    for _ in range(3):
        tick("first")
    store.append([_happens(store, "a submission", -1, clock.now())])
    tick("first")  # solvers are imported when something is rented for
    for n in range(60):
        clock.advance_to(clock.now() + 1.0)
        what = ("nothing", "an end", "nothing", "a submission")[n % 4]
        if n % 10 == 0:
            for node, box in enumerate(beats):
                body = Heartbeat(at=clock.now(), agent=f"rent-1-{node}-1").model_dump_json()
                last[node] = box.post(body.encode(), last[node])
        if what != "nothing":
            store.append([_happens(store, what, n, clock.now())])
        tick(what)
        tick("nothing" if what == "nothing" else what)
    assert not controller.incident, controller.incident
    store.close()
    return found


def _happens(store: Store, what: str, number: int, now: Instant) -> e.Event:
    if what == "a submission":
        name = f"new-{number}"
        return e.Submitted(at=now, job=name, first=_job(name, now))
    running = [job for job in store.world(now).jobs.values() if job.state is JobState.RUNNING]
    job = running[number]
    return e.Finished(at=now, job=job.id, attempt=job.attempt)


# -- the share of a core ---------------------------------------------------------------------


def serve(port: Any) -> None:
    """Be the mailbox's server until ended."""
    with small_s3.serving() as environment:
        port.send(environment)
        port.recv()


def beat(environment: Mapping[str, str], machines: int, stop: Any) -> None:
    """Post heartbeats of all machines, each every ten seconds, until told to stop."""
    os.environ.update(environment)
    objects, clock = open_objects(MAILBOX), SystemClock()
    boxes = [inbox_from(objects, f"rent-1-{n}") for n in range(machines)]
    last = [0] * machines
    while True:
        for n, box in enumerate(boxes):
            body = Heartbeat(at=clock.now(), agent=f"rent-1-{n}-1").model_dump_json()
            last[n] = box.post(body.encode(), last[n])
            if stop.poll(BEATS_S / machines):
                return


def measure_share(folder: Path, machines: int, jobs: int, seconds: float, profile: bool) -> float:
    """Return how much of a core the controller's process takes, in percent."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    environment = ours.recv()
    os.environ.update(environment)
    stop, told = context.Pipe()
    poster = context.Process(target=beat, args=(environment, machines, told), daemon=True)
    poster.start()
    try:
        return _share(folder, machines, jobs, seconds, profile)
    finally:
        for pipe, process in ((stop, poster), (ours, server)):
            pipe.send("stop")
            process.join()


def _share(folder: Path, machines: int, jobs: int, seconds: float, profile: bool) -> float:
    store = open_store(sqlite_url(folder), may_migrate=True)
    now = SystemClock().now()
    world(store, now, machines, jobs)
    store.close()
    settings = Settings(home=folder, mailbox=MAILBOX)
    cloud = a_cloud(open_objects(MAILBOX), machines, now)
    with patch.object(desks, "providers", lambda *_: {"cloud": cloud}):
        host = ControllerHost(settings)
        watch = cProfile.Profile()
        if profile:
            original = host._live
            host._live = lambda: watch.runcall(original)  # type: ignore[method-assign]
        assert host.try_start()
        time.sleep(10.0)  # all is read once
        before, begun = time.process_time(), time.perf_counter()
        time.sleep(seconds)
        used = (time.process_time() - before) / (time.perf_counter() - begun)
        assert host.holds and host.failure is None and not host.trouble, host.failure
        host.stop(leave_agents=True)
    if profile:
        pstats.Stats(watch).sort_stats("tottime").print_stats(25)
    return 100 * used


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--machines", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--profile", action="store_true")
    asked = parser.parse_args()
    is_good = True
    with tempfile.TemporaryDirectory(prefix="cloudwhale-bench-") as name:
        folder = Path(name)
        (folder / "ticks").mkdir()
        print(f"{asked.machines} machines, {asked.jobs} jobs, store in SQLite")
        for what, took in measure_ticks(folder / "ticks", asked.machines, asked.jobs).items():
            median, worst = sorted(took)[len(took) // 2], max(took)
            is_good &= worst <= TICK_BAR_S
            print(f"  tick after {what:14} median {1000 * median:7.1f} ms, worst "
                  f"{1000 * worst:7.1f} ms of {1000 * TICK_BAR_S:.0f}, n={len(took)}")  # fmt: skip
        if asked.seconds > 0:
            (folder / "share").mkdir()
            share = measure_share(
                folder / "share", asked.machines, asked.jobs, asked.seconds, asked.profile
            )
            is_good &= share <= SHARE_BAR
            print(f"  share of a core over {asked.seconds:.0f} s, mailbox over HTTP: "
                  f"{share:.2f} % of {SHARE_BAR:.0f}")  # fmt: skip
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
