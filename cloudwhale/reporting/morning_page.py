"""The morning report as a page of one file, to be opened, printed or sent."""

from collections.abc import Iterator

from cloudwhale.model.job import JobState
from cloudwhale.model.morning import Morning
from cloudwhale.reporting.figures import NOTHING, cents, counted, money, percent
from cloudwhale.reporting.morning_text import hours_of, morning_sheets, title_of, written
from cloudwhale.reporting.page import (
    Bar,
    Html,
    Tile,
    bars,
    heading,
    page,
    points,
    said,
    table,
    tiles,
)
from cloudwhale.reporting.sheet import Sheet


def morning_page(told: Morning) -> str:
    """Return the whole document."""
    return page(title_of(told), _parts(told), hours_of(told))


def _parts(told: Morning) -> Iterator[Html]:
    yield tiles(_tiles(told))
    first, *rest = morning_sheets(told, everything=True)
    for sentence in first.notes:
        yield said(sentence)
    if told.money.spent_usd:
        yield heading("Spent and wasted by project")
        yield bars([*_bars(told)], ("lasted", "wasted"))
    for sheet in rest:
        yield _part(sheet)


def _part(sheet: Sheet) -> Html:
    """Return a table, or sentences as a list below their heading."""
    if sheet.columns:
        return table(sheet)
    return Html(heading(sheet.title) + points(sheet.notes))


def _tiles(told: Morning) -> Iterator[Tile]:
    paid = told.money
    done = sum(job.state == JobState.COMPLETED for job in told.jobs)
    left = sum(bool(job.becomes) for job in told.jobs)
    budget = "no budget" if paid.budget_usd is None else f"of {money(paid.budget_usd)}"
    yield Tile("completed", str(done), f"of {counted(len(told.jobs), 'job')}")
    failed = sum(job.state == JobState.FAILED for job in told.jobs)
    yield Tile("failed", str(failed), "", "bad" if failed else "plain")
    yield Tile("left over", str(left), "", "warn" if left else "plain")
    yield Tile("spent", f"{cents(paid.spent_usd)} USD", budget)
    saved = NOTHING if paid.saved_usd is None else f"{cents(paid.saved_usd)} USD"
    yield Tile("saved", saved, "against on demand")
    share = float(paid.wasted_usd / paid.spent_usd) if paid.spent_usd else 0.0
    yield Tile("wasted", f"{cents(paid.wasted_usd)} USD", f"{percent(share)} of what was spent")


def _bars(told: Morning) -> Iterator[Bar]:
    spent = written([one.spent_usd for one in told.projects])
    for one, usd in zip(told.projects, spent, strict=True):
        useful = max(0.0, float(one.spent_usd - one.wasted_usd))
        yield Bar(one.project, f"{usd} USD", (useful, float(one.wasted_usd)))
