"""What jobs read: objects somewhere else than in the mailbox, listed and fetched, never written."""

import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import LocalStore, ObjectStore, from_url

from cloudwhale.mailbox.objects import PART_BYTES, RETRY
from cloudwhale.spi.errors import CloudwhaleError, Denied, StoreUnusable

if TYPE_CHECKING:
    from obstore import ObjectMeta

WEB = ("http", "https")
NO_BUCKET = "404 Not Found"  # to a list: obstore has no error of its own for it


class NothingThere(CloudwhaleError):
    """There is no such object, and none below that folder."""


@dataclass(frozen=True, slots=True)
class Found:
    """An object of a source."""

    path: str
    """Relative to the source; of a single object its name."""
    size_bytes: int
    mark: str
    """Differs when its content does."""


class Source:
    """A folder of objects, or one object, by URL."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._store: ObjectStore | None = None

    @property
    def name(self) -> str:
        """Return the last part of its URL."""
        return (
            PurePosixPath(urlsplit(self._url).path.rstrip("/")).name or urlsplit(self._url).netloc
        )

    def listed(self) -> Sequence[Found]:
        """Return what there is, sorted; raise NothingThere, Denied, StoreUnusable."""
        self._refuse_own_machine()
        try:
            found = self._found()
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise Denied(
                f"{self._url} may not be read from this machine",
                "Let it; on S3 the machines' role needs s3:ListBucket and s3:GetObject there.",
            ) from error
        except (BaseError, OSError, ValueError) as error:
            if NO_BUCKET not in str(error):
                raise self._silent(error) from error
            found = []
        if not found:
            raise NothingThere(f"there is nothing at {self._url}", "Correct `inputs` of the job.")
        return sorted(found, key=lambda one: one.path)

    def _refuse_own_machine(self) -> None:
        """Raise Denied for what only this machine can reach: its metadata hold credentials."""
        parts = urlsplit(self._url)
        if parts.scheme in WEB and any(map(_is_near, _addresses(parts.hostname or ""))):
            raise Denied(
                f"{self._url} is an address of the machine itself, which jobs may not read",
                "Correct `inputs` of the job.",
            )

    def fetch(self, one: Found, path: Path) -> None:
        """Fetch an object into a file, in parts; raise StoreUnusable, or this disk's OSError."""
        if self._store is None:
            raise ValueError("a source is listed before it is fetched")
        try:
            chunks = self._store.get(one.path).stream(min_chunk_size=PART_BYTES)
        except (BaseError, OSError) as error:
            raise self._silent(error) from error
        with path.open("wb") as file:
            iterator = iter(chunks)
            while True:
                try:
                    chunk = next(iterator)
                except StopIteration:
                    break
                except (BaseError, OSError) as error:
                    raise self._silent(error) from error
                file.write(chunk)
            if file.tell() != one.size_bytes:
                raise self._silent(f"{one.path} has changed while it was fetched")

    def _found(self) -> list[Found]:
        for look in (self._below, self._single):
            try:
                found = look()
            except FileNotFoundError:
                continue
            if found:
                return found
        return []

    def _below(self) -> list[Found]:
        if urlsplit(self._url).scheme in WEB:
            return []  # web servers list nothing
        self._store = _open(self._url)
        # The overload for Arrow tables, which we do not install, has unknown types.
        pages = self._store.list()  # pyright: ignore[reportUnknownMemberType]
        return [_found(meta["path"], meta) for page in pages for meta in page]

    def _single(self) -> list[Found]:
        parent, _, name = self._url.rpartition("/")
        if not name or parent.endswith(":/") or urlsplit(self._url).path.count("/") == 0:
            return []
        self._store = _open(parent)
        name = unquote(name)
        return [_found(name, self._store.head(name))]

    def _silent(self, why: object) -> StoreUnusable:
        return StoreUnusable(f"{self._url} cannot be fetched: {str(why).splitlines()[0]}")


def _found(path: str, meta: "ObjectMeta") -> Found:
    mark = meta.get("e_tag") or f"{meta['last_modified'].timestamp()}"
    return Found(path, meta["size"], mark)


def _open(url: str) -> ObjectStore:
    parts = urlsplit(url)
    if parts.scheme == "file":
        folder = Path(unquote(parts.path))
        if not folder.is_dir():
            raise FileNotFoundError(folder)
        return LocalStore(folder)
    if parts.scheme in WEB:
        return from_url(url, client_options={"allow_http": True}, retry_config=RETRY)
    return from_url(url, retry_config=RETRY)


METADATA_6 = ipaddress.ip_network("fd00:ec2::/32")  # EC2 answers there too


def _addresses(host: str) -> list[str]:
    try:
        return [str(found[4][0]) for found in socket.getaddrinfo(host, None)]
    except OSError:
        return []  # nobody answers there, which is said when it is asked


def _is_near(address: str) -> bool:
    found = ipaddress.ip_address(address.partition("%")[0])
    return found.is_link_local or (found.version == 6 and found in METADATA_6)
