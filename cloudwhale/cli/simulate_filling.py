"""What `simulate --trace openb` does: policies fill a cluster that pods never leave."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cloudwhale import plugins
from cloudwhale.cli.exits import Exit, WrongUsage
from cloudwhale.cli.interrupts import Interrupts
from cloudwhale.cli.output import Paper, document_or, stderr_paper
from cloudwhale.cli.simulate_progress import Progress
from cloudwhale.cli.simulate_view import middle, spread, unwritable
from cloudwhale.reporting.figures import counted
from cloudwhale.reporting.filling_curves import Curve, draw_filling, filling_bars, filling_sheet
from cloudwhale.reporting.sheet import Tone
from cloudwhale.simulation.filling_trials import (
    BOUND,
    FillBench,
    FillTodo,
    FillTrial,
    fill_trials,
    names,
)
from cloudwhale.simulation.traces.named import file_of, nodes_of
from cloudwhale.simulation.traces.pods import capacity_milli, cluster_of, pods_from

OURS = "whale"


@dataclass(frozen=True, slots=True)
class FillOptions:
    """What was asked for."""

    trace: str
    policies: tuple[str, ...]
    """Empty: all."""
    seeds: tuple[int, ...]
    plots: Path | None
    as_json: bool


def simulate_filling(options: FillOptions) -> int:
    """Fill, show, draw; return the exit code. Ctrl-C ends with what has been played."""
    chosen = options.policies or names()
    for name in chosen:
        plugins.load(plugins.FILLINGS, name)
    order = (*chosen, BOUND)
    cluster = cluster_of(nodes_of(options.trace))
    pods = pods_from(file_of(options.trace))
    if not capacity_milli(cluster):
        raise WrongUsage("No node of the list has a GPU.", "Use openb_node_list_gpu_node.csv.")
    bench = FillBench(tuple(cluster), tuple(pods))
    found: list[FillTrial] = []
    with Interrupts() as interrupts:
        found.extend(_played(bench, [FillTodo(name, options.seeds) for name in order], interrupts))
        stopped_by = interrupts.pending
    found.sort(key=lambda one: order.index(one.policy))
    gpus = capacity_milli(cluster) // 1000
    title = (
        f"{options.trace}: {counted(len(pods), 'pod')} to fill {counted(gpus, 'GPU')}, "
        f"{counted(len(options.seeds), 'seed')}"
    )
    curves = [_curve(one) for one in found]
    document_or(
        options.as_json,
        lambda: _document(title, found),
        lambda paper: _shown(paper, curves, title, len(order) - len(found)),
    )
    if options.plots is not None and curves:
        _draw(curves, title, options.plots)
    return Exit.DONE if stopped_by is None else Exit.SIGNAL + stopped_by


def _played(bench: FillBench, todo: Sequence[FillTodo], interrupts: Interrupts) -> list[FillTrial]:
    found: list[FillTrial] = []
    with Progress(len(todo)) as progress, closing(fill_trials(bench, todo)) as running:
        for one in running:
            if one is None:
                progress.stands(None)
            else:
                progress.one_is_done()
                found.append(one)
            if interrupts.pending is not None:
                break
    return found


def _curve(one: FillTrial) -> Curve:
    means = {percent: sum(all_) / len(all_) for percent, all_ in one.allocated_percent.items()}
    pods = sum(asked.pods for classes in one.classes for asked in classes.values())
    refused = sum(asked.refused for classes in one.classes for asked in classes.values())
    tones: Mapping[str, Tone] = {OURS: "strong", BOUND: "quiet"}
    return Curve(
        one.policy,
        means,
        {percent: spread(all_) for percent, all_ in one.allocated_percent.items()},
        refused / pods if pods else None,
        tones.get(one.policy, "plain"),
    )


def _shown(paper: Paper, curves: Sequence[Curve], title: str, left: int) -> None:
    notes = [f"broken off: {left} of {left + len(curves)} not played"] if left else []
    paper.sheet(filling_sheet(curves, title, notes))
    paper.lines(filling_bars(curves, paper.width))


def _document(title: str, found: Sequence[FillTrial]) -> Mapping[str, Any]:
    return {
        "trace": title,
        "policies": {one.policy: {"allocated_percent": _means(one)} for one in found},
        "spread": {
            one.policy: {
                "allocated_percent": {
                    str(percent): spread(each) for percent, each in one.allocated_percent.items()
                }
            }
            for one in found
        },
        "seeds": {
            one.policy: {
                str(seed): {
                    "allocated_percent": {
                        str(percent): each[index] for percent, each in one.allocated_percent.items()
                    }
                }
                for index, seed in enumerate(one.seeds)
            }
            for one in found
        },
    }


def _means(one: FillTrial) -> Mapping[str, float | None]:
    return {str(percent): middle(each) for percent, each in one.allocated_percent.items()}


def _draw(curves: Sequence[Curve], title: str, folder: Path) -> None:
    try:
        files = draw_filling(curves, title, folder)
    except OSError as error:
        raise unwritable(folder, error) from error
    stderr_paper().say(f"wrote {len(files)} files: {files[0]}, ... {files[-1].name}")
