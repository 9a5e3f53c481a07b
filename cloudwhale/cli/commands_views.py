"""The commands that only read: ps, logs, results, explain, replay, doctor, version."""

from pathlib import Path
from typing import Annotated

import typer

from cloudwhale.cli.completing import project_words
from cloudwhale.cli.words import AsJson, JobWord, State, examples

# A command's parameters are its options, so they are as many as it has.


def ps(
    all_jobs: Annotated[
        bool, typer.Option("--all", "-a", help="Every job there ever was, as plain text.")
    ] = False,
    project: Annotated[
        str | None,
        typer.Option("--project", help="Of this project alone.", autocompletion=project_words),
    ] = None,
    state: Annotated[State | None, typer.Option("--state", help="In this state alone.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the jobs that live and the last 20 that ended."""
    from cloudwhale.cli.looking import Wanted
    from cloudwhale.cli.looking import ps as do

    wanted = Wanted(project, state.value if state else None, all_jobs, as_json)
    raise typer.Exit(do(wanted))


def logs(
    job: JobWord,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")
    ] = False,
    attempt: Annotated[
        int | None, typer.Option("--attempt", metavar="N", help="Of this attempt; else the newest.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print what a job has printed."""
    from cloudwhale.cli.logs import logs as do

    raise typer.Exit(do(job, attempt, follow, as_json))


def results(
    job: JobWord,
    attempt: Annotated[
        int | None,
        typer.Option("--attempt", metavar="N", min=1, help="Of this attempt; else the newest."),
    ] = None,
    into: Annotated[
        Path | None, typer.Option("--to", metavar="FOLDER", help="Else ./results/ and its name.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fetch what a job has left at its `outputs`.

    `run` and `attach` do so at its end. It comes whole or not at all. What lies there already is
    moved aside, never written over.
    """
    from cloudwhale.cli.fetching import results as do

    raise typer.Exit(do(job, attempt, into, as_json))


def explain(job: JobWord, as_json: AsJson = False) -> None:
    """Tell every decision about a job, with its numbers.

    Why here: the scores of the chosen place and its best rivals. Why not there: how many nodes
    refused, by code, and the nearest miss. Why it still waits, and what would change it.
    """
    from cloudwhale.cli.looking import explain as do

    raise typer.Exit(do(job, as_json))


def replay(
    number: Annotated[int, typer.Argument(metavar="ROUND", help="As `explain` prints it.")],
    resolve: Annotated[
        bool,
        typer.Option("--resolve", help="Solve again what was rented, and say what differs."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run a planning round again and compare.

    The same world must give the same plan. What was rented is taken as it was answered then.

    Exit code 1 when it does not; the differences are printed.
    """
    from cloudwhale.cli.looking import replay as do

    raise typer.Exit(do(number, resolve, as_json))


def doctor(
    provider: Annotated[
        str,
        typer.Argument(
            metavar="PROVIDER", help="Only what this cloud needs, as [clouds.NAME] calls it."
        ),
    ] = "",
    fix: Annotated[
        bool,
        typer.Option("--fix", help="Make what a cloud's account lacks: bucket, roles, settings."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before --fix.")] = False,
    allow: Annotated[
        str,
        typer.Option(
            "--allow", metavar="WHO", help="With --fix: give user/NAME or role/NAME the policy."
        ),
    ] = "",
    policy: Annotated[
        bool,
        typer.Option("--policy", help="Print what whoever runs cloudwhale must be allowed."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check what jobs need, and say how to mend it, or mend it.

    That is this host, and the clouds that machines are rented from. --fix says what it would make,
    asks, makes it, and offers to write the settings; what is there stays. Exit code 1 when a check
    failed.
    """
    if fix or policy or allow:
        from cloudwhale.cli import mending

        wanted = mending.Wanted(provider, allow, yes, as_json)
        raise typer.Exit(mending.policy(wanted) if policy else mending.fix(wanted))
    from cloudwhale.cli.looking import doctor as do

    raise typer.Exit(do(provider, as_json))


def version(as_json: AsJson = False) -> None:
    """Say which version this is and where it keeps its state."""
    from cloudwhale.cli.versions import version as do

    raise typer.Exit(do(as_json))


def add_to(app: typer.Typer) -> None:
    """Add these commands, each with its examples."""
    app.command(
        epilog=examples(
            "cloudwhale ps",
            "cloudwhale ps --state failed --project nlp",
            "cloudwhale ps --json | jq -r '.jobs[] | [.id, .state] | @tsv'",
        )
    )(ps)
    app.command(
        epilog=examples("cloudwhale logs -f train", "cloudwhale logs train-3f2a --attempt 1")
    )(logs)
    app.command(
        epilog=examples("cloudwhale results train", "cloudwhale results train --to /data/train")
    )(results)
    app.command(
        epilog=examples("cloudwhale explain train", "cloudwhale explain train --json | jq .story")
    )(explain)
    app.command(epilog=examples("cloudwhale replay 17", "cloudwhale replay 17 --resolve"))(replay)
    app.command(
        epilog=examples(
            "cloudwhale doctor", "cloudwhale doctor CLOUD", "cloudwhale doctor CLOUD --fix"
        )
    )(doctor)
    app.command(epilog=examples("cloudwhale version --json"))(version)
