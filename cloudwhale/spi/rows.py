"""The rows of a CSV file that a person may have written: by column, with their lines."""

import csv
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from cloudwhale.spi.errors import SettingsError


class Row(NamedTuple):
    """One line of a file with its number, which counts from 1."""

    number: int
    cells: Mapping[str, str]


def rows(
    lines: Iterable[str], file: str, *, known: frozenset[str], needed: frozenset[str]
) -> Iterator[Row]:
    """Yield the rows of a CSV file by column; raise SettingsError for a wrong heading or length."""
    reader = csv.reader(_counted(lines, counter := _Counter()))
    heading: list[str] = []
    try:
        for cells in reader:
            if not heading:
                heading = _heading([cell.strip() for cell in cells], file, known, needed)
            elif len(cells) != len(heading):
                raise SettingsError(
                    f"{file}:{counter.line}: {len(cells)} values for {len(heading)} columns",
                    "Write one value for each column; leave it empty where there is none.",
                )
            else:
                yield Row(counter.line, dict(zip(heading, cells, strict=True)))
    except csv.Error as error:
        raise SettingsError(
            f"{file}:{counter.line}: this is not CSV: {error}", "Save it as CSV with commas."
        ) from error
    if not heading:
        raise SettingsError(f"{file}: it has no heading", f"Begin with {','.join(sorted(needed))}.")


def wrong(file: str, row: Row, column: str, says: str, remedy: str) -> SettingsError:
    """Return the error for a value: file, line, column, the value, what to write instead."""
    value = row.cells.get(column, "")
    shown = repr(value if len(value) <= 40 else f"{value[:37]}...")
    return SettingsError(f"{file}:{row.number}: {column}: {shown} {says}", remedy)


class _Counter:
    line = 0


def _counted(lines: Iterable[str], counter: _Counter) -> Iterator[str]:
    for line in lines:
        counter.line += 1
        if line.strip() and not line.startswith("#"):
            yield line


_OTHER_SIGNS = (";", "\t", "|")
"""What spreadsheets put between columns where the comma is for decimals."""


def _heading(
    found: list[str], file: str, known: frozenset[str], needed: frozenset[str]
) -> list[str]:
    split_by = next((sign for sign in _OTHER_SIGNS if sign in found[0]), None)
    if len(found) == 1 and split_by is not None:
        raise SettingsError(
            f"{file}: its columns are parted by {split_by!r}", "Save it as CSV with commas."
        )
    strange = [name for name in found if name not in known]
    if strange:
        raise SettingsError(
            f"{file}: there is no column {strange[0]!r}", f"Known: {', '.join(sorted(known))}."
        )
    twice = next((name for name in found if found.count(name) > 1), None)
    if twice is not None:
        raise SettingsError(f"{file}: two columns are called {twice!r}", "Remove one of them.")
    missing = sorted(needed - set(found))
    if missing:
        raise SettingsError(f"{file}: there is no column {missing[0]!r}", "Add it.")
    return found
