"""The command about whom to tell: notify, with list and test."""

from typing import Annotated

import typer

from cloudwhale.cli.completing import target_words
from cloudwhale.cli.words import AsJson, examples

notify = typer.Typer(
    invoke_without_command=True,
    rich_markup_mode=None,
    epilog=examples(
        "cloudwhale notify",
        "cloudwhale notify test",
        "cloudwhale notify test ops",
        "cloudwhale notify list --json | jq '.notices[] | select(.state == \"given-up\")'",
    ),
)

Number = Annotated[int, typer.Option("--last", "-n", min=1, help="So many of the newest.")]


@notify.callback()
def show_targets(context: typer.Context, as_json: AsJson = False) -> None:
    """Show whom the settings tell, and of what; try it.

    Targets are tables [notify.NAME] of cloudwhale.toml: a webhook, Slack, mail or a command;
    docs/notify.md has their keys, and what there is to be told of. A job's own `notify` adds one.
    """
    if context.invoked_subcommand is None:
        from cloudwhale.cli.notifying import targets as do

        raise typer.Exit(do(as_json=as_json))


@notify.command(
    name="list",
    epilog=examples("cloudwhale notify list", "cloudwhale notify list -n 100 --json"),
)
def list_notices(last: Number = 20, as_json: AsJson = False) -> None:
    """Show what people were told last, and what of it has not arrived.

    What has not arrived is tried again for a day, ever more seldom.
    """
    from cloudwhale.cli.notifying import listed as do

    raise typer.Exit(do(last, as_json=as_json))


@notify.command(epilog=examples("cloudwhale notify test", "cloudwhale notify test ops"))
def test(
    target: Annotated[
        str,
        typer.Argument(
            metavar="[TARGET]",
            help="The NAME of a table [notify.NAME]; left out: all.",
            autocompletion=target_words,
            show_default=False,
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Send a trial to all targets of the settings, or to one, and show what they answer.

    Exit code 1 when one has not arrived.
    """
    from cloudwhale.cli.notifying import tried as do

    raise typer.Exit(do(target, as_json=as_json))


def add_to(app: typer.Typer) -> None:
    """Add this command."""
    app.add_typer(notify, name="notify")
