"""The object store that controller and agents meet in: `file://`, `s3://`, `gs://`, `memory://`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlparse

from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError
from obstore.store import LocalStore, MemoryStore, ObjectStore, from_url

from cloudwhale.spi.errors import StoreUnusable

PART_BYTES = 8 << 20  # S3 wants parts of 5 MiB or more; eight keeps memory low and rates high


class Objects(Protocol):
    """The few things asked of an object store; every verb raises StoreUnusable."""

    folder: Path | None
    """Where the objects lie on this host's disk, for `file://`; None elsewhere."""

    def create(self, key: str, body: bytes) -> bool:
        """Write an object that does not exist yet; False when it does: that one is unchanged."""
        ...

    def get(self, key: str) -> bytes | None:
        """Return an object's bytes, or None when there is none."""
        ...

    def keys(self, prefix: str) -> Sequence[str]:
        """Return every key below a folder, sorted."""
        ...

    def delete(self, keys: Sequence[str]) -> None:
        """Remove objects; missing ones are fine."""
        ...

    def put_file(self, key: str, path: Path) -> None:
        """Upload a file in parts; overwrites; holds a few parts in memory at most."""
        ...

    def get_file(self, key: str, path: Path) -> bool:
        """Download into a file in parts; False when there is no such object."""
        ...


class StoreObjects:
    """Objects in whatever obstore speaks to."""

    def __init__(self, store: ObjectStore, folder: Path | None = None) -> None:
        self._store = store
        self.folder = folder

    def create(self, key: str, body: bytes) -> bool:
        """See Objects."""
        try:
            self._store.put(key, body, mode="create")
        except AlreadyExistsError:
            return False
        except (BaseError, OSError) as error:
            raise _unusable("write", key, error) from error
        return True

    def get(self, key: str) -> bytes | None:
        """See Objects."""
        try:
            return bytes(self._store.get(key).bytes())
        except (NotFoundError, FileNotFoundError):
            return None
        except (BaseError, OSError) as error:
            raise _unusable("read", key, error) from error

    def keys(self, prefix: str) -> Sequence[str]:
        """See Objects."""
        try:
            return sorted(meta["path"] for page in self._store.list(prefix) for meta in page)
        except (NotFoundError, FileNotFoundError):
            return []
        except (BaseError, OSError) as error:
            raise _unusable("list", prefix, error) from error

    def delete(self, keys: Sequence[str]) -> None:
        """See Objects."""
        for key in keys:
            try:
                self._store.delete(key)
            except (NotFoundError, FileNotFoundError):
                continue
            except (BaseError, OSError) as error:
                raise _unusable("delete", key, error) from error

    def put_file(self, key: str, path: Path) -> None:
        """See Objects."""
        try:
            self._store.put(key, path, chunk_size=PART_BYTES, max_concurrency=4)
        except (BaseError, OSError) as error:
            raise _unusable("write", key, error) from error

    def get_file(self, key: str, path: Path) -> bool:
        """See Objects."""
        try:
            answer = self._store.get(key)
            with path.open("wb") as file:
                for chunk in answer.stream(min_chunk_size=PART_BYTES):
                    file.write(chunk)
        except (NotFoundError, FileNotFoundError):
            return False
        except (BaseError, OSError) as error:
            raise _unusable("read", key, error) from error
        return True


def open_objects(url: str) -> StoreObjects:
    """Open an object store by URL; a folder is made when it is missing."""
    parts = urlparse(url)
    if parts.scheme == "memory":
        return StoreObjects(MemoryStore())
    if parts.scheme == "file":
        folder = Path(unquote(parts.path))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # automatic_cleanup would race with a writer that has just made the folder.
            return StoreObjects(LocalStore(folder, mkdir=True), folder)
        except (BaseError, OSError) as error:
            raise _unusable("open", url, error) from error
    return StoreObjects(from_url(url))


def _unusable(verb: str, key: str, error: Exception) -> StoreUnusable:
    return StoreUnusable(
        f"cannot {verb} {key} in the mailbox: {error}",
        "Is the folder or bucket there, writable, and not full?",
    )
