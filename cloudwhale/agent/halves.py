"""Objects on their way: bytes so far, and how far each piece is, kept so that a kill costs little.

A half lies in two files: its bytes, and a list that begins with what it is of. Bytes are written
before the list says so. After another boot a half is thrown away: a power cut may have kept the
list and lost the bytes.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cloudwhale.clock import pause
from cloudwhale.mailbox.lost import Replaced
from cloudwhale.mailbox.sources import Found, Source
from cloudwhale.mailbox.sums import Sum, of_parts, piece_bytes
from cloudwhale.model.units import Seconds
from cloudwhale.spi.errors import StoreUnusable

NOTED_FROM_BYTES = 4 << 20
"""Smaller objects are quicker fetched again than noted."""
READ_BYTES = 1 << 20
NOTED_EVERY_BYTES = 4 << 20
"""So much of each piece a kill may cost."""
TRIES = 3
TRY_AGAIN_S: Seconds = 2.0  # of real time: a store recovers no faster where time is
BOOT = Path("/proc/sys/kernel/random/boot_id")
LIST = ".far"


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of an object that one request is for."""

    number: int
    first: int
    end: int | None
    """None: nobody knows how long it is."""


@dataclass(slots=True)
class Half:
    """One object that is being fetched; its pieces may come in several threads at once."""

    source: Source
    one: Found
    path: Path
    """Where its bytes lie meanwhile."""
    is_wanted: Callable[[], bool]
    came: Callable[[int], object]
    """Hears of every byte that is there, those of before included."""
    far: dict[int, int] = field(default_factory=dict[int, int])
    digests: dict[int, bytes] = field(default_factory=dict[int, bytes])

    @property
    def pieces(self) -> Sequence[Piece]:
        """Return its pieces, in order; the same ones whenever it is asked."""
        size = self.one.size_bytes
        if size is None or not self.one.has_pieces:
            return (Piece(0, 0, size),)
        step = piece_bytes(self.one.sum)
        firsts = range(0, max(1, size), step)
        return tuple(Piece(n, at, min(size, at + step)) for n, at in enumerate(firsts))

    @property
    def _is_noted(self) -> bool:
        return self.one.has_pieces and (self.one.size_bytes or 0) >= NOTED_FROM_BYTES

    @property
    def _list(self) -> Path:
        return self.path.with_name(self.path.name + LIST)

    def begin(self) -> None:
        """Go on where an earlier agent stopped, or begin anew; raise OSError."""
        self.far = self._noted()
        if not self.far:
            self.drop()
            self.path.touch()
            if self._is_noted:
                self._list.write_text(json.dumps(self._of) + "\n")
        elif not self.path.exists():
            self.far = {}
            self.begin()

    @property
    def _of(self) -> dict[str, Any]:
        boot = BOOT.read_text().strip() if BOOT.exists() else ""
        return {
            "url": self.source.url, "path": self.one.path, "mark": self.one.mark,
            "size": self.one.size_bytes, "piece": piece_bytes(self.one.sum), "boot": boot,
        }  # fmt: skip

    def _noted(self) -> dict[int, int]:
        try:
            head, *lines = self._list.read_text().split("\n")
            of, own = json.loads(head), self._of
            of["url"] = own["url"] = ""  # elsewhere it may be called otherwise
            if of != own or not self.path.exists():
                return {}
        except (OSError, ValueError):
            return {}
        found: dict[int, int] = {}
        for line in lines[:-1]:  # the last is empty, or was not written to its end
            number, _, at = line.partition(" ")
            if number.isdecimal() and at.isdecimal():
                found[int(number)] = int(at)
        return found

    def drop(self) -> None:
        """Delete it."""
        self.path.unlink(missing_ok=True)
        self._list.unlink(missing_ok=True)

    # -- pieces ------------------------------------------------------------------------------

    def fetch(self, piece: Piece) -> None:
        """Fetch what is missing of a piece, patiently; raise Stopped, StoreUnusable, OSError."""
        with open(os.open(self.path, os.O_RDWR), "r+b", buffering=0) as file:
            coming = self._resumed(piece, file.fileno())
            silent = 0
            while piece.end is None or coming.at < piece.end:
                began = coming.at
                try:
                    self._stream(piece, coming)
                    break
                except Replaced:
                    raise
                except StoreUnusable:
                    self._turn_back(piece, coming)
                    silent = silent + 1 if coming.at == began else 1
                    if silent >= TRIES:
                        raise
                    pause(TRY_AGAIN_S)
        if coming.digest is not None:
            self.digests[piece.number] = coming.digest.digest()

    def _resumed(self, piece: Piece, file: int) -> "_Coming":
        """Return where a piece goes on, what is there of it summed up."""
        coming = _Coming(file, max(piece.first, self.far.get(piece.number, 0)), self._hashing())
        if coming.digest is not None:
            for chunk in _read(file, piece.first, coming.at):
                coming.digest.update(chunk)
        self.came(coming.at - piece.first)
        return coming

    def _stream(self, piece: Piece, coming: "_Coming") -> None:
        noted = coming.at
        try:
            for chunk in self.source.read(self.one, coming.at, piece.end):
                view = memoryview(chunk)
                _written(coming.file, view, coming.at)
                if coming.digest is not None:
                    coming.digest.update(view)
                coming.at += len(view)
                self.came(len(view))
                if coming.at - noted >= NOTED_EVERY_BYTES:
                    noted = self._note(piece, coming.at)
                if not self.is_wanted():
                    raise Stopped
        finally:
            if coming.at > noted:
                self._note(piece, coming.at)

    def _note(self, piece: Piece, at: int) -> int:
        """Remember how far a piece is; return that."""
        if self._is_noted:
            with self._list.open("a") as noted:
                noted.write(f"{piece.number} {at}\n")
        return at

    def _turn_back(self, piece: Piece, coming: "_Coming") -> None:
        """Go on where it broke off if a part can be asked for, else at the beginning."""
        if not self.one.has_pieces or piece.end is None:
            self.came(piece.first - coming.at)
            os.ftruncate(coming.file, 0)
            coming.at, coming.digest = piece.first, self._hashing()

    def _hashing(self) -> Any:
        """Return what sums up a piece while it comes; None: it is summed up at the end."""
        wanted = self.one.sum
        if wanted is None or (wanted.way != "parts" and len(self.pieces) > 1):
            return None
        return _new(wanted)

    # -- the end -----------------------------------------------------------------------------

    def digest(self, wanted: Sum) -> str:
        """Return the checksum of what came, in the way of the one that it should have."""
        numbers = sorted(self.digests)
        if wanted.way == "parts":
            return of_parts([self.digests[number] for number in numbers])
        if len(numbers) == 1:
            return self.digests[numbers[0]].hex()
        digest = _new(wanted)
        with self.path.open("rb", buffering=0) as file:
            for chunk in _read(file.fileno(), 0, os.fstat(file.fileno()).st_size):
                digest.update(chunk)
        found: str = digest.hexdigest()
        return found

    def again(self) -> None:
        """Fetch all of it once more; raise as `fetch` does."""
        self.drop()
        self.far, self.digests = {}, {}
        self.begin()
        self.came(-(self.one.size_bytes or 0))
        for piece in self.pieces:
            self.fetch(piece)

    def moved(self, where: Path) -> None:
        """Put what is whole into its place."""
        self.path.rename(where)
        self._list.unlink(missing_ok=True)


@dataclass(slots=True)
class _Coming:
    """A piece that is being fetched."""

    file: int
    at: int
    """Byte of the object that comes next."""
    digest: Any
    """What sums it up meanwhile; None: nothing does."""


class Stopped(Exception):
    """Nobody wants it any more; what there is of it stays."""


def bytes_of(path: Path) -> int:
    """Return how much room a half takes on the disk; holes in it take none."""
    try:
        return path.stat().st_blocks * 512
    except OSError:
        return 0


def _new(wanted: Sum) -> Any:
    way = "sha256" if wanted.way == "sha256" else "md5"
    return hashlib.new(way, usedforsecurity=False)


def _read(file: int, first: int, end: int) -> Iterator[bytes]:
    while first < end and (chunk := os.pread(file, min(READ_BYTES, end - first), first)):
        first += len(chunk)
        yield chunk


def _written(file: int, view: memoryview, at: int) -> None:
    while view:
        count = os.pwrite(file, view, at)
        view, at = view[count:], at + count
