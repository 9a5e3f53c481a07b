"""Watches one attempt of a rehearsal from outside: what it prints, saves and reads."""

import hashlib
import os
import threading
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from cloudwhale.agent.attempts import AttemptFolder
from cloudwhale.agent.entries import Entry, entries
from cloudwhale.cli.rehearse_numbers import numbers_in
from cloudwhale.clock import pause
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.reporting.rehearsed import Printed, Save

HASHED_BYTES = 256 << 20  # more would keep the disk from the job for too long
NUMBERED_FILES = 20
LOOK_AGAIN_S: Seconds = 0.001  # until a folder is there that a job reads a moment later
READ_MOST = 1 << 20
_ACCESS, _CLOSE_NOWRITE, _IS_DIR = 0x1, 0x10, 0x40000000  # of inotify(7)


class Log:
    """What an attempt has printed, line by line; progress bars count as lines."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 1
        self._place = 0
        self._read_bytes = 0
        self._rest = b""
        self.lines: list[Printed] = []

    def look(self, now: Instant) -> None:
        """Read on."""
        for piece in self._pieces():
            self._take(piece, now)

    def end(self, stored: bytes, now: Instant) -> None:
        """Read the rest of what was stored: the agent clears the folder away soon after the end."""
        self.look(now)
        self._take(stored[self._read_bytes :] + b"\n", now)

    def _take(self, piece: bytes, now: Instant) -> None:
        self._read_bytes += len(piece)
        *whole, self._rest = (self._rest + piece).replace(b"\r", b"\n").split(b"\n")
        for line in whole:
            text = line.decode(errors="replace")
            if text.strip():
                self.lines.append(Printed(now, text))

    def _pieces(self) -> Iterator[bytes]:
        while True:
            path = self._folder / f"{self._number:06d}"
            try:
                with path.open("rb") as file:
                    file.seek(self._place)
                    piece = file.read(READ_MOST)
            except OSError:
                return
            if piece:
                self._place += len(piece)
                yield piece
            elif (self._folder / f"{self._number + 1:06d}").exists():
                self._number, self._place = self._number + 1, 0
            else:
                return


class Reads:
    """Hears whether a job reads what was restored for it.

    A thread follows the folders as they come, since the job starts a moment after them.
    """

    def __init__(self, folder: AttemptFolder, checkpoints: Path) -> None:
        self._folder = folder.path
        self._checkpoints = checkpoints
        self._inotify = _inotify()
        self._marks: dict[int, Path] = {}
        self._deaf: set[str] = set()
        self._heard: set[str] = set()
        self._ended = threading.Event()
        self._turn = threading.Lock()
        self._thread = threading.Thread(target=self._follow, name="reads", daemon=True)

    @property
    def can_hear(self) -> bool:
        """Say whether this host tells."""
        return self._inotify is not None

    @property
    def watched(self) -> frozenset[Path]:
        """The folders that it hears of."""
        return frozenset(self._marks.values())

    def start(self) -> None:
        """Begin, before the attempt does."""
        if self._inotify is not None:
            self._thread.start()

    def was_read(self, name: str) -> bool:
        """Say whether an entry of the checkpoint folder was read, as long as it is what it was."""
        self._hear()
        return name in self._heard

    def is_changed(self, name: str) -> None:
        """Count no more reads of an entry: it is another's now, and we read it ourselves."""
        self._hear()
        self._deaf.add(name)

    def close(self) -> None:
        """End."""
        self._ended.set()
        if self._inotify is not None:
            self._thread.join()
            self._inotify.close()

    def _follow(self) -> None:
        while not self._ended.is_set():
            if self._checkpoints.is_dir():
                self._watch(self._checkpoints)
            watched = len(self._marks)
            pause(LOOK_AGAIN_S if not watched else 20 * LOOK_AGAIN_S, self._ended)
            self._hear()

    def _watch(self, folder: Path) -> None:
        """Watch a folder and those in it; again, for those that came."""
        known = set(self._marks.values())
        for path in (folder, *_folders_in(folder)):
            if path in known or self._inotify is None:
                continue
            try:
                mark = self._inotify.add_watch(path, _ACCESS | _CLOSE_NOWRITE)
            except OSError:
                continue  # it is gone, or there are no watches left
            self._marks[mark] = path

    def _hear(self) -> None:
        if self._inotify is None:
            return
        with self._turn:
            for event in self._inotify.read(timeout=0):
                path = self._marks.get(event.wd)
                if event.mask & _IS_DIR or not event.name or path is None:
                    continue
                inside = (path / event.name).relative_to(self._checkpoints)
                if inside.parts[0] not in self._deaf:
                    self._heard.add(inside.parts[0])


