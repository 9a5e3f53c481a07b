"""Whatever events come in whatever order: the state stays sound, and every store agrees on it."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from makers import a_job, a_node, a_run
from stories import HERE, WHY, rented

from cloudwhale.control.store import MemoryStore, open_store, sqlite_url
from cloudwhale.model import event as e
from cloudwhale.model.job import ENDED, HOLDS_A_PLACE, Checkpoint, Job, JobState, Wish
from cloudwhale.model.rental import RentalState
from cloudwhale.model.units import MicroUsd
from cloudwhale.model.world import World
from cloudwhale.planning.lifecycle import apply
from cloudwhale.spi.errors import IllegalTransition
from cloudwhale.spi.store import JobQuery, Store

JOBS = ("a", "b", "c")
RUNS = ("r1", "r2")
NODES = ("n1", "n2")

times = st.floats(0.0, 1000.0)
jobs = st.sampled_from(JOBS)
runs = st.sampled_from(RUNS)
nodes = st.sampled_from(NODES)
# Mostly small, so that streams are often legal; attempts are far off now and then.
attempts = st.sampled_from([0, 1, 1, 1, 2, 2, 3])
amounts = st.integers(0, 5).map(MicroUsd)
whys = st.just(WHY)
not_known = st.one_of(st.none(), st.integers(0, 255))

checkpoints = st.builds(
    Checkpoint, attempt=attempts, seq=st.integers(1, 3), name=st.just("step"),
    size_bytes=st.just(1), saved_at=times, manifest=st.just("m"),
)  # fmt: skip

of_jobs = st.one_of(
    st.builds(e.CancelAsked, at=times, job=jobs),
    st.builds(e.PauseAsked, at=times, job=jobs),
    st.builds(e.ResumeAsked, at=times, job=jobs),
    st.builds(e.Placed, at=times, job=jobs, attempt=attempts, placement=st.just(HERE), reason=whys),
    st.builds(e.Waits, at=times, job=jobs, reason=whys),
    st.builds(e.Parked, at=times, job=jobs, reason=whys),
    st.builds(e.GaveUp, at=times, job=jobs, reason=whys),
    st.builds(
        e.StopWished, at=times, job=jobs, attempt=attempts,
        wish=st.sampled_from(["give-way", "limit"]), reason=whys,
    ),
    st.builds(e.CheckpointLate, at=times, job=jobs, attempt=attempts, reason=whys),
    st.builds(e.DeadlineMissed, at=times, job=jobs, reason=whys),
    st.builds(e.AttemptLost, at=times, job=jobs, attempt=attempts, reason=whys),
    st.builds(e.Cleared, at=times, job=jobs, attempt=attempts, lost_s=times),
    st.builds(e.OrderPosted, at=times, job=jobs, attempt=attempts, number=st.just(1)),
    st.builds(e.StopPosted, at=times, job=jobs, attempt=attempts, number=st.just(1)),
    st.builds(e.Started, at=times, job=jobs, attempt=attempts),
    st.builds(e.CheckpointSaved, at=times, job=jobs, attempt=attempts, checkpoint=checkpoints),
    st.builds(e.Finished, at=times, job=jobs, attempt=attempts),
    st.builds(e.Failed, at=times, job=jobs, attempt=attempts, exit_code=not_known, reason=whys),
    st.builds(
        e.Retried, at=times, job=jobs, attempt=attempts, exit_code=not_known, reason=whys,
        not_before=times, counts=st.booleans(), lost_s=times,
    ),
    st.builds(e.Cancelled, at=times, job=jobs, reason=whys),
    st.builds(e.Paused, at=times, job=jobs, reason=whys),
    st.builds(e.GaveWay, at=times, job=jobs, attempt=attempts, reason=whys, lost_s=times),
)  # fmt: skip

submissions = st.builds(
    lambda at, job, run, after: e.Submitted(
        at=at, job=job, first=a_job(job, run=run, name=f"fit-{job}", after=tuple(after))
    ),
    times,
    jobs,
    runs,
    st.lists(st.sampled_from([*JOBS, "ghost"]), max_size=2, unique=True),
)

of_others = st.one_of(
    st.builds(lambda run: e.RunOpened(at=0.0, run=a_run(run, budget=MicroUsd(9))), runs),
    st.builds(lambda at, node: e.NodeJoined(at=at, node=a_node(node)), times, nodes),
    st.builds(e.NodeLost, at=times, node=nodes, silent_s=times),
    st.builds(e.NodeDrained, at=times, node=nodes),
    st.builds(e.Read, at=times, node=nodes, number=st.integers(0, 9)),
    st.builds(e.Noted, at=times, subject=jobs, reason=whys),
    st.builds(rented, st.sampled_from(RentalState), runs),
    st.builds(e.Reserved, at=times, payer=runs, rental=st.just("m"), amount=amounts),
    st.builds(
        e.Charged, at=times, payer=runs, rental=st.just("m"), amount=amounts,
        job=st.one_of(st.none(), jobs),
    ),
    st.builds(e.Released, at=times, payer=runs, rental=st.just("m"), amount=amounts),
)  # fmt: skip

batches = st.lists(
    st.lists(st.one_of(submissions, of_jobs, of_jobs, of_others), min_size=1, max_size=3),
    min_size=1,
    max_size=30,
)


# -- one job ---------------------------------------------------------------------------------


def is_sound(job: Job) -> bool:
    """Say whether a job holds together, whatever happened to it."""
    people = (None, Wish.CANCEL, Wish.PAUSE)
    return (
        (job.state in HOLDS_A_PLACE) <= (job.placement is not None)
        and (job.state in ENDED) == (job.ended_at is not None)
        and (job.state in ENDED) <= (job.wish is None)
        and (job.state is JobState.PENDING) <= (job.wish in people)
        and (job.state in (JobState.PAUSED, JobState.PARKED)) <= (job.wish in people[:2])
        and (job.state is JobState.RUNNING) <= (job.started_at is not None)
        and min(job.run_s, job.lost_s, job.retries, job.interruptions) >= 0
    )


@settings(max_examples=300)
@given(st.lists(of_jobs, max_size=40))
def test_whatever_happens_to_a_job_it_stays_sound(stream: list[e.OfJob]) -> None:
    job = a_job("a")
    for event in stream:
        attempt = job.attempt
        try:
            job = apply(job, event)
        except IllegalTransition:
            continue
        assert is_sound(job)
        assert attempt <= job.attempt <= attempt + 1


# -- stores ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an empty database once; every example begins with a copy."""
    folder = tmp_path_factory.mktemp("empty")
    store = open_store(sqlite_url(folder), may_migrate=True)
    store.close()
    return folder / "cloudwhale.db"


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def took(store: Store, events: list[e.Event]) -> bool:
    """Say whether a store took events; nothing but IllegalTransition may keep it from doing so."""
    try:
        store.append(events)
    except IllegalTransition:
        return False
    return True


