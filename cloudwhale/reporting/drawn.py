"""Sheets and lines drawn for a terminal; the only module here that knows rich."""

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cloudwhale.reporting.figures import NOTHING
from cloudwhale.reporting.sheet import Cell, Line, Sheet, Tone, meant_for

STYLES: dict[Tone, str] = {
    "plain": "",
    "quiet": "dim",
    "good": "green",
    "busy": "cyan",
    "warn": "yellow",
    "bad": "bold red",
    "strong": "bold",
}

NARROW = 100
"""Below this many columns the optional ones are left out."""


def text(cell: Cell) -> Text:
    """Return a cell with its colour."""
    return Text(cell.text if cell.text != NOTHING else "", STYLES[cell.tone])


def line_text(line: Line) -> Text:
    """Return a line of cells with their colours."""
    return Text.assemble(*((cell.text, STYLES[cell.tone]) for cell in line))


def table(sheet: Sheet, width: int) -> Table:
    """Return a sheet as a table that fits a terminal of `width` columns."""
    slim = meant_for(sheet, "terminal")
    shown = [
        index for index, column in enumerate(slim.columns) if width >= NARROW or not column.optional
    ]
    drawn = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", title_justify="left",
        title=slim.title or None, title_style="bold", show_edge=False, padding=(0, 1, 0, 0),
    )  # fmt: skip
    for index in shown:
        column = slim.columns[index]
        drawn.add_column(
            column.name,
            justify="right" if column.right else "left",
            no_wrap=not column.gives_way,
            overflow="fold" if column.gives_way else "ellipsis",
        )
    for row in slim.rows:
        drawn.add_row(*(text(row[index]) for index in shown))
    return drawn


def show(console: Console, sheet: Sheet) -> None:
    """Print a sheet with its notes."""
    if sheet.rows:
        console.print(table(sheet, console.width))
    elif sheet.title:
        console.print(sheet.title, style="bold", highlight=False)
    show_notes(console, (*sheet.asides, *sheet.notes))


def show_notes(console: Console, notes: Iterable[str]) -> None:
    """Print sentences that stand below something."""
    for note in notes:
        console.print(note, style="dim", highlight=False, markup=False)


def show_lines(console: Console, lines: Sequence[Line]) -> None:
    """Print lines that are wrapped already."""
    for line in lines:
        console.print(line_text(line), soft_wrap=True, highlight=False)
