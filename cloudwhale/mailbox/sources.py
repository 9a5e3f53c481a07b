"""What jobs read: objects somewhere else than in the mailbox, listed and fetched, never written."""

import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urldefrag, urlsplit

from obstore.exceptions import BaseError, PreconditionError
from obstore.store import LocalStore, ObjectStore

from cloudwhale.mailbox.addresses import WEB, name_of
from cloudwhale.mailbox.failing import is_refused
from cloudwhale.mailbox.kinds import is_remote, kind_of
from cloudwhale.mailbox.limits import DOWNLOAD, RETRY, opened
from cloudwhale.mailbox.lost import Gone, Replaced
from cloudwhale.mailbox.sums import Sum, said_in, sum_of_tag
from cloudwhale.spi.errors import CloudwhaleError, Denied, StoreUnusable

if TYPE_CHECKING:
    from obstore import GetOptions, ObjectMeta
    from obstore.store import RetryConfig

    from cloudwhale.mailbox.web import Document

READ_BYTES = 4 << 20
"""Taken at once: each chunk costs turns at the interpreter, which are long where cores are few."""
NO_BUCKET = "404 Not Found"  # to a list: obstore has no error of its own for it


class NothingThere(CloudwhaleError):
    """There is no such object, and none below that folder."""


@dataclass(frozen=True, slots=True)
class Found:
    """An object of a source."""

    path: str
    """Relative to the source; of a single object its name."""
    size_bytes: int | None
    """None: its server does not say."""
    mark: str
    """Differs when its content does; empty: its server gives none."""
    sum: Sum | None = None
    """The checksum that it should have; None: nobody says one."""
    is_content: bool = False
    """Whether an object elsewhere of the same mark and size has the same content."""
    has_pieces: bool = True
    """Whether a part of it can be asked for."""


class Source:
    """A folder of objects, or one object, by URL; `#sha256=…` behind one says what it must be."""

    def __init__(self, url: str, retry: "RetryConfig" = RETRY) -> None:
        self._retry = retry
        self._region = ""
        """Of its bucket, where that is another one than this process asks by itself."""
        self.url, fragment = urldefrag(url)
        self._said = said_in(fragment)
        self._store: ObjectStore | None = None
        self._document: Document | None = None

    @property
    def name(self) -> str:
        """Return the last part of its URL."""
        return name_of(self.url)

    @property
    def shown(self) -> str:
        """Return its URL as others may see it: what stands behind `?` may be a signature."""
        return self.url.partition("?")[0]

    def listed(self) -> Sequence[Found]:
        """Return what there is, sorted; raise NothingThere, Denied, StoreUnusable."""
        try:
            found = self._web() if urlsplit(self.url).scheme in WEB else self._in_its_region()
        except (BaseError, OSError, ValueError) as error:
            if is_refused(error):
                raise self._denied() from error
            if NO_BUCKET not in str(error):
                raise self._silent(error) from error
            found = []
        if not found:
            raise NothingThere(f"there is nothing at {self.shown}", "Correct `inputs` of the job.")
        if self._said is not None and len(found) > 1:
            raise Denied(
                f"{self.shown} is a folder of {len(found)} objects, and one checksum is said of it",
                "Say it of a single object, or leave it out.",
            )
        return sorted(found, key=lambda one: one.path)

    def read(self, one: Found, first: int, end: int | None) -> Iterator[bytes | memoryview]:
        """Yield an object's bytes from `first` to `end`, None: its end, as they come.

        Raise StoreUnusable; Replaced when it is not the object any more that was listed.
        """
        if self._document is not None:
            try:
                yield from self._document.read(first, end)
            except Gone as error:
                raise Replaced(f"{self.shown} vanished while it was fetched") from error
            return
        if self._store is None:
            raise ValueError("a source is listed before it is fetched")
        at = first
        try:
            answer = self._store.get(one.path, options=_options(one, first, end))
            for chunk in answer.stream(min_chunk_size=READ_BYTES):
                at += len(chunk)
                yield memoryview(chunk)
        except (PreconditionError, FileNotFoundError) as error:
            raise Replaced(f"{self.shown} has changed while it was fetched: {one.path}") from error
        except (BaseError, OSError) as error:
            raise self._silent(error) from error
        if end is not None and at != end:
            raise self._silent(f"{one.path} broke off at byte {at}")

    # -- looking -----------------------------------------------------------------------------

    def _web(self) -> list[Found]:
        from cloudwhale.mailbox.web import Document, refuse_near  # TLS: most jobs fetch none so

        for address in _addresses(urlsplit(self.url).hostname or ""):
            refuse_near(address, self.url)
        document = Document(self.url)
        try:
            document.look()
        except Gone:
            return []
        self._document = document
        found = Found(
            self.name, document.size_bytes, document.tag, self._said, self._said is not None,
            document.has_pieces,
        )  # fmt: skip
        return [found]

    def _in_its_region(self) -> list[Found]:
        """Look where the bucket lies: a store of another region sends us away."""
        try:
            return self._found()
        except BaseError as error:
            parts = urlsplit(self.url)
            if not is_remote(parts.scheme) or not kind_of(parts.scheme).is_elsewhere(str(error)):
                raise
            self._region = kind_of(parts.scheme).region_of(parts.netloc)
            if not self._region:
                raise
            return self._found()

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
        self._store = self._open(self.url)
        # The overload for Arrow tables, which we do not install, has unknown types.
        pages = self._store.list()  # pyright: ignore[reportUnknownMemberType]
        return [self._told(meta["path"], meta) for page in pages for meta in page]

    def _single(self) -> list[Found]:
        parent, _, name = self.url.rpartition("/")
        if not name or parent.endswith(":/") or urlsplit(self.url).path.count("/") == 0:
            return []
        self._store = self._open(parent)
        name = unquote(name)
        return [self._told(name, self._store.head(name))]

    def _told(self, path: str, meta: "ObjectMeta") -> Found:
        tag, size = meta.get("e_tag") or "", meta["size"]
        told = sum_of_tag(tag, size) if urlsplit(self.url).scheme != "file" else None
        is_content = told is not None or self._said is not None
        return Found(path, size, tag, self._said or told, is_content)

    def _open(self, url: str) -> ObjectStore:
        parts = urlsplit(url)
        if parts.scheme == "file":
            folder = Path(unquote(parts.path))
            if not folder.is_dir():
                raise FileNotFoundError(folder)
            return LocalStore(folder)
        return opened(url, DOWNLOAD, self._retry, self._region)

    def _denied(self) -> Denied:
        scheme, needs = urlsplit(self.url).scheme, ""
        if is_remote(scheme):
            needs = f": in its bucket the machines' role needs {kind_of(scheme).to_read}"
        return Denied(f"{self.shown} may not be read from this machine", f"Let it{needs}.")

    def _silent(self, why: object) -> StoreUnusable:
        return StoreUnusable(f"{self.shown} cannot be fetched: {str(why).splitlines()[0]}")


def _options(one: Found, first: int, end: int | None) -> "GetOptions":
    options: GetOptions = {"if_match": one.mark} if one.mark else {}
    if end is not None:
        options["range"] = (first, end)
    return options


def _addresses(host: str) -> list[str]:
    try:
        return [str(found[4][0]) for found in socket.getaddrinfo(host, None)]
    except OSError:
        return []  # nobody answers there, which is said when it is asked
