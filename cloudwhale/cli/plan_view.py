"""A dry run's answer as a table of its jobs, with what has to be said below it."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from cloudwhale.cli.plan_money import money_notes
from cloudwhale.control.previewed import Preview, PreviewJob
from cloudwhale.model.job import JobSpec
from cloudwhale.model.reason import Code
from cloudwhale.planning.durations import Expected
from cloudwhale.reporting.figures import NOTHING, cents, counted, hour, in_cents, span
from cloudwhale.reporting.sentences import array_words
from cloudwhale.reporting.sheet import Cell, Column, Sheet, Tone, cells

ROWS_MOST = 20
"""A file of thousands of jobs is summed up after so many rows."""

GUESSES_MOST = 5
"""So many ways in which a time was guessed are told in the note."""

STOPPED_NAMED = 5
"""So many jobs that would be stopped are named."""

BESIDE_MOST = 2
"""So many names of those who run beside a job are told."""

WORDS: dict[str, tuple[str, Tone]] = {
    "runs-now": ("runs now", "good"),
    "rented": ("rented", "busy"),
    "waits": ("waits", "warn"),
    "over-budget": ("over budget", "bad"),
    "too-late": ("too late", "bad"),
    "impossible": ("impossible", "bad"),
}


_NUMBER = re.compile(r"(?<=[\w-])#\d+\b")
"""A dry run numbers jobs that have no id yet; people and programs know them by name."""


def by_name(says: str, *, up: bool = False) -> str:
    """Return a sentence in which jobs have their names, and money whole cents; see `in_cents`."""
    return in_cents(_NUMBER.sub("", says), up=up)


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
    groups = _groups(preview.jobs, specs)
    notes = (*_notes(preview, groups[ROWS_MOST:]), *said)
    if preview.machines:
        rows = tuple(_rented_row(group, preview) for group in groups[:ROWS_MOST])
        return Sheet(_RENTED, rows, notes=notes)
    return Sheet(_PLAIN, tuple(_row(group, preview) for group in groups[:ROWS_MOST]), notes=notes)


_PLAIN = (
    Column("job"),
    Column("now"),
    Column("node"),
    Column("devices"),
    Column("expected", right=True, optional=True),
    Column("runner-up", optional=True),
    Column("why", gives_way=True),
)

_RENTED = (
    Column("job"),
    Column("now"),
    Column("where"),
    Column("when"),
    Column("usd", right=True),
    Column("at worst", right=True, optional=True),
    Column("company", on="pipe"),
    Column("runner-up", on="pipe"),
    Column("bound by", on="pipe"),
    Column("why", on="pipe"),
    Column("why, and what came second", gives_way=True, on="terminal"),
)


def _groups(jobs: Sequence[PreviewJob], specs: Sequence[JobSpec]) -> list[_Group]:
    """Put jobs of one name and fate together, where the first of them stood."""
    groups: dict[object, _Group] = {}
    for job, spec in zip(jobs, specs, strict=True):
        fate = (job.name, job.state, job.node, job.devices, job.expected, job.reason, job.machine)
        if fate in groups:
            groups[fate].count += 1
        else:
            groups[fate] = _Group(job, spec)
    return list(groups.values())


def _row(group: _Group, preview: Preview) -> tuple[Cell, ...]:
    job = group.job
    rival = job.runner_up
    return cells(
        group.label,
        _now(job),
        job.node or NOTHING,
        ", ".join(job.devices) or NOTHING,
        f"{'~' if job.expected.is_guessed else ''}{span(job.expected.length_s)}",
        NOTHING if rival is None else f"{rival.where} {rival.says}",
        Cell(why(job, preview), "quiet"),
    )


def _rented_row(group: _Group, preview: Preview) -> tuple[Cell, ...]:
    job, now = group.job, preview.made_at
    rival, binding = job.runner_up, job.binding
    second = "" if rival is None else f"second: {rival.where}, {rival.says}"
    bound = "" if binding is None else binding.says
    told = why(job, preview) if job.state != "rented" else ""
    says_second = binding is not None and binding.code == "budget"
    if says_second or job.state == "over-budget" or job.reason.code is Code.WAITS_FOR_JOB:
        second = ""
    shown = [part for part in (company(job), job.deadline_says, told, bound, second) if part]
    return cells(
        group.label,
        _now(job),
        job.machine or job.node or NOTHING,
        _when(job, now),
        NOTHING if job.cost is None else cents(job.cost),
        NOTHING if job.worst is None else cents(job.worst),
        company(job) or NOTHING,
        NOTHING if rival is None else f"{rival.where}, {rival.says}",
        NOTHING if binding is None else f"{binding.code}: {binding.says}",
        why(job, preview),
        Cell("; ".join(shown), "quiet"),
    )


def _now(job: PreviewJob) -> Cell:
    word, tone = WORDS[job.state] if job.held_until is None else ("is held", "warn")
    return Cell(word, tone)


def why(job: PreviewJob, preview: Preview) -> str:
    """Say why a job goes where it goes, and what would change it."""
    # What would be enough money is said of all jobs together, below the table, where it is known.
    is_said = job.state == "over-budget" and preview.least_budget_usd is not None
    settled = job.state in ("runs-now", "rented") or is_said
    change = f"; {job.reason.change}" if job.reason.change and not settled else ""
    deadline = f"; {job.deadline_says}" if job.deadline_says else ""
    return by_name(job.reason.says + deadline) + by_name(change, up=True)


def company(job: PreviewJob) -> str:
    """Say whom a job comes after, and beside whom it runs, on its machine."""
    after = f"after {job.after}" if job.after else ""
    beside = f"beside {names(job.beside, BESIDE_MOST)}" if job.beside else ""
    return ", ".join(part for part in (after, beside) if part)


def names(jobs: Sequence[str], most: int | None = None) -> str:
    """Return names in their order, those that are alike once with their count; so many at most."""
    counts = Counter(jobs)
    shown = list(counts)[:most]
    more = len(jobs) - sum(counts[name] for name in shown)
    each = ", ".join(
        f"{name} ({counts[name]} jobs)" if counts[name] > 1 else name for name in shown
    )
    return f"{each} and {more} more" if more else each


def _when(job: PreviewJob, now: float) -> str:
    if job.starts_at is None or job.ends_at is None:
        return NOTHING
    return f"{hour(job.starts_at, now)} to {hour(job.ends_at, now)}"


def _notes(preview: Preview, left: Sequence[_Group]) -> list[str]:
    notes: list[str] = []
    if left:
        counts: Counter[str] = Counter()
        for group in left:
            counts[WORDS[group.job.state][0]] += group.count
        each = ", ".join(f"{count:,} {word}" for word, count in sorted(counts.items()))
        notes.append(f"and {counted(counts.total(), 'job')} more: {each}")
    notes += dict.fromkeys(f"{job.name} {job.sized}" for job in preview.jobs if job.sized)
    notes += _guesses(preview.jobs)
    if preview.gives_way:
        first = ", ".join(preview.gives_way[:STOPPED_NAMED])
        more = len(preview.gives_way) - STOPPED_NAMED
        notes.append(f"gives way, checkpoint first: {first}{f' and {more} more' * (more > 0)}")
    return [*notes, *money_notes(preview)]


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
