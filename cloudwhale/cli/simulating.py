"""What `simulate` does: reads a trace, lets policies play it, shows what came of it."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cloudwhale.cli.exits import Exit, WrongUsage
from cloudwhale.cli.interrupts import Interrupts
from cloudwhale.cli.output import document_or, is_terminal, stderr_paper
from cloudwhale.cli.simulate_progress import Progress
from cloudwhale.cli.simulate_view import Outcome, document, shown
from cloudwhale.model.node import Node
from cloudwhale.settings import checked
from cloudwhale.simulation import lineup
from cloudwhale.simulation.clusters import cluster_from, openb_nodes, parsed_pool, pool
from cloudwhale.simulation.executing import Physics
from cloudwhale.simulation.traces import Reading, Trace, estimates, read
from cloudwhale.simulation.traces.named import (
    KNOWN,
    OPENB_NODES,
    SYNTHETIC,
    file_of,
    is_named,
    nodes_of,
    split_name,
)  # fmt: skip
from cloudwhale.simulation.traces.synthetic import Mix, small_nodes
from cloudwhale.simulation.trials import Bench, Todo, Trial, bounds_of, trials

DEFAULT_POLICIES = "whale,fifo,priority"
SEEDS_DRAWN, SEEDS_MOST = 3, 1000
NO_START = Physics(start_s=0.0)
"""Public traces say how long a job held its machines, its start included."""


@dataclass(frozen=True, slots=True)
class SimulateOptions:
    """What was asked for, as it was written."""

    trace: str = SYNTHETIC
    policies: str = ""
    cluster: Path | None = None
    gpus: str = ""
    jobs: int | None = None
    estimates: str = ""
    seeds: str = ""
    plots: Path | None = None
    skip_bad: bool = False
    as_json: bool = False


def simulate(options: SimulateOptions) -> int:
    """Play, show, draw; return the exit code. Ctrl-C ends with what has been played."""
    if split_name(options.trace)[0] == FILLS:
        return _filled(options)
    names = _policies(options.policies)
    bench, trace = _bench(options)
    seeds = _seeds(options.seeds, is_drawn=bench.is_drawn)
    todo = [Todo(name, seed) for seed in seeds for name in names]
    with Interrupts() as interrupts:
        found = list(_played(bench, todo, interrupts))
        stopped_by = interrupts.pending
    found.sort(key=lambda one: (names.index(one.contestant), one.seed))
    outcome = Outcome(
        trace=_title(options, bench, seeds), nodes=bench.nodes, seeds=seeds, trials=tuple(found),
        bounds=bounds_of(bench, seeds), skipped=dict(trace.skipped), left=len(todo) - len(found),
    )  # fmt: skip
    document_or(options.as_json, lambda: document(outcome), lambda paper: shown(outcome, paper))
    if options.plots is not None and found:
        _draw(outcome, options.plots)
    return Exit.DONE if stopped_by is None else Exit.SIGNAL + stopped_by


FILLS = "openb"
"""The trace whose name stands for filling: its pods are asked for a place once, and stay."""


def _filled(options: SimulateOptions) -> int:
    from cloudwhale.cli.simulate_filling import FillOptions, simulate_filling

    given = {
        "--cluster": options.cluster, "--gpus": options.gpus, "--jobs": options.jobs,
        "--estimates": options.estimates, "--skip-bad": options.skip_bad,
    }  # fmt: skip
    wrong = next((name for name, value in given.items() if value not in (None, "", False)), None)
    if wrong is not None:
        raise WrongUsage(
            f"{wrong} means nothing here: --trace {options.trace} fills the openb cluster.",
            "To play its pods as jobs that end, name the file: --trace openb_pod_list_default.csv.",
        )
    names = tuple(word.strip() for word in options.policies.split(",") if word.strip())
    seeds = _seeds(options.seeds, is_drawn=True)
    return simulate_filling(
        FillOptions(options.trace, names, seeds, options.plots, options.as_json)
    )


def _played(bench: Bench, todo: Sequence[Todo], interrupts: Interrupts) -> Iterator[Trial]:
    with Progress(len(todo), counts_jobs=True) as progress, closing(trials(bench, todo)) as running:
        for one in running:
            if isinstance(one, Trial):
                progress.one_is_done()
                yield one
            else:
                progress.stands(one)
            if interrupts.pending is not None:
                return


# -- what was asked for ----------------------------------------------------------------------


def _policies(text: str) -> list[str]:
    names = [word.strip() for word in (text or DEFAULT_POLICIES).split(",") if word.strip()]
    for name in names:
        lineup.chosen(name, {}, 0)
    if not names:
        raise WrongUsage(f"--policy {text!r} names nobody.", f"Write --policy {DEFAULT_POLICIES}.")
    return list(dict.fromkeys(names))


_SEEDS = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


def _seeds(text: str, *, is_drawn: bool) -> tuple[int, ...]:
    """Return which seeds are played: one is enough where nothing is drawn."""
    if not text:
        return tuple(range(1, 1 + (SEEDS_DRAWN if is_drawn else 1)))
    found = _SEEDS.fullmatch(text.strip())
    low, high = (1, 0) if found is None else (int(found[1]), int(found[2] or -1))
    seeds = range(1, low + 1) if high < 0 else range(low, high + 1)
    if not 0 < len(seeds) <= SEEDS_MOST:
        raise WrongUsage(
            f"--seeds {text!r} names no seeds.",
            f"Write 3 for the seeds 1 to 3, or 4-9; {SEEDS_MOST:,} at most.",
        )
    return tuple(seeds)


def _bench(options: SimulateOptions) -> tuple[Bench, Trace]:
    """Return what is played; raise a sentence for a trace or a cluster that is wrong."""
    said = estimates(options.estimates) if options.estimates else None
    nodes, settings = _nodes(options)
    if options.trace == SYNTHETIC:
        mix = Mix() if options.jobs is None else _of_size(options.jobs)
        return Bench(nodes, mix=mix, estimates=said, settings=settings), Trace(())
    file = file_of(options.trace) if is_named(options.trace) else Path(options.trace)
    how = Reading(nodes, skip_bad=options.skip_bad, most=options.jobs)
    trace = read(file, how)
    physics = Physics() if trace.format not in KNOWN else NO_START
    bench = Bench(nodes, trace.arrivals, estimates=said, physics=physics, settings=settings)
    return bench, trace


def _of_size(jobs: int) -> Mix:
    """Return a mix of so many jobs that come as fast as usual."""
    usual = Mix()
    return Mix(jobs, usual.hours * jobs / usual.jobs, usual.noise)


def _nodes(options: SimulateOptions) -> tuple[tuple[Node, ...], Mapping[str, Any]]:
    if options.cluster is not None and options.gpus:
        raise WrongUsage("--cluster and --gpus both say what the machines are.", "Leave one out.")
    if options.cluster is not None:
        found = cluster_from(options.cluster)
        checked({"home": "/nowhere", **found.settings}, str(options.cluster))
        return found.nodes, found.settings
    if options.gpus:
        return tuple(pool(parsed_pool(options.gpus))), {}
    if options.trace == SYNTHETIC:
        return tuple(small_nodes()), {}
    if is_named(options.trace):
        return tuple(nodes_of(options.trace)), {}
    return _usual_nodes(Path(options.trace)), {}


def _usual_nodes(file: Path) -> tuple[Node, ...]:
    """Return openb's nodes when their list lies beside a list of its pods, else small ones."""
    beside = [file.with_name(OPENB_NODES), file.with_name(f"{OPENB_NODES}.gz")]
    there = next((one for one in beside if one.is_file()), None)
    if file.name.startswith("openb_pod_list") and there is not None:
        return tuple(openb_nodes(there))
    return tuple(small_nodes())


