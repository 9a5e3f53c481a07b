"""What jobs leave comes to a folder of this host whole, and writes over nothing."""

import hashlib
import stat
from pathlib import Path

import pytest
from makers import a_job

from cloudwhale.cli.bringing import Bringing, brought_words, folders_of
from cloudwhale.clock import SystemClock
from cloudwhale.clock import wait as pause
from cloudwhale.control.results import MARK, NotWhole, Stores, bring
from cloudwhale.mailbox.box import outputs_prefix
from cloudwhale.mailbox.documents import Manifest, ManifestFile
from cloudwhale.mailbox.objects import Objects, open_objects
from cloudwhale.model.job import Job, JobState


def in_(objects: Objects) -> Stores:
    """Return what finds all attempts in one store."""
    return lambda job, attempt: objects


def a_done_job(
    name: str = "fit", attempt: int = 1, outputs: tuple[str, ...] = ("results/",)
) -> Job:
    job = a_job(f"{name}-1", outputs=outputs)
    spec = job.spec.but(name=name)
    return job.but(spec=spec, attempt=attempt, state=JobState.COMPLETED, ended_at=9.0)


def leave(objects: Objects, job: Job, attempt: int, **files: bytes) -> None:
    """Publish files, the list of them last, as an agent does."""
    listed: list[ManifestFile] = []
    for name, body in files.items():
        key = f"{outputs_prefix(job.id, attempt)}/{name}"
        objects.put_chunks(key, [body])
        path = f"results/{name.replace('__', '/')}"
        listed.append(_file(path, key, body))
    _publish(objects, job, attempt, listed)


def _file(path: str, key: str, body: bytes, mode: int = 0o644) -> ManifestFile:
    digest = hashlib.sha256(body).hexdigest()
    return ManifestFile(path=path, key=key, size_bytes=len(body), sha256=digest, mode=mode)


def _publish(objects: Objects, job: Job, attempt: int, files: list[ManifestFile]) -> None:
    manifest = Manifest(
        at=1.0, job=job.id, attempt=attempt, seq=1, name="outputs", files=tuple(files)
    )
    key = f"{outputs_prefix(job.id, attempt)}/manifest.json"
    assert objects.create(key, manifest.model_dump_json().encode())


@pytest.fixture
def store() -> Objects:
    return open_objects("memory://")


def test_all_files_come_with_their_folders(store: Objects, tmp_path: Path) -> None:
    job = a_done_job()
    leave(store, job, 1, a=b"one", deep__b=b"two")
    brought = bring(in_(store), job, tmp_path / "results" / "fit")
    assert brought is not None and (brought.files, brought.size_bytes) == (2, 6)
    assert (tmp_path / "results/fit/a").read_bytes() == b"one"
    assert (tmp_path / "results/fit/deep/b").read_bytes() == b"two"


def test_where_several_places_are_named_each_keeps_its_path(store: Objects, tmp_path: Path) -> None:
    job = a_done_job(outputs=("results/", "log.txt"))
    leave(store, job, 1, a=b"one")
    bring(in_(store), job, tmp_path / "fit")
    assert (tmp_path / "fit/results/a").read_bytes() == b"one"


def test_the_newest_attempt_that_has_left_something_counts(store: Objects, tmp_path: Path) -> None:
    job = a_done_job(attempt=3)
    leave(store, job, 1, a=b"old")
    leave(store, job, 2, a=b"new")
    brought = bring(in_(store), job, tmp_path / "fit")
    assert brought is not None and brought.attempt == 2
    older = bring(in_(store), job, tmp_path / "first", attempt=1)
    assert older is not None and (tmp_path / "first/a").read_bytes() == b"old"


def test_a_job_that_left_nothing_brings_nothing(store: Objects, tmp_path: Path) -> None:
    assert bring(in_(store), a_done_job(), tmp_path / "fit") is None
    assert list(tmp_path.iterdir()) == []


