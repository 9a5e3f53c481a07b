"""The command that runs a file's jobs in the hours of a night: night."""

from pathlib import Path
from typing import Annotated

import typer

from cloudwhale.cli.words import AsJson, Budget, Env, NoCheckpointOk, examples


def night(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Job file with a `window` (YAML).")
    ] = None,
    budget: Budget = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before starting.")] = False,
    now: Annotated[
        bool, typer.Option("--now", help="Open at once; it closes when the window does.")
    ] = False,
    listed: Annotated[
        bool, typer.Option("--list", help="Show the nights that were, and their money.")
    ] = False,
    env: Env = None,
    no_checkpoint_ok: NoCheckpointOk = False,
    as_json: AsJson = False,
) -> None:
    """Run a file's jobs in the hours and budget of a night.

    Before its window opens nothing is rented; machines of yours may begin. When it closes, all
    rented machines have landed, and what is left over is parked, waits for the next night or goes
    on at home, as the file says. The same night again is taken up; one that is over is not.
    """
    from cloudwhale.cli.exits import WrongUsage
    from cloudwhale.cli.wishes import Wishes

    if listed:
        from cloudwhale.cli.nights_list import list_nights

        raise typer.Exit(list_nights(as_json))
    if file is None:
        raise WrongUsage("`cloudwhale night` needs a FILE.", "Or --list, to see nights that were.")
    from cloudwhale.cli.nights import NightOptions
    from cloudwhale.cli.nights import night as do

    wishes = Wishes(budget, tuple(env or ()), (), no_checkpoint_ok)
    raise typer.Exit(do(NightOptions(file, wishes, yes=yes, now=now, as_json=as_json)))


def add_to(app: typer.Typer) -> None:
    """Add this command with its examples."""
    app.command(
        epilog=examples(
            "cloudwhale night examples/night.yaml --sandbox --budget 8 -y",
            "cloudwhale night lab.yaml --budget 40         at most 40 US dollars",
            "cloudwhale night lab.yaml --now -y            open at once, close in the morning",
            "cloudwhale night --list",
        )
    )(night)
