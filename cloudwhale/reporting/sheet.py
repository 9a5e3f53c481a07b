"""A sheet: rows and columns of text, before anybody has decided how they are drawn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Tone = Literal["plain", "quiet", "good", "busy", "warn", "bad", "strong"]
"""What a piece of text means, for a terminal that has colours."""


KEPT = "\n\t"
"""What moves the cursor and harms nothing."""

_SHOWN_AS = {code: "\ufffd" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in KEPT}


def clean(text: str) -> str:
    """Return a text that cannot command a terminal: its control characters become `\ufffd`."""
    return text if text.isprintable() else text.translate(_SHOWN_AS)


@dataclass(frozen=True, slots=True)
class Cell:
    """A piece of text that means something, cleaned of what would command a terminal."""

    text: str
    tone: Tone = "plain"

    def __post_init__(self) -> None:
        """Clean the text, whoever wrote it."""
        object.__setattr__(self, "text", clean(self.text))


Line = tuple[Cell, ...]
"""One line of running text."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column's heading and habits."""

    name: str
    right: bool = False
    """Numbers stand to the right."""
    gives_way: bool = False
    """It is folded first when the terminal is narrow."""
    optional: bool = False
    """It is left out on a terminal under 100 columns."""
    on: Literal["both", "terminal", "pipe"] = "both"
    """A person reads what a program would rather have apart, and the other way round."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table; every row has a cell for every column."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""
    notes: tuple[str, ...] = ()
    """Sentences below it."""
    asides: tuple[str, ...] = ()
    """Sentences below it for a person; for a program a column says the same."""

    def __post_init__(self) -> None:
        """Clean what stands around the rows; the cells have cleaned themselves."""
        object.__setattr__(self, "title", clean(self.title))
        object.__setattr__(self, "notes", tuple(map(clean, self.notes)))
        object.__setattr__(self, "asides", tuple(map(clean, self.asides)))


def cells(*texts: str | Cell) -> tuple[Cell, ...]:
    """Make a row; plain text becomes a plain cell."""
    return tuple(text if isinstance(text, Cell) else Cell(text) for text in texts)


def text_of(line: Sequence[Cell]) -> str:
    """Return a line without its tones."""
    return "".join(cell.text for cell in line)


def meant_for(sheet: Sheet, reader: Literal["terminal", "pipe"]) -> Sheet:
    """Leave out the columns that are for others, for a person also those that say nothing."""
    kept = [
        index
        for index, column in enumerate(sheet.columns)
        if column.on in ("both", reader)
        and (reader == "pipe" or any(row[index].text not in ("", "-") for row in sheet.rows))
    ]
    return Sheet(
        tuple(sheet.columns[index] for index in kept),
        tuple(tuple(row[index] for index in kept) for row in sheet.rows),
        sheet.title,
        sheet.notes,
        sheet.asides,
    )


def plain_lines(sheet: Sheet) -> list[str]:
    """Return the sheet as aligned plain text that loses nothing, for pipes and files."""
    sheet = meant_for(sheet, "pipe")
    lines = [sheet.title] if sheet.title else []
    if sheet.rows:
        table = [[column.name.upper() for column in sheet.columns]]
        table += [[" ".join(cell.text.split()) or "-" for cell in row] for row in sheet.rows]
        widths = [max(len(row[index]) for row in table) for index in range(len(sheet.columns))]
        rights = [column.right for column in sheet.columns]
        lines += [_aligned(row, widths, rights) for row in table]
    return [*lines, *sheet.notes]


def _aligned(row: list[str], widths: list[int], rights: list[bool]) -> str:
    parts = [
        text.rjust(width) if right else text.ljust(width)
        for text, width, right in zip(row, widths, rights, strict=True)
    ]
    return "  ".join(parts).rstrip()
