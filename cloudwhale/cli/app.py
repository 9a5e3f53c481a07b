"""The typer application and the order in which `--help` lists its commands.

`cloudwhale --help` has a quarter of a second, so the modules of commands import only typer; what
a command does is imported when it is called.
"""

import typer

from cloudwhale.cli.words import examples

app = typer.Typer(
    name="cloudwhale",
    help="Pack jobs onto the GPUs you have, rent the rest, stay inside the budget.",
    no_args_is_help=True,
    # Plain help: drawing it with rich would take most of the time that --help has.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "cloudwhale run train.yaml --budget 50   submit, follow, print the receipt",
        "cloudwhale plan train.yaml              where it would go, and why",
        "cloudwhale ps                           what runs and waits",
        "cloudwhale explain train                every decision about it",
        "cloudwhale COMMAND --help               options and examples of one command",
    ),
)


def whole_app() -> typer.Typer:
    """Return the application with every command in it."""
    from cloudwhale.cli import (
        commands_cost,
        commands_jobs,
        commands_leaks,
        commands_money,
        commands_nights,
        commands_nodes,
        commands_notify,
        commands_offers,
        commands_receipts,
        commands_rehearse,
        commands_sandbox,
        commands_service,
        commands_simulate,
        commands_views,
    )  # fmt: skip
    from cloudwhale.cli.sandboxed import add_option

    commands_jobs.add_to(app)
    commands_nights.add_to(app)
    commands_views.add_to(app)
    commands_nodes.add_to(app)
    commands_offers.add_to(app)
    commands_rehearse.add_to(app)
    commands_cost.add_to(app)
    commands_money.add_to(app)
    commands_receipts.add_to(app)
    commands_leaks.add_to(app)
    commands_notify.add_to(app)
    commands_simulate.add_to(app)
    commands_service.add_to(app)
    commands_sandbox.add_to(app)
    add_option(app)
    return app
