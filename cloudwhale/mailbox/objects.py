"""The object store that controller and agents meet in: `file://`, `s3://`, `gs://`, `memory://`."""

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlparse

from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import LocalStore, MemoryStore, ObjectStore

from cloudwhale.mailbox.counting import Counts
from cloudwhale.mailbox.failing import NO_CREDENTIALS, unusable
from cloudwhale.mailbox.kinds import is_remote, kind_of
from cloudwhale.mailbox.limits import DOCUMENT, DOWNLOAD, UPLOAD, Limits, opened
from cloudwhale.model.units import Instant
from cloudwhale.spi.errors import SettingsError, StoreUnusable

PART_BYTES = 8 << 20  # S3 wants parts of 5 MiB or more; eight keeps memory low and rates high
READ_BYTES = 1 << 20  # of a local file at once: large enough to be fast, small enough to forget
DOCUMENT_MOST_BYTES = 1 << 20
"""What is longer gets the time that large bodies get."""
LIST_PAGE = 1000  # keys that one LIST returns


class Unreadable(Exception):
    """A file of this host could not be read while it was uploaded."""


class Objects(Protocol):
    """The few things asked of an object store; every verb raises StoreUnusable."""

    folder: Path | None
    """Where the objects lie on this host's disk, for `file://`; None elsewhere."""

    def create(self, key: str, body: bytes) -> bool:
        """Write an object that does not exist yet; False when it does: that one is unchanged.

        One that is there with the same content counts as written: a client that was given an error
        tries again by itself, and finds what it has written.
        """
        ...

    def get(self, key: str) -> bytes | None:
        """Return an object's bytes, or None when there is none."""
        ...

    def keys(self, prefix: str) -> Sequence[str]:
        """Return every key below a folder, sorted."""
        ...

    def folders(self, prefix: str) -> Sequence[str]:
        """Return the names of the folders right below a folder, sorted; does not look into them."""
        ...

    def modified_at(self, key: str) -> Instant | None:
        """Return when an object was written, by the store's own clock, or None: there is none."""
        ...

    def size_bytes(self, key: str) -> int | None:
        """Return how large an object is, or None: there is none."""
        ...

    def delete(self, keys: Sequence[str]) -> None:
        """Remove objects; missing ones are fine."""
        ...

    def put_chunks(self, key: str, chunks: Iterable[bytes]) -> None:
        """Upload what an iterator yields, in parts; overwrites; all or nothing.

        What the iterator itself raises comes through unchanged, OSError excepted.
        """
        ...

    def put_file(self, key: str, path: Path) -> str:
        """Upload a file as put_chunks does; return the sha256 of what was uploaded.

        Raise Unreadable when this host's file cannot be read.
        """
        ...

    def get_file(self, key: str, path: Path) -> str | None:
        """Download into a file in parts; return its sha256, or None: no such object.

        What this host's disk says against it is raised as the OSError that it is.
        """
        ...


