"""Trials of schedulers side by side, as a table and as bars in a terminal."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cloudwhale.reporting.bars import bar
from cloudwhale.reporting.figures import NOTHING, span
from cloudwhale.reporting.sheet import Cell, Column, Line, Sheet, Tone, cells

Figures = Mapping[str, float | None]
"""Metrics by name; None where there is nothing to take them of."""


@dataclass(frozen=True, slots=True)
class TrialRow:
    """One scheduler's figures, the mean over its seeds."""

    name: str
    mean: Figures
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the table: which figure, and how it is written."""

    heading: str
    metric: str
    written: Callable[[float], str]
    narrow: bool = False
    """It stands on a narrow terminal, too."""


def _count(number: float) -> str:
    return f"{number:,.0f}" if number.is_integer() or number >= 100 else f"{number:,.1f}"


def _share(number: float) -> str:
    return f"{100 * number:.1f} %"


def _factor(number: float) -> str:
    return f"{number:,.1f}" if number < 1000 else f"{number:,.0f}"


def _usd(number: float) -> str:
    return f"{number:,.2f}"


_DONE = _Column("done", "completed", _count, narrow=True)

_COLUMNS = (
    _DONE,
    _Column("failed", "failed", _count),
    _Column("completion", "mean_completion_s", span, narrow=True),
    _Column("median", "median_completion_s", span),
    _Column("p99", "p99_completion_s", span),
    _Column("wait", "mean_wait_s", span, narrow=True),
    _Column("p99 wait", "p99_wait_s", span),
    _Column("longest", "longest_wait_s", span, narrow=True),
    _Column("idle", "longest_idle_s", span),
    _Column("slowdown", "mean_slowdown", _factor),
    _Column("makespan", "makespan_s", span),
    _Column("in use", "utilisation", _share, narrow=True),
    _Column("fairness", "worst_fairness", _factor),
    _Column("starved", "starved", _count),
    _Column("gave way", "preemptions", _count),
    _Column("USD", "cloud_usd", _usd, narrow=True),
    _Column("rounds", "rounds", _count),
)

WORDS = (
    "completion: from arrival to end. wait: from arrival to first start; longest: of one job.",
    "idle: all the time that one job held no place. slowdown: completion by run alone.",
    "fairness: completions of the worst-off project by those in its equal part alone.",
    "starved: waited for over 10 times their run. bound: nobody can do better.",
)


def trials_sheet(rows: Sequence[TrialRow], title: str, notes: Sequence[str]) -> Sheet:
    """Show schedulers side by side; columns in which nobody has anything are left out."""
    shown = [
        column
        for column in _COLUMNS
        if column is _DONE or any(row.mean.get(column.metric) for row in rows)
    ]
    columns = tuple(
        Column(column.heading, right=True, optional=not column.narrow) for column in shown
    )
    return Sheet(
        (Column("policy"), *columns),
        tuple(_row(row, shown) for row in rows),
        title,
        tuple(notes),
    )


def _row(row: TrialRow, shown: Sequence[_Column]) -> tuple[Cell, ...]:
    figures = [row.mean.get(column.metric) for column in shown]
    texts = [
        NOTHING if figure is None else column.written(figure)
        for column, figure in zip(shown, figures, strict=True)
    ]
    return cells(Cell(row.name, row.tone), *(Cell(text, row.tone) for text in texts))


# -- bars ------------------------------------------------------------------------------------

_BARS = (
    _Column("mean completion", "mean_completion_s", span),
    _Column("longest wait", "longest_wait_s", span),
    _Column("USD", "cloud_usd", _usd),
    _Column("in use", "utilisation", _share),
)
BAR_MOST = 60


def bar_lines(rows: Sequence[TrialRow], width: int) -> list[Line]:
    """Return a bar for each scheduler and figure, the longest as wide as there is room."""
    lines: list[Line] = []
    for column in _BARS:
        known = [(row, row.mean.get(column.metric)) for row in rows]
        figures = [(row, figure) for row, figure in known if figure is not None]
        most = max((figure for _, figure in figures), default=0.0)
        if not most:
            continue
        name = max(len(row.name) for row, _ in figures)
        room = max(10, min(BAR_MOST, width - name - 16))
        lines.append((Cell(column.heading, "strong"),))
        for row, figure in figures:
            drawn = bar(figure / most, room).rstrip("·")
            tone: Tone = "busy" if row.tone == "strong" else row.tone
            lines.append(
                (
                    Cell(f"  {row.name:<{name}}  "),
                    Cell(drawn, tone),
                    Cell(f" {column.written(figure)}"),
                )
            )
    return lines
