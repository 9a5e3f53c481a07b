"""Fetches objects side by side: large ones in pieces, each looked at before it counts as whole."""

import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from cloudwhale.agent.halves import Half, Piece
from cloudwhale.mailbox.sums import Damaged, Sum
from cloudwhale.spi.errors import StoreUnusable

AT_ONCE = 8  # one stream of S3 gives some 80 MB/s; more of them fill the line
AT_ONCE_MOST = 32
AGAIN_MOST_BYTES = 4 << 30
"""A larger object is not read a second time to find out whether its tag is a checksum."""


@dataclass(slots=True)
class Checked:
    """How many objects were held against what."""

    by_sum: int = 0
    by_size: int = 0
    by_nothing: int = 0
    tags_are_none: bool = False
    """Whether the tags of this source have turned out to be no checksums."""
    turn: threading.Lock = field(default_factory=threading.Lock)

    def says(self) -> str:
        """Return it in words."""
        if not self.by_sum + self.by_size + self.by_nothing:
            return ""
        named = (
            (self.by_sum, "by checksum"), (self.by_size, "by size alone"),
            (self.by_nothing, "not at all: its server says no size"),
        )  # fmt: skip
        some = [(count, how) for count, how in named if count]
        if len(some) == 1:
            return f"verified {some[0][1]}"
        return "verified: " + ", ".join(f"{count} {how}" for count, how in some)


def fetch_all(
    halves: Iterable[tuple[Half, Path]], checked: Checked, placed: Callable[[Half, Path], object]
) -> None:
    """Fetch objects, each to its place; `placed` hears of each that is whole.

    Raise Stopped, Damaged, StoreUnusable, or this disk's OSError; what came until then stays.
    """
    from concurrent.futures import Future, ThreadPoolExecutor, wait  # most jobs fetch nothing

    most = min(AT_ONCE_MOST, max(AT_ONCE, 2 * (os.cpu_count() or 1)))
    with ThreadPoolExecutor(most, thread_name_prefix="inputs") as pool:
        doing: list[Future[None]] = []
        for half, where in halves:
            left = _Left(half, where, checked, placed)
            doing += [pool.submit(left.fetch, piece) for piece in half.pieces]
        for done in doing:
            trouble = done.exception() if not done.cancelled() else None
            if trouble is not None:
                for one in doing:
                    one.cancel()
                wait(doing)
                raise trouble


class _Left:
    """What is left of one object; whoever brings the last piece looks at the whole."""

    def __init__(
        self, half: Half, where: Path, checked: Checked, placed: Callable[[Half, Path], object]
    ) -> None:
        self._half, self._where = half, where
        self._checked, self._placed = checked, placed
        self._turn = threading.Lock()
        self._begun = False
        self._pieces = len(half.pieces)

    def fetch(self, piece: Piece) -> None:
        with self._turn:
            if not self._begun:
                self._half.begin()
                self._begun = True
        self._half.fetch(piece)
        with self._turn:
            self._pieces -= 1
            is_whole = self._pieces == 0
        if is_whole:
            self._check()
            self._half.moved(self._where)
            self._placed(self._half, self._where)

    def _check(self) -> None:
        half, checked, wanted = self._half, self._checked, self._half.one.sum
        size = half.one.size_bytes
        if size is not None and half.path.stat().st_size != size:
            half.drop()
            raise StoreUnusable(f"{half.one.path} of {half.source.shown} came with another length")
        is_right = wanted is not None and self._holds(wanted)
        with checked.turn:
            checked.by_sum += is_right
            checked.by_size += not is_right and size is not None
            checked.by_nothing += not is_right and size is None

    def _holds(self, wanted: Sum) -> bool:
        """Say whether it has its checksum; False: what was taken for one is none."""
        half = self._half
        if not wanted.is_sure and self._checked.tags_are_none:
            return False
        first = half.digest(wanted)
        if first == wanted.hexadecimal:
            return True
        if not wanted.is_sure and (half.one.size_bytes or 0) > AGAIN_MOST_BYTES:
            return False
        half.again()
        second = half.digest(wanted)
        if second == wanted.hexadecimal:
            return True
        if wanted.is_sure:
            half.drop()
            raise Damaged(
                f"{half.source.shown} is not what the job file says: its {wanted.way} is {second}",
                "Correct `inputs` of the job, or what lies there.",
            )
        if second != first:
            half.drop()
            raise StoreUnusable(f"{half.one.path} of {half.source.shown} came damaged twice")
        with self._checked.turn:
            self._checked.tags_are_none = True
        return False
