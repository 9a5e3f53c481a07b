"""The commands that start jobs and steer them: run, submit, plan, attach, cancel, pause, resume."""

from typing import Annotated

import typer

from cloudwhale.cli.wishes import RunOptions, Wishes
from cloudwhale.cli.words import (
    AsJson,
    Budget,
    Env,
    File,
    Files,
    JobArgs,
    JobWords,
    MetricsFile,
    NoCheckpointOk,
    RunWord,
    WithJobArgs,
    examples,
)

# A command's parameters are its options, so they are as many as it has.


def run(
    file: File,
    args: JobArgs = None,
    budget: Budget = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before starting.")] = False,
    env: Env = None,
    new: Annotated[
        bool, typer.Option("--new", help="Submit again though the same run is unfinished.")
    ] = False,
    no_checkpoint_ok: NoCheckpointOk = False,
    keep_on_failure: Annotated[
        str | None,
        typer.Option(
            "--keep-on-failure",
            metavar="TIME",
            help="When a job fails on a rented machine, keep that so long, to look.",
        ),
    ] = None,
    metrics_file: MetricsFile = None,
    as_json: AsJson = False,
) -> None:
    """Submit, show the plan, ask, follow, print the receipt.

    The same command again in the same folder takes up an unfinished run of the same file. Ctrl-C
    offers to detach (the jobs go on) or to stop them.

    Exit codes: 0 when every job completed, else that of the first job that failed: its own, or
    114 when its retries are spent and 116 when it was cancelled. 110 bad job file, 111 nothing
    can run it, 112 over budget, 113 deadline cannot be met.
    """
    from cloudwhale.cli.running import run as do

    wishes = Wishes(
        budget, tuple(env or ()), tuple(args or ()), no_checkpoint_ok, keep_on_failure
    )  # fmt: skip
    raise typer.Exit(do(RunOptions(file, wishes, yes, new, as_json, metrics_file)))


def submit(
    files: Files,
    budget: Budget = None,
    env: Env = None,
    no_checkpoint_ok: NoCheckpointOk = False,
    as_json: AsJson = False,
) -> None:
    """Queue the jobs of some files and return.

    Every file becomes a run of its own. A controller works the queue off: that of a `run` in
    another terminal, or `cloudwhale controller`.
    """
    from cloudwhale.cli.queueing import submit as do

    raise typer.Exit(do(files, Wishes(budget, tuple(env or ()), (), no_checkpoint_ok), as_json))


def plan(
    files: Files,
    budget: Budget = None,
    env: Env = None,
    no_checkpoint_ok: NoCheckpointOk = False,
    as_json: AsJson = False,
) -> None:
    """Show where jobs would go and what it costs; queues nothing.

    With a budget: which machines, when each job runs there, its cost, what came second, what
    forbids the cheaper thing, and how far from the cheapest possible the whole is.

    Exit codes for the first job that could not be run: 111 nothing can run it, 112 over budget,
    113 its deadline cannot be met. 110 when a file is wrong.
    """
    from cloudwhale.cli.planning import plan as do

    raise typer.Exit(do(files, Wishes(budget, tuple(env or ()), (), no_checkpoint_ok), as_json))


def attach(which: RunWord = None, as_json: AsJson = False) -> None:
    """Follow a run that was submitted before, to its end.

    Works on the queue itself when no other process does. Exit codes are those of `run`.
    """
    from cloudwhale.cli.running import attach as do

    raise typer.Exit(do(which, as_json))


def cancel(jobs: JobWords, as_json: AsJson = False) -> None:
    """Stop jobs for good; what runs is asked to save first."""
    from cloudwhale.cli.steering import cancel as do

    raise typer.Exit(do(jobs, as_json))


def pause(jobs: JobWords, as_json: AsJson = False) -> None:
    """Stop jobs until `resume`; what runs is asked to save first."""
    from cloudwhale.cli.steering import pause as do

    raise typer.Exit(do(jobs, as_json))


def resume(jobs: JobWords, as_json: AsJson = False) -> None:
    """Queue paused and parked jobs again.

    They go on from their newest checkpoint.
    """
    from cloudwhale.cli.steering import resume as do

    raise typer.Exit(do(jobs, as_json))


def add_to(app: typer.Typer) -> None:
    """Add these commands, each with its examples."""
    app.command(
        cls=WithJobArgs,
        epilog=examples(
            "cloudwhale run train.yaml --budget 50",
            "cloudwhale run train.yaml -y --env SEED=3 -- --epochs 20",
            "cloudwhale run train.yaml -y --json | jq .spent_usd",
        ),
    )(run)
    app.command(
        epilog=examples(
            "cloudwhale submit a.yaml b.yaml --budget 20",
            "cloudwhale submit tasks.json && cloudwhale controller --until-empty",
        )
    )(submit)
    app.command(
        epilog=examples(
            "cloudwhale plan train.yaml",
            "cloudwhale plan examples/fleet.yaml --budget 50",
            "cloudwhale plan *.yaml --json | jq .jobs",
        )
    )(plan)
    app.command(
        epilog=examples("cloudwhale attach", "cloudwhale attach train", "cloudwhale attach RUN")
    )(attach)
    app.command(
        epilog=examples("cloudwhale cancel train", "cloudwhale cancel sweep-3f2a sweep-77c1")
    )(cancel)
    app.command(epilog=examples("cloudwhale pause train"))(pause)
    app.command(epilog=examples("cloudwhale resume train"))(resume)
