"""Price lists of your own: our columns, or those of gpuhunt's catalogue."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from cloudwhale.control.catalogue import gpuhunt
from cloudwhale.model.units import Instant
from cloudwhale.spi.errors import SettingsError
from cloudwhale.spi.listings import Origin, read
from cloudwhale.spi.prices import Listing, PriceList

MOST_BYTES = 64 * 2**20


def own(file: str, lists: Mapping[str, PriceList]) -> Sequence[Listing]:
    """Return the listings of a file; raise SettingsError, naming line and column, for a wrong one.

    Prices without a date are as old as the file. `lists`: those that are installed, by provider.
    """
    path = Path(file).expanduser()
    lines, changed_at = _lines(path)
    origin = Origin(str(path), changed_at, path.name)
    if gpuhunt.is_its(lines):
        return tuple(gpuhunt.read(lines, origin, lists))
    listings = tuple(read(lines, origin))
    _refuse_twice(listings, str(path))
    return listings


def _lines(path: Path) -> tuple[list[str], Instant]:
    try:
        about = path.stat()
        if not path.is_file():
            raise SettingsError(f"prices: {path} is not a file", "Name a CSV file.")
        if about.st_size > MOST_BYTES:
            raise SettingsError(
                f"prices: {path} is larger than {MOST_BYTES // 2**20} MiB", "Leave out rows."
            )
        return path.read_text(encoding="utf-8-sig").splitlines(keepends=True), about.st_mtime
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise SettingsError(f"{path}:{line}: this is not UTF-8", "Save it as UTF-8.") from error
    except OSError as error:
        raise SettingsError(
            f"prices: {path} cannot be read: {error.strerror}", "Name a file that is there."
        ) from error


def _refuse_twice(listings: Sequence[Listing], file: str) -> None:
    seen: set[tuple[str, str, str]] = set()
    for listing in listings:
        key = (listing.shape.provider, listing.shape.type, listing.region)
        if key in seen:
            raise SettingsError(
                f"{file}: {listing.shape.type} in {listing.region} stands there twice",
                "Remove one of the rows; zones with prices of their own are `a=0.41;b=0.45`.",
            )
        seen.add(key)
