"""The controller's lock: a file that one process at a time holds, and the kernel lets go of."""

import errno
import fcntl
import os
import socket
from pathlib import Path
from typing import Protocol

from cloudwhale.clock import SystemClock, iso
from cloudwhale.control.store.address import ELSEWHERE
from cloudwhale.spi.clock import Clock
from cloudwhale.spi.errors import StoreUnusable


class Lock(Protocol):
    """Held by one process at a time, and given up when that ends in whatever way."""

    def acquire(self) -> bool:
        """Take the lock if it is free, and say whether we hold it now; never waits.

        Raise StoreUnusable when that cannot be known.
        """
        ...

    def is_held(self) -> bool:
        """Say whether we hold it now; one that was lost is no longer ours. Cheap."""
        ...

    def release(self) -> None:
        """Let go; nothing happens when the lock is not held."""
        ...

    def holder(self) -> str:
        """Return who holds it, in words; empty for nobody."""
        ...


class HolderLock:
    """A Lock that is a file beside the database; children do not inherit it.

    The file stays: to remove it would let two processes lock two files of one name.
    """

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        self._path = path
        self._clock = clock or SystemClock()
        self._file: int | None = None

    def acquire(self) -> bool:
        """Take the lock if it is free, and say whether we hold it now; never waits.

        Raise StoreUnusable when the file cannot be made.
        """
        if self._file is not None:
            return True
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Python opens files close-on-exec, so no child keeps the lock alive.
            file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise self._unusable(error) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._sign(file)
        except OSError as error:
            os.close(file)
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                return False
            raise self._unusable(error) from error
        self._file = file
        return True

    def is_held(self) -> bool:
        """See Lock; the kernel takes no lock away."""
        return self._file is not None

    def release(self) -> None:
        """See Lock."""
        if self._file is not None:
            os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = None

    def holder(self) -> str:
        """Return who took the lock last and has not released it; empty for nobody.

        Who was killed is still named: ask after `acquire` has said no.
        """
        try:
            return self._path.read_text().strip()
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise self._unusable(error) from error

    def _sign(self, file: int) -> None:
        since = iso(self._clock.now())
        os.ftruncate(file, 0)
        os.pwrite(file, f"pid {os.getpid()} on {socket.gethostname()} since {since}\n".encode(), 0)

    def _unusable(self, error: OSError) -> StoreUnusable:
        return StoreUnusable(
            f"the lock {self._path} cannot be taken: {error.strerror}",
            f"Make its folder writable; or, {ELSEWHERE}",
        )
