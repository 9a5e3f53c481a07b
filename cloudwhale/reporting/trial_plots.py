"""Draws trials of schedulers into files: who held which device, how full, how soon, how dear."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

INK = "#7d8590"  # a grey that stands out from white and from black alike
COLOURS = (
    "#1f8fff", "#e8833a", "#2fa36b", "#b45fd1", "#d1495b", "#8c8c3f", "#3fb8c4", "#7a6ff0",
)  # fmt: skip
HOUR_S = 3600.0
ROWS_MOST = 64
"""Devices that a Gantt chart shows: more would be thinner than a line."""
DPI = 140


@dataclass(frozen=True, slots=True)
class Held:
    """A job's time on one device."""

    device: str
    job: str
    since_s: float
    """From the first arrival."""
    until_s: float
    share: float


@dataclass(frozen=True, slots=True)
class Drawn:
    """What is drawn of one scheduler: one play, or the figures of several."""

    name: str
    waits_s: Sequence[float]
    """Of all jobs of all its plays, shortest first; so are the completions."""
    completions_s: Sequence[float]
    held: Sequence[Held]
    """Of one play."""
    figures: Mapping[str, Sequence[float | None]]
    """Metrics by name, one for each of its plays."""


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything that is drawn."""

    title: str
    devices: Sequence[str]
    """In the order in which they are shown."""
    drawn: Sequence[Drawn]
    of_one: str = ""
    """Which play it is that devices are shown of, where there are several: `seed 1 alone`."""

    def one_play(self, what: str) -> str:
        """Return the heading of what is drawn of one play."""
        return f"{what}; {self.of_one}" if self.of_one else what


def draw(picture: Picture, folder: Path) -> list[Path]:
    """Write every chart as PNG and as SVG; return the files. Takes seconds."""
    prepare()
    return [file for name, figure in _figures(picture) for file in saved(figure, folder, name)]


def prepare() -> None:
    """Make what is drawn readable on light and on dark pages, and the same every time."""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams.update(
        {
            "text.color": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK,
            "axes.edgecolor": INK, "axes.spines.top": False, "axes.spines.right": False,
            "font.size": 9, "axes.titlesize": 10, "axes.titlecolor": INK,
            "legend.frameon": False, "svg.hashsalt": "cloudwhale",
        }
    )  # fmt: skip


def _figures(picture: Picture) -> Iterator[tuple[str, Any]]:
    yield "simulate", _overview(picture)
    yield "simulate-gantt", _gantt(picture)
    yield "simulate-utilisation", _one(picture, _utilisation)
    yield "simulate-completion", _one(picture, _completions)
    yield "simulate-wait", _one(picture, _waits)
    if any(any(one.figures.get("cloud_usd", ())) for one in picture.drawn):
        yield "simulate-cost", _one(picture, _cost)


def saved(figure: Any, folder: Path, name: str) -> Iterator[Path]:
    """Write a figure as PNG and as SVG."""
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)

    for kind in ("png", "svg"):
        file = folder / f"{name}.{kind}"
        metadata = {"Date": None} if kind == "svg" else {}
        figure.savefig(file, dpi=DPI, transparent=True, metadata=metadata)
        yield file
    pyplot.close(figure)


Panel = Callable[[Any, Picture], None]


def canvas(rows: int, columns: int, size: tuple[float, float]) -> tuple[Any, Any]:
    """Return a figure in inches and the axes on it, one time axis a column."""
    from matplotlib import pyplot

    return pyplot.subplots(
        rows, columns, figsize=size, layout="constrained", squeeze=False,
        sharex="col" if columns == 1 else "none",
    )  # fmt: skip


def _one(picture: Picture, panel: Panel) -> Any:
    figure, axes = canvas(1, 1, (8, 4))
    panel(axes[0, 0], picture)
    figure.suptitle(picture.title, fontsize=10, color=INK)
    return figure


def _overview(picture: Picture) -> Any:
    figure, axes = canvas(2, 2, (10, 6.2))
    panels: Sequence[Panel] = (_bars, _utilisation, _completions, _waits)
    for one, panel in zip(axes.flat, panels, strict=True):
        panel(one, picture)
    figure.suptitle(picture.title, fontsize=10, color=INK)
    return figure


def colour(number: int) -> str:
    """Return a scheduler's colour by its place."""
    return COLOURS[number % len(COLOURS)]


