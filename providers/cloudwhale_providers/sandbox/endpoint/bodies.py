"""What objects hold: in memory where it is small, and in a folder where there is one."""

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cloudwhale_providers.sandbox.endpoint.messages import Stretch

SMALL_BYTES = 64 * 1024
"""Up to this a body is kept in memory too: mailboxes are read often."""
BUCKETS = "buckets.json"

Head = Mapping[str, Any]
"""What is written before a body, so that another process finds the object again."""


@dataclass(frozen=True, slots=True)
class Body:
    """Some bytes."""

    size: int
    data: bytes | None = None
    path: Path | None = None
    begins_at: int = 0
    """Where it begins in its file."""

    def read(self, first: int = 0, last: int | None = None) -> bytes:
        """Return part of it, `last` included; raise FileNotFoundError when it was deleted."""
        end = self.size if last is None else last + 1
        if self.data is not None:
            return self.data if (first, end) == (0, self.size) else self.data[first:end]
        assert self.path is not None
        with self.path.open("rb") as file:
            file.seek(self.begins_at + first)
            return file.read(end - first)

    def stretch(self, first: int, last: int) -> Stretch | None:
        """Return part of it as it lies in a file, `last` included; None: it is in memory.

        Raise FileNotFoundError when it was deleted.
        """
        if self.data is not None or self.path is None:
            return None
        return Stretch(self.path, self.begins_at + first, last + 1 - first)


class Bodies:
    """Keeps bodies; whoever calls it lets one thread at a time do so."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._number = 0
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def keep(self, data: bytes, head: Head | None = None) -> Body:
        """Keep a body; with a head it is found by another process. Raise OSError."""
        if self._folder is None:
            return Body(len(data), data)
        if head is None and len(data) <= SMALL_BYTES:
            return Body(len(data), data)
        path, begins_at = self._written(head, [data])
        return Body(len(data), data if len(data) <= SMALL_BYTES else None, path, begins_at)

    def join(self, parts: Sequence[Body], head: Head) -> Body:
        """Make one body of several, and keep it; raise OSError."""
        size = sum(part.size for part in parts)
        if self._folder is None or size <= SMALL_BYTES:
            return self.keep(b"".join(part.read() for part in parts), head)
        path, begins_at = self._written(head, (part.read() for part in parts))
        return Body(size, None, path, begins_at)

    def drop(self, body: Body) -> None:
        """Forget a body."""
        if body.path is not None:
            body.path.unlink(missing_ok=True)

    def found(self) -> Iterator[tuple[dict[str, Any], Body]]:
        """Return what an earlier process has kept, oldest first; what was half done is deleted."""
        if self._folder is None:
            return
        for path in sorted(self._folder.iterdir()):
            if not path.name.isdecimal():
                if path.name != BUCKETS:
                    path.unlink()
                continue
            self._number = int(path.name)
            with path.open("rb") as file:
                head, begins_at = file.readline(), file.tell()
                size = os.fstat(file.fileno()).st_size - begins_at
                data = file.read() if size <= SMALL_BYTES else None
            told: dict[str, Any] = json.loads(head)
            if told:
                yield told, Body(size, data, path, begins_at)
            else:
                path.unlink()

    def keep_buckets(self, told: Head) -> None:
        """Remember which buckets there are."""
        if self._folder is not None:
            draft = self._folder / f"{BUCKETS}.new"
            draft.write_text(json.dumps(told))
            draft.rename(self._folder / BUCKETS)

    def buckets(self) -> dict[str, Any]:
        """Return the buckets that there were."""
        if self._folder is not None:
            with contextlib.suppress(FileNotFoundError):
                told: dict[str, Any] = json.loads((self._folder / BUCKETS).read_text())
                return told
        return {}

    def _written(self, head: Head | None, pieces: Iterable[bytes]) -> tuple[Path, int]:
        """Write a file, whole or not at all; return it, and where its body begins."""
        assert self._folder is not None
        self._number += 1
        path = self._folder / f"{self._number:012d}"
        draft = path.with_suffix(".new")
        line = json.dumps(head or {}).encode() + b"\n"
        with draft.open("wb") as file:
            file.write(line)
            for piece in pieces:
                file.write(piece)
        draft.rename(path)
        return path, len(line)
