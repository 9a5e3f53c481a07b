"""Carries a job's output from its folder to the store: in chunks while it runs, then as a whole."""

import json
import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from cloudwhale.agent.attempts import AttemptFolder
from cloudwhale.agent.launching import Sizes
from cloudwhale.agent.place import write_whole
from cloudwhale.agent.seen import Key
from cloudwhale.clock import pause
from cloudwhale.mailbox import gaps
from cloudwhale.mailbox.box import log_of, whole_log_key
from cloudwhale.mailbox.objects import Objects
from cloudwhale.model.units import Seconds
from cloudwhale.spi.errors import StoreUnusable

CHUNK_BYTES = 64 << 10
FLUSH_FOLDER_S: Seconds = 0.3  # a folder costs nothing, and a person watches
FLUSH_REMOTE_S: Seconds = 3.0  # store requests stay within a cent an hour
WHOLE_IN_MEMORY_BYTES = 1 << 20
IDLE_S: Seconds = 3600.0  # with no job to listen to, only a new one wakes the thread


def flush_s(objects: Objects) -> Seconds:
    """Return how old output may become before it is posted."""
    return FLUSH_REMOTE_S if objects.folder is None else FLUSH_FOLDER_S


class LogTail:
    """One attempt's output; `post` and `finish` come from threads, one at a time."""

    def __init__(
        self,
        folder: AttemptFolder,
        objects: Objects,
        sizes: Sizes,
        *,
        adopted: bool = False,
        rank: int | None = None,
    ) -> None:
        """`rank`: of its gang, each rank of which has a log of its own."""
        self._rank = rank
        self._folder = folder
        self._objects = objects
        self._sizes = sizes
        self._turn = threading.Lock()
        self._box = log_of(objects, *folder.key, rank)
        self._chunk, self._at = 0, 0
        self._recalls = adopted
        self._finished = False

    def post(self) -> None:
        """Post what is new; past the head of the log only the newest of it. Raise StoreUnusable.

        In the head nothing is left out, so a chunk's place in the whole log is the sum of those
        before it.
        """
        with self._turn:
            if self._finished:
                return
            self._recall()
            end = self._end()
            while self._at < min(end, self._sizes.log_head):
                room = min(CHUNK_BYTES, self._sizes.log_head - self._at)
                piece = b"".join(self._bytes(self._at, min(end, self._at + room)))
                if not piece:
                    return
                self._said(piece, self._at + len(piece))
            if end > self._at:
                newest = max(self._at, end - CHUNK_BYTES)
                piece = b"".join(self._bytes(newest, end))
                missed = newest - self._at
                self._said((gaps.left_out(missed) if missed else b"") + piece, end)

    def finish(self) -> int:
        """Put the whole log into the store in place of its chunks; raise StoreUnusable.

        Return how many bytes of its middle were dropped.
        """
        with self._turn:
            self._recall()
            key = whole_log_key(*self._folder.key, self._rank)
            segments = list(self._segments())
            size = sum(end - start for _, start, end in segments)
            dropped = (segments[-1][2] - size) if segments else 0
            whole = self._whole(segments)
            if size <= WHOLE_IN_MEMORY_BYTES:
                self._objects.create(key, b"".join(whole))
            else:
                self._objects.put_chunks(key, whole)
            self._finished = True
            self._objects.delete([self._box.key(number + 1) for number in range(self._chunk)])
            return dropped

    def _recall(self) -> None:
        """Find out, once, how far an earlier agent came: it may have died before it noted that."""
        if not self._recalls:
            return
        chunk, at = _remembered(self._folder)
        while (body := self._box.read(chunk + 1)) is not None:
            chunk, at = chunk + 1, at + gaps.stands_for(body)
        self._chunk, self._at, self._recalls = chunk, at, False

    def _said(self, piece: bytes, at: int) -> None:
        self._chunk = self._box.post(piece, self._chunk)
        self._at = at
        record = json.dumps({"chunk": self._chunk, "at": at})
        try:
            write_whole(self._folder.path / "log.json", record)
        except OSError:
            pass  # a full disk: an agent started later reads the chunks instead

    # -- the shim's files: each but the newest is full, so a number tells a place -------------

    def _segments(self) -> Iterator[tuple[Path, int, int]]:
        """Return what there is: a file, and where in the log it begins and ends."""
        try:
            names = sorted(name for name in os.listdir(self._folder.log) if name.isdecimal())
        except OSError:
            return
        for name in names:
            path = self._folder.log / name
            start = (int(name) - 1) * self._sizes.log_segment
            try:
                yield path, start, start + path.stat().st_size
            except OSError:
                continue  # the shim has just dropped it

    def _end(self) -> int:
        return max((end for _, _, end in self._segments()), default=0)

    def _bytes(self, start: int, end: int) -> Iterator[bytes]:
        """Return the output between two places, as far as it is still there."""
        for path, first, last in self._segments():
            if first >= end or last <= start:
                continue
            try:
                with path.open("rb") as file:
                    file.seek(max(0, start - first))
                    yield file.read(min(end, last) - max(start, first))
            except OSError:
                continue

    def _whole(self, segments: Iterable[tuple[Path, int, int]]) -> Iterator[bytes]:
        at = 0
        for path, start, end in segments:
            if start > at:
                yield gaps.left_out(start - at)
            at = end
            with path.open("rb") as file:
                while piece := file.read(CHUNK_BYTES * 16):
                    yield piece


def _remembered(folder: AttemptFolder) -> tuple[int, int]:
    try:
        found = json.loads((folder.path / "log.json").read_bytes())
        return int(found["chunk"]), int(found["at"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0, 0


class LogThread:
    """Posts the output of every job that runs, again and again; store trouble is tried again."""

    def __init__(self, every_s: Seconds) -> None:
        self._every_s = every_s
        self._tails: dict[Key, LogTail] = {}
        self._woken = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._live, name="logs", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def add(self, key: Key, tail: LogTail) -> None:
        """Post this attempt's output from now on."""
        self._tails[key] = tail
        self._woken.set()

    def remove(self, key: Key) -> None:
        """Post no more of it; the whole log comes by `LogTail.finish`."""
        self._tails.pop(key, None)

    def close(self) -> None:
        """End."""
        self._ended.set()
        self._woken.set()
        self._thread.join()

    def _live(self) -> None:
        while not self._ended.is_set():
            pause(0.0 if self._tails else IDLE_S, self._woken)
            self._woken.clear()
            for tail in list(self._tails.values()):
                try:
                    tail.post()
                except StoreUnusable:
                    break  # the same for all; what is not posted now is posted later
            if self._tails:
                pause(self._every_s, self._ended)
