"""Web pages of one file: text, tiles, tables and charts, with no script and nothing to load.

Only this module makes `Html`, and every text that it is given is escaped. Charts are SVG, as
browsers print no colours of backgrounds; their words are text of the page, so that they stay
readable on a phone, where a picture would shrink.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import NewType

from cloudwhale.reporting.page_style import SERIES, STYLE
from cloudwhale.reporting.sheet import Cell, Column, Sheet, Tone, clean, meant_for

Html = NewType("Html", str)
"""A part of a page: well formed, with every text in it escaped."""

FOLDED = 6
"""A table of so many columns has no place on a phone: there each row is a few lines."""

LINES = 4
"""A chart's scale has at most so many lines above its foot."""


@dataclass(frozen=True, slots=True)
class Tile:
    """One number that is read at a glance."""

    name: str
    value: str
    note: str = ""
    """A few words below it."""
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Bar:
    """One row of a chart of bars: its parts, in any one unit, each 0 or more."""

    name: str
    says: str
    """The amount in words, to the right."""
    parts: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Series:
    """What is stacked in a chart of columns: one amount for each of them, 0 or more."""

    name: str
    amounts: tuple[float, ...]


def page(title: str, parts: Iterable[Html], under: str = "") -> str:
    """Return a whole document; `under`: a sentence below its title, as its period."""
    below = said(under, "quiet") if under else ""
    inside = "\n".join(parts)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="referrer" content="no-referrer"><link rel="icon" href="data:,">'
        f"<title>{_text(title)}</title><style>{STYLE}</style></head>\n"
        f"<body><header><h1>{_text(title)}</h1>{below}</header>\n"
        f"<main>{inside}</main></body></html>\n"
    )


def heading(text: str) -> Html:
    """Return the heading of a part."""
    return Html(f"<h2>{_text(text)}</h2>")


def said(text: str, tone: Tone = "plain") -> Html:
    """Return a sentence, or several."""
    return Html(f"<p{_class(tone)}>{_prose(text)}</p>")


def points(texts: Iterable[str]) -> Html:
    """Return sentences as a list."""
    return Html(f"<ul>{''.join(f'<li>{_prose(text)}</li>' for text in texts)}</ul>")


def tiles(shown: Iterable[Tile]) -> Html:
    """Return numbers that are read at a glance, side by side where there is room."""
    made = (
        f'<div class="tile"><span>{_text(tile.name)}</span>'
        f"<b{_class(tile.tone)}>{_text(tile.value)}</b>"
        f"{f'<span>{_text(tile.note)}</span>' if tile.note else ''}</div>"
        for tile in shown
    )
    return Html(f'<div class="tiles">{"".join(made)}</div>')


def table(sheet: Sheet, *, has_total: bool = False) -> Html:
    """Return a sheet with its title and notes; `has_total`: the last row is a sum of the others.

    Columns are those that a terminal shows, the optional ones too.
    """
    slim = meant_for(sheet, "terminal")
    is_folded = len(slim.columns) >= FOLDED
    marks = [_column(column, is_folded and place > 0) for place, column in enumerate(slim.columns)]
    heads = "".join(f"<th{_column(one)}>{_text(one.name)}</th>" for one in slim.columns)
    body = slim.rows[:-1] if has_total else slim.rows
    foot = f"<tfoot>{_row(slim.rows[-1], marks)}</tfoot>" if has_total and slim.rows else ""
    wide = "wide folded" if is_folded else "wide"
    made = (
        f'<div class="{wide}"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(_row(row, marks) for row in body)}</tbody>{foot}</table></div>"
        if slim.rows
        else ""
    )
    title = heading(slim.title) if slim.title else ""
    return Html(title + made + "".join(said(note, "quiet") for note in slim.notes))


def bars(rows: Sequence[Bar], names: Sequence[str] = ()) -> Html:
    """Return bars with their names and amounts; `names`: of the parts, for a legend."""
    most = max((sum(row.parts) for row in rows), default=0.0)
    made = "".join(
        f'<div class="row"><span><bdi>{_text(row.name)}</bdi></span><span class="b">'
        f'{_bar(row, most)}</span><span class="n">{_text(row.says)}</span></div>'
        for row in rows
    )
    return Html(f'{_legend(names)}<div class="bars">{made}</div>')


def columns(labels: Sequence[str], stacked: Sequence[Series], says: Callable[[float], str]) -> Html:
    """Return stacked columns, one for each label, with a scale; `says` writes an amount.

    Of more than eight series the eighth and all after it have the colour of the rest.
    """
    sums = [sum(one.amounts[index] for one in stacked) for index in range(len(labels))]
    lines = _lines(max(sums, default=0.0))
    scale = "".join(f"<span>{_text(says(line))}</span>" for line in lines)
    under = "".join(f"<span>{_text(label)}</span>" for label in _few(labels))
    return Html(
        f'<div class="chart">{_legend([one.name for one in stacked])}<div class="plot">'
        f'<div class="scale">{scale}</div>{_columns(labels, stacked, lines, says)}'
        f'<div class="under">{under}</div></div></div>'
    )


