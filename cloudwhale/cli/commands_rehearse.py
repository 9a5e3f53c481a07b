"""The command that tries whether a job really resumes: rehearse."""

from typing import Annotated

import typer

from cloudwhale.cli.completing import names_in_file
from cloudwhale.cli.words import AsJson, Env, File, JobArgs, WithJobArgs, examples


def rehearse(
    file: File,
    args: JobArgs = None,
    job: Annotated[
        str | None,
        typer.Option(
            "--job", metavar="NAME", help="Which job of the file.", autocompletion=names_in_file
        ),
    ] = None,
    for_time: Annotated[
        str, typer.Option("--for", metavar="TIME", help="How long it runs before it is preempted.")
    ] = "1m",
    declare: Annotated[
        bool,
        typer.Option("--declare", help="Pretend to have the GPUs, CPUs and nodes it asks for."),
    ] = False,
    env: Env = None,
    as_json: AsJson = False,
) -> None:
    """Run a job a while, preempt it, resume it: does it go on?

    On this host, in a home of its own that is removed at the end. The job gets its signal and its
    grace as when a spot machine goes, then starts again from what was published. Compared is
    progress, not exit codes: what it prints, saves and reads. A third start from zero tells clocks
    from counters.

    Exit codes: 0 when it resumes; 1 when it restarts, saves nothing, ignores its signal, saves too
    late, cannot read what it saved, was done too early, or when nothing tells; 110 bad job file;
    111 this host cannot run it.
    """
    from cloudwhale.cli.exits import WrongUsage
    from cloudwhale.cli.rehearse_asked import Asked
    from cloudwhale.cli.rehearsing import rehearse as do
    from cloudwhale.control.intake import time_flag
    from cloudwhale.spi.errors import SpecError

    try:
        for_s = time_flag("--for", for_time)
    except SpecError as error:
        raise WrongUsage(error.says, error.remedy) from error
    asked = Asked(file, job, for_s, declare, as_json, tuple(env or ()), tuple(args or ()))
    raise typer.Exit(do(asked))


def add_to(app: typer.Typer) -> None:
    """Add the command, with its examples."""
    app.command(
        cls=WithJobArgs,
        epilog=examples(
            "cloudwhale rehearse examples/train.yaml --for 20s",
            "cloudwhale rehearse jobs.yaml --job lora-7b --for 5m",
            "cloudwhale rehearse train.yaml --json | jq -r .verdict",
        ),
    )(rehearse)
