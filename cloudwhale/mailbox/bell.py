"""Directory notification: wakes a reader of a folder at once instead of at its next poll."""

import os
import select
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from cloudwhale.model.units import Seconds

_CREATED, _MOVED_HERE = 0x100, 0x80  # IN_CREATE, IN_MOVED_TO of inotify(7)
_IS_FOLDER_ONLY = 0x01000000  # IN_ONLYDIR
_STAGING = "#"  # obstore writes `name#1` and links it to its name when it is whole


class Rang(NamedTuple):
    """What woke a waiter: anything at all, and whether a new file was among it."""

    anything: bool
    folder: bool


class Bell:
    """Waits for a new file in any of some folders, for a `ring`, or for a time to pass.

    Without inotify (macOS) only `ring` and time wake it: readers then poll.
    """

    def __init__(self) -> None:
        self._is_closed = False
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._inotify = _inotify()
        self._watched: dict[Path, int] = {}
        self._moves: dict[int, Path] = {}
        self._moved: list[tuple[Path, str]] = []

    @property
    def hears_folders(self) -> bool:
        """Say whether new files ring it."""
        return self._inotify is not None

    def watch(self, folder: Path, *, moves: bool = False) -> bool:
        """Ring for every file that appears in a folder; made when missing; may be repeated.

        With `moves`, only for those renamed into it, and `moved` tells which. False: nothing
        will ring (no inotify here, or no watches left), so the reader must poll.
        """
        if self._inotify is None:
            return False
        if folder not in self._watched:
            folder.mkdir(parents=True, exist_ok=True)
            try:
                events = _MOVED_HERE if moves else _CREATED | _MOVED_HERE
                mark = self._inotify.add_watch(folder, events | _IS_FOLDER_ONLY)
            except OSError:
                return False
            self._watched[folder] = mark
            if moves:
                self._moves[mark] = folder
        return True

    def unwatch(self, folder: Path) -> None:
        """Ring no more for a folder; one that is gone or was never watched is fine."""
        mark = self._watched.pop(folder, None)
        if mark is None or self._inotify is None:
            return
        self._moves.pop(mark, None)
        try:
            self._inotify.rm_watch(mark)
        except OSError:
            pass  # the folder is gone, and its watch with it

    def moved(self) -> list[tuple[Path, str]]:
        """Return, once, the files renamed into folders watched with `moves`: folder, name."""
        moved, self._moved = self._moved, []
        return moved

    def ring(self) -> None:
        """Wake the waiter; from any thread. Once it is closed, nobody waits any more."""
        try:
            os.write(self._write, b"x")
        except BlockingIOError:
            pass  # the pipe is full of rings already
        except OSError:
            if not self._is_closed:
                raise

    def wait(self, at_most_s: Seconds, also: Sequence[int] = ()) -> Rang:
        """Wait; say what rang. `also`: file descriptors that ring when readable."""
        mine: list[int] = [self._read]
        if self._inotify is not None:
            mine.append(self._inotify.fileno())
        ready, _, _ = select.select([*mine, *also], [], [], max(0.0, at_most_s))
        if self._read in ready:
            while _drained(self._read):
                pass
        folder = False
        if self._inotify is not None and self._inotify.fileno() in ready:
            folder = self._hear(self._inotify)
        return Rang(bool(ready), folder)

    def _hear(self, inotify: Any) -> bool:
        """Say whether a whole file has appeared, not only one that is still being written."""
        whole = False
        for event in inotify.read(timeout=0):
            whole = whole or _STAGING not in event.name
            if event.mask & _MOVED_HERE and event.wd in self._moves:
                self._moved.append((self._moves[event.wd], event.name))
        return whole

    def close(self) -> None:
        """Let go of the descriptors."""
        self._is_closed = True
        if self._inotify is not None:
            self._inotify.close()
        os.close(self._read)
        os.close(self._write)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _drained(descriptor: int) -> bool:
    try:
        return len(os.read(descriptor, 4096)) == 4096
    except BlockingIOError:
        return False


def _inotify() -> Any:
    try:
        from inotify_simple import INotify
    except ImportError:
        return None
    try:
        return INotify(nonblocking=True)
    except OSError:
        return None  # the user's limit of instances is reached: poll