def _folders_in(folder: Path) -> Iterator[Path]:
    for root, folders, _ in os.walk(folder):
        yield from (Path(root, name) for name in folders)


def _inotify() -> Any:
    try:
        from inotify_simple import INotify  # pyright: ignore[reportMissingTypeStubs]

        return INotify()
    except (ImportError, OSError):
        return None


class Saves:
    """What an attempt has saved: every state of every entry that was still for a look."""

    def __init__(
        self, folder: AttemptFolder, checkpoints: Path, old: Collection[str] | None, reads: Reads
    ) -> None:
        self._begun = folder.path / "begun"
        self._checkpoints = checkpoints
        self._old = old
        """Names that were restored or packed; None: whatever is older than the attempt is."""
        self._reads = reads
        self._known: dict[str, str] = {}
        self._seen: dict[str, str] = {}
        self.before: set[str] = set()
        """Names of entries that lay there before the job began."""
        self.saves: list[Save] = []

    def look(self) -> None:
        """Note what is new and did not change since the last look."""
        try:
            began_at = self._begun.stat().st_mtime
        except OSError:
            return
        for entry in entries(self._checkpoints):
            state = _state(entry)
            is_old = self._old is None or entry.name in self._old
            if is_old and entry.saved_at < began_at:
                self.before.add(entry.name)
            elif self._known.get(entry.name) != state:
                self._reads.is_changed(entry.name)
                self._note(entry, state)

    def _note(self, entry: Entry, state: str) -> None:
        if self._seen.get(entry.name) == state and not entry.incomplete:
            self._known[entry.name] = state
            self.saves.append(_save(self._checkpoints, entry))
        self._seen[entry.name] = state

    def being_written(self, since: Instant) -> tuple[str, ...]:
        """Return what was written to since then and is not whole, drafts included."""
        noted = {save.name for save in self.saves}
        whole = {entry.name for entry in entries(self._checkpoints) if not entry.incomplete}
        found: list[str] = []
        try:
            with os.scandir(self._checkpoints) as listing:
                for one in sorted(listing, key=lambda one: one.name):
                    changed_at = max(_written(Path(one.path)), default=0.0)
                    is_whole = one.name in whole & noted and not self._grew(one.name, since)
                    if changed_at >= since and not is_whole:
                        found.append(one.name)
        except OSError:
            return ()
        return tuple(found)

    def _grew(self, name: str, since: Instant) -> bool:
        """Say whether what looked whole was longer and longer: written slowly, with pauses."""
        sizes = [save.size_bytes for save in self.saves if save.name == name and save.at >= since]
        return len(sizes) > 1 and sizes == sorted(set(sizes))


def _written(path: Path) -> Iterator[float]:
    paths = [path, *path.rglob("*")] if path.is_dir() else [path]
    for one in paths:
        try:
            yield one.stat().st_mtime
        except OSError:
            continue


def _state(entry: Entry) -> str:
    """Name the state of an entry's own files; small ones that point to it come and go."""
    return hashlib.sha256(repr(entry.own).encode()).hexdigest()


def _save(folder: Path, entry: Entry) -> Save:
    size = sum(file.size_bytes for file in entry.own if file.is_regular)
    digest = _digest(folder, entry) if size <= HASHED_BYTES else ""
    return Save(entry.name, entry.saved_at, size, digest, _numbers(folder, entry))


def _digest(folder: Path, entry: Entry) -> str:
    total = hashlib.sha256()
    try:
        for file in entry.own:
            if file.is_regular:
                total.update(file.path.partition("/")[2].encode())
                with (folder / file.path).open("rb") as body:
                    total.update(hashlib.file_digest(body, "sha256").digest())
    except OSError:
        return ""  # the job has replaced it meanwhile
    return total.hexdigest()


def _numbers(folder: Path, entry: Entry) -> Mapping[str, float]:
    found: dict[str, float] = {}
    for file in [file for file in entry.own if file.is_regular][:NUMBERED_FILES]:
        inside = file.path.partition("/")[2]
        for name, number in numbers_in(folder / file.path).items():
            found.setdefault(f"{inside}:{name}" if inside else name, number)
    return found
