"""What a job leaves is stored whole, once it has ended by itself, and only that."""

import os
from pathlib import Path

import pytest
from live_agent import CLOCK, a_start
from orders import KEY, Told, of, start, stop

from cloudwhale.agent import seen
from cloudwhale.agent.actions import Close, Publish, SaveOutputs
from cloudwhale.agent.attempts import AttemptFolder
from cloudwhale.agent.course import PUBLISH_AGAIN_S
from cloudwhale.agent.outputs import OutputSaver
from cloudwhale.agent.progress import Progress, size
from cloudwhale.agent.seen import OutputsFailed, OutputsSaved
from cloudwhale.agent.state import LEASE_S
from cloudwhale.control.results import bring
from cloudwhale.mailbox.documents import Manifest, Remark
from cloudwhale.mailbox.objects import StoreObjects, open_objects
from cloudwhale.model.reason import Code
from cloudwhale.spi.errors import StoreUnusable

MANIFEST = "outputs/job/1/manifest.json"


def over(code: int = 0, *, by_itself: bool = True) -> seen.Over:
    return seen.Over(KEY, seen.ExitRecord("exited", code, 100.0, by_itself=by_itself))


def leaving(*events: seen.Seen) -> Told:
    """Make an agent whose job names outputs and runs."""
    return Told(start(outputs=("results/",)), seen.Prepared(KEY), seen.Began(KEY, 0.0), *events)


class Left:
    """An attempt's folder with what its job has left."""

    def __init__(self, folder: Path, objects: StoreObjects, *outputs: str) -> None:
        self.objects = objects
        self.folder = AttemptFolder(folder / "attempts", ("job", 1))
        self.folder.work.mkdir(parents=True)
        self.said: list[str] = []
        order = a_start(outputs=outputs or ("results/",))
        self.saver = OutputSaver(self.folder, order, objects)

    def file(self, path: str, body: bytes = b"made") -> None:
        where = self.folder.work / path
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_bytes(body)

    def save(self) -> OutputsSaved | OutputsFailed:
        return self.saver.save(CLOCK, self.said.append)

    @property
    def paths(self) -> list[str]:
        body = self.objects.get(MANIFEST)
        return [] if body is None else [f.path for f in Manifest.model_validate_json(body).files]


class Failing(StoreObjects):
    """A store that takes so many files and then none."""

    def __init__(self, inner: StoreObjects, takes: int) -> None:
        super().__init__(inner._store)
        self.takes = takes
        self.put: list[str] = []

    def put_file(self, key: str, path: Path) -> str:
        if len(self.put) == self.takes:
            raise StoreUnusable("the store is full")
        self.put.append(key)
        return super().put_file(key, path)


@pytest.fixture
def objects() -> StoreObjects:
    return open_objects("memory://")


def test_outputs_are_stored_after_the_last_checkpoint_and_before_the_end_is_told() -> None:
    agent = leaving(over())
    assert of(Publish, agent.done)[-1].last
    asked = agent.tell(seen.Published(KEY, None))
    assert of(SaveOutputs, asked) == [SaveOutputs(KEY)] and not of(Close, asked)
    assert of(Close, agent.tell(OutputsSaved(KEY)))


def test_what_a_failed_job_leaves_is_stored_too() -> None:
    agent = leaving(over(code=1))
    assert of(SaveOutputs, agent.tell(seen.Published(KEY, None)))


def test_a_stopped_job_goes_on_elsewhere_and_leaves_nothing_yet() -> None:
    agent = leaving(stop(), over(code=143, by_itself=False))
    assert of(Close, agent.tell(seen.Published(KEY, None)))
    assert not of(SaveOutputs, agent.done)


def test_a_job_without_outputs_is_closed_at_once() -> None:
    agent = Told().running()
    agent.tell(over())
    assert of(Close, agent.tell(seen.Published(KEY, None)))


