"""Counts what is asked of a store, as its bill does: by kind of request, and bytes both ways.

A PUT, a POST (the parts of a large object) and a LIST cost twelve times a GET or a HEAD, a DELETE
nothing: so S3's and Cloud Storage's price lists, of objects of the usual class in one region.
"""

import threading
from dataclasses import dataclass, replace

from cloudwhale.model.requests import StoreUse


@dataclass(frozen=True, slots=True)
class _Sums:
    puts: int = 0
    gets: int = 0
    lists: int = 0
    deletes: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0


class Counts:
    """What one process has asked; from any thread."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._sums = _Sums()

    def put(self, size_bytes: int, part_bytes: int) -> None:
        """Count an object that was written; a large one goes in parts, with two requests more."""
        parts = -(-size_bytes // part_bytes)
        with self._turn:
            self._sums = replace(
                self._sums,
                puts=self._sums.puts + (1 if parts <= 1 else parts + 2),
                sent_bytes=self._sums.sent_bytes + size_bytes,
            )

    def get(self, size_bytes: int = 0) -> None:
        """Count an object that was read or looked for."""
        with self._turn:
            self._sums = replace(
                self._sums,
                gets=self._sums.gets + 1,
                received_bytes=self._sums.received_bytes + size_bytes,
            )

    def list(self, pages: int = 1) -> None:
        """Count a list."""
        with self._turn:
            self._sums = replace(self._sums, lists=self._sums.lists + max(1, pages))

    def delete(self) -> None:
        """Count an object that was deleted."""
        with self._turn:
            self._sums = replace(self._sums, deletes=self._sums.deletes + 1)

    @property
    def use(self) -> StoreUse:
        """Return the sums until now."""
        sums = self._sums
        return StoreUse(
            puts=sums.puts, gets=sums.gets, lists=sums.lists, deletes=sums.deletes,
            sent_bytes=sums.sent_bytes, received_bytes=sums.received_bytes,
        )  # fmt: skip