# -- what is said ----------------------------------------------------------------------------


def _title(options: SimulateOptions, bench: Bench, seeds: Sequence[int]) -> str:
    jobs = bench.mix.jobs if bench.arrivals is None else len(bench.arrivals)
    gpus = sum(len(node.facts.devices) for node in bench.nodes)
    which = f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
    name = options.trace if is_named(options.trace) else Path(options.trace).name
    said = f", estimates {options.estimates}" if options.estimates else ""
    return (
        f"{name}: {jobs:,} {'job' if jobs == 1 else 'jobs'} on {len(bench.nodes):,} "
        f"{'node' if len(bench.nodes) == 1 else 'nodes'} with {gpus:,} GPUs, {which}{said}"
    )


def _draw(outcome: Outcome, folder: Path) -> None:
    from cloudwhale.cli.simulate_view import picture
    from cloudwhale.reporting.trial_plots import draw

    paper = stderr_paper()
    if is_terminal(sys.stderr):
        paper.say("drawing ...")
    try:
        files = draw(picture(outcome), folder)
    except OSError as error:
        raise WrongUsage(
            f"--plots {folder}: {error.strerror}.", "Name a folder that can be written to."
        ) from error
    paper.say(f"wrote {len(files)} files: {files[0]}, ... {files[-1].name}")
