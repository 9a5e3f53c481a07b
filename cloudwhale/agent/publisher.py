"""Publishes one attempt's checkpoints: whole or not at all, under a number that is used once.

A checkpoint is held still by hard links, uploaded and hashed in one pass, looked at again, and
only then given its manifest. A job that replaces a file of the same name does not disturb it; a
job that writes into the file does, and then nothing is published.
"""

import json
import os
import shutil
import stat
import threading
from collections.abc import Sequence
from pathlib import Path

from cloudwhale.agent.attempts import AttemptFolder
from cloudwhale.agent.entries import End, Entry, File, Watch, entries, entry_named, shown
from cloudwhale.agent.place import write_whole
from cloudwhale.agent.seen import Dropped, Published, PublishFailed, Whole
from cloudwhale.mailbox.box import checkpoint_prefix
from cloudwhale.mailbox.documents import Manifest, ManifestFile
from cloudwhale.mailbox.objects import Objects, Unreadable
from cloudwhale.model.job import Checkpoint
from cloudwhale.model.units import Instant
from cloudwhale.spi.errors import StoreUnusable


class _Changed(Exception):
    """A checkpoint is not what it was when it was found whole, or cannot be published at all."""


_OF_CHECKPOINT = (_Changed, Unreadable, OSError, ValueError, RecursionError)
"""What a checkpoint itself can be at fault for; names that are not UTF-8 are a ValueError."""


