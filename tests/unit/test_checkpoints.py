"""Checkpoints are published as they are or not at all, and come back bit for bit."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from cloudwhale.agent.attempts import AttemptFolder
from cloudwhale.agent.entries import End
from cloudwhale.agent.publisher import Publisher
from cloudwhale.agent.restoring import Broken, restore
from cloudwhale.agent.seen import Dropped, Published, PublishFailed
from cloudwhale.mailbox.documents import Manifest, ManifestFile
from cloudwhale.mailbox.objects import StoreObjects, Unreadable, open_objects
from cloudwhale.model.job import Checkpoint
from cloudwhale.spi.errors import StoreUnusable

LARGE = b"x" * 5000
FINISHED = End(2e9, finished=True)


def save(folder: Path, name: str, body: bytes = LARGE) -> Path:
    """Write a file of a checkpoint, with the folders above it."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)
    return path


def at(path: Path, seconds: float) -> None:
    """Make a file look as if it was written then."""
    os.utime(path, (seconds, seconds))


# -- publishing ------------------------------------------------------------------------------


class Meddling(StoreObjects):
    """A store during whose uploads something happens to the files."""

    def __init__(self, objects: StoreObjects) -> None:
        super().__init__(objects._store)
        self.meddle: Callable[[str], None] = lambda key: None
        self.refuses = False

    def put_chunks(self, key: str, chunks: Iterable[bytes]) -> None:
        if self.refuses:
            raise StoreUnusable("cannot write: no space")

        def meddled() -> Iterator[bytes]:
            yield from chunks
            self.meddle(key)

        super().put_chunks(key, meddled())

    def manifests(self) -> Sequence[str]:
        return [key for key in self.keys("checkpoints") if key.endswith("manifest.json")]


class Saving:
    """An attempt that saves, and the publisher of what it saves."""

    def __init__(self, tmp_path: Path) -> None:
        self.folder = AttemptFolder(tmp_path / "attempts", ("job", 1))
        self.checkpoints = self.folder.path / "checkpoints"
        self.checkpoints.mkdir(parents=True)
        self.objects = Meddling(open_objects("memory:///"))
        self.publisher = self.again()

    def again(self) -> Publisher:
        """Make the publisher that another agent would make."""
        return Publisher(self.folder, self.checkpoints, self.objects)

    def publish(self, seq: int = 1) -> Published | Dropped | PublishFailed:
        """Publish what is there, as at the end of a job."""
        return self.publisher.publish(seq, 1000.0, 2e9, FINISHED)

    def checkpoint(self, seq: int = 1) -> Checkpoint:
        """Publish what must be whole."""
        told = self.publish(seq)
        assert isinstance(told, Published) and told.checkpoint is not None
        return told.checkpoint


@pytest.fixture
def saving(tmp_path: Path) -> Saving:
    """Give an attempt that saves."""
    return Saving(tmp_path)


def test_a_manifest_names_every_file_and_what_it_holds(saving: Saving) -> None:
    save(saving.checkpoints, "step-1/weights", LARGE)
    save(saving.checkpoints, "step-1/state/adam", b"momentum").chmod(0o600)
    checkpoint = saving.checkpoint()
    manifest = Manifest.model_validate_json(saving.objects.get(checkpoint.manifest) or b"")
    assert (manifest.job, manifest.attempt, manifest.seq, manifest.name) == ("job", 1, 1, "step-1")
    adam, weights = manifest.files
    assert (adam.path, adam.size_bytes, adam.mode & 0o777) == ("step-1/state/adam", 8, 0o600)
    assert saving.objects.get(weights.key) == LARGE
    assert checkpoint.size_bytes == 5008


def test_nothing_new_is_not_published_twice(saving: Saving) -> None:
    save(saving.checkpoints, "step-1")
    saving.checkpoint()
    assert saving.publish(2) == Published(("job", 1), None)
    saving.publisher = saving.again()
    assert saving.publish(2) == Published(("job", 1), None), "nor by the next agent"


def test_what_was_there_before_the_job_is_not_published(saving: Saving) -> None:
    save(saving.checkpoints, "restored")
    saving.publisher.begin()
    assert saving.publish() == Published(("job", 1), None)
    saving.publisher = saving.again()
    assert saving.publish() == Published(("job", 1), None)


def meddle_once(saving: Saving, deed: Callable[[], object]) -> None:
    """Do something while the first object is uploaded."""

    def meddle(key: str) -> None:
        saving.objects.meddle = lambda key: None
        deed()

    saving.objects.meddle = meddle


def test_a_checkpoint_that_is_written_to_while_it_is_read_is_dropped(saving: Saving) -> None:
    path = save(saving.checkpoints, "step-1/weights")
    meddle_once(saving, lambda: path.write_bytes(LARGE + b"more"))
    told = saving.publish()
    assert isinstance(told, Dropped)
    assert (told.name, told.says) == ("step-1", "step-1/weights changed while it was read")
    assert saving.objects.keys("checkpoints") == [], "nothing of it stays"


