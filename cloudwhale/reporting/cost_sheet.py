"""Costs as a table for a terminal or a pipe, and as rows for other programs."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from io import StringIO
from typing import Any

from cloudwhale.model.cost import CostSum, Waste
from cloudwhale.model.units import MicroUsd
from cloudwhale.reporting.bars import stacked
from cloudwhale.reporting.cost_words import column_with_total, digits_for
from cloudwhale.reporting.costs import (
    CAUSES,
    Costs,
    Row,
    gpu_h,
    saved,
    shown,
    sum_keys,
    usd_per_gpu_h,
    wasted,
    wasted_on,
)
from cloudwhale.reporting.figures import NOTHING, counted, dollars
from cloudwhale.reporting.sheet import Cell, Column, Sheet, Tone, clean

WIDE = 132
"""From so many columns on a terminal has room for the causes of waste."""

SHOWN = 40
"""A terminal shows so many rows; what is left is put together in one."""

HEADS: dict[Waste, str] = {
    Waste.BOOT: "boot",
    Waste.IDLE: "idle",
    Waste.LOST: "lost",
    Waste.FAILED: "failed",
    Waste.OVER_ASKED: "over",
}


@dataclass(frozen=True, slots=True)
class Look:
    """How a table is shown."""

    width: int | None
    """Columns of a terminal; None: a pipe, which gets every row, to the micro-dollar."""
    causes: bool = False
    """What was wasted is also shown by its causes."""


def costs_sheet(costs: Costs, look: Look) -> Sheet:
    """Show sums, one a row, with their total below."""
    title = f"Costs by {', '.join(costs.by)}: {costs.period.says}"
    if not costs.rows:
        return Sheet((), (), notes=(nothing_spent(costs), *_notes(costs)))
    if look.width is None:
        columns = _columns(costs, look.causes, None)
        return Sheet(columns, _exact_rows(costs, look.causes), title, _notes(costs))
    causes = look.causes or look.width >= WIDE
    bar = 24 if look.width >= WIDE else 10
    return Sheet(
        _columns(costs, causes, bar), _rows(costs, causes, bar), title,
        _notes(costs), ("bars: █ useful, ▒ wasted; in US dollars",),
    )  # fmt: skip


def nothing_spent(costs: Costs) -> str:
    """Say that a report is empty."""
    of = "".join(f", {name} {value}" for name, value in costs.only.items())
    if costs.period.since is None and costs.period.until is None and not costs.only:
        return "Nothing was spent yet: only rented machines cost something."
    return f"Nothing was spent in this period: {costs.period.says}{of}."


# -- columns and rows --------------------------------------------------------------------------


def _columns(costs: Costs, causes: bool, bar: int | None) -> tuple[Column, ...]:
    named = tuple(Column(name, gives_way=True) for name in costs.by)
    drawn = (Column(""),) if bar else ()
    parts = tuple(Column(HEADS[cause], right=True) for cause in CAUSES) if causes else ()
    money = (
        Column("spent", right=True), *drawn, Column("saved", right=True),
        Column("wasted", right=True), *parts,
    )  # fmt: skip
    return (*named, *money, Column("GPU-h", right=True), Column("USD/GPU-h", right=True))


def _rows(costs: Costs, causes: bool, bar: int) -> tuple[tuple[Cell, ...], ...]:
    rows = shown(costs, SHOWN)
    money = written(rows, digits_for(costs.total.spent), causes)
    most = max(row.sum.spent for row in rows[:-1])
    made: list[tuple[Cell, ...]] = []
    for place, row in enumerate(rows):
        tone: Tone = "strong" if row.kind == "total" else "plain"
        spent, less, lost, *parts = (Cell(texts[place], tone) for texts in money)
        drawn = "" if row.kind == "total" else _bar(row.sum, most, bar)
        each = usd_per_gpu_h(row.sum)
        made.append(
            (
                *_named(row), spent, Cell(drawn, "busy"), less, lost, *parts,
                Cell(f"{gpu_h(row.sum.gpu_s):,.1f}", tone),
                Cell(NOTHING if each is None else f"{each:,.2f}", tone),
            )
        )  # fmt: skip
    return tuple(made)


def written(rows: Sequence[Row], digits: int, causes: bool) -> list[list[str]]:
    """Return columns of amounts: spent, saved, wasted and its causes; the last row is the total.

    What is written in a column adds up to its total.
    """
    sums = [row.sum for row in rows]
    columns = [[one.spent for one in sums], [wasted(one) for one in sums]]
    columns += [[wasted_on(one, cause) for one in sums] for cause in CAUSES if causes]
    spent, *lost = (column_with_total(each, digits) for each in columns)
    known = [one for one in sums if saved(one) is not None]
    less = iter(column_with_total([one.saved for one in known], digits) if known else ())
    return [spent, [NOTHING if saved(one) is None else next(less) for one in sums], *lost]


def _named(row: Row) -> list[Cell]:
    tones: dict[str, Tone] = {"one": "plain", "rest": "quiet", "total": "strong"}
    return [Cell(name, tones[row.kind]) for name in row.names]


def _bar(one: CostSum, most: MicroUsd, width: int) -> str:
    """Return useful and wasted money beside the dearest row's."""
    if most <= 0:
        return ""
    lost = wasted(one)
    shares = ((one.spent - lost) / most, lost / most)
    (useful, waste), _ = stacked(shares, width)
    return "█" * useful + "▒" * waste


