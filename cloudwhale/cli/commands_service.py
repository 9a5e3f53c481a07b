"""The command that works the queue off without following anything: controller."""

from pathlib import Path
from typing import Annotated

import typer

from cloudwhale.cli.words import MetricsFile, examples


def controller(
    until_empty: Annotated[
        bool, typer.Option("--until-empty", help="End when no job is left to run.")
    ] = False,
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics",
            metavar="[HOST:]PORT",
            help="Serve Prometheus metrics at /metrics; without a host for this host alone.",
        ),
    ] = None,
    metrics_file: MetricsFile = None,
    nights: Annotated[
        Path | None,
        typer.Option(
            "--nights",
            metavar="FOLDER",
            help="Open each night file of a folder by itself, every night or on its `days`.",
        ),
    ] = None,
) -> None:
    """Work on the queue until told to end (Ctrl-C or SIGTERM).

    Waits while another process does, and takes over within seconds when that one goes. Jobs run
    on when the controller ends; the next one takes them up.
    """
    from cloudwhale.cli.serving import controller as do

    raise typer.Exit(do(until_empty, metrics, metrics_file, nights))


def add_to(app: typer.Typer) -> None:
    """Add this command with its examples."""
    app.command(
        epilog=examples(
            "cloudwhale controller",
            "cloudwhale controller --until-empty &",
            "cloudwhale controller --metrics 9464",
            "cloudwhale controller --nights ~/nights",
        )
    )(controller)