class StoreObjects:
    """Objects in whatever obstore speaks to."""

    def __init__(self, store: ObjectStore, folder: Path | None = None, url: str = "") -> None:
        self._store = store
        self.url = url
        self._kind = kind_of(urlparse(url).scheme) if url else None
        """Of a store that large bodies reach over a network; empty: there are no time limits."""
        self._patient: dict[Limits, ObjectStore] = {}
        self._turn = threading.Lock()
        self.folder = folder
        self.counts = Counts()
        """What was asked of it in this process."""

    def create(self, key: str, body: bytes) -> bool:
        """See Objects."""
        self.counts.put(len(body), PART_BYTES)
        try:
            self._for(body).put(key, body, mode="create")
        except AlreadyExistsError:
            # The first try may have been written although its answer was an error.
            return self._holds(key, body)
        except (BaseError, OSError) as error:
            raise self._unusable("write", key, error) from error
        return True

    def _holds(self, key: str, body: bytes) -> bool:
        """Say whether an object is there with just this content."""
        return self.size_bytes(key) == len(body) and self._got(self._for(body), key) == body

    def get(self, key: str) -> bytes | None:
        """See Objects."""
        return self._got(self._store, key)

    def _got(self, store: ObjectStore, key: str) -> bytes | None:
        try:
            body = bytes(store.get(key).bytes())
        except FileNotFoundError:
            self.counts.get()
            return None
        except (BaseError, OSError) as error:
            raise self._unusable("read", key, error) from error
        self.counts.get(len(body))
        return body

    def keys(self, prefix: str) -> Sequence[str]:
        """See Objects."""
        try:
            # The overload for Arrow tables, which we do not install, has unknown types.
            pages = self._store.list(prefix)  # pyright: ignore[reportUnknownMemberType]
            found = sorted(meta["path"] for page in pages for meta in page)
        except FileNotFoundError:
            return []
        except (BaseError, OSError) as error:
            raise self._unusable("list", prefix, error) from error
        self.counts.list(-(-len(found) // LIST_PAGE))
        return found

    def folders(self, prefix: str) -> Sequence[str]:
        """See Objects."""
        self.counts.list()
        try:
            # The overload for Arrow tables, which we do not install, has unknown types.
            found = self._store.list_with_delimiter(prefix)  # pyright: ignore[reportUnknownMemberType]
        except FileNotFoundError:
            return []
        except (BaseError, OSError) as error:
            raise self._unusable("list", prefix, error) from error
        return sorted(path.rsplit("/", 1)[-1] for path in found["common_prefixes"])

    def modified_at(self, key: str) -> Instant | None:
        """See Objects."""
        self.counts.get()
        try:
            return self._store.head(key)["last_modified"].timestamp()
        except FileNotFoundError:
            return None
        except (BaseError, OSError) as error:
            raise self._unusable("look at", key, error) from error

    def size_bytes(self, key: str) -> int | None:
        """See Objects."""
        self.counts.get()
        try:
            return self._store.head(key)["size"]
        except FileNotFoundError:
            return None
        except (BaseError, OSError) as error:
            raise self._unusable("look at", key, error) from error

    def delete(self, keys: Sequence[str]) -> None:
        """See Objects."""
        for key in keys:
            self.counts.delete()
            try:
                self._store.delete(key)
            except FileNotFoundError:
                continue
            except (BaseError, OSError) as error:
                raise self._unusable("delete", key, error) from error

    def put_chunks(self, key: str, chunks: Iterable[bytes]) -> None:
        """See Objects."""
        size = 0

        def counted() -> Iterator[bytes]:
            nonlocal size
            for chunk in chunks:
                size += len(chunk)
                yield chunk

        try:
            store = self._within(UPLOAD)
            store.put(key, counted(), chunk_size=PART_BYTES, max_concurrency=4)
        except (BaseError, OSError) as error:
            raise self._unusable("write", key, error) from error
        finally:
            self.counts.put(size, PART_BYTES)

    def put_file(self, key: str, path: Path) -> str:
        """See Objects."""
        digest = hashlib.sha256()
        self.put_chunks(key, _read(path, digest.update))
        return digest.hexdigest()

    def get_file(self, key: str, path: Path) -> str | None:
        """See Objects."""
        digest = hashlib.sha256()
        try:
            answer = self._within(DOWNLOAD).get(key)
        except FileNotFoundError:
            self.counts.get()
            return None
        except (BaseError, OSError) as error:
            raise self._unusable("read", key, error) from error
        with path.open("wb") as file:
            for chunk in self._received(answer.stream(min_chunk_size=PART_BYTES), key):
                digest.update(chunk)
                file.write(chunk)
            self.counts.get(file.tell())
        return digest.hexdigest()

    def _for(self, body: bytes) -> ObjectStore:
        return self._store if len(body) <= DOCUMENT_MOST_BYTES else self._within(UPLOAD)

    def _within(self, limits: Limits) -> ObjectStore:
        """Return a client with limits of its own, made when one is needed: it takes a while."""
        if not self.url:
            return self._store
        with self._turn:
            if limits not in self._patient:
                self._patient[limits] = opened(self.url, limits)
            return self._patient[limits]

    def _received(self, chunks: Iterable[bytes], key: str) -> Iterator[memoryview]:
        """Yield what comes without a copy of it."""
        try:
            for chunk in chunks:
                yield memoryview(chunk)
        except (BaseError, OSError) as error:
            raise self._unusable("read", key, error) from error

    def _unusable(self, verb: str, key: str, error: Exception) -> StoreUnusable:
        return unusable(verb, key, error, self._kind)


def _read(path: Path, note: Callable[[bytes], object]) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while piece := file.read(READ_BYTES):
                note(piece)
                yield piece
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror}") from error


def open_objects(url: str) -> StoreObjects:
    """Open an object store by URL; a folder is made when it is missing.

    Raise SettingsError for a URL of no store that is spoken to, StoreUnusable for a folder that
    cannot be made.
    """
    try:
        parts = urlparse(url)
    except ValueError as error:
        raise _no_store(url, f": {error}") from error
    if parts.scheme == "memory":
        return StoreObjects(MemoryStore())
    if parts.scheme == "file" and not parts.netloc and parts.path.startswith("/"):
        return _open_folder(Path(unquote(parts.path)), url)
    if not is_remote(parts.scheme) or not parts.netloc:
        raise _no_store(url)
    try:
        return StoreObjects(opened(url, DOCUMENT), url=url)
    except (BaseError, ValueError) as error:
        says = str(error).splitlines()[0]
        if kind_of(parts.scheme).lacks_credentials(says):
            raise SettingsError(
                f"mailbox: {url!r} cannot be asked: {says}", NO_CREDENTIALS
            ) from error
        raise _no_store(url, f": {says}") from error


def _open_folder(folder: Path, url: str) -> StoreObjects:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # automatic_cleanup would race with a writer that has just made the folder.
        return StoreObjects(LocalStore(folder, mkdir=True), folder)
    except (BaseError, OSError) as error:
        raise unusable("open", url, error, None) from error


def _no_store(url: str, because: str = "") -> SettingsError:
    return SettingsError(
        f"mailbox: {url!r} is no object store that cloudwhale can meet its agents in{because}",
        "Write file:///folder, s3://bucket/folder or gs://bucket/folder in CLOUDWHALE_MAILBOX or "
        "`mailbox` of cloudwhale.toml, or leave it out: a folder in CLOUDWHALE_HOME.",
    )
