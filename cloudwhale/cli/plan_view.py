"""A dry run's answer as a table and as a document."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cloudwhale.clock import iso
from cloudwhale.control.preview import Preview, PreviewJob
from cloudwhale.model.job import JobSpec
from cloudwhale.model.units import usd
from cloudwhale.planning.durations import Expected
from cloudwhale.reporting.figures import NOTHING, counted, money, span
from cloudwhale.reporting.sentences import array_words
from cloudwhale.reporting.sheet import Cell, Column, Sheet, Tone, cells

ROWS_MOST = 20
"""A file of thousands of jobs is summed up after so many rows."""

GUESSES_MOST = 5
"""So many ways in which a time was guessed are told in the note."""

STOPPED_NAMED = 5
"""So many jobs that would be stopped are named."""

_WORDS: dict[str, tuple[str, Tone]] = {
    "runs-now": ("runs now", "good"),
    "waits": ("waits", "warn"),
    "impossible": ("impossible", "bad"),
}


_NUMBER = re.compile(r"(?<=[\w-])#\d+\b")
"""A dry run numbers jobs that have no id yet; people and programs know them by name."""


@dataclass(slots=True)
class _Group:
    """Jobs of one name that have the same fate."""

    job: PreviewJob
    spec: JobSpec
    count: int = 1

    @property
    def label(self) -> str:
        if self.count > 1:
            return f"{self.job.name} ({self.count:,} jobs)"
        return " ".join(part for part in (self.job.name, array_words(self.spec)) if part)


def plan_sheet(preview: Preview, specs: Sequence[JobSpec], said: Sequence[str] = ()) -> Sheet:
    """Show where each job would go; `specs` in the same order, `said`: sentences on their files."""
    columns = (
        Column("job"),
        Column("now"),
        Column("node"),
        Column("devices"),
        Column("expected", right=True, optional=True),
        Column("runner-up", optional=True),
        Column("why", gives_way=True),
    )
    groups = _groups(preview.jobs, specs)
    rows = tuple(_row(group) for group in groups[:ROWS_MOST])
    return Sheet(columns, rows, notes=(*_notes(preview, groups[ROWS_MOST:]), *said))


def _groups(jobs: Sequence[PreviewJob], specs: Sequence[JobSpec]) -> list[_Group]:
    """Put jobs of one name and fate together, where the first of them stood."""
    groups: dict[object, _Group] = {}
    for job, spec in zip(jobs, specs, strict=True):
        fate = (job.name, job.state, job.node, job.devices, job.expected, job.reason)
        if fate in groups:
            groups[fate].count += 1
        else:
            groups[fate] = _Group(job, spec)
    return list(groups.values())


def _row(group: _Group) -> tuple[Cell, ...]:
    job = group.job
    word, tone = _WORDS[job.state] if job.held_until is None else ("is held", "warn")
    change = f"; {job.reason.change}" if job.reason.change and job.state != "runs-now" else ""
    return cells(
        group.label,
        Cell(word, tone),
        job.node or NOTHING,
        ", ".join(job.devices) or NOTHING,
        f"{'~' if job.expected.is_guessed else ''}{span(job.expected.length_s)}",
        job.runner_up or NOTHING,
        Cell(_NUMBER.sub("", job.reason.says + change), "quiet"),
    )


def _notes(preview: Preview, left: Sequence[_Group]) -> list[str]:
    notes: list[str] = []
    if left:
        counts: Counter[str] = Counter()
        for group in left:
            counts[_WORDS[group.job.state][0]] += group.count
        each = ", ".join(f"{count:,} {word}" for word, count in sorted(counts.items()))
        notes.append(f"and {counted(counts.total(), 'job')} more: {each}")
    notes += _guesses(preview.jobs)
    if preview.gives_way:
        first = ", ".join(preview.gives_way[:STOPPED_NAMED])
        more = len(preview.gives_way) - STOPPED_NAMED
        notes.append(f"gives way, checkpoint first: {first}{f' and {more} more' * (more > 0)}")
    bound = f" of a budget of {money(preview.budget_usd)}" if preview.budget_usd is not None else ""
    if preview.machines:
        notes.append(
            f"rents {counted(len(preview.machines), 'machine')} for {money(preview.cost_usd)}, "
            f"{money(preview.worst_case_usd)} at worst{bound}"
        )
    else:
        notes.append(f"nothing is rented: 0.00 USD{bound}")
    return notes


def _guesses(jobs: Sequence[PreviewJob]) -> list[str]:
    """Say how the expected times of jobs without `duration` were come by, each way once."""
    found = dict.fromkeys(job.expected for job in jobs if job.expected.is_guessed)
    if not found:
        return []
    said = [f"~{span(expected.length_s)} is {_basis(expected)}" for expected in found]
    more = f" and {len(said) - GUESSES_MOST} more" if len(said) > GUESSES_MOST else ""
    return [f"guessed, for want of `duration`: {', '.join(said[:GUESSES_MOST])}{more}"]


def _basis(expected: Expected) -> str:
    match expected.source:
        case "family":
            return f"the median of {counted(expected.samples, 'run')} of that name"
        case "project":
            return f"the median of {counted(expected.samples, 'run')} of that project"
        case _:
            return "what is taken when nothing is known"


def plan_keys(preview: Preview) -> dict[str, Any]:
    """Return the document that `plan --json` prints; money in dollars."""
    return {
        "jobs": [_job_keys(job) for job in preview.jobs],
        "machines": list(preview.machines),
        "cost_usd": usd(preview.cost_usd),
        "bound_usd": usd(preview.bound_usd),
        "gap": preview.gap,
        "one_each_usd": usd(preview.one_each_usd),
        "worst_case_usd": usd(preview.worst_case_usd),
        "budget_usd": None if preview.budget_usd is None else usd(preview.budget_usd),
    }


def _job_keys(job: PreviewJob) -> dict[str, Any]:
    keys = job.model_dump(exclude={"reason", "expected", "held_until"})
    expected = {
        "expected_s": job.expected.length_s,
        "guessed": job.expected.is_guessed,
        "guessed_from": job.expected.source if job.expected.is_guessed else None,
        "guessed_from_runs": job.expected.samples,
    }
    return {
        **keys,
        **expected,
        "held_until": iso(job.held_until),
        "reason": {"code": job.reason.code, "says": _NUMBER.sub("", job.reason.says)},
    }
