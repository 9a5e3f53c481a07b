"""The command about the sandbox: a cloud on this host; its status, its meter, its end."""

from pathlib import Path
from typing import Annotated

import typer

from cloudwhale.cli.words import AsJson, examples

sandbox = typer.Typer(
    invoke_without_command=True,
    rich_markup_mode=None,
    epilog=examples(
        "cloudwhale run train.yaml --budget 50 --sandbox",
        "cloudwhale sandbox",
        "cloudwhale sandbox meter --json | jq .total_usd",
        "cloudwhale sandbox stop",
    ),
)


@sandbox.callback()
def show_sandbox(context: typer.Context, as_json: AsJson = False) -> None:
    """Show the cloud on this host that `--sandbox` rents from.

    It needs no account and costs nothing: its API, its machines and its bill are processes of this
    host. `run --sandbox` starts it, and it ends by itself two minutes after the last use.
    """
    if context.invoked_subcommand is None:
        from cloudwhale.cli.boxes import status as do

        raise typer.Exit(do(as_json))


@sandbox.command(epilog=examples("cloudwhale sandbox status --json | jq .machines"))
def status(as_json: AsJson = False) -> None:
    """Say whether it runs, where, how fast time goes there, and how many machines run."""
    from cloudwhale.cli.boxes import status as do

    raise typer.Exit(do(as_json))


@sandbox.command(epilog=examples("cloudwhale sandbox meter", "cloudwhale sandbox meter --json"))
def meter(as_json: AsJson = False) -> None:
    """Print what its machines have cost, by its own count.

    The receipt of a run, and `cloudwhale cost --sandbox`, come from the ledger: two counts that
    know nothing of each other.
    """
    from cloudwhale.cli.boxes import meter as do

    raise typer.Exit(do(as_json))


@sandbox.command(epilog=examples("cloudwhale sandbox stop"))
def stop(as_json: AsJson = False) -> None:
    """End it, and every machine that runs there."""
    from cloudwhale.cli.boxes import stop as do

    raise typer.Exit(do(as_json))


@sandbox.command(
    hidden=True, epilog=examples("cloudwhale sandbox serve --script examples/weather/storm.yaml")
)
def serve(
    folder: Annotated[
        Path | None, typer.Option("--folder", metavar="DIR", help="Its state; else in the home.")
    ] = None,
    script: Annotated[
        Path | None, typer.Option("--script", metavar="FILE", help="Its weather.")
    ] = None,
    machines: Annotated[
        str | None,
        typer.Option("--machines", help="auto, processes or boots: how its machines run."),
    ] = None,
) -> None:
    """Be the sandbox, in the foreground, until it is idle or told to end."""
    from cloudwhale.cli.boxes import serve as do

    raise typer.Exit(do(folder, script, machines))


def add_to(app: typer.Typer) -> None:
    """Add this command."""
    app.add_typer(sandbox, name="sandbox")
