"""What lies in a job's checkpoint folder, and which entry of it is whole."""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from cloudwhale.model.units import Instant, Seconds

STILL_S: Seconds = 5.0  # product.md 3: unchanged for so long is whole
SMALL_BYTES = 4096  # a file like `latest`, which only points to a checkpoint, is smaller than this
DEEPEST = 100  # folders within folders: what walks a deeper one would not come back
COMPLETE_MARKS = (".complete", ".metadata")  # the latter is torch's, written last by rank 0
INCOMPLETE_MARK = "checkpoint-is-incomplete.txt"  # transformers' Trainer
DRAFT_BEGINNINGS = (".", "tmp-")
DRAFT_ENDINGS = (".tmp", ".partial")
DRAFT_PARTS = (".orbax-checkpoint-tmp",)


@dataclass(frozen=True, slots=True)
class File:
    """A file, a link or an empty folder of a checkpoint, as it was when it was looked at."""

    path: str
    """Relative to the checkpoint folder."""
    size_bytes: int
    changed_ns: int
    inode: int
    mode: int
    """With the bits that say what kind it is."""

    @property
    def is_regular(self) -> bool:
        """Say whether it has bytes of its own."""
        return stat.S_ISREG(self.mode)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a checkpoint folder, with the small files that point to it."""

    name: str
    inode: int
    files: tuple[File, ...]
    saved_at: Instant
    """When its newest file was written."""
    marked: bool = False
    """A framework says that it is complete."""
    incomplete: bool = False
    """A framework says that it is not."""

    @property
    def size_bytes(self) -> int:
        """Return the bytes of its regular files."""
        return sum(file.size_bytes for file in self.files if file.is_regular)

    @property
    def unfit(self) -> str:
        """Say why it can never be published; empty when it can."""
        for file in self.files:
            if file.path.count("/") > DEEPEST:
                return f"its folders are nested more than {DEEPEST} deep"
            if shown(file.path) != file.path:
                return f"the name {shown(file.path)} in it is not UTF-8"
        return ""

    @property
    def digest(self) -> str:
        """Name its state: any change of a file, even back, gives another digest."""
        return hashlib.sha256(repr(self.files).encode()).hexdigest()[:32]


def entries(folder: Path) -> tuple[Entry, ...]:
    """Return what may be checkpoints, oldest first; what vanishes meanwhile is left out.

    Small files and links beside a larger entry travel with it and are none themselves; where
    there are only small files, each is one.
    """
    found = [entry for entry in map(_entry, _listed(folder)) if entry is not None]
    small = [entry for entry in found if _points(entry)]
    large = [
        entry for entry in found if entry not in small and (entry.size_bytes > 0 or entry.unfit)
    ]
    if not large:
        return _in_order(entry for entry in small if entry.size_bytes > 0)
    riders = tuple(file for entry in small for file in entry.files)
    return _in_order(replace(entry, files=(*entry.files, *riders)) for entry in large)


def shown(name: str) -> str:
    """Return a name as it can be said: bytes that are not UTF-8 become question marks."""
    return os.fsencode(name).decode(errors="replace")


def entry_named(folder: Path, name: str) -> Entry | None:
    """Return one entry as it is now, or None."""
    return next((entry for entry in entries(folder) if entry.name == name), None)


def _in_order(found: Iterable[Entry]) -> tuple[Entry, ...]:
    return tuple(sorted(found, key=lambda entry: (entry.saved_at, entry.name)))


def _points(entry: Entry) -> bool:
    """Say whether it is a link or a small file."""
    only = entry.files[0]
    if len(entry.files) > 1 or only.path != entry.name:
        return False
    return stat.S_ISLNK(only.mode) or (only.is_regular and only.size_bytes < SMALL_BYTES)


def _listed(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as listing:
            for one in sorted(listing, key=lambda one: one.name):
                if not _is_draft(one.name):
                    yield one
    except OSError:
        return


def _is_draft(name: str) -> bool:
    return (
        name.startswith(DRAFT_BEGINNINGS)
        or name.endswith(DRAFT_ENDINGS)
        or name == INCOMPLETE_MARK
        or any(part in name for part in DRAFT_PARTS)
    )


def _entry(one: os.DirEntry[str]) -> Entry | None:
    try:
        inode = one.inode()
        found = tuple(_files(one.path, one.name))
    except OSError:
        return None  # it is being replaced or deleted: the next look sees it as it is then
    files = tuple(file for file in found if not file.path.endswith(DRAFT_ENDINGS))
    if not files:
        return None
    names = {file.path.rsplit("/", 1)[-1] for file in files}
    parts = any(name.endswith(".distcp") for name in names)  # torch's, whole with .metadata only
    return Entry(
        name=one.name,
        inode=inode,
        files=files,
        saved_at=max(file.changed_ns for file in files) / 1e9,
        marked=not names.isdisjoint(COMPLETE_MARKS),
        incomplete=INCOMPLETE_MARK in names or (parts and ".metadata" not in names),
    )


def _files(path: str, name: str) -> Iterator[File]:
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode):
        if stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode):
            yield _file(name, found)
        return
    below = sorted(os.listdir(path)) if name.count("/") <= DEEPEST else []
    if not below:
        yield _file(name, found)
    for one in below:
        yield from _files(f"{path}/{one}", f"{name}/{one}")


def _file(path: str, found: os.stat_result) -> File:
    size = 0 if stat.S_ISDIR(found.st_mode) else found.st_size
    return File(path, size, found.st_mtime_ns, found.st_ino, found.st_mode)


class Watch:
    """Tells which entry of a checkpoint folder is whole, new, and the newest of those."""

    def __init__(self, folder: Path, known: Mapping[str, str]) -> None:
        self.folder = folder
        self.known = dict(known)
        """Digests of what was there at the start or is published, by name."""
        self._renamed: set[str] = set()
        self._whole: dict[str, str] = {}
        self._seen: dict[str, tuple[str, Instant]] = {}

    def renamed(self, name: str) -> None:
        """Note that an entry was renamed into its place: as it is then, it is whole."""
        self._renamed.add(name)

    def newest(self, now: Instant, *, over: bool = False) -> Entry | None:
        """Return the newest whole entry if it is new; `over`: no process is left to change one."""
        found = entries(self.folder)
        whole = [entry for entry in found if self._is_whole(entry, now, over=over)]
        self._seen = {
            entry.name: self._seen[entry.name] for entry in found if entry.name in self._seen
        }
        if not whole or self.known.get(whole[-1].name) == whole[-1].digest:
            return None
        return whole[-1]

    def _is_whole(self, entry: Entry, now: Instant, *, over: bool) -> bool:
        digest = entry.digest
        if entry.name in self._renamed:
            self._renamed.discard(entry.name)
            self._whole[entry.name] = digest
        before, since = self._seen.get(entry.name, ("", now))
        if before != digest:
            before, since = digest, now
        self._seen[entry.name] = (before, since)
        if entry.incomplete:
            return False
        still = now - since >= STILL_S
        return over or entry.marked or still or self._whole.get(entry.name) == digest
