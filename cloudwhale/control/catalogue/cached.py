"""The prices that `catalog update` has read, kept in the home folder, one file a cloud."""

import errno
import fcntl
import os
import re
import stat
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cloudwhale.model.units import Instant
from cloudwhale.spi.errors import SettingsError
from cloudwhale.spi.listings import Origin, read, written
from cloudwhale.spi.prices import Listing

VERSION = 1
_HEAD = re.compile(r"# cloudwhale prices, form ([0-9]{1,9}), read at ([0-9]{1,12}(?:\.[0-9]+)?)\n")
MOST_BYTES = 64 * 2**20
"""Twenty times what all regions of a cloud take."""


@dataclass(frozen=True, slots=True)
class Cached:
    """What is kept, and what is wrong with it."""

    listings: tuple[Listing, ...] = ()
    notes: tuple[str, ...] = ()


def folder(home: Path) -> Path:
    """Return where price lists are kept."""
    return home / "prices"


def cached(home: Path) -> Cached:
    """Return what was kept of all clouds; what cannot be read is set aside, and said."""
    listings: list[Listing] = []
    notes: list[str] = []
    for file in sorted(folder(home).glob("*.csv")):
        try:
            listings += kept(file)
        except (SettingsError, OSError, UnicodeDecodeError) as error:
            notes.append(_set_aside(file, error))
    return Cached(tuple(listings), tuple(notes))


def kept(file: Path) -> Sequence[Listing]:
    """Return what one file keeps; raise SettingsError, OSError or UnicodeDecodeError."""
    about = file.stat()
    if not stat.S_ISREG(about.st_mode):  # a pipe would be waited for without end
        raise OSError(errno.EINVAL, "it is not a regular file")
    if about.st_size > MOST_BYTES:
        raise SettingsError(f"{file.name} is larger than {MOST_BYTES // 2**20} MiB")
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    head = _HEAD.fullmatch(lines[0]) if lines else None
    if head is None:
        raise SettingsError(f"{file.name} does not begin as a price list of ours does")
    if int(head[1]) != VERSION:
        raise SettingsError(f"{file.name} is of form {head[1]}, and {VERSION} is read here")
    if lines[-1] != _END:
        raise SettingsError(f"{file.name} breaks off")
    found = tuple(read(lines, Origin(file.name, float(head[2]), file.stem)))
    foreign = next((one for one in found if one.shape.provider != file.stem), None)
    if foreign is not None:
        raise SettingsError(f"{file.name} has prices of {foreign.shape.provider}")
    return found


_END = "# end\n"


def keep(home: Path, cloud: str, listings: Iterable[Listing], now: Instant) -> Path:
    """Keep a cloud's prices in place of those before, whole or not at all; raise OSError."""
    where = folder(home)
    where.mkdir(parents=True, exist_ok=True)
    file = where / f"{cloud}.csv"
    new = where / f"{cloud}.csv.new-{os.getpid()}"
    head = f"# cloudwhale prices, form {VERSION}, read at {now:.3f}\n"
    try:
        with new.open("w", encoding="utf-8") as lines:
            lines.writelines((head, *written(listings), _END))
            lines.flush()
            os.fsync(lines.fileno())
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)
    return file


@contextmanager
def alone(home: Path) -> Generator[None, None, None]:
    """Keep others from keeping prices until the block ends, milliseconds; raise OSError."""
    where = folder(home)
    where.mkdir(parents=True, exist_ok=True)
    with (where / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _set_aside(file: Path, error: Exception) -> str:
    """Rename what is wrong, so that it is looked at once; say why.

    What the system does not let us read may be well, and stays where it is.
    """
    aside = file if isinstance(error, OSError) else file.with_suffix(".csv.unreadable")
    try:
        file.replace(aside)
    except OSError:
        aside = file
    return (
        f"The kept prices of {file.stem} cannot be used: {_says(error)}. They lie in {aside}; "
        f"`cloudwhale catalog update` reads them anew."
    )


def _says(error: Exception) -> str:
    if isinstance(error, SettingsError):
        return error.says
    if isinstance(error, OSError):
        return f"{error.strerror}"
    return "they are not UTF-8"