def test_the_same_results_are_not_fetched_twice(store: Objects, tmp_path: Path) -> None:
    job = a_done_job()
    leave(store, job, 1, a=b"one")
    bring(in_(store), job, tmp_path / "fit")
    (tmp_path / "fit/a").write_text("what I made of it")
    again = bring(in_(store), job, tmp_path / "fit")
    assert again is not None and again.was_there
    assert (tmp_path / "fit/a").read_text() == "what I made of it"


def test_what_lay_there_is_moved_aside_under_a_name_that_says_whose_it_was(
    store: Objects, tmp_path: Path
) -> None:
    folder = tmp_path / "fit"
    folder.mkdir()
    (folder / "mine").write_text("dear to me")
    for attempt in (1, 2):
        job = a_done_job(attempt=attempt)
        leave(store, job, attempt, a=str(attempt).encode())
        brought = bring(in_(store), job, folder)
        assert brought is not None and brought.moved is not None
        assert f"is in {brought.moved}" in brought_words(brought)
    assert (tmp_path / "fit.before/mine").read_text() == "dear to me"
    assert (tmp_path / "fit.fit-1.1/a").read_text() == "1"
    assert (folder / "a").read_text() == "2"


def test_two_that_were_moved_aside_do_not_write_over_each_other(
    store: Objects, tmp_path: Path
) -> None:
    job = a_done_job()
    leave(store, job, 1, a=b"one")
    for name in ("fit", "fit.before", "fit.before.2"):
        (tmp_path / name).mkdir()
    brought = bring(in_(store), job, tmp_path / "fit")
    assert brought is not None and brought.moved == tmp_path / "fit.before.3"


def test_a_file_that_comes_with_other_content_leaves_all_as_it_was(
    store: Objects, tmp_path: Path
) -> None:
    job = a_done_job()
    leave(store, job, 1, a=b"one", b=b"two")
    store.put_chunks(f"{outputs_prefix(job.id, 1)}/b", [b"not two"])
    (tmp_path / "fit").mkdir()
    with pytest.raises(NotWhole) as refused:
        bring(in_(store), job, tmp_path / "fit")
    assert "other content" in refused.value.says
    assert [path.name for path in tmp_path.iterdir()] == ["fit"]
    assert not any((tmp_path / "fit").iterdir())


def test_a_file_that_is_gone_is_said_to_be(store: Objects, tmp_path: Path) -> None:
    job = a_done_job()
    _publish(store, job, 1, [_file("results/a", "outputs/nowhere", b"one")])
    with pytest.raises(NotWhole, match="not in the store any more"):
        bring(in_(store), job, tmp_path / "fit")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["../evil", "/etc/evil", "results/../../evil", MARK])
def test_nothing_is_written_outside_of_the_folder(
    store: Objects, tmp_path: Path, path: str
) -> None:
    job = a_done_job(outputs=("results/", "x"))
    store.put_chunks("outputs/x", [b"evil"])
    _publish(store, job, 1, [_file(path, "outputs/x", b"evil")])
    with pytest.raises(NotWhole, match="outside"):
        bring(in_(store), job, tmp_path / "here" / "fit")
    assert not (tmp_path / "evil").exists() and not (tmp_path / "here" / "evil").exists()


def test_links_are_left_out_and_counted(store: Objects, tmp_path: Path) -> None:
    job = a_done_job()
    store.put_chunks("outputs/x", [b"/etc/passwd"])
    link = _file("results/link", "outputs/x", b"/etc/passwd", mode=stat.S_IFLNK | 0o777)
    _publish(store, job, 1, [link])
    brought = bring(in_(store), job, tmp_path / "fit")
    assert brought is not None and (brought.files, brought.links) == (0, 1)
    assert not (tmp_path / "fit/link").is_symlink()


def test_a_list_that_cannot_be_read_is_said_to_be(store: Objects, tmp_path: Path) -> None:
    store.create(f"{outputs_prefix('fit-1', 1)}/manifest.json", b"{")
    with pytest.raises(NotWhole, match="cannot be read"):
        bring(in_(store), a_done_job(), tmp_path / "fit")


