"""Submission: what becomes of a job file's jobs, in one append or not at all."""

import os
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from makers import a_job, a_run, a_spec

from cloudwhale.control.secrets import unseal
from cloudwhale.control.store import MemoryStore
from cloudwhale.control.submission import Origin, submit
from cloudwhale.mailbox.objects import StoreObjects, open_objects
from cloudwhale.model.event import RunOpened, Submitted
from cloudwhale.model.job import Job, JobSpec
from cloudwhale.model.run import Run
from cloudwhale.model.units import MicroUsd
from cloudwhale.spi.errors import IllegalTransition, SpecError, StoreUnusable
from cloudwhale.spi.store import JobQuery

KEY = bytes(range(32))


def an_origin(**fields: Any) -> Origin:
    known: dict[str, Any] = {
        "at": 100.0, "folder": Path("/here"), "files": ("job.yaml",), "digest": "d",
        "budget": None, "soft_share": 0.9, "user": "ada", "environment": {}, "key": KEY,
    }  # fmt: skip
    return Origin(**known | fields)


def numbers(start: int = 0) -> Callable[[], str]:
    count: Iterator[int] = iter(range(start, 1_000_000))
    return lambda: f"{next(count):06d}"


def jobs_of(store: MemoryStore, run: Run) -> dict[str, Job]:
    return {job.id: job for job in reversed(store.jobs(JobQuery(run=run.id)))}


def queued(*specs: JobSpec, store: MemoryStore | None = None, start: int = 0) -> dict[str, Job]:
    store = store or MemoryStore()
    objects = open_objects("memory://")
    return jobs_of(store, submit(store, objects, an_origin(), specs, numbers(start)))


def archives(objects: StoreObjects) -> list[str]:
    return list(objects.keys("workdirs"))


@pytest.fixture
def objects(tmp_path: Path) -> StoreObjects:
    return open_objects((tmp_path / "mailbox").as_uri())


def test_the_soft_line_of_the_settings_is_that_of_the_runs_account(objects: StoreObjects) -> None:
    store = MemoryStore()
    origin = an_origin(budget=MicroUsd(5), soft_share=0.5)
    run = submit(store, objects, origin, [a_spec("a")], numbers())
    assert store.world(0.0).accounts[run.id].soft == 0.5


def test_a_run_and_its_jobs_are_one_append(objects: StoreObjects) -> None:
    store = MemoryStore()
    origin = an_origin(budget=MicroUsd(5))
    run = submit(store, objects, origin, [a_spec("a"), a_spec("b")], numbers())
    assert run == Run(
        id="run-000000", opened_at=100.0, user="ada", folder="/here", files=("job.yaml",),
        digest="d", budget=MicroUsd(5),
    )  # fmt: skip
    opened, *submitted = [told.event for told in store.since(0)]
    assert opened == RunOpened(at=100.0, run=run)
    firsts = [event.first for event in submitted if isinstance(event, Submitted)]
    assert [first.but(submitted_at=100.0) for first in firsts] == [
        Job(id=f"{name}-{n:06d}", run=run.id, spec=a_spec(name), submitted_at=100.0)
        for n, name in enumerate("ab", 1)
    ]
    assert store.unfinished_run("/here", "d") == run


def test_jobs_of_one_file_queue_in_its_order() -> None:
    jobs = queued(*(a_spec(name) for name in ("c", "a", "b")))
    by_time = sorted(jobs.values(), key=lambda job: job.submitted_at)
    assert [job.spec.name for job in by_time] == ["c", "a", "b"]
    assert by_time[-1].submitted_at - 100.0 < 0.001


def test_two_jobs_never_get_one_id() -> None:
    drawn = iter(["run", "same", "same", "same", "other"])
    store = MemoryStore()
    specs = [a_spec("a"), a_spec("a")]
    run = submit(store, open_objects("memory://"), an_origin(), specs, lambda: next(drawn))
    assert list(jobs_of(store, run)) == ["a-same", "a-other"]