def _exact_rows(costs: Costs, causes: bool) -> tuple[tuple[Cell, ...], ...]:
    made: list[tuple[Cell, ...]] = []
    for row in shown(costs, len(costs.rows)):
        one = row.sum
        less, each = saved(one), usd_per_gpu_h(one)
        texts = [
            dollars(one.spent), NOTHING if less is None else dollars(less), dollars(wasted(one)),
            *(dollars(wasted_on(one, cause)) for cause in CAUSES if causes),
            f"{gpu_h(one.gpu_s):.3f}", NOTHING if each is None else f"{each:f}",
        ]  # fmt: skip
        made.append((*_named(row), *(Cell(text) for text in texts)))
    return tuple(made)


def _notes(costs: Costs) -> tuple[str, ...]:
    said: list[str] = []
    if costs.running and costs.still:
        said.append(
            f"{counted(costs.still, 'machine')} not back yet: in it is what they cost by now."
        )
    total = costs.total
    if total.unpriced:
        said.append(
            f"Of {total.unpriced:,} of {counted(total.lines, 'charge')} nobody knows the price on "
            "demand: they are in no `saved`."
        )
    return tuple(said)


# -- for other programs ------------------------------------------------------------------------


def costs_csv(costs: Costs) -> str:
    """Return the sums as CSV with a head and no total; texts cannot command a spreadsheet."""
    return csv_of(
        [*costs.by, *sum_keys(costs.total)],
        ([*one.key, *sum_keys(one).values()] for one in costs.rows),
    )


def csv_of(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as CSV below a head if given; lines end with a line feed, None is empty."""
    paper = StringIO()
    writer = csv.writer(paper, lineterminator="\n")
    if heads:
        writer.writerow(heads)
    for row in rows:
        writer.writerow([field(value) for value in row])
    return paper.getvalue()


COMMANDS = ("=", "+", "-", "@", "\t", "\r")
"""A text that begins so is a formula to spreadsheets (OWASP, "CSV Injection")."""


def field(value: Any) -> str:
    """Return a value as a field of CSV: a text that begins like a formula gets a `'` before it."""
    if value is None:
        return ""
    if isinstance(value, Decimal):
        return f"{value:f}"
    if not isinstance(value, str):
        return str(value)
    text = " ".join(clean(value).splitlines())
    return f"'{text}" if text.lstrip().startswith(COMMANDS) else text
