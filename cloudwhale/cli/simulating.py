"""What `simulate` does: reads a trace, lets policies play it, shows what came of it."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from cloudwhale.cli.exits import Bug, Exit, WrongUsage
from cloudwhale.cli.interrupts import Interrupts
from cloudwhale.cli.output import document_or, is_terminal, stderr_paper
from cloudwhale.cli.simulate_asked import SimulateOptions, bench_of, policies_of, seeds_of
from cloudwhale.cli.simulate_progress import Progress
from cloudwhale.cli.simulate_view import Outcome, document, shown, unwritable, writable
from cloudwhale.reporting.figures import counted, money
from cloudwhale.simulation.traces.named import is_named, split_name
from cloudwhale.simulation.trials import Bench, Todo, Trial, TrialFailed, bounds_of, trials


def simulate(options: SimulateOptions) -> int:
    """Play, show, draw; return the exit code. Ctrl-C ends with what has been played."""
    if options.plots is not None:
        writable(options.plots)
    if split_name(options.trace)[0] == FILLS:
        return _filled(options)
    names = policies_of(options.policies)
    bench, trace = bench_of(options)
    seeds = seeds_of(options.seeds, is_drawn=bench.is_drawn)
    todo = [Todo(name, seed) for seed in seeds for name in names]
    with Interrupts() as interrupts:
        try:
            found = list(_played(bench, todo, interrupts))
        except TrialFailed as error:
            raise Bug(str(error)) from error
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
        "--estimates": options.estimates, "--faults": options.faults, "--budget": options.budget,
        "--skip-bad": options.skip_bad,
    }  # fmt: skip
    wrong = next((name for name, value in given.items() if value not in (None, "", False)), None)
    if wrong is not None:
        raise WrongUsage(
            f"{wrong} means nothing here: --trace {options.trace} fills the openb cluster.",
            "To play its pods as jobs that end, name the file: --trace openb_pod_list_default.csv.",
        )
    names = tuple(word.strip() for word in options.policies.split(",") if word.strip())
    seeds = seeds_of(options.seeds, is_drawn=True)
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


# -- what is said ----------------------------------------------------------------------------


def _title(options: SimulateOptions, bench: Bench, seeds: Sequence[int]) -> str:
    jobs = bench.mix.jobs if bench.arrivals is None else len(bench.arrivals)
    gpus = sum(len(node.facts.devices) for node in bench.nodes)
    which = f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
    name = options.trace if is_named(options.trace) else Path(options.trace).name
    said = f", estimates {options.estimates}" if options.estimates else ""
    said += f", {counted(len(bench.faults), 'fault')}" if bench.faults else ""
    said += f", budget {money(bench.budget)}" if bench.budget is not None else ""
    return (
        f"{name}: {counted(jobs, 'job')} on {counted(len(bench.nodes), 'node')} with "
        f"{counted(gpus, 'GPU')}, {which}{said}"
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
        raise unwritable(folder, error) from error
    paper.say(f"wrote {len(files)} files: {files[0]}, ... {files[-1].name}")