def test_an_id_that_the_store_has_is_drawn_again() -> None:
    store = before(MemoryStore(), a_job("a-000001", name="a"))
    jobs = queued(a_spec("b", after=("a",)), a_spec("a"), a_spec("a"), store=store)
    assert [job.after for job in jobs.values()] == [("a-000002", "a-000003"), (), ()]
    drawn = numbers()
    with pytest.raises(IllegalTransition):
        submit(
            store, open_objects("memory://"), an_origin(), [a_spec("a")],
            lambda: f"{int(drawn()) % 2:06d}",
        )  # fmt: skip


def test_names_in_after_are_the_jobs_of_the_file() -> None:
    jobs = queued(a_spec("b", after=("a",)), a_spec("a"))
    assert jobs["b-000001"].after == ("a-000002",)
    assert jobs["b-000001"].spec.after == ("a",)


def test_waiting_for_an_array_is_waiting_for_all_its_members() -> None:
    members = [a_spec("a", array={"i": str(i)}) for i in range(3)]
    jobs = queued(*members, a_spec("b", after=("a",)), a_spec("c", after=("a", "b", "a")))
    ids = ("a-000001", "a-000002", "a-000003")
    assert jobs["b-000004"].after == ids
    assert jobs["c-000005"].after == (*ids, "b-000004")


def before(store: MemoryStore, *jobs: Job) -> MemoryStore:
    for run in dict.fromkeys(job.run for job in jobs):
        store.append([RunOpened(at=0.0, run=a_run(run))])
    store.append([Submitted(at=0.0, job=job.id, first=job) for job in jobs])
    return store


def test_a_name_that_the_file_lacks_is_the_newest_job_of_the_project() -> None:
    store = before(
        MemoryStore(),
        a_job("a-old", run="r1", name="a", project="nlp"),
        a_job("a-new1", run="r2", name="a", project="nlp", array={"i": "1"}),
        a_job("a-new2", run="r2", name="a", project="nlp", array={"i": "2"}),
        a_job("a-elsewhere", run="r3", name="a", project="vision"),
    )
    jobs = queued(a_spec("b", project="nlp", after=("a",)), store=store)
    assert jobs["b-000001"].after == ("a-new1", "a-new2")
    jobs = queued(a_spec("c", project="nlp", after=("a-old",)), store=store, start=10)
    assert jobs["c-000011"].after == ("a-old",)


def test_a_name_that_nobody_has_is_refused_and_nothing_is_queued() -> None:
    store = before(MemoryStore(), a_job("trainer-1", name="trainer"))
    known = store.version()
    for name in ("train", "gone"):
        with pytest.raises(SpecError, match=f"^after: no job .* called '{name}'") as caught:
            queued(a_spec("b", after=(name,)), store=store)
        assert "ps --all" in caught.value.remedy
    assert store.version() == known


