"""The command that looks for what was left over: leaks."""

from typing import Annotated

import typer

from cloudwhale.cli.words import AsJson, examples

Fix = Annotated[bool, typer.Option("--fix", help="Remove what is ours.")]


def leaks(fix: Fix = False, as_json: AsJson = False) -> None:
    """Show what clouds still have of ours that no machine needs.

    Instances, volumes, addresses, schedules and all else that carries our name. The controller
    removes such things by itself, every five minutes; this is for those who want to be sure. What
    another installation has is shown, never touched. Exit code 1 when something of ours is left,
    or a cloud cannot be asked.
    """
    from cloudwhale.cli.leaking import leaks as do

    raise typer.Exit(do(fix=fix, as_json=as_json))


def add_to(app: typer.Typer) -> None:
    """Add the command with its examples."""
    app.command(
        epilog=examples(
            "cloudwhale leaks",
            "cloudwhale leaks --fix",
            "cloudwhale leaks --json | jq '.leaks[] | select(.ours)'",
        )
    )(leaks)
