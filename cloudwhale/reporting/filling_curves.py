"""How full policies get a cluster that pods never leave: a table, bars and a chart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cloudwhale.reporting.bars import bar
from cloudwhale.reporting.figures import NOTHING
from cloudwhale.reporting.sheet import Cell, Column, Line, Sheet, Tone, cells
from cloudwhale.reporting.trial_plots import INK, canvas, colour, prepare, saved

SHOWN = (50, 80, 90, 95, 100, 110, 120, 130)
"""Percent of the cluster's GPUs that have been asked for; 100 is what papers show."""
NARROW = (80, 100, 130)
FULL = 100
DRAWN_FROM = 80
"""Before, whoever asks gets a place."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One policy's: the mean over its seeds, and how far they spread."""

    policy: str
    allocated: Mapping[int, float]
    """Percent of the GPUs that were given away, by percent asked for."""
    spread: Mapping[int, float | None]
    refused: float | None
    """Share in [0, 1] of the pods that found no place, in the end; None of a bound."""
    tone: Tone = "plain"


WORDS = (
    "Pods come one at a time, are placed for good or refused, and never leave. Columns: percent",
    "of the GPUs that are given away when so many percent have been asked for, refused or not.",
    "bound: what none could exceed, even if it knew every pod beforehand.",
)


def filling_sheet(curves: Sequence[Curve], title: str, notes: Sequence[str] = ()) -> Sheet:
    """Show policies side by side."""
    columns = [
        Column(f"at {percent} %", right=True, optional=percent not in NARROW) for percent in SHOWN
    ]
    return Sheet(
        (Column("policy"), *columns, Column("refused", right=True)),
        tuple(_row(curve) for curve in curves),
        title,
        (*notes, *WORDS) if curves else tuple(notes),
    )


def _row(curve: Curve) -> tuple[Cell, ...]:
    found = [_written(curve.allocated.get(percent), curve.spread.get(percent)) for percent in SHOWN]
    refused = NOTHING if curve.refused is None else f"{100 * curve.refused:.1f} %"
    texts = (curve.policy, *found, refused)
    return cells(*(Cell(text, curve.tone) for text in texts))


def _written(percent: float | None, spread: float | None) -> str:
    if percent is None:
        return NOTHING
    return f"{percent:.2f}" if spread is None else f"{percent:.2f} ±{spread:.2f}"


def filling_bars(curves: Sequence[Curve], width: int) -> list[Line]:
    """Return a bar each of what is left over when all of the cluster has been asked for."""
    left = {
        curve.policy: 100 - curve.allocated[FULL] for curve in curves if FULL in curve.allocated
    }
    most = max(left.values(), default=0.0)
    if not most:
        return []
    name = max(map(len, left))
    room = max(10, min(60, width - name - 14))
    lines: list[Line] = [(Cell("GPUs left over when all have been asked for", "strong"),)]
    for curve in curves:
        if curve.policy in left:
            over = left[curve.policy]
            tone: Tone = "busy" if curve.tone == "strong" else curve.tone
            drawn = Cell(bar(over / most, room).rstrip("·"), tone)
            lines.append((Cell(f"  {curve.policy:<{name}}  "), drawn, Cell(f" {over:.2f} %")))
    return lines


def draw_filling(curves: Sequence[Curve], title: str, folder: Path) -> list[Path]:
    """Draw the curves as PNG and SVG; return the files."""
    prepare()
    figure, [[axes]] = canvas(1, 1, (8, 4.5))
    for number, curve in enumerate(curves):
        percents = sorted(percent for percent in curve.allocated if percent >= DRAWN_FROM)
        is_bound = curve.refused is None
        axes.plot(
            percents, [curve.allocated[percent] for percent in percents], label=curve.policy,
            color=INK if is_bound else colour(number), linewidth=1.4,
            linestyle="--" if is_bound else "-", marker="." if is_bound else "",
        )  # fmt: skip
    ends = (DRAWN_FROM, SHOWN[-1])
    axes.plot(ends, ends, color=INK, linewidth=0.8, linestyle=":", label="all that was asked for")
    axes.set_ylim(DRAWN_FROM, 101)
    axes.set_xlim(*ends)
    axes.set_xlabel("GPUs asked for, % of the cluster")
    axes.set_ylabel("GPUs given away, %")
    axes.legend(fontsize=8, loc="lower right")
    figure.suptitle(title, fontsize=10, color=INK)
    return list(saved(figure, folder, "simulate-filling"))