def _style(number: int) -> str:
    """More schedulers than colours: the next ones are dashed."""
    return ("-", "--", ":", "-.")[number // len(COLOURS) % 4]


# -- panels ----------------------------------------------------------------------------------


def _bars(axes: Any, picture: Picture) -> None:
    """Draw mean completion as bars, with the least and the most of the plays."""
    names = [one.name for one in picture.drawn]
    plays = [
        [value / HOUR_S for value in one.figures.get("mean_completion_s", ()) if value is not None]
        for one in picture.drawn
    ]
    middles = [sum(each) / len(each) if each else 0.0 for each in plays]
    low = [middle - min(each, default=middle) for middle, each in zip(middles, plays, strict=True)]
    high = [max(each, default=middle) - middle for middle, each in zip(middles, plays, strict=True)]
    rows = list(range(len(names)))[::-1]
    axes.barh(
        rows, middles, xerr=[low, high], ecolor=INK, height=0.62,
        color=[colour(number) for number in range(len(names))],
    )  # fmt: skip
    most = max((middle + more for middle, more in zip(middles, high, strict=True)), default=0.0)
    for row, middle, more in zip(rows, middles, high, strict=True):
        axes.text(middle + more + 0.02 * most, row, f"{middle:.3g}", va="center", fontsize=8)
    axes.set_yticks(rows, names)
    axes.set_xlim(0, 1.15 * most if most else 1.0)
    axes.set_title("mean completion, h (less is better)")
    axes.tick_params(axis="y", length=0)


def _utilisation(axes: Any, picture: Picture) -> None:
    """Draw which part of all devices was held, over time."""
    for number, one in enumerate(picture.drawn):
        times, shares = held_over_time(one.held, len(picture.devices))
        axes.step(
            [at / HOUR_S for at in times], [100 * share for share in shares], where="post",
            label=one.name, color=colour(number), linestyle=_style(number), linewidth=1.2,
        )  # fmt: skip
    axes.set_ylim(0, 105)
    axes.set_xlim(left=0)
    axes.set_title(picture.one_play("devices in use, %"))
    axes.set_xlabel("hours since the first arrival")
    axes.legend(fontsize=8, loc="lower center")


SLICES = 300
"""Means over so many equal parts of the time: thousands of steps would be a grey band."""


def held_over_time(held: Sequence[Held], devices: int) -> tuple[list[float], list[float]]:
    """Return the beginnings of slices of time, and which part of all devices was held in each."""
    end_s = max((one.until_s for one in held), default=0.0)
    if not end_s or not devices:
        return [0.0, 0.0], [0.0, 0.0]
    width_s = end_s / SLICES
    sums = [0.0] * (SLICES + 1)
    for one in held:
        first = min(SLICES - 1, int(one.since_s / width_s))
        last = min(SLICES - 1, int(one.until_s / width_s))
        for part in range(first, last + 1):
            since = max(one.since_s, part * width_s)
            until = min(one.until_s, (part + 1) * width_s)
            sums[part] += max(0.0, until - since) * one.share
    return (
        [part * width_s for part in range(SLICES + 1)],
        [each / (width_s * devices) for each in sums],
    )


DAY_S = 24 * HOUR_S
MARKS = (
    (1.0, "1 s"), (10.0, "10 s"), (60.0, "1 min"), (600.0, "10 min"), (HOUR_S, "1 h"),
    (10 * HOUR_S, "10 h"), (4 * DAY_S, "4 d"), (40 * DAY_S, "40 d"), (365 * DAY_S, "1 y"),
    (3650 * DAY_S, "10 y"),
)  # fmt: skip
"""What stands on a logarithmic axis of times; its values are hours."""


def _completions(axes: Any, picture: Picture) -> None:
    _parts(axes, picture, lambda one: one.completions_s)
    axes.set_title("jobs that had completed so long after their arrival, %")


def _waits(axes: Any, picture: Picture) -> None:
    _parts(axes, picture, lambda one: one.waits_s)
    axes.set_title("jobs that had started so long after their arrival, %")


def _parts(axes: Any, picture: Picture, of: Callable[[Drawn], Sequence[float]]) -> None:
    """Draw which part of the jobs has at most so many hours, on a scale that shows the tail."""
    for number, one in enumerate(picture.drawn):
        values = [max(value, 1.0) / HOUR_S for value in of(one)]
        parts = [100 * (index + 1) / len(values) for index in range(len(values))]
        axes.step(
            values, parts, where="post", label=one.name, color=colour(number),
            linestyle=_style(number), linewidth=1.4,
        )  # fmt: skip
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    marks = [(at_s / HOUR_S, word) for at_s, word in MARKS if low <= at_s / HOUR_S <= high]
    axes.set_xticks([at for at, _ in marks], [word for _, word in marks])
    axes.set_xticks([], minor=True)
    axes.set_ylim(0, 102)
    axes.set_xlabel("logarithmic; less than a second counts as one")
    axes.legend(fontsize=8, loc="lower right")


def _cost(axes: Any, picture: Picture) -> None:
    """Draw what was spent against how soon jobs completed: a point for each play."""
    for number, one in enumerate(picture.drawn):
        pairs = zip(
            one.figures.get("cloud_usd", ()), one.figures.get("mean_completion_s", ()), strict=True
        )
        points = [(usd, took / HOUR_S) for usd, took in pairs if usd is not None and took]
        axes.scatter(
            [usd for usd, _ in points], [hours for _, hours in points], label=one.name,
            color=colour(number), s=36,
        )  # fmt: skip
    # from 0, with room beyond the farthest points, which the edge would cut in half otherwise
    axes.set_xlim(0, 1.08 * axes.get_xlim()[1])
    axes.set_ylim(0, 1.15 * axes.get_ylim()[1])
    axes.set_xlabel("spent on rented machines, USD")
    axes.set_ylabel("mean completion, h")
    axes.set_title("cost against completion (down and left is better)")
    axes.legend(fontsize=8)


# -- Gantt chart -----------------------------------------------------------------------------


def _gantt(picture: Picture) -> Any:
    """Draw one chart a scheduler: a row a device, as high as the shares that jobs hold of it."""
    from matplotlib.patches import Rectangle

    devices = list(picture.devices)[:ROWS_MOST]
    count = max(1, len(picture.drawn))
    height = max(1.6, 0.32 * len(devices) + 0.5)
    figure, all_axes = canvas(count, 1, (10, 0.5 + count * height))
    kinds = sorted({kind_of(each.job) for one in picture.drawn for each in one.held})
    colours = {kind: colour(number) for number, kind in enumerate(kinds)}
    for axes, one in zip(all_axes.flat, picture.drawn, strict=False):
        _rows(axes, one, devices, colours)
    if 0 < len(kinds) <= len(COLOURS):
        patches = [Rectangle((0, 0), 1, 1, color=colours[kind]) for kind in kinds]
        figure.legend(patches, kinds, loc="outside lower center", ncols=len(kinds), fontsize=8)
    last_s = max((each.until_s for one in picture.drawn for each in one.held), default=HOUR_S)
    all_axes.flat[-1].set_xlim(0, last_s / HOUR_S)
    all_axes.flat[-1].set_xlabel("hours since the first arrival")
    shown = f", {len(devices)} of {len(picture.devices)} devices"
    more = shown if len(devices) < len(picture.devices) else ""
    figure.suptitle(picture.one_play(f"{picture.title}{more}"), fontsize=10, color=INK)
    return figure


def _rows(axes: Any, one: Drawn, devices: Sequence[str], colours: Mapping[str, str]) -> None:
    rows = {device: len(devices) - 1 - index for index, device in enumerate(devices)}
    mine = [each for each in one.held if each.device in rows]
    floors = stacked_floors(mine)
    axes.barh(
        [rows[each.device] - 0.45 + 0.9 * (floor + each.share / 2)
         for each, floor in zip(mine, floors, strict=True)],
        [(each.until_s - each.since_s) / HOUR_S for each in mine],
        left=[each.since_s / HOUR_S for each in mine],
        height=[0.9 * each.share for each in mine],
        color=[colours[kind_of(each.job)] for each in mine],
        edgecolor="#ffffff", linewidth=0.15,
    )  # fmt: skip
    axes.set_yticks(list(rows.values()), list(rows), fontsize=8)
    axes.set_ylim(-0.6, len(devices) - 0.4)
    axes.set_title(one.name, loc="left")
    axes.tick_params(axis="y", length=0)


def stacked_floors(held: Sequence[Held]) -> list[float]:
    """Return how high in its device's row each begins, so that those beside it do not cover it."""
    floors = [0.0] * len(held)
    open_: dict[str, list[tuple[float, float, float]]] = {}
    for index in sorted(range(len(held)), key=lambda number: held[number].since_s):
        one = held[index]
        there = [each for each in open_.get(one.device, []) if each[0] > one.since_s + 1e-9]
        floor = 0.0
        for _, low, high in sorted(there, key=lambda each: each[1]):
            if floor + one.share <= low + 1e-9:
                break
            floor = high
        floors[index] = min(floor, max(0.0, 1.0 - one.share))
        open_[one.device] = [*there, (one.until_s, floor, floor + one.share)]
    return floors


def kind_of(job: str) -> str:
    """Return what jobs of one kind share: an id without its number."""
    return job.rstrip("0123456789").rstrip("-") or job
