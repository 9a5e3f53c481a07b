"""Gives jobs what they read from a cache of the node: fetched once, for all that name the same.

An object of the cache is named by its content where its store says what that is, else by its URL
and its mark, so what has changed since is fetched anew. An entry is a folder of hard links to
objects; it is whole when its `whole` file is there. A job finds each of its inputs under the last
part of its URL in `CLOUDWHALE_INPUT_DIR`, and must not write there.
"""

import hashlib
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cloudwhale.agent.attempts import AttemptFolder
from cloudwhale.agent.fetching import Checked, fetch_all
from cloudwhale.agent.halves import LIST, Half, Stopped, bytes_of
from cloudwhale.agent.patience import patiently
from cloudwhale.agent.place import Place
from cloudwhale.agent.progress import Progress, Say, size
from cloudwhale.clock import pause
from cloudwhale.mailbox.documents import StartOrder
from cloudwhale.mailbox.lost import Replaced
from cloudwhale.mailbox.sources import Found, Source
from cloudwhale.spi.clock import Clock

SPARE_BYTES = 1 << 30
FOLDER = "inputs"
OBJECTS, HALVES = ".objects", ".halves"
LOOK_AGAIN_S = 1.0


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
        self._under_way: dict[str, threading.Event] = {}
        """Objects that somebody fetches, by their names."""

    def give(self, wanted: Wanted) -> str:
        """Put all inputs of an attempt into place; return what it took.

        Raise NothingThere, Denied, Damaged, StoreUnusable, Unwanted, ValueError, or this disk's
        OSError.
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
            try:
                told.append(f"{source.shown}: {self._linked(source, link, wanted)}")
            except Replaced:
                link.unlink(missing_ok=True)
                told.append(f"{source.shown}: {self._linked(source, link, wanted)}, changed once")
        return "; ".join(told)

    def _linked(self, source: Source, link: Path, wanted: Wanted) -> str:
        found = patiently(source.listed)
        entry = _Entry(source, found, self._cache / _entry_name(source, found, wanted))
        # First the link: it keeps others from making room of what this job needs.
        os.symlink(entry.data, link)
        with self._turn:
            turn = self._turns.setdefault(entry.where.name, threading.Lock())
        with turn:
            if entry.whole.exists():
                os.utime(entry.whole)
                return "was here already"
            return self._fetched(entry, wanted)

    def _fetched(self, entry: "_Entry", wanted: Wanted) -> str:
        shutil.rmtree(entry.where, ignore_errors=True)
        self._cache.mkdir(parents=True, exist_ok=True)
        self._cache.chmod(0o711)  # jobs follow their own links; what others read they cannot list
        for folder in (OBJECTS, HALVES):
            (self._cache / folder).mkdir(mode=0o700, exist_ok=True)
        for one in entry.found:
            if ".." in Path(one.path).parts:
                raise ValueError(f"{one.path} would lie outside of the inputs")
        self._make_room(entry)
        entry.data.mkdir(parents=True)
        missing = [one for one in entry.found if not self._is_here(entry, one)]
        total = sum(one.size_bytes or 0 for one in missing)
        progress = Progress("fetching inputs", total, wanted.clock.steady, wanted.say)
        checked = Checked()
        while missing:
            self._bring(entry, missing, wanted, (progress, checked))
            missing = [one for one in missing if not self._is_here(entry, one)]
        entry.whole.touch()
        says = checked.says()
        return f"{progress.told}, {says}" if says else "was here already under another name"

    def _bring(
        self, entry: "_Entry", missing: Sequence[Found], wanted: Wanted,
        told: tuple[Progress, Checked],
    ) -> None:  # fmt: skip
        """Fetch what nobody else fetches, and wait for what others do."""
        progress, checked = told
        mine: dict[str, Found] = {}
        others: list[threading.Event] = []
        with self._turn:
            for one in missing:
                name = entry.name_of(one)
                event = self._under_way.get(name)
                if event is None:
                    self._under_way[name] = threading.Event()
                    mine[name] = one
                elif name not in mine:
                    others.append(event)
        try:
            halves = (
                (Half(entry.source, one, self._cache / HALVES / name, wanted.is_wanted,
                      progress.add), entry.path_of(one))
                for name, one in mine.items()
            )  # fmt: skip
            fetch_all(halves, checked, partial(self._placed, entry))
        except Stopped as stopped:
            raise Unwanted from stopped
        finally:
            with self._turn:
                for name in mine:
                    self._under_way.pop(name).set()
        for event in others:
            while not pause(LOOK_AGAIN_S, event):
                if not wanted.is_wanted():
                    raise Unwanted

    def _placed(self, entry: "_Entry", half: Half, where: Path) -> None:
        """Keep an object for other entries too; where links cannot be made, it has only this."""
        with suppress(OSError):
            os.link(where, self._cache / OBJECTS / entry.name_of(half.one))

    def _is_here(self, entry: "_Entry", one: Found) -> bool:
        where = entry.path_of(one)
        if where.exists():
            return True
        where.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(self._cache / OBJECTS / entry.name_of(one), where)
        except OSError:
            return False
        return True

    # -- room --------------------------------------------------------------------------------

    def _make_room(self, entry: "_Entry") -> None:
        """Delete what no job under way needs, oldest first, until the disk can hold an entry."""
        needed = sum(map(partial(self._lacking, entry), entry.found))
        kept = {entry.name_of(one) for one in entry.found}
        for one in (None, *self._unused(entry.where.name, kept)):
            if self._free_bytes() >= needed + SPARE_BYTES:
                return
            self._delete(one, kept)
            needed = sum(map(partial(self._lacking, entry), entry.found))
        free = self._free_bytes()
        if free < needed:
            raise NoRoom(f"its inputs need {size(needed)}, and {size(free)} are free here")

    def _lacking(self, entry: "_Entry", one: Found) -> int:
        name = entry.name_of(one)
        if (self._cache / OBJECTS / name).exists():
            return 0
        return max(0, (one.size_bytes or 0) - bytes_of(self._cache / HALVES / name))

    def _unused(self, entry: str, kept: set[str]) -> Sequence[Path]:
        """Return halves that nobody fetches, then entries that nobody uses; oldest first."""
        with self._turn:
            kept = kept | set(self._under_way)
        halves = [
            one
            for one in (self._cache / HALVES).iterdir()
            if one.suffix != LIST and one.name not in kept
        ]
        used = {*self._used(), entry, OBJECTS, HALVES}
        entries = [one for one in self._cache.iterdir() if one.name not in used]
        return [*sorted(halves, key=_used_at), *sorted(entries, key=_used_at)]

    def _delete(self, one: Path | None, kept: set[str]) -> None:
        """Delete a half or an entry, and the objects that no entry has; those alone for None."""
        if one is not None and one.parent.name == HALVES:
            one.with_name(one.name + LIST).unlink(missing_ok=True)
            one.unlink(missing_ok=True)
            return
        if one is not None:
            shutil.rmtree(one, ignore_errors=True)
        for lonely in (self._cache / OBJECTS).iterdir():
            with suppress(FileNotFoundError):
                if lonely.name not in kept and lonely.stat().st_nlink == 1:
                    lonely.unlink()

    def _used(self) -> Iterator[str]:
        for link in self._attempts.glob(f"*/*/{FOLDER}/*"):
            if link.is_symlink() and not (link.parent.parent / "ended").exists():
                yield Path(os.readlink(link)).parent.name

    def _free_bytes(self) -> int:
        self._cache.mkdir(parents=True, exist_ok=True)
        return shutil.disk_usage(self._cache).free


@dataclass(frozen=True, slots=True)
class _Entry:
    """What one URL has given, and where it lies."""

    source: Source
    found: Sequence[Found]
    where: Path

    @property
    def data(self) -> Path:
        return self.where / "data"

    @property
    def whole(self) -> Path:
        return self.where / "whole"

    def path_of(self, one: Found) -> Path:
        return self.data / one.path

    def name_of(self, one: Found) -> str:
        """Return what an object is called in the cache: by its content where that is known."""
        if not one.is_content:
            return _hashed(self.where.name, one.path)
        told = one.sum.hexadecimal if one.sum is not None and one.sum.is_sure else one.mark
        return _hashed(one.size_bytes, told.strip('"'))


def folders_of(folder: AttemptFolder) -> list[str]:
    """Return the folders that a container must see for its inputs: links and what they lead to."""
    links = folder.path / FOLDER
    if not links.is_dir():
        return []
    return [str(links), *(os.readlink(one) for one in sorted(links.iterdir()))]


def _entry_name(source: Source, found: Sequence[Found], wanted: Wanted) -> str:
    told = [(one.path, one.size_bytes, one.mark, one.sum) for one in found]
    if all(one.is_content for one in found):
        return _hashed(told)
    if any(not one.mark for one in found):
        return _hashed(source.url, told, wanted.folder.key)  # nobody can tell whether it changes
    return _hashed(source.url, told)


def _hashed(*words: object) -> str:
    return hashlib.sha256(repr(words).encode()).hexdigest()[:32]


def _used_at(one: Path) -> float:
    for path in (one / "whole", one):
        with suppress(OSError):
            return path.stat().st_mtime
    return 0.0
