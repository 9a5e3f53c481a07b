"""A dry run's answer as a table and as a document."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from cloudwhale.control.preview import Preview, PreviewJob
from cloudwhale.model.units import usd
from cloudwhale.reporting.figures import NOTHING, counted, money
from cloudwhale.reporting.sheet import Cell, Column, Sheet, Tone, cells

ROWS_MOST = 20
"""A sweep of thousands is summed up after so many rows."""

_WORDS: dict[str, tuple[str, Tone]] = {
    "runs-now": ("runs now", "good"),
    "waits": ("waits", "warn"),
    "impossible": ("impossible", "bad"),
}


def plan_sheet(preview: Preview, said: Sequence[str] = ()) -> Sheet:
    """Show where each job would go; `said`: sentences on the files it was made from."""
    columns = (
        Column("job"),
        Column("now"),
        Column("node"),
        Column("devices"),
        Column("runner-up", optional=True),
        Column("why", gives_way=True),
    )
    shown = preview.jobs[:ROWS_MOST]
    return Sheet(columns, tuple(_row(job) for job in shown), notes=(*_notes(preview), *said))


def _row(job: PreviewJob) -> tuple[Cell, ...]:
    word, tone = _WORDS[job.state]
    change = f"; {job.reason.change}" if job.reason.change and job.state != "runs-now" else ""
    return cells(
        job.name,
        Cell(word, tone),
        job.node or NOTHING,
        ", ".join(job.devices) or NOTHING,
        job.runner_up or NOTHING,
        Cell(job.reason.says + change, "quiet"),
    )


def _notes(preview: Preview) -> list[str]:
    notes: list[str] = []
    if len(preview.jobs) > ROWS_MOST:
        left = preview.jobs[ROWS_MOST:]
        counts = Counter(_WORDS[job.state][0] for job in left)
        each = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
        notes.append(f"and {counted(len(left), 'job')} more: {each}")
    bound = f" of a budget of {money(preview.budget_usd)}" if preview.budget_usd is not None else ""
    if preview.machines:
        notes.append(
            f"rents {counted(len(preview.machines), 'machine')} for {money(preview.cost_usd)}, "
            f"{money(preview.worst_case_usd)} at worst{bound}"
        )
    else:
        notes.append(f"nothing is rented: 0.00 USD{bound}")
    return notes


def plan_keys(preview: Preview) -> dict[str, Any]:
    """Return the document that `plan --json` prints; money in dollars."""
    return {
        "jobs": [job.model_dump(exclude={"reason": {"change"}}) for job in preview.jobs],
        "machines": list(preview.machines),
        "cost_usd": usd(preview.cost_usd),
        "bound_usd": usd(preview.bound_usd),
        "gap": preview.gap,
        "one_each_usd": usd(preview.one_each_usd),
        "worst_case_usd": usd(preview.worst_case_usd),
        "budget_usd": None if preview.budget_usd is None else usd(preview.budget_usd),
    }
