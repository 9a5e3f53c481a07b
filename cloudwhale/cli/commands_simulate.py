"""The command that lets schedulers play the same jobs: simulate."""

from pathlib import Path
from typing import Annotated

import typer

from cloudwhale.cli.completing import policy_words, trace_words
from cloudwhale.cli.words import AsJson, examples

# A command's parameters are its options, so they are as many as it has.


def simulate(
    trace: Annotated[
        str,
        typer.Option(
            "--trace",
            metavar="FILE|NAME",
            autocompletion=trace_words,
            help="A CSV file, or openb[:VARIANT], philly, burst, synthetic.",
        ),
    ] = "synthetic",
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            metavar="NAME[,NAME...]",
            autocompletion=policy_words,
            help="Who plays; by default whale, fifo and priority.",
        ),
    ] = "",
    cluster: Annotated[
        Path | None,
        typer.Option("--cluster", metavar="FILE", help="TOML: [[node]], [[offer]], settings."),
    ] = None,
    gpus: Annotated[
        str, typer.Option("--gpus", metavar="N|KxN", help="A pool of N GPUs, or K nodes of N.")
    ] = "",
    jobs: Annotated[
        int | None, typer.Option("--jobs", metavar="N", min=0, help="Only the first N jobs.")
    ] = None,
    estimates: Annotated[
        str,
        typer.Option(
            "--estimates",
            metavar="exact|noisy:3x|none",
            help="What is said of lengths; else as the trace says.",
        ),
    ] = "",
    seeds: Annotated[
        str, typer.Option("--seeds", metavar="N|A-B", help="How many, or which.")
    ] = "",
    faults: Annotated[
        str,
        typer.Option(
            "--faults", metavar="TEXT", help="What goes wrong: lost:node=desk,at=1h,for=30m"
        ),
    ] = "",
    budget: Annotated[
        str | None,
        typer.Option("--budget", metavar="USD", help="What each may spend on rented machines."),
    ] = None,
    plots: Annotated[
        Path | None,
        typer.Option("--plots", metavar="DIR", help="Draw charts into it, as PNG and SVG."),
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Pass over bad rows, and count them.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Let schedulers play the same jobs, and compare.

    Only the machines are pretended: jobs are planned by the planner that `run` uses, each plan is
    checked. A trace is a CSV file with the columns job, submit_s, duration_s, gpus and, if you
    like, share, gpu_memory_gib, gpu_models, cpu, memory_gib, priority, project, name, estimate_s,
    reference, checkpoint_s, deadline_s, wait_max_s, value_of_time_usd_h; it may be gzipped. The
    named ones are looked up in the folder $CLOUDWHALE_TRACES.

    Ctrl-C shows what has been played.
    """
    from cloudwhale.cli.simulate_asked import SimulateOptions
    from cloudwhale.cli.simulating import simulate as do

    options = SimulateOptions(
        trace=trace, policies=policy, cluster=cluster, gpus=gpus, jobs=jobs, estimates=estimates,
        seeds=seeds, faults=faults, budget=budget, plots=plots, skip_bad=skip_bad, as_json=as_json,
    )  # fmt: skip
    raise typer.Exit(do(options))


def add_to(app: typer.Typer) -> None:
    """Add this command with its examples."""
    app.command(
        epilog=examples(
            "cloudwhale simulate",
            "cloudwhale simulate --policy whale,fit-first --seeds 10 --plots .",
            "cloudwhale simulate --trace jobs.csv --cluster lab.toml",
            "cloudwhale simulate --trace philly --gpus 480 --jobs 6000 --estimates noisy:3x",
            "cloudwhale simulate --trace burst --policy whale,no-wait,compute-wait --budget 1000",
            "cloudwhale simulate --trace openb:gpuspec33",
            "cloudwhale simulate --json | jq .policies.whale.mean_completion_s",
        )
    )(simulate)