def test_a_store_that_refuses_is_asked_again_and_given_up_in_the_end() -> None:
    agent = leaving(over(), seen.Published(KEY, None))
    agent.tell(OutputsFailed(KEY, "it is full"))
    assert not of(SaveOutputs, agent.pass_(PUBLISH_AGAIN_S - 1.0))
    assert of(SaveOutputs, agent.pass_(1.0))
    agent.tell(OutputsFailed(KEY, "it is full"))
    agent.now = LEASE_S + 1.0
    assert of(Close, agent.tell(seen.Tick()))
    (remark,) = agent.reports(Remark)
    assert remark.code is Code.OUTPUTS_DROPPED


def test_folders_and_files_are_stored_and_brought_back(
    tmp_path: Path, objects: StoreObjects
) -> None:
    left = Left(tmp_path, objects, "results/", "log.txt")
    left.file("results/a/b.bin", b"x" * 5000)
    left.file("results/c")
    left.file("log.txt", b"done")
    left.file("other")
    assert left.save() == OutputsSaved(KEY)
    assert left.paths == ["results/a/b.bin", "results/c", "log.txt"]
    from makers import a_job

    job = a_job("job", outputs=("results/", "log.txt"), attempt=1)
    brought = bring(lambda job, attempt: objects, job, tmp_path / "home")
    assert brought is not None and brought.files == 3
    assert (tmp_path / "home/results/a/b.bin").read_bytes() == b"x" * 5000


def test_nothing_there_is_said_and_no_list_is_made(tmp_path: Path, objects: StoreObjects) -> None:
    left = Left(tmp_path, objects)
    assert left.save() == OutputsSaved(KEY, "results/: nothing is there")
    assert objects.get(MANIFEST) is None


def test_links_and_what_lies_outside_are_left_out(tmp_path: Path, objects: StoreObjects) -> None:
    left = Left(tmp_path, objects, "results/", "away/x", "../x", "/etc/passwd")
    left.file("results/a")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x").write_bytes(b"secret")
    os.symlink("/etc/passwd", left.folder.work / "results" / "link")
    os.symlink(outside, left.folder.work / "away")
    os.mkfifo(left.folder.work / "results" / "pipe")
    saved = left.save()
    assert left.paths == ["results/a"]
    assert isinstance(saved, OutputsSaved) and "../x: it is not inside" in saved.says


def test_a_second_try_goes_on_where_the_store_stopped_taking(
    tmp_path: Path, objects: StoreObjects
) -> None:
    failing = Failing(objects, takes=2)
    left = Left(tmp_path, failing)
    for name in "abc":
        left.file(f"results/{name}")
    assert left.save() == OutputsFailed(KEY, "the store is full")
    assert objects.get(MANIFEST) is None
    failing.takes = 10
    assert left.save() == OutputsSaved(KEY)
    assert len(failing.put) == 3
    assert left.paths == ["results/a", "results/b", "results/c"]


def test_what_is_stored_already_is_not_stored_again(tmp_path: Path, objects: StoreObjects) -> None:
    left = Left(tmp_path, objects)
    left.file("results/a")
    left.save()
    again = Failing(objects, takes=0)
    saver = OutputSaver(left.folder, a_start(outputs=("results/",)), again)
    assert saver.save(CLOCK, left.said.append) == OutputsSaved(KEY)


def test_long_transfers_say_how_far_they_are_ever_less_often() -> None:
    now, said = [0.0], list[str]()
    progress = Progress("storing", 400 * 2**20, lambda: now[0], said.append)
    for second in range(200):
        now[0] = float(second)
        progress.add(2**21)
    assert said[0] == "storing: 22.0 MiB of 400.0 MiB, 2.3 MB/s"
    assert len(said) == 5  # after 10, 30, 70, 130, 190 s
    assert progress.told.startswith("400.0 MiB in 199.0 s")


def test_sizes_are_written_as_a_person_reads_them() -> None:
    assert [size(n) for n in (0, 1023, 1536, 5 * 2**30)] == [
        "0 bytes", "1023 bytes", "1.5 KiB", "5.0 GiB",
    ]  # fmt: skip
