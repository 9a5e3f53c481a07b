"""What `cost` does: add up what was spent and show it in the form that was asked for."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from cloudwhale.cli.cost_asked import Ledger, Wanted, dimensions, form_of, ledger_here
from cloudwhale.cli.exits import Exit, WrongUsage
from cloudwhale.cli.output import Paper, emit, say, stdout_paper
from cloudwhale.model.cost import Dimension
from cloudwhale.reporting.cost_sheet import Look, costs_csv, costs_sheet
from cloudwhale.reporting.costs import Costs, costs_keys

POLITENESS = 10
"""A tenth of the share of a core that a controller beside it has, where both want the same one."""


def give_way() -> None:
    """Let a controller on this host go first: reports of years can wait, its rounds cannot."""
    os.nice(POLITENESS)


def cost(wanted: Wanted) -> int:
    """Show what was spent, saved and wasted."""
    by, form = dimensions(wanted.by), form_of(wanted)
    with ledger_here(wanted) as ledger:
        match form:
            case "html":
                _write(_page(ledger, by), wanted.into)
            case "focus":
                _write(_focus(ledger), wanted.into)
            case "csv":
                _write([costs_csv(ledger.costs(by))], wanted.into)
            case "json":
                emit(costs_keys(ledger.costs(by)))
            case _:
                _draw(stdout_paper(), ledger.without_jobs().costs(by), wanted.wasted)
    return Exit.DONE


def _draw(paper: Paper, costs: Costs, causes: bool) -> None:
    width = paper.console.width if paper.console is not None else None
    paper.sheet(costs_sheet(costs, Look(width, causes)))


def _page(ledger: Ledger, by: tuple[Dimension, ...]) -> Iterable[str]:
    from cloudwhale.reporting.cost_page import costs_page, parts_of

    yield costs_page(parts_of(by, ledger))


def _focus(ledger: Ledger) -> Iterable[str]:
    from cloudwhale.reporting.focus import focus_csv

    return focus_csv(ledger.lines())


def _write(texts: Iterable[str], into: Path | None) -> None:
    """Print texts, or write them into a file that nobody sees half of."""
    if into is None:
        for text in texts:
            sys.stdout.write(text)
        sys.stdout.flush()
        return
    beside = into.with_name(f".{into.name}.new")
    try:
        with beside.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(texts)
        beside.replace(into)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise WrongUsage(
            f"{into} cannot be written: {error.strerror}.", "Name a file in a folder of yours."
        ) from error
    say(f"Written: {into}", sys.stderr)
