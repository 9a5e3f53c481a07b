"""Directory notification: wakes a reader of a folder at once instead of at its next poll."""

import os
import select
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cloudwhale.model.units import Seconds

_CREATED, _MOVED_HERE = 0x100, 0x80  # IN_CREATE, IN_MOVED_TO of inotify(7)


class Bell:
    """Waits for a new file in any of some folders, for a `ring`, or for a time to pass.

    Without inotify (macOS) only `ring` and time wake it: readers then poll.
    """

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._inotify = _inotify()
        self._watched: set[Path] = set()

    @property
    def hears_folders(self) -> bool:
        """Say whether new files ring it."""
        return self._inotify is not None

    def watch(self, folder: Path) -> None:
        """Ring for every file that appears in a folder; made when missing; may be repeated."""
        if self._inotify is None or folder in self._watched:
            return
        folder.mkdir(parents=True, exist_ok=True)
        self._inotify.add_watch(folder, _CREATED | _MOVED_HERE)
        self._watched.add(folder)

    def ring(self) -> None:
        """Wake the waiter; from any thread."""
        try:
            os.write(self._write, b"x")
        except BlockingIOError:
            pass  # the pipe is full of rings already

    def wait(self, at_most_s: Seconds, also: Sequence[int] = ()) -> bool:
        """Wait; say whether something rang. `also`: file descriptors that ring when readable."""
        mine: list[int] = [self._read]
        if self._inotify is not None:
            mine.append(self._inotify.fileno())
        ready, _, _ = select.select([*mine, *also], [], [], max(0.0, at_most_s))
        if self._read in ready:
            while _drained(self._read):
                pass
        if self._inotify is not None and self._inotify.fileno() in ready:
            self._inotify.read(timeout=0)
        return bool(ready)

    def close(self) -> None:
        """Let go of the descriptors."""
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
    return INotify(nonblocking=True)
