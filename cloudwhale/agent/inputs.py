"""Fetches what jobs read into a cache of the node: once for all jobs that name the same.

An entry of the cache is named by its URL and by what was listed there, so what has changed since is
fetched anew. It is whole when its `whole` file is there. A job finds each of its inputs under the
last part of its URL in `CLOUDWHALE_INPUT_DIR`, and must not write there.
"""

import hashlib
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cloudwhale.agent.attempts import AttemptFolder
from cloudwhale.agent.patience import patiently
from cloudwhale.agent.place import Place
from cloudwhale.agent.progress import Progress, Say, size
from cloudwhale.mailbox.documents import StartOrder
from cloudwhale.mailbox.sources import Found, Source
from cloudwhale.spi.clock import Clock

AT_ONCE = 8  # one stream of S3 gives some 80 MB/s; more of them fill the line
SPARE_BYTES = 1 << 30
FOLDER = "inputs"


class NoRoom(OSError):
    """The disk cannot hold what is to be fetched."""


class Unwanted(Exception):
    """The job was stopped while its inputs were fetched."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Whose inputs are fetched, and who hears of it."""

    folder: AttemptFolder
    order: StartOrder
    clock: Clock
    say: Say
    """Hears how far it is."""
    is_wanted: Callable[[], bool]


class Inputs:
    """The cache of one node; asked by a pool's threads."""

    def __init__(self, place: Place) -> None:
        self._cache = place.path / FOLDER
        self._attempts = place.attempts
        self._turn = threading.Lock()
        self._turns: dict[str, threading.Lock] = {}

    def give(self, wanted: Wanted) -> str:
        """Put all inputs of an attempt into place; return what it took.

        Raise NothingThere, Denied, StoreUnusable, Unwanted, ValueError, or this disk's OSError.
        """
        links = wanted.folder.path / FOLDER
        shutil.rmtree(links, ignore_errors=True)
        links.mkdir()
        told: list[str] = []
        for url in wanted.order.inputs:
            source = Source(url)
            link = links / source.name
            if link.is_symlink():
                raise ValueError(f"two inputs would both be called {source.name}; rename one")
            found = patiently(source.listed)
            where = self._cache / _name(url, found)
            # First the link: it keeps others from making room of what this job needs.
            os.symlink(where / "data", link)
            told.append(f"{url}: {self._fetched(source, found, where, wanted)}")
        return "; ".join(told)

    def _fetched(self, source: Source, found: Sequence[Found], where: Path, wanted: Wanted) -> str:
        with self._turn:
            turn = self._turns.setdefault(where.name, threading.Lock())
        with turn:
            if (where / "whole").exists():
                os.utime(where / "whole")
                return "was here already"
            total = sum(one.size_bytes for one in found)
            self._make_room(total)
            progress = Progress("fetching inputs", total, wanted.clock.steady, wanted.say)
            shutil.rmtree(where, ignore_errors=True)
            (where / "data").mkdir(parents=True)
            _fetch_all(source, found, where / "data", progress, wanted.is_wanted)
            (where / "whole").touch()
            return progress.told

    def _make_room(self, needed_bytes: int) -> None:
        """Delete what no job under way needs, oldest first, until the disk can hold it."""
        used = set(self._used())
        entries = [one for one in self._cache.glob("*/whole") if one.parent.name not in used]
        for whole in sorted(entries, key=lambda one: one.stat().st_mtime):
            if self._free_bytes() >= needed_bytes + SPARE_BYTES:
                return
            shutil.rmtree(whole.parent, ignore_errors=True)
        free = self._free_bytes()
        if free < needed_bytes:
            raise NoRoom(f"its inputs need {size(needed_bytes)}, and {size(free)} are free here")

    def _used(self) -> Iterator[str]:
        for link in self._attempts.glob(f"*/*/{FOLDER}/*"):
            if link.is_symlink() and not (link.parent.parent / "ended").exists():
                yield Path(os.readlink(link)).parent.name

    def _free_bytes(self) -> int:
        self._cache.mkdir(parents=True, exist_ok=True)
        return shutil.disk_usage(self._cache).free


def folders_of(folder: AttemptFolder) -> list[str]:
    """Return the folders that a container must see for its inputs: links and what they lead to."""
    links = folder.path / FOLDER
    if not links.is_dir():
        return []
    return [str(links), *(os.readlink(one) for one in sorted(links.iterdir()))]


def _name(url: str, found: Sequence[Found]) -> str:
    told = repr([(one.path, one.size_bytes, one.mark) for one in found])
    return hashlib.sha256(f"{url}\n{told}".encode()).hexdigest()[:32]


def _fetch_all(
    source: Source,
    found: Sequence[Found],
    into: Path,
    progress: Progress,
    is_wanted: Callable[[], bool],
) -> None:
    turn = threading.Lock()

    def fetch(one: Found) -> None:
        if not is_wanted():
            raise Unwanted
        path = into / one.path
        if ".." in Path(one.path).parts:
            raise ValueError(f"{one.path} would lie outside of the inputs")
        path.parent.mkdir(parents=True, exist_ok=True)
        patiently(lambda: source.fetch(one, path))
        with turn:
            progress.add(one.size_bytes)

    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="inputs") as pool:
        for done in [pool.submit(fetch, one) for one in found]:
            done.result()
