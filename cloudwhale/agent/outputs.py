"""Stores what a job has left at its `outputs`: files, then the list of them, which makes it whole.

Links are left out: what they lead to may not be the job's. A file that cannot be read is named,
and the others are stored.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from cloudwhale.agent.attempts import AttemptFolder
from cloudwhale.agent.entries import shown
from cloudwhale.agent.progress import Progress, Say
from cloudwhale.agent.seen import OutputsFailed, OutputsSaved
from cloudwhale.mailbox.box import outputs_prefix
from cloudwhale.mailbox.documents import Manifest, ManifestFile, StartOrder
from cloudwhale.mailbox.objects import Objects, Unreadable
from cloudwhale.spi.clock import Clock
from cloudwhale.spi.errors import StoreUnusable

NAMED_MOST = 3
AT_ONCE = 8
SMALL_BYTES = 256 << 10
"""Larger files are sent in parts side by side already, each of which is held in memory."""


@dataclass(frozen=True, slots=True)
class _Left:
    """A file that a job has left."""

    path: str
    """Relative to the working directory."""
    size_bytes: int
    mode: int


class OutputSaver:
    """One attempt's outputs; tried again, it goes on where the store stopped taking."""

    def __init__(self, folder: AttemptFolder, order: StartOrder, objects: Objects) -> None:
        self._folder = folder
        self._order = order
        self._objects = objects
        self._prefix = outputs_prefix(order.job, order.attempt)
        self._stored: dict[str, ManifestFile] = {}
        self._missing: dict[str, str] = {}

    def save(self, clock: Clock, say: Say) -> OutputsSaved | OutputsFailed:
        """Store all of them; `say` hears how far it is."""
        key = self._folder.key
        try:
            if self._objects.get(f"{self._prefix}/manifest.json") is None:
                self._save(clock, say)
        except StoreUnusable as error:
            return OutputsFailed(key, error.says)
        return OutputsSaved(key, self._says())

    def _save(self, clock: Clock, say: Say) -> None:
        left = list(self._left())
        total = sum(one.size_bytes for one in left)
        progress = Progress("storing what it has left", total, clock.steady, say)
        self._store_all(left, progress)
        if self._stored:
            manifest = Manifest(
                at=clock.now(), job=self._order.job, attempt=self._order.attempt, seq=1,
                name="outputs", files=tuple(sorted(self._stored.values(), key=lambda one: one.key)),
            )  # fmt: skip
            body = manifest.model_dump_json().encode()
            self._objects.create(f"{self._prefix}/manifest.json", body)

    def _store_all(self, left: Sequence[_Left], progress: Progress) -> None:
        """Store files under their numbers: small ones side by side, which wait most of the time."""
        from concurrent.futures import ThreadPoolExecutor  # most jobs leave nothing

        def store(numbered: tuple[int, _Left]) -> int:
            number, one = numbered
            if one.path not in self._stored:
                self._store(f"{self._prefix}/{number:06d}", one)
            return one.size_bytes

        numbered = list(enumerate(left, 1))
        small = [pair for pair in numbered if pair[1].size_bytes < SMALL_BYTES]
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="outputs") as pool:
            for size_bytes in pool.map(store, small):
                progress.add(size_bytes)
        for pair in numbered:
            if pair[1].size_bytes >= SMALL_BYTES:
                progress.add(store(pair))

    def _store(self, key: str, one: _Left) -> None:
        try:
            sha256 = self._objects.put_file(key, self._folder.work / one.path)
        except Unreadable as trouble:
            self._missing[one.path] = str(trouble)
            return
        self._stored[one.path] = ManifestFile(
            path=one.path, key=key, size_bytes=one.size_bytes, sha256=sha256, mode=one.mode
        )

    def _says(self) -> str:
        if not self._missing:
            return ""
        some = list(self._missing.items())[:NAMED_MOST]
        more = len(self._missing) - len(some)
        named = "; ".join(f"{shown(path)}: {why}" for path, why in some)
        return named + (f"; and {more} more" if more else "")

    def _left(self) -> Iterator[_Left]:
        for name in self._order.outputs:
            parts = PurePosixPath(name)
            if parts.is_absolute() or ".." in parts.parts:
                self._missing[name] = "it is not inside the working directory"
                continue
            found = list(self._below(str(parts)))
            if not found:
                self._missing[name] = "nothing is there"
            yield from found

    def _below(self, path: str) -> Iterator[_Left]:
        """Return the regular files at and below a path, in order of their names."""
        where = self._folder.work / path
        if self._leads_away(Path(path)):
            return
        try:
            found = os.lstat(where)
            names = sorted(os.listdir(where)) if stat.S_ISDIR(found.st_mode) else []
        except OSError:
            return
        if stat.S_ISREG(found.st_mode):
            if shown(path) != path:
                self._missing[path] = "its name is not UTF-8"
                return
            yield _Left(path, found.st_size, found.st_mode)
        for name in names:
            yield from self._below(f"{path}/{name}" if path != "." else name)

    def _leads_away(self, path: Path) -> bool:
        """Say whether a link stands anywhere on the way to a path."""
        places = [path, *path.parents][:-1]
        return any((self._folder.work / place).is_symlink() for place in places)