class Publisher:
    """One attempt's checkpoints; its verbs come from a pool's threads, one at a time."""

    def __init__(
        self, folder: AttemptFolder, checkpoints: Path, objects: Objects, rank: int | None = None
    ) -> None:
        """`rank`: of its gang, each rank of which publishes into folders of its own."""
        self._folder = folder
        self._rank = rank
        self._objects = objects
        self._turn = threading.Lock()
        self._seq, self._published = folder.published()
        self._watch = Watch(checkpoints, _known(folder))
        self._told = ""

    @property
    def checkpoints(self) -> Path:
        """Return the folder that the job saves to."""
        return self._watch.folder

    def begin(self) -> None:
        """Take what lies in the folder before the job starts as known."""
        for entry in entries(self._watch.folder):
            self._watch.known[entry.name] = entry.digest
        if self._watch.known:
            self._keep()

    def renamed(self, name: str) -> None:
        """Note that the job renamed an entry into its place."""
        self._watch.renamed(name)

    def look(self, now: Instant) -> Whole | None:
        """Return the newest whole entry, once for each of its states; `now` never goes back."""
        with self._turn:
            entry = self._watch.newest(now)
            if entry is None or entry.digest == self._told:
                return None
            self._told = entry.digest
            return Whole(self._folder.key, entry.name, entry.saved_at)

    def publish(
        self, seq: int, now: Instant, wall: Instant, end: End | None = None
    ) -> Published | Dropped | PublishFailed:
        """Publish the newest whole entry if it is new; `end`: no process is left to change it."""
        key = self._folder.key
        with self._turn:
            entry = self._watch.newest(now, end)
            if entry is None:
                return self._nothing(end)
            self._told = ""  # should this fail, the entry is worth telling again
            try:
                return Published(key, self._put(seq, entry, wall))
            except _OF_CHECKPOINT as trouble:
                self._told = entry.digest  # as it is, it is not worth another remark
                return Dropped(key, shown(entry.name), shown(str(trouble)))
            except StoreUnusable as error:
                return PublishFailed(key, error.says)
            finally:
                shutil.rmtree(self._still, ignore_errors=True)

    def _nothing(self, end: End | None) -> Published | Dropped:
        """Say that there is nothing to publish; once, at the end, also why there cannot be."""
        key, folder = self._folder.key, self._watch.folder
        if end is not None and folder.is_symlink():
            return Dropped(key, shown(folder.name), "the checkpoint folder itself is a link")
        return Published(key, None)

    def forget(self, checkpoints: Sequence[Checkpoint]) -> None:
        """Delete checkpoints from the store, manifest first; what it keeps is only wasted room.

        With one of an earlier attempt go all of earlier attempts: it was the newest of them.
        """
        job, attempt = self._folder.key
        folders = {os.path.dirname(one.manifest) for one in checkpoints}
        try:
            if any(one.attempt < attempt for one in checkpoints):
                keys = self._objects.keys(f"checkpoints/{job}")
                known = {os.path.dirname(key) for key in keys}
                folders |= {one for one in known if _is_before(attempt, one)}
            for folder in sorted(folders):
                self._objects.delete([f"{folder}/manifest.json"])
                self._objects.delete(self._objects.keys(folder))
        except StoreUnusable:
            return
        with self._turn:
            self._published = tuple(one for one in self._published if one not in checkpoints)
            self._keep()

    # -- one checkpoint ----------------------------------------------------------------------

    @property
    def _still(self) -> Path:
        return self._folder.path / "still"

    def _put(self, seq: int, entry: Entry, wall: Instant) -> Checkpoint:
        if entry.unfit:
            raise _Changed(entry.unfit)
        job, attempt = self._folder.key
        seq = self._unused(seq)
        prefix = self._prefix(seq)
        paths = self._held_still(entry)
        try:
            files = tuple(
                self._put_file(f"{prefix}/{number:06d}", file, paths.get(file.path))
                for number, file in enumerate(entry.files)
            )
            self._check(entry, paths)
        except (*_OF_CHECKPOINT, StoreUnusable):
            self._give_up(prefix, entry)
            raise
        manifest = Manifest(
            at=wall, job=job, attempt=attempt, seq=seq, name=entry.name, files=files
        )
        checkpoint = Checkpoint(
            attempt=attempt, seq=seq, name=entry.name, size_bytes=entry.size_bytes,
            saved_at=min(entry.saved_at, wall), manifest=f"{prefix}/manifest.json",
        )  # fmt: skip
        if not self._objects.create(checkpoint.manifest, manifest.model_dump_json().encode()):
            raise _Changed(f"there is a checkpoint of number {seq} already")
        self._published = (*self._published, checkpoint)
        self._watch.known[entry.name] = entry.digest
        self._keep()
        return checkpoint

    def _prefix(self, seq: int) -> str:
        return checkpoint_prefix(*self._folder.key, seq, self._rank)

    def _unused(self, seq: int) -> int:
        """Return a number that no upload of this attempt has used, as far as anybody knows."""
        seq = max(seq, self._seq + 1)
        while self._objects.get(f"{self._prefix(seq)}/manifest.json"):
            seq += 1
        self._seq = seq
        self._keep()
        return seq

    def _held_still(self, entry: Entry) -> dict[str, Path]:
        """Link every file, so that its bytes stay when the job replaces it; where links cannot be
        made (another disk), read it in its place."""
        folder = self._watch.folder
        in_place = {file.path: folder / file.path for file in entry.files if file.is_regular}
        linked: dict[str, Path] = {}
        try:
            self._still.mkdir(exist_ok=True)
            for number, (path, source) in enumerate(in_place.items()):
                linked[path] = self._still / str(number)
                os.link(source, linked[path], follow_symlinks=False)
        except FileNotFoundError as error:
            raise _Changed(f"{error.filename} vanished while it was read") from error
        except OSError:
            return in_place
        return linked

    def _put_file(self, key: str, file: File, path: Path | None) -> ManifestFile:
        sha256, where = "", key
        if path is not None:
            sha256 = self._objects.put_file(key, path)
            _compare(file, path)
        elif stat.S_ISLNK(file.mode):
            target = os.fsencode(os.readlink(self._watch.folder / file.path))
            self._objects.put_chunks(key, [target])
        else:
            where = ""
        return ManifestFile(
            path=file.path, key=where, size_bytes=file.size_bytes, sha256=sha256, mode=file.mode
        )

    def _check(self, entry: Entry, paths: dict[str, Path]) -> None:
        """Look again: no byte that was read may have changed, and nothing may have been added."""
        for file in entry.files:
            if file.path in paths:
                _compare(file, paths[file.path])
        now = entry_named(self._watch.folder, entry.name)
        if now is None or now.inode != entry.inode:
            return  # it was replaced or deleted after it was held still
        own = {file.path for file in now.files if file.path.startswith(f"{entry.name}/")}
        added = own - {file.path for file in entry.files}
        if added:
            raise _Changed(f"{min(added)} was added while it was read")

    def _give_up(self, prefix: str, entry: Entry) -> None:
        keys = [f"{prefix}/{number:06d}" for number in range(len(entry.files))]
        try:
            self._objects.delete(keys)
        except StoreUnusable:
            return  # without a manifest nobody reads them

    def _keep(self) -> None:
        record = {
            "seq": self._seq,
            "checkpoints": [one.model_dump() for one in self._published],
            "known": self._watch.known,
        }
        try:
            write_whole(self._folder.ledger, json.dumps(record))
        except OSError:
            pass  # a full disk must not keep us from publishing; the store itself is asked too


def _is_before(attempt: int, folder: str) -> bool:
    number = os.path.basename(folder).partition("-")[0]
    return number.isdecimal() and int(number) < attempt


def _known(folder: AttemptFolder) -> dict[str, str]:
    try:
        known: dict[str, str] = json.loads(folder.ledger.read_bytes())["known"]
    except (OSError, ValueError, KeyError):
        return {}
    return known


def _compare(file: File, path: Path) -> None:
    try:
        found = os.lstat(path)
    except FileNotFoundError as error:
        raise _Changed(f"{file.path} vanished while it was read") from error
    if (found.st_size, found.st_mtime_ns) != (file.size_bytes, file.changed_ns):
        raise _Changed(f"{file.path} changed while it was read")
    if found.st_ino != file.inode:
        raise _Changed(f"{file.path} was replaced while it was read")