# -- pieces ----------------------------------------------------------------------------------


def _text(text: str) -> str:
    """Return a text escaped, without what HTML has no place for: control and half characters."""
    whole = text.encode("utf-8", "replace").decode("utf-8")
    return escape(clean(whole))


_CODE = re.compile("`([^`]+)`")


def _prose(text: str) -> str:
    """Return sentences escaped, with the commands in them set apart."""
    return _CODE.sub(r"<code>\1</code>", _text(text))


def _class(tone: Tone) -> str:
    return "" if tone == "plain" else f' class="{tone}"'


def _column(column: Column, says_head: bool = False) -> str:
    """Return what marks a cell of a column; `says_head`: where it stands without its heading."""
    head = f' data-head="{_text(column.name)}"' if says_head and column.name else ""
    return f' class="{"n" if column.right else "t"}"{head}'


def _row(row: tuple[Cell, ...], marks: Sequence[str]) -> str:
    made = (f"<td{mark}>{_cell(cell)}</td>" for cell, mark in zip(row, marks, strict=True))
    return f"<tr>{''.join(made)}</tr>"


def _cell(cell: Cell) -> str:
    """Isolate the text: a name that is read from right to left moves nothing beside it."""
    return f"<bdi{_class(cell.tone)}>{_text(cell.text)}</bdi>"


def _legend(names: Sequence[str]) -> str:
    if not names:
        return ""
    made = (
        f'<span><svg viewBox="0 0 1 1" aria-hidden="true"><rect class="{_colour(index)}" '
        f'width="1" height="1"/></svg><bdi>{_text(name)}</bdi></span>'
        for index, name in enumerate(names)
    )
    return f'<div class="legend">{"".join(made)}</div>'


def _colour(index: int) -> str:
    return f"s{min(index, SERIES - 1)}"


def _bar(row: Bar, most: float) -> str:
    """Return one bar, a hundred wide for the longest of all."""
    begin, drawn = 0.0, ['<rect class="rest" width="100" height="1"/>']
    for index, part in enumerate(row.parts):
        width = 100 * part / most if most > 0 else 0.0
        if width > 0:
            drawn.append(
                f'<rect class="{_colour(index)}" x="{_short(begin)}" width="{_short(width)}" '
                'height="1"/>'
            )
        begin += width
    return (
        f'<svg viewBox="0 0 100 1" preserveAspectRatio="none" role="img">'
        f"<title>{_text(f'{row.name}: {row.says}')}</title>{''.join(drawn)}</svg>"
    )


def _columns(
    labels: Sequence[str],
    stacked: Sequence[Series],
    lines: Sequence[float],
    says: Callable[[float], str],
) -> str:
    """Return the columns, each ten wide, in a drawing that is a hundred high."""
    width = 10 * max(1, len(labels))
    drawn: list[str] = []
    for line in lines:
        y = _short(100 - 100 * line / lines[-1])
        drawn.append(f'<line class="grid" x1="0" x2="{width}" y1="{y}" y2="{y}"/>')
    for place, label in enumerate(labels):
        foot = 100.0
        for index, one in enumerate(stacked):
            height = 100 * one.amounts[place] / lines[-1]
            if height <= 0:
                continue
            foot -= height
            drawn.append(
                f'<rect class="{_colour(index)}" x="{10 * place + 1}" y="{_short(foot)}" '
                f'width="8" height="{_short(height)}"><title>'
                f"{_text(f'{label}, {one.name}: {says(one.amounts[place])}')}</title></rect>"
            )
    return (
        f'<svg viewBox="0 0 {width} 100" preserveAspectRatio="none" role="img">'
        f"{''.join(drawn)}</svg>"
    )


def _short(number: float) -> str:
    return f"{number:.3f}".rstrip("0").rstrip(".")


STEPS = (1, 2, 2.5, 5, 10)
"""Lines of a scale stand so far apart, times a power of ten: they are easy to read."""


def _lines(most: float) -> list[float]:
    """Return where a scale has lines, from 0 to the first that is not below the most."""
    if not most > 0:
        return [0.0, 1.0]
    power = 10.0 ** math.floor(math.log10(most / LINES))
    step = next(power * step for step in STEPS if most <= LINES * power * step * (1 + 1e-9))
    return [step * line for line in range(math.ceil(most / step - 1e-9) + 1)]


FEW = 5


def _few(labels: Sequence[str]) -> Sequence[str]:
    """Return so many labels as stand side by side on a phone: the first, the last and between."""
    if len(labels) <= FEW:
        return labels
    return [labels[round(index * (len(labels) - 1) / (FEW - 2))] for index in range(FEW - 1)]