@settings(max_examples=60)
@given(batches)
def test_every_store_agrees_on_the_world(
    empty: Path, folder: Path, stream: list[list[e.Event]]
) -> None:
    home = Path(tempfile.mkdtemp(dir=folder))
    shutil.copy(empty, home)
    with ExitStack() as opened:
        memory = MemoryStore()
        # Two processes that take turns at one file, and a third that only looks.
        turns = [
            opened.enter_context(closing(open_store(sqlite_url(home), may_migrate=False)))
            for _ in range(3)
        ]
        worlds: list[World] = []
        for number, batch in enumerate(stream):
            writer = turns[number % 2]
            assert took(memory, batch) == took(writer, batch)
            worlds.append(memory.world(7.0))
            assert writer.world(7.0) == worlds[-1]
            assert turns[2].world(7.0) == worlds[-1]
        for world in worlds:
            assert memory.world_at(world.version, 7.0) == world
            assert turns[2].world_at(world.version, 7.0) == world
        assert answers(turns[2]) == answers(memory)
        restarted = opened.enter_context(closing(open_store(sqlite_url(home), may_migrate=False)))
        assert restarted.world(7.0) == worlds[-1]
    shutil.rmtree(home)


def answers(store: Store) -> list[object]:
    """Return what a store answers to questions about everything."""
    return [
        store.jobs(JobQuery()),
        [store.counts(run) for run in (None, *RUNS)],
        [store.spent(run) for run in RUNS],
        [store.run(run) for run in RUNS],
        store.unfinished_run("/lab", ""),
        store.read_to(),
        store.since(0),
        [store.events(subject) for subject in (*JOBS, *RUNS, *NODES, "m")],
    ]
