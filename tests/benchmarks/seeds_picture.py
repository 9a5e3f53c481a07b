"""Draws the seed's comparison: three panels, readable on light and on dark pages."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import intervals
import matplotlib
from seeds import CONTESTANTS, Result

INK = "#7d8590"  # a grey that stands out from white and from black alike
OURS, OTHERS = "#1f8fff", "#9aa4af"
PANELS = (
    ("completion_s", "mean completion, min", 60.0, "less is better"),
    ("utilisation", "utilisation, %", 0.01, "more is better"),
    ("longest_wait_s", "longest wait, h", 3600.0, "less is better"),
)


def draw(results: Sequence[Result], file: Path) -> None:
    """Write the picture as PNG; bars are means over the seeds, lines their 95 % intervals."""
    matplotlib.use("agg")
    from matplotlib import pyplot

    matplotlib.rcParams.update(
        {"text.color": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK}
    )
    figure, axes = pyplot.subplots(1, len(PANELS), figsize=(9, 2.3), sharey=True)
    for panel, (metric, title, unit, better) in zip(axes, PANELS, strict=True):
        _panel(panel, results, metric, unit)
        panel.set_title(title, fontsize=10, color=INK)
        panel.set_xlabel(better, fontsize=8)
    figure.tight_layout()
    figure.savefig(file, dpi=140, transparent=True)
    pyplot.close(figure)


def _panel(panel: Any, results: Sequence[Result], metric: str, unit: float) -> None:
    names = list(CONTESTANTS)[::-1]
    found = [
        intervals.mean([getattr(r, metric) / unit for r in results if r.contestant == name])
        for name in names
    ]
    panel.barh(
        names,
        [each.middle for each in found],
        xerr=[[e.middle - e.low for e in found], [e.high - e.middle for e in found]],
        color=[OURS if name == "whale" else OTHERS for name in names],
        ecolor=INK,
        height=0.62,
    )
    highest = max(each.high for each in found)
    for row, each in enumerate(found):
        panel.text(each.high + 0.02 * highest, row, f"{each.middle:.3g}", va="center", fontsize=8)
    panel.set_xlim(0, 1.14 * highest)
    panel.spines[["top", "right", "left"]].set_visible(False)
    panel.spines["bottom"].set_color(INK)
    panel.tick_params(axis="y", length=0, labelsize=9)
    panel.tick_params(axis="x", labelsize=8)
