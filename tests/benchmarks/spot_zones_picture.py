"""Draws the table of several zones: cost over optimal by deadline ratio, a panel a setting."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
from seeds_picture import INK, OTHERS, OURS
from spot_zones import Cell

STYLES = {
    "up-s": (OTHERS, "-"),
    "up-a": (OTHERS, ":"),
    "up-ap": (OTHERS, "-."),
    "skynomad": (OTHERS, "--"),
    "whale-spot": (OURS, "-"),
}


def draw(cells: Sequence[Cell], file: Path) -> None:
    """Write the picture as PNG, readable on light and on dark pages."""
    matplotlib.use("agg")
    from matplotlib import pyplot

    matplotlib.rcParams.update(
        {"text.color": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK}
    )
    titles = list(dict.fromkeys(cell.setting for cell in cells))
    figure: Any
    axes: Any
    figure, axes = pyplot.subplots(
        1, len(titles), figsize=(3.2 * len(titles), 3), sharey=True, squeeze=False
    )
    for panel, title in zip(axes[0], titles, strict=True):
        for rule, (color, style) in STYLES.items():
            row = [cell for cell in cells if cell.setting == title and cell.rule == rule]
            at = [cell.ratio for cell in row]
            panel.plot(at, [cell.of_optimal for cell in row], style, color=color, label=rule)
        panel.set_title(title.replace(", ", "\n"), fontsize=9, color=INK)
        panel.set_xlabel("deadline ratio")
        panel.spines[["top", "right"]].set_visible(False)
        panel.spines[["bottom", "left"]].set_color(INK)
    axes[0][0].set_ylabel("cost / optimal")
    axes[0][-1].legend(frameon=False, fontsize=8, labelcolor=INK)
    figure.tight_layout()
    figure.savefig(file, dpi=140, transparent=True)
    pyplot.close(figure)
