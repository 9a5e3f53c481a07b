"""A working directory as one archive, the same bytes for the same content on every host."""

import gzip
import hashlib
import os
import stat
import tarfile
from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from cloudwhale.control.ignored import Ignored, rules_above
from cloudwhale.model.value import Value
from cloudwhale.spi.errors import SpecError, StoreUnusable

FILE_MOST_BYTES = 2_000_000_000
"""A larger file is data, not code: it would be sent again whenever it changes."""

COMPRESS_LEVEL = 1  # code compresses well at any level, and 1 is several times as fast as 6

_ODD = (
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class Packed(Value):
    """What was packed."""

    sha256: str
    """Of the archive."""
    size_bytes: int
    files: int
    """Regular files and links."""
    skipped: tuple[str, ...] = ()
    """A sentence for each thing that no archive can carry."""


def pack(folder: Path, into: Path, leave_out: Collection[Path] = ()) -> Packed:
    """Write a folder's content as a tar.gz file, honouring .gitignore files, always without .git.

    `leave_out` names folders that are not packed wherever they lie, such as our own state. Raise
    SpecError for a file over 2 GB, one that cannot be read, or a link that leaves the folder;
    StoreUnusable when the archive cannot be written.
    """
    top = os.path.realpath(folder)
    absent = frozenset(os.path.realpath(path) for path in leave_out) | {os.path.realpath(into)}
    skipped: list[str] = []
    files = 0
    with _archive(into) as (archive, digest):
        for path in _paths(top, absent):
            name, mode = path.removeprefix(top.rstrip("/") + "/"), _mode(path)
            odd = next((what for is_it, what in _ODD if is_it(mode)), None)
            if odd:
                skipped.append(f"{name} is {odd} and was left out.")
                continue
            files += not stat.S_ISDIR(mode)
            _add(archive, top, name, mode)
    return Packed(
        sha256=digest.hexdigest(),
        size_bytes=into.stat().st_size,
        files=files,
        skipped=tuple(skipped),
    )


class _Hashing:
    """A file that is written and hashed at once."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._sha256 = hashlib.sha256()

    def write(self, body: bytes) -> int:
        self._sha256.update(body)
        return self._file.write(body)

    def flush(self) -> None:
        self._file.flush()

    def hexdigest(self) -> str:
        return self._sha256.hexdigest()


@contextmanager
def _archive(into: Path) -> Generator[tuple[tarfile.TarFile, _Hashing]]:
    try:
        with into.open("wb") as file:
            hashing = _Hashing(file)
            # No name and no time in the header: they would differ from host to host.
            with (
                gzip.GzipFile("", "wb", COMPRESS_LEVEL, hashing, mtime=0) as zipped,
                tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive,
            ):
                yield archive, hashing
    except OSError as error:
        raise StoreUnusable(
            f"cannot write the archive {into}: {error.strerror or error}",
            "Is the disk full? TMPDIR names another place for temporary files.",
        ) from error


def _paths(top: str, absent: Collection[str]) -> Iterator[str]:
    """Give every path to pack, a folder before what it holds, in an order that never changes."""
    open_folders = [(iter(_sorted(top)), rules_above(Path(top)).inside(top))]
    while open_folders:
        entries, ignored = open_folders[-1]
        entry = next(entries, None)
        if entry is None:
            open_folders.pop()
        elif _is_wanted(entry, ignored, absent):
            yield entry.path
            if entry.is_dir(follow_symlinks=False):
                below = ignored.inside(entry.path)
                open_folders.append((iter(_sorted(entry.path)), below))


def _sorted(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: os.fsencode(entry.name))
    except OSError as error:
        raise _unreadable(folder, error) from error


def _is_wanted(entry: os.DirEntry[str], ignored: Ignored, absent: Collection[str]) -> bool:
    if entry.name == ".git" or entry.path in absent:
        return False
    return not ignored.names(entry.path, is_folder=entry.is_dir(follow_symlinks=False))


def _mode(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError as error:
        raise _unreadable(path, error) from error


def _add(archive: tarfile.TarFile, top: str, name: str, mode: int) -> None:
    """Add one file, folder or link, without owner, time or umask."""
    path = os.path.join(top, name)
    info = tarfile.TarInfo(name)
    info.mode = 0o755 if stat.S_ISDIR(mode) or mode & stat.S_IXUSR else 0o644
    if stat.S_ISDIR(mode):
        info.type = tarfile.DIRTYPE
        archive.addfile(info)
    elif stat.S_ISLNK(mode):
        info.type, info.mode, info.linkname = tarfile.SYMTYPE, 0o777, _link(top, path)
        archive.addfile(info)
    else:
        _add_file(archive, info, path)


def _add_file(archive: tarfile.TarFile, info: tarfile.TarInfo, path: str) -> None:
    try:
        # NONBLOCK: a pipe that has just taken the file's place must not hold us up.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise _unreadable(path, error) from error
    with open(descriptor, "rb") as file:
        info.size = os.fstat(descriptor).st_size
        if info.size > FILE_MOST_BYTES:
            raise SpecError(
                f"{path} has {info.size / 1e9:.1f} GB; a working directory's files have at most "
                f"{FILE_MOST_BYTES / 1e9:g} GB",
                "Name it in .gitignore, and reach it by `mounts` or `inputs`.",
            )
        try:
            archive.addfile(info, file)
        except OSError as error:
            if error.errno is None:  # tarfile's own: the file ended before its size
                raise SpecError(
                    f"{path} became shorter while it was packed",
                    "Submit again when nothing writes to it, or name it in .gitignore.",
                ) from error
            raise


def _link(top: str, path: str) -> str:
    """Return a link's target relative to it; raise SpecError when it leads out of the folder."""
    target = os.path.realpath(path)
    if target != top and not target.startswith(top.rstrip("/") + "/"):
        raise SpecError(
            f"{path} is a link to {target}, outside the working directory {top}",
            "Name it in .gitignore, copy what it points to, or use `mounts`.",
        )
    return os.path.relpath(target, os.path.dirname(path))


def _unreadable(path: str, error: OSError) -> SpecError:
    return SpecError(
        f"{path} cannot be packed: {error.strerror}",
        "Make it readable, or name it in .gitignore.",
    )