def test_a_file_changed_after_its_own_upload_is_noticed_too(saving: Saving) -> None:
    first = save(saving.checkpoints, "step-1/a")
    at(first, 10.0)  # not within the tick of the clock in which it is changed
    save(saving.checkpoints, "step-1/b")

    def meddle(key: str) -> None:
        if key.endswith("000001"):
            first.write_bytes(b"y" * 5000)

    saving.objects.meddle = meddle
    assert isinstance(saving.publish(), Dropped)


def test_a_file_added_while_a_checkpoint_is_read_makes_it_incomplete(saving: Saving) -> None:
    save(saving.checkpoints, "step-1/a")
    meddle_once(saving, lambda: save(saving.checkpoints, "step-1/b"))
    told = saving.publish()
    assert isinstance(told, Dropped)
    assert told.says == "step-1/b was added while it was read"


def test_a_dropped_checkpoint_is_published_once_it_is_still(saving: Saving) -> None:
    path = save(saving.checkpoints, "step-1")
    meddle_once(saving, lambda: path.write_bytes(b"y" * 6000))
    assert isinstance(saving.publish(1), Dropped)
    checkpoint = saving.checkpoint(2)
    assert saving.objects.get(checkpoint.manifest.replace("manifest.json", "000000")) == b"y" * 6000


def test_a_checkpoint_replaced_while_it_is_read_is_published_as_it_was(saving: Saving) -> None:
    save(saving.checkpoints, "last.ckpt")
    newer = save(saving.folder.path, "newer", b"y" * 6000)
    meddle_once(saving, lambda: os.replace(newer, saving.checkpoints / "last.ckpt"))
    checkpoint = saving.checkpoint()
    assert saving.objects.get(checkpoint.manifest.replace("manifest.json", "000000")) == LARGE
    assert saving.checkpoint(2).size_bytes == 6000, "and then as it is"


def test_a_checkpoint_deleted_while_it_is_read_is_published(saving: Saving) -> None:
    path = save(saving.checkpoints, "step-1")
    meddle_once(saving, path.unlink)
    assert saving.checkpoint().size_bytes == 5000


