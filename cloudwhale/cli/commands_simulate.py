"""The command that lets schedulers play the same jobs: simulate."""

from pathlib import Path
from typing import Annotated

import typer

from cloudwhale.cli.completing import policy_words, trace_words
from cloudwhale.cli.words import AsJson, examples

JOBS_MOST = 1_000_000

Trace = Annotated[
    str,
    typer.Option(
        "--trace", metavar="FILE|NAME", autocompletion=trace_words,
        help="A CSV file, or openb[:VARIANT], philly, burst, synthetic.",
    ),
]  # fmt: skip
Policy = Annotated[
    str,
    typer.Option(
        "--policy", metavar="NAME[,NAME...]", autocompletion=policy_words,
        help="Who plays; by default whale, fifo and priority.",
    ),
]  # fmt: skip
Cluster = Annotated[
    Path | None,
    typer.Option("--cluster", metavar="FILE", help="TOML: [[node]], [[offer]], settings."),
]
Gpus = Annotated[
    str, typer.Option("--gpus", metavar="N|KxN", help="A pool of N GPUs, or K nodes of N.")
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", metavar="N", min=0, max=JOBS_MOST, help="Only the first N jobs."),
]
Estimates = Annotated[
    str,
    typer.Option(
        "--estimates", metavar="exact|noisy:3x|none",
        help="What is said of lengths; else as the trace says.",
    ),
]  # fmt: skip
Seeds = Annotated[str, typer.Option("--seeds", metavar="N|A-B", help="How many, or which.")]
Faults = Annotated[
    str, typer.Option("--faults", metavar="TEXT", help="Like lost:node=desk,at=1h,for=30m")
]
Money = Annotated[
    str | None,
    typer.Option("--budget", metavar="USD", help="What each may spend on rented machines."),
]
Plots = Annotated[
    Path | None,
    typer.Option("--plots", metavar="DIR", help="Draw charts into it, as PNG and SVG."),
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Pass over bad rows of the trace, and count them.")
]


# A command's parameters are its options, so they are as many as it has.


def simulate(
    trace: Trace = "synthetic",
    policy: Policy = "",
    cluster: Cluster = None,
    gpus: Gpus = "",
    jobs: Jobs = None,
    estimates: Estimates = "",
    seeds: Seeds = "",
    faults: Faults = "",
    budget: Money = None,
    plots: Plots = None,
    skip_bad: SkipBad = False,
    as_json: AsJson = False,
) -> None:
    """Let schedulers play the same jobs, and compare.

    Only machines and clouds are pretended: controller, planner and checker are those of `run`. A
    trace is a CSV file with the columns job, submit_s, duration_s, gpus and, if you like, share,
    gpu_memory_gib, gpu_models, cpu, memory_gib, priority, project, name, estimate_s, reference,
    checkpoint_s, deadline_s, wait_max_s, value_of_time_usd_h; it may be gzipped. Named ones are
    looked up in the folder $CLOUDWHALE_TRACES; openb fills a cluster with pods that never leave.

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
