"""The commands that show again what something came to: receipt, morning."""

from pathlib import Path
from typing import Annotated

import typer

from cloudwhale.cli.completing import night_words, run_words
from cloudwhale.cli.words import AsJson, examples


def receipt(
    which: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN|JOB",
            help="A run, or a job; left out: the newest run.",
            autocompletion=run_words,
        ),
    ] = None,
    what_if: Annotated[
        bool,
        typer.Option(
            "--what-if",
            help="Also on demand only, one machine each, all rented, all waited; takes seconds.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show where each dollar of a run or a job went.

    Each machine with its seconds and its price of the moment, what of that was a disk, an address
    or egress, how much was boot, idle, work done again; what each interruption has cost. The parts
    add up to the machine, machines to the run, to the micro-dollar.

    --what-if plans the stored rounds of the run again in another way, and says how much dearer or
    later that was expected to be.
    """
    from cloudwhale.cli.receipts import receipt as do

    raise typer.Exit(do(which, what_if, as_json))


def morning(
    night: Annotated[
        str | None,
        typer.Argument(
            metavar="NIGHT",
            help="A night's name, its date or its run; left out: the newest.",
            autocompletion=night_words,
        ),
    ] = None,
    html: Annotated[bool, typer.Option("--html", help="As a page of one file.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where the page goes.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the morning report of a night again.

    What ran, what it cost, what failed and why, what is left over. `night` ends with it. While a
    night goes on, this is how it stands.
    """
    from cloudwhale.cli.mornings import again as do

    raise typer.Exit(do(night, html, output, as_json))


def add_to(app: typer.Typer) -> None:
    """Add these commands, each with its examples."""
    app.command(
        epilog=examples(
            "cloudwhale receipt",
            "cloudwhale receipt train                 one job: its part of each machine",
            "cloudwhale receipt run-k3x9 --what-if    dearer on demand, or alone, or all at home?",
            "cloudwhale receipt train --json | jq .parts",
        )
    )(receipt)
    app.command(
        epilog=examples(
            "cloudwhale morning",
            "cloudwhale morning burst --html -o morning.html",
            "cloudwhale morning 2026-11-30 --json | jq .money",
        )
    )(morning)