def test_where_no_link_can_be_made_a_replaced_checkpoint_is_dropped(
    saving: Saving, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_link(source: Path, target: Path, **_: bool) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", no_link)
    save(saving.checkpoints, "last.ckpt")
    newer = save(saving.folder.path, "newer", b"y" * 5000)
    meddle_once(saving, lambda: os.replace(newer, saving.checkpoints / "last.ckpt"))
    assert isinstance(saving.publish(), Dropped)
    assert saving.checkpoint(2).size_bytes == 5000, "read in its place when nothing disturbs"


def test_a_checkpoint_that_cannot_be_read_is_remarked_once_not_at_every_look(
    saving: Saving,
) -> None:
    path = save(saving.checkpoints, "step-1/.complete")
    save(saving.checkpoints, "step-1/weights")

    def meddle(key: str) -> None:
        raise Unreadable("weights cannot be read: Input/output error")

    saving.objects.meddle = meddle
    assert saving.publisher.look(0.0) is not None
    assert isinstance(saving.publisher.publish(1, 1.0, 2e9), Dropped)
    assert saving.publisher.look(2.0) is None
    path.write_bytes(b"changed")
    assert saving.publisher.look(3.0) is not None


def test_a_name_that_is_not_utf8_is_dropped_with_a_sentence(saving: Saving) -> None:
    folder = save(saving.checkpoints, "step-1/weights").parent
    Path(os.fsdecode(os.fsencode(folder) + b"/st\xff\xfe")).write_bytes(LARGE)
    told = saving.publish()
    assert isinstance(told, Dropped)
    assert told.says == "the name step-1/st\ufffd\ufffd in it is not UTF-8"
    told.says.encode()


def test_a_checkpoint_whose_own_name_is_not_utf8_is_dropped(saving: Saving) -> None:
    save(saving.checkpoints, os.fsdecode(b"st\xff\xfe"))
    told = saving.publish()
    assert isinstance(told, Dropped)
    assert told.name == "st\ufffd\ufffd"
    assert saving.objects.keys("checkpoints") == []


def test_a_link_to_a_name_that_is_not_utf8_comes_back_as_it_was(
    saving: Saving, tmp_path: Path
) -> None:
    folder = save(saving.checkpoints, "step-1/weights").parent
    os.symlink(b"\xff\xfe", os.fsencode(folder / "link"))
    restore(saving.checkpoint(), tmp_path / "into", tmp_path / "staging", saving.objects)
    assert os.readlink(os.fsencode(tmp_path / "into" / "step-1" / "link")) == b"\xff\xfe"


def test_a_checkpoint_of_folders_without_end_is_dropped(saving: Saving) -> None:
    save(saving.checkpoints, "step-1/weights")
    (saving.checkpoints / "step-1" / "/".join("d" * 300)).mkdir(parents=True)
    told = saving.publish()
    assert isinstance(told, Dropped)
    assert told.says == "its folders are nested more than 100 deep"
    (saving.checkpoints / "step-1" / "d").rename(saving.folder.path / "deep")
    assert saving.checkpoint(2).name == "step-1"


def test_what_a_folder_that_became_a_link_leads_to_is_not_published(
    saving: Saving, tmp_path: Path
) -> None:
    save(tmp_path / "etc", "shadow")
    saving.checkpoints.rmdir()
    saving.checkpoints.symlink_to(tmp_path / "etc")
    assert saving.publisher.look(0.0) is None
    assert saving.publisher.publish(1, 1000.0, 2e9) == Published(("job", 1), None)
    told = saving.publish(2)
    assert isinstance(told, Dropped)
    assert (told.name, told.says) == ("checkpoints", "the checkpoint folder itself is a link")
    assert saving.objects.keys("checkpoints") == []


def test_a_store_that_takes_nothing_is_no_fault_of_the_checkpoint(saving: Saving) -> None:
    save(saving.checkpoints, "step-1")
    saving.objects.refuses = True
    assert saving.publish() == PublishFailed(("job", 1), "cannot write: no space")
    saving.objects.refuses = False
    assert saving.checkpoint(2).name == "step-1"


def test_a_number_is_used_once_even_if_all_memory_of_it_is_gone(saving: Saving) -> None:
    save(saving.checkpoints, "step-1")
    first = saving.checkpoint(1)
    saving.folder.ledger.unlink()
    saving.publisher = saving.again()
    save(saving.checkpoints, "step-2")
    second = saving.checkpoint(1)
    assert (first.seq, second.seq) == (1, 2)


def test_a_forgotten_checkpoint_is_gone_manifest_first(
    saving: Saving, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(saving.checkpoints, "step-1")
    old = saving.checkpoint(1)
    save(saving.checkpoints, "step-2")
    kept = saving.checkpoint(2)
    saving.publisher.forget([old])
    assert saving.objects.manifests() == [kept.manifest]
    assert saving.folder.published() == (2, (kept,))
    assert [key for key in saving.objects.keys("checkpoints") if "/1-1/" in key] == []


# -- restoring -------------------------------------------------------------------------------


def test_what_is_restored_replaces_what_lies_in_its_way(saving: Saving, tmp_path: Path) -> None:
    save(saving.checkpoints, "step-1/weights")
    save(saving.checkpoints, "latest", b"step-1")
    checkpoint = saving.checkpoint()
    into = tmp_path / "into"
    save(into, "step-1/stale")
    save(into, "other")
    restore(checkpoint, into, tmp_path / "staging", saving.objects)
    found = sorted(str(path.relative_to(into)) for path in into.rglob("*") if path.is_file())
    assert found == ["latest", "other", "step-1/weights"]
    assert not (tmp_path / "staging").exists()


@pytest.mark.parametrize("path", ["../outside", "/etc/outside", "a/../../outside"])
def test_a_manifest_that_leads_out_of_its_folder_is_refused(
    saving: Saving, tmp_path: Path, path: str
) -> None:
    saving.objects.create("bytes", b"1")
    evil = ManifestFile(path=path, key="bytes", size_bytes=1, sha256="0")
    manifest = Manifest(at=0.0, job="job", attempt=1, seq=1, name="evil", files=(evil,))
    saving.objects.create("m", manifest.model_dump_json().encode())
    checkpoint = Checkpoint(attempt=1, seq=1, name="evil", size_bytes=1, saved_at=0.0, manifest="m")
    with pytest.raises(Broken, match="outside"):
        restore(checkpoint, tmp_path / "into", tmp_path / "staging", saving.objects)
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"files": 3}'])
def test_a_manifest_that_cannot_be_read_restores_nothing(
    saving: Saving, tmp_path: Path, body: bytes
) -> None:
    saving.objects.create("m", body)
    checkpoint = Checkpoint(attempt=1, seq=1, name="x", size_bytes=1, saved_at=0.0, manifest="m")
    with pytest.raises(Broken, match="manifest"):
        restore(checkpoint, tmp_path / "into", tmp_path / "staging", saving.objects)


def test_a_checkpoint_of_which_one_byte_is_wrong_restores_nothing(
    saving: Saving, tmp_path: Path
) -> None:
    save(saving.checkpoints, "step-1/a")
    save(saving.checkpoints, "step-1/b")
    checkpoint = saving.checkpoint()
    key = checkpoint.manifest.replace("manifest.json", "000001")
    saving.objects.put_chunks(key, [LARGE[:-1] + b"y"])
    (tmp_path / "into").mkdir()
    with pytest.raises(Broken, match="step-1/b is damaged"):
        restore(checkpoint, tmp_path / "into", tmp_path / "staging", saving.objects)
    assert list((tmp_path / "into").iterdir()) == []
