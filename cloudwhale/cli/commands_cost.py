"""The command `cost`: what was spent, saved and wasted, by what."""

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from cloudwhale.cli.completing import dimension_words, period_words, project_words, zone_words
from cloudwhale.cli.words import AsJson, examples

# A command's parameters are its options, so they are as many as it has.


class Wordless(TyperCommand):
    """A command without words: one that is there is the file, or by what, in the wrong place."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options; end with wrong usage, and how it is said, for a word."""
        ctx.allow_extra_args, given = True, tuple(args)  # reading takes them out of the list
        rest = super().parse_args(ctx, args)
        if ctx.args and not ctx.resilient_parsing:
            ctx.fail(_said_right(ctx.args[0], given))
        return rest


def _said_right(word: str, given: Sequence[str]) -> str:
    """Return what is wrong with a word, and the command that was meant."""
    from cloudwhale.reporting.costs import DIMENSIONS

    form = next((one for one in ("--html", "--csv", "--focus") if one in given), None)
    box = " --sandbox" if "--sandbox" in given else ""
    if form is not None:
        how = f"a file is named with -o: `cloudwhale cost {form} -o {quote(word)}{box}`"
    elif "--json" in given:
        how = f"a document goes into a file with `cloudwhale cost --json{box} > {quote(word)}`"
    elif set(word.lower().split(",")) <= {*DIMENSIONS}:
        how = f"by what costs are shown is said with `cloudwhale cost --by {word.lower()}{box}`"
    else:
        how = "--by says by what, --for when, -o into which file"
    return f"{word} is too much: {how}."


By = Annotated[
    str,
    typer.Option(
        "--by",
        metavar="WHAT",
        help="project, user, job, family, run, provider, market, region, gpu or day; several "
        "with commas.",
        autocompletion=dimension_words,
    ),
]
PeriodWords = Annotated[
    str,
    typer.Option(
        "--for",
        metavar="PERIOD",
        help='"last month", yesterday, 7d, 2026-Q4, 2026-11, 2026-11-01..2026-11-15, ...; '
        "else all time.",
        autocompletion=period_words,
    ),
]
Zone = Annotated[
    str | None,
    typer.Option(
        "--zone",
        metavar="ZONE",
        help="In which days and months begin, like Europe/Berlin; else the setting, else the "
        "host's.",
        autocompletion=zone_words,
    ),
]
Running = Annotated[
    bool,
    typer.Option(
        "--running/--no-running", help="With machines that are not back, as of now; or without."
    ),
]
Project = Annotated[
    str | None,
    typer.Option(
        "--project",
        metavar="PROJECT",
        help="Of this project alone.",
        autocompletion=project_words,
    ),
]
Wasted = Annotated[bool, typer.Option("--wasted", help="Show what was wasted by its causes, too.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print the sums as CSV.")]
AsHtml = Annotated[
    bool, typer.Option("--html", help="Print one web page, with charts; nothing else in it.")
]
AsFocus = Annotated[
    bool,
    typer.Option("--focus", help="Print every charge as FOCUS 1.2, for programs of finance (CSV)."),
]
Into = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write it there, whole or not at all."),
]


def cost(
    by: By = "project",
    period: PeriodWords = "all",
    zone: Zone = None,
    running: Running = True,
    project: Project = None,
    wasted: Wasted = False,
    as_csv: AsCsv = False,
    as_html: AsHtml = False,
    as_focus: AsFocus = False,
    into: Into = None,
    as_json: AsJson = False,
) -> None:
    """Show what was spent on rented machines, saved and wasted.

    Amounts are US dollars. A machine counts whole in the day and month in which its bill began.
    Saved is what the same parts of the same times would have cost more on demand. Wasted is what
    was spent on nothing that lasted: while machines booted (boot), while nobody held a place on
    them (idle), on work that was done again (lost), on attempts that failed (failed), on more GPU
    than was used (over).

    Periods: today, yesterday, this or last week, month, quarter or year; 7d is today and six days
    before, 24h the last hours; A..B holds both its ends.

    Exit code 2 for a period, a zone or a dimension that there is not.
    """
    from cloudwhale.cli.cost_asked import Wanted
    from cloudwhale.cli.costing import cost as do
    from cloudwhale.cli.costing import give_way

    give_way()
    forms = {"csv": as_csv, "html": as_html, "focus": as_focus, "json": as_json}
    chosen = tuple(name for name, is_chosen in forms.items() if is_chosen)
    raise typer.Exit(do(Wanted(by, period, zone, running, project, wasted, chosen, into)))


def add_to(app: typer.Typer) -> None:
    """Add this command, with its examples."""
    app.command(
        cls=Wordless,
        epilog=examples(
            'cloudwhale cost --by project --for "last month"',
            "cloudwhale cost --by user,gpu --for 2026-Q4 --wasted",
            "cloudwhale cost --by day --for 7d --zone America/New_York",
            "cloudwhale cost --html -o november.html --for 2026-11",
            "cloudwhale cost --by job --csv > jobs.csv",
            "cloudwhale cost --json | jq '.costs[] | [.project, .spent_usd, .wasted_usd]'",
            "cloudwhale cost --focus --for 2026-11 -o focus.csv",
        ),
    )(cost)
