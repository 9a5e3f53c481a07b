"""The commands about money: suggest; budget, with list, set, unset, history and forecast."""

import re
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from cloudwhale.cli.completing import payer_words, project_words
from cloudwhale.cli.words import AsJson, examples

# A command's parameters are its options, so they are as many as it has.

budget = typer.Typer(
    invoke_without_command=True,
    rich_markup_mode=None,
    epilog=examples(
        "cloudwhale budget",
        "cloudwhale budget set nlp 200/month",
        "cloudwhale budget forecast nlp           how its month is expected to end",
        "cloudwhale budget list --json | jq '.budgets[] | [.project, .left_usd]'",
        "cloudwhale budget unset nlp",
    ),
)


class WithAmount(TyperCommand):
    """A command to which -5 is an amount, and no options; it is answered as one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words, amounts below 0 behind the others."""
        below = [word for word in args if re.match(r"-[.\d]", word)]
        if below and "--" not in args:
            args = [*(word for word in args if word not in below), "--", *below]
        return super().parse_args(ctx, args)


ProjectWord = Annotated[
    str,
    typer.Argument(metavar="PROJECT", help="A project's name.", autocompletion=project_words),
]
Whose = Annotated[
    str | None,
    typer.Argument(
        metavar="[PROJECT|RUN]",
        help="A project, or the id of a run.",
        autocompletion=payer_words,
        show_default=False,
    ),
]
Soft = Annotated[
    str | None,
    typer.Option(
        "--soft",
        metavar="SHARE",
        help="Part of it past which nothing new is rented, 90% or 0.9; else 0.9.",
    ),
]
EveryOne = Annotated[
    bool, typer.Option("--all", "-a", help="Ended runs and months that are over, too.")
]


@budget.callback()
def show_budgets(context: typer.Context, as_json: AsJson = False) -> None:
    """Show what may be spent, is spent and is left; bound a project.

    Amounts are US dollars; months begin in UTC.
    """
    if context.invoked_subcommand is None:
        from cloudwhale.cli.budgeting import listed as do

        raise typer.Exit(do(everything=False, as_json=as_json))


@budget.command(
    name="list",
    epilog=examples("cloudwhale budget list", "cloudwhale budget list --all --json"),
)
def list_budgets(everything: EveryOne = False, as_json: AsJson = False) -> None:
    """Show the budgets of projects by month, and of runs.

    What is set aside is the most that machines which are rented now can still cost; what of it is
    not needed is free again when a machine is given back. Past the soft line nothing new is rented.
    """
    from cloudwhale.cli.budgeting import listed as do

    raise typer.Exit(do(everything=everything, as_json=as_json))


@budget.command(
    name="set",
    cls=WithAmount,
    epilog=examples(
        "cloudwhale budget set nlp 200/month",
        "cloudwhale budget set --project nlp --monthly 200 --soft 90%",
        "cloudwhale budget set run-k3x9 80       a run that is queued or runs",
    ),
)
def set_budget(
    whose: Whose = None,
    amount: Annotated[
        str | None,
        typer.Argument(
            metavar="[USD/month]",
            help="Dollars; of a run without `/month`.",
            show_default=False,
        ),
    ] = None,
    month: Annotated[
        bool, typer.Option("--month", help="The amount is for each month (UTC).")
    ] = False,
    project: Annotated[
        str | None,
        typer.Option(
            "--project", metavar="PROJECT", help="As PROJECT.", autocompletion=project_words
        ),
    ] = None,
    monthly: Annotated[
        str | None, typer.Option("--monthly", metavar="USD", help="As USD/month.")
    ] = None,
    soft: Soft = None,
    as_json: AsJson = False,
) -> None:
    """Bound what a project may spend on rented machines in each month, or change a run's budget.

    A machine counts in the month (UTC) in which its lease begins, for all that it costs. A project
    that nobody has used yet may have a budget. One that is below what is taken already takes
    nothing away: nothing new is rented, and machines that are there keep what is set aside. One
    that is raised holds at once: the next round rents with it.

    Exit code 2 for an amount that is none, or is not in US dollars.
    """  # fmt: skip
    from cloudwhale.cli.budgeting import Words, wanted
    from cloudwhale.cli.budgeting import put as do

    words = Words(whose, amount, month, project, monthly, soft)
    raise typer.Exit(do(wanted(words, as_json)))


@budget.command(epilog=examples("cloudwhale budget unset nlp"))
def unset(project: ProjectWord, as_json: AsJson = False) -> None:
    """Let a project spend as much as its runs may.

    What it spends goes on being counted.
    """
    from cloudwhale.cli.budgeting import lifted as do

    raise typer.Exit(do(project, as_json))


@budget.command(
    epilog=examples("cloudwhale budget history", "cloudwhale budget history nlp --json"),
)
def history(
    whose: Annotated[
        str | None,
        typer.Argument(
            metavar="[PROJECT|RUN]",
            help="One of them; else all projects.",
            autocompletion=payer_words,
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show who has set which budget when, and what each month has spent of it."""
    from cloudwhale.cli.budget_views import history as do

    raise typer.Exit(do(whose, as_json))


@budget.command(
    epilog=examples("cloudwhale budget forecast", "cloudwhale budget forecast nlp --json"),
)
def forecast(
    project: Annotated[
        str | None,
        typer.Argument(
            metavar="[PROJECT]",
            help="One of them; else all.",
            autocompletion=project_words,
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what will be spent by the end of this month (UTC), and whether that passes a budget.

    It is what is spent, what the machines that are there and the jobs that wait are expected to
    cost, and habit: what the last four weeks' days have spent, by weekday. Jobs that wait count
    as today's habit, whichever is more. Eight in ten such months end within the range.
    """
    from cloudwhale.cli.budget_views import forecast as do

    raise typer.Exit(do(project, as_json))


def suggest(
    project: Annotated[
        str | None,
        typer.Option(
            "--project", metavar="PROJECT", help="Of one project.", autocompletion=project_words
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what jobs ask for, use, and should ask for.

    By jobs of one name and project: the most and the median that their newest attempts used, the
    next size with head-room above it, cheaper GPUs that would hold it, and what these would have
    saved. With `auto_size: true` in its file a job asks for that size by itself.
    """
    from cloudwhale.cli.suggesting import suggest as do

    raise typer.Exit(do(project, as_json))


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    app.add_typer(budget, name="budget")
    app.command(epilog=examples("cloudwhale suggest", "cloudwhale suggest --project nlp --json"))(
        suggest
    )
