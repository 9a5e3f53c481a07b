"""Draws the spot table: savings below the optimum, readable on light and on dark pages."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib
from seeds_picture import INK, OTHERS, OURS
from spot import OPTIMUM, Cell

STYLES = {
    "greedy": (OTHERS, ":"),
    "uniform-progress": (OTHERS, "-"),
    "next-lifetime": (OTHERS, "--"),
    "whale-spot, past": (OURS, "-"),
    "whale-spot, cold": (OURS, ":"),
}


def draw(cells: Sequence[Cell], file: Path) -> None:
    """Write the picture as PNG: savings the optimum has more, in points, by job fraction."""
    matplotlib.use("agg")
    from matplotlib import pyplot

    matplotlib.rcParams.update(
        {"text.color": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK}
    )
    best = {cell.fraction: cell.saving for cell in cells if cell.rule == OPTIMUM}
    figure, panel = pyplot.subplots(figsize=(6, 3))
    for rule, (color, style) in STYLES.items():
        row = sorted((c for c in cells if c.rule == rule), key=lambda c: c.fraction)
        at = [cell.fraction for cell in row]
        panel.plot(at, [best[c.fraction] - c.saving for c in row], style, color=color, label=rule)
    panel.set_xlabel("job fraction: the job's length over its deadline")
    panel.set_ylabel("saving below the optimum, points")
    panel.set_ylim(bottom=0.0)
    panel.spines[["top", "right"]].set_visible(False)
    panel.spines[["bottom", "left"]].set_color(INK)
    panel.legend(frameon=False, fontsize=8, labelcolor=INK)
    figure.tight_layout()
    figure.savefig(file, dpi=140, transparent=True)
    pyplot.close(figure)