def test_each_working_directory_is_packed_once_and_travels_with_its_jobs(
    tmp_path: Path, objects: StoreObjects
) -> None:
    for name in ("one", "two", "twin"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_text("1" if name == "one" else "2")
    specs = [a_spec(name, workdir=str(tmp_path / name)) for name in ("one", "one", "two", "twin")]
    store = MemoryStore()
    run = submit(store, objects, an_origin(), [*specs, a_spec("none")], numbers())
    one, again, two, twin, none = (job.workdir_key for job in jobs_of(store, run).values())
    assert one == again != two == twin
    assert none is None
    assert archives(objects) == sorted({str(one), str(two)})
    objects.get_file(str(one), tmp_path / "fetched")
    with tarfile.open(tmp_path / "fetched") as tar:
        assert tar.getnames() == ["a.py"]


def test_what_lies_in_the_mailbox_is_not_sent_again(tmp_path: Path, objects: StoreObjects) -> None:
    (tmp_path / "w").mkdir()
    spec = a_spec(workdir=str(tmp_path / "w"))
    submit(MemoryStore(), objects, an_origin(), [spec], numbers())
    (key,) = archives(objects)
    stored = tmp_path / "mailbox" / key
    os.utime(stored, (1, 1))
    submit(MemoryStore(), objects, an_origin(), [spec], numbers())
    assert stored.stat().st_mtime == 1


def test_our_own_state_inside_a_working_directory_stays_at_home(tmp_path: Path) -> None:
    (tmp_path / "a.py").touch()
    (tmp_path / "home").mkdir()
    (tmp_path / "home/db").touch()
    objects = open_objects((tmp_path / "box").as_uri())
    origin = an_origin(leave_out=(tmp_path / "home",))
    submit(MemoryStore(), objects, origin, [a_spec(workdir=str(tmp_path))], numbers())
    (key,) = archives(objects)
    with tarfile.open(tmp_path / "box" / key) as tar:
        assert tar.getnames() == ["a.py"]


def test_secrets_are_sealed_once_for_the_run() -> None:
    store = MemoryStore()
    origin = an_origin(environment={"A": "one", "B": "two", "C": "three"})
    specs = [a_spec("a", secrets=("A", "B")), a_spec("b", secrets=("B",))]
    run = submit(store, open_objects("memory://"), origin, specs, numbers())
    sealed = store.sealed(run.id)
    assert {name: unseal(KEY, value) for name, value in sealed.items()} == {"A": "one", "B": "two"}
    for told in store.since(0):
        assert "one" not in told.event.model_dump_json()
    assert "three" not in repr(origin) and repr(KEY) not in repr(origin)


def test_a_secret_that_is_absent_leaves_nothing_behind(
    tmp_path: Path, objects: StoreObjects
) -> None:
    store = MemoryStore()
    (tmp_path / "w").mkdir()
    spec = a_spec(secrets=("HF_TOKEN",), workdir=str(tmp_path / "w"))
    with pytest.raises(SpecError, match="the secret HF_TOKEN is not set") as caught:
        submit(store, objects, an_origin(), [spec], numbers())
    assert "export HF_TOKEN=" in caught.value.remedy
    assert (store.version(), archives(objects)) == (0, [])


def test_a_working_directory_that_cannot_be_packed_leaves_nothing_behind(
    tmp_path: Path, objects: StoreObjects
) -> None:
    store = MemoryStore()
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "out").symlink_to("/etc/hostname")
    with pytest.raises(SpecError, match="outside the working directory"):
        submit(store, objects, an_origin(), [a_spec(workdir=str(tmp_path / "w"))], numbers())
    assert (store.version(), archives(objects)) == (0, [])


def test_a_mailbox_that_fails_leaves_nothing_queued(tmp_path: Path) -> None:
    store = MemoryStore()
    objects = open_objects((tmp_path / "box").as_uri())
    (tmp_path / "box" / "workdirs").write_text("in the way")
    (tmp_path / "w").mkdir()
    with pytest.raises(StoreUnusable):
        submit(store, objects, an_origin(), [a_spec(workdir=str(tmp_path / "w"))], numbers())
    assert store.version() == 0


def test_nothing_is_no_submission() -> None:
    with pytest.raises(SpecError, match="there is no job to submit") as caught:
        queued()
    assert caught.value.remedy


def test_a_thousand_jobs_are_submitted_within_a_second_and_a_half_of_cpu(tmp_path: Path) -> None:
    (tmp_path / "a.py").touch()
    specs = [
        a_spec(f"j{n}", workdir=str(tmp_path), secrets=("A",), after=(f"j{n + 1}",) * (n < 999))
        for n in range(1000)
    ]

    class Swallowing(MemoryStore):
        """Counts events, so that a store's own work is not measured."""

        def append(self, events: Any, *, epoch: int | None = None) -> int:
            self.taken = len(list(events))
            return self.taken

    store, origin = Swallowing(), an_origin(environment={"A": "x"})
    used = os.times()
    submit(store, open_objects("memory://"), origin, specs, numbers())
    spent = os.times()
    assert store.taken == 1001
    assert spent.user + spent.system - used.user - used.system <= 1.5
