"""What lies in a job's checkpoint folder, and which entry of it is whole."""

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from pathlib import Path

from cloudwhale.clock import lasted, told
from cloudwhale.model.units import Instant, Seconds

STILL_S: Seconds = 5.0  # unchanged for so long, by the real clock, is whole
SMALL_BYTES = 4096  # a file like `latest`, which only points to a checkpoint, is smaller than this
DEEPEST = 100  # folders within folders: what walks a deeper one would not come back
COMPLETE_MARKS = (".complete", ".metadata", "commit_success.txt")
"""The last two are torch's, written last by rank 0, and Orbax's where it does not rename."""
SHARD = re.compile(r"__(\d+)_\d+\.distcp")  # torch's: which rank has written it
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
    moved_in: bool = False
    """It bears the mark that a rename leaves, to whoever looks later: see `_is_moved_in`."""

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
    def own(self) -> tuple[File, ...]:
        """Return its files without the small ones beside it that point to it."""
        inside = f"{self.name}/"
        return tuple(
            file for file in self.files if file.path == self.name or file.path.startswith(inside)
        )

    @property
    def digest(self) -> str:
        """Name its state: any change of a file, even back, gives another digest."""
        return hashlib.sha256(repr(self.files).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class End:
    """How the process that saved ended: no process is left to change anything."""

    at: Instant | None
    """On the wall clock, like the times of files; None: nobody knows."""
    finished: bool = False
    """With exit code 0, told to stop or not: it was not torn from what it wrote."""


def entries(folder: Path) -> tuple[Entry, ...]:
    """Return what may be checkpoints, oldest first; what vanishes meanwhile is left out.

    Small files and links beside a larger entry travel with it and are none themselves; where
    there are only small files, each is one. A folder that is a link holds none: what it leads to
    is not the job's.
    """
    if folder.is_symlink():
        return ()
    found = [entry for entry in _found(folder) if entry is not None]
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


def _found(folder: Path) -> Iterator[Entry | None]:
    try:
        named_ns = os.lstat(folder).st_mtime_ns
    except OSError:
        return
    for one in _listed(folder):
        yield _entry(one, named_ns)


def _entry(one: os.DirEntry[str], named_ns: int) -> Entry | None:
    """Return what lies under a name; `named_ns`: when a name in its folder changed last."""
    try:
        own = os.lstat(one.path)
        found = tuple(_files(one.path, one.name))
    except OSError:
        return None  # it is being replaced or deleted: the next look sees it as it is then
    files = tuple(file for file in found if not file.path.endswith(DRAFT_ENDINGS))
    if not files:
        return None
    written_ns = max(file.changed_ns for file in files)
    names = {file.path.rsplit("/", 1)[-1] for file in files}
    return Entry(
        name=one.name,
        inode=own.st_ino,
        files=files,
        saved_at=told(written_ns / 1e9),
        marked=not names.isdisjoint(COMPLETE_MARKS),
        incomplete=INCOMPLETE_MARK in names or _lacks_metadata(names),
        moved_in=_is_moved_in(written_ns, own.st_ctime_ns, named_ns),
    )


def _lacks_metadata(names: Set[str]) -> bool:
    """Say whether torch's shards lie there without what makes them whole: the coordinator's
    metadata, or, where ranks save without speaking to each other, that of each rank."""
    if ".metadata" in names:
        return False
    ranks = [match[1] for name in names if (match := SHARD.fullmatch(name))]
    others = any(name.endswith(".distcp") for name in names) and not ranks
    return others or any(f"__{rank}.metadata" not in names for rank in ranks)


def _is_moved_in(written_ns: int, changed_ns: int, named_ns: int) -> bool:
    """Say whether nothing was written to an entry since it was renamed.

    A rename changes the folder and what is renamed, and comes after the last byte. What is written
    in its place has its name first: its bytes are newer than the folder, and what lies in a folder
    is newer than that one. Two times are equal when they are of one tick of the file system's
    clock (4 ms or so): what was torn within the tick in which it was created is taken for whole.
    """
    return written_ns <= min(changed_ns, named_ns)


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
        self._whole: dict[str, tuple[File, ...]] = {}
        self._seen: dict[str, tuple[str, Instant]] = {}

    def renamed(self, name: str) -> None:
        """Note that an entry was renamed into its place: as it is then, it is whole."""
        self._renamed.add(name)

    def newest(self, now: Instant, end: End | None = None) -> Entry | None:
        """Return the newest whole entry if it is new; `end`: no process is left to change one."""
        found = entries(self.folder)
        if end is not None and end.at is None:  # it lived at least until it last wrote
            end = replace(end, at=max((entry.saved_at for entry in found), default=now))
        whole = [entry for entry in found if self._is_whole(entry, now, end)]
        self._seen = {
            entry.name: self._seen[entry.name] for entry in found if entry.name in self._seen
        }
        if not whole or self.known.get(whole[-1].name) == whole[-1].digest:
            return None
        return whole[-1]

    def _is_whole(self, entry: Entry, now: Instant, end: End | None) -> bool:
        digest, own = entry.digest, entry.own
        if entry.name in self._renamed:
            self._renamed.discard(entry.name)
            self._whole[entry.name] = own
        before, since = self._seen.get(entry.name, ("", now))
        if before != digest:
            before, since = digest, now
        self._seen[entry.name] = (before, since)
        if entry.incomplete:
            return False
        if entry.marked or self._whole.get(entry.name) == own:
            return True
        if end is None:
            return self._is_still(entry, now - since)
        return end.finished or entry.moved_in or _was_still(entry, end)

    def _is_still(self, entry: Entry, for_s: Seconds) -> bool:
        """What was still once is whole, also when its job is killed a moment later."""
        if for_s < lasted(STILL_S):
            return False
        self._whole[entry.name] = entry.own
        return True


def _was_still(entry: Entry, end: End) -> bool:
    """Say whether nothing was written to it in the seconds before the end: what is killed while
    it writes leaves a file that nobody changes any more either."""
    return end.at is not None and end.at - entry.saved_at >= lasted(STILL_S)