# -- while somebody follows ------------------------------------------------------------------


def all_news(bringing: Bringing) -> list[str]:
    clock = SystemClock()
    end, said = clock.steady() + 20.0, list[str]()
    while bringing.is_busy:
        assert clock.steady() < end, "waited in vain"
        said += bringing.news(clock.now())
        pause(0.01)
    return said


def test_who_follows_is_told_where_results_lie(
    store: Objects, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    job = a_done_job()
    leave(store, job, 1, a=b"one")
    bringing = Bringing(in_(store), folders_of([job], tmp_path / "results"))
    bringing.ended(job)
    assert all_news(bringing) == ["results of fit-1: ./results/fit (1 file, 3 B)"]


@pytest.mark.parametrize(("state", "said"), [("completed", 1), ("failed", 0), ("cancelled", 0)])
def test_only_of_a_job_that_completed_it_is_news_that_nothing_came(
    store: Objects, tmp_path: Path, state: str, said: int
) -> None:
    job = a_done_job().but(state=JobState(state))
    bringing = Bringing(in_(store), folders_of([job], tmp_path))
    bringing.ended(job)
    assert len(all_news(bringing)) == said


def test_jobs_without_outputs_and_those_that_never_ran_are_not_looked_at(store: Objects) -> None:
    bringing = Bringing(in_(store), {})
    bringing.ended(a_done_job(outputs=()))
    bringing.ended(a_done_job(attempt=0))
    bringing.ended(a_done_job().but(state=JobState.RUNNING))
    assert not bringing.is_busy


def test_what_does_not_come_is_said_with_the_command_that_tries_again(
    store: Objects, tmp_path: Path
) -> None:
    job = a_done_job()
    _publish(store, job, 1, [_file("results/a", "outputs/nowhere", b"one")])
    bringing = Bringing(in_(store), folders_of([job], tmp_path))
    bringing.ended(job)
    (said,) = all_news(bringing)
    assert "did not come" in said and "`cloudwhale results fit-1` tries again" in said


class SlowStore:
    """A store whose files come only when they are let."""

    def __init__(self, objects: Objects) -> None:
        import threading

        self.folder = None
        self.objects, self.let = objects, threading.Event()

    def get(self, key: str) -> bytes | None:
        return self.objects.get(key)

    def get_file(self, key: str, path: Path) -> str | None:
        path.write_bytes(b"x" * 1024)
        assert self.let.wait(20)
        return self.objects.get_file(key, path)


def test_what_takes_long_tells_how_far_it_is_and_how_fast(store: Objects, tmp_path: Path) -> None:
    job = a_done_job()
    leave(store, job, 1, a=b"y" * 4096)
    slow = SlowStore(store)
    bringing = Bringing(in_(slow), folders_of([job], tmp_path))  # type: ignore[arg-type]
    bringing.ended(job)
    clock = SystemClock()
    end = clock.steady() + 20.0
    while not (tmp_path / ".fit.coming" / "a").exists():
        assert clock.steady() < end, "waited in vain"
        pause(0.01)
    assert bringing.news(100.0) == []
    assert bringing.news(101.0) == []
    assert bringing.news(104.0) == ["fetching the results of fit-1: 1.0 KiB of 4.0 KiB, 256 B/s"]
    assert bringing.news(105.0) == []
    slow.let.set()
    assert all_news(bringing)[-1].startswith("results of fit-1: ")


def test_members_of_an_array_have_folders_of_their_own() -> None:
    one, two, other = a_done_job("a"), a_done_job("a").but(id="a-2"), a_done_job("b")
    folders = folders_of([one, two, other], Path("/r"))
    assert folders == {"a-1": Path("/r/a-1"), "a-2": Path("/r/a-2"), "b-1": Path("/r/b")}
