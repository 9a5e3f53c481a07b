"""The commands that show again what something came to: morning."""

from pathlib import Path
from typing import Annotated

import typer

from cloudwhale.cli.words import AsJson, examples


def morning(
    night: Annotated[
        str | None,
        typer.Argument(
            metavar="NIGHT", help="A night's name, its date or its run; left out: the newest."
        ),
    ] = None,
    html: Annotated[bool, typer.Option("--html", help="As a page of one file.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where the page goes.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the report of a night again: what ran, what it cost, what failed, what is left over.

    `night` ends with it. While a night goes on, this is how it stands.
    """
    from cloudwhale.cli.mornings import again as do

    raise typer.Exit(do(night, html, output, as_json))


def add_to(app: typer.Typer) -> None:
    """Add these commands, each with its examples."""
    app.command(
        epilog=examples(
            "cloudwhale morning",
            "cloudwhale morning burst --html -o morning.html",
            "cloudwhale morning 2026-11-30 --json | jq .money",
        )
    )(morning)
