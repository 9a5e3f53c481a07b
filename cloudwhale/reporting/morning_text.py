"""The morning report as a person reads it in a terminal: a headline, the money, then tables."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal

from cloudwhale.model.cost import Waste
from cloudwhale.model.job import JobState
from cloudwhale.model.morning import Morning, NextNight, NightJob, NightMachine, NightProject
from cloudwhale.model.units import micro_usd
from cloudwhale.reporting.cost_words import column
from cloudwhale.reporting.figures import NOTHING, cents, counted, in_cents, money, span
from cloudwhale.reporting.rented import small
from cloudwhale.reporting.sheet import Cell, Column, Sheet, cells
from cloudwhale.reporting.tables import state_cell

ROWS_MOST = 40
"""So many jobs or machines stand in a table; the page has them all."""


CAUSES: Mapping[Waste, str] = {
    Waste.BOOT: "booting",
    Waste.IDLE: "idle machines",
    Waste.LOST: "work done again",
    Waste.FAILED: "failed attempts",
    Waste.OVER_ASKED: "more GPU than was used",
}
MEANS = (
    "Saved: so much more the same machines would have cost on demand. Wasted: paid while machines "
    "booted or stood idle, for work that was done again, for attempts that failed, and for GPU "
    "that was asked for and not used."
)


def morning_sheets(told: Morning, *, everything: bool = False) -> Iterator[Sheet]:
    """Yield the report from top to bottom, what matters most first.

    Sentences come as sheets without columns. `everything`: however many jobs there are.
    """
    yield Sheet((), (), f"{title_of(told)} ({hours_of(told)})", tuple(summary(told)))
    yield _projects(told)
    failed = [job for job in told.jobs if job.state == JobState.FAILED]
    if failed:
        yield Sheet((), (), "Failed, and why", tuple(map(failure_words, failed)))
    left = [job for job in told.jobs if job.becomes]
    if left:
        yield Sheet((), (), "Left over", tuple(map(left_words, left)))
    most = None if everything else ROWS_MOST
    yield _jobs(told, most)
    if told.machines:
        yield _machines(told, most)
    if told.tonight is not None:
        yield Sheet((), (), "Tonight", (tonight_words(told, told.tonight),))


def title_of(told: Morning) -> str:
    """Return `Night of 2026-11-30: burst`."""
    return f"Night of {told.date}: {told.name}"


def hours_of(told: Morning) -> str:
    """Return `22:00 to 08:00 Europe/Berlin, run-k3x9`."""
    return f"{_clock(told.opens_at)} to {_clock(told.closes_at)} {told.zone}, {told.run}"


def summary(told: Morning) -> Iterator[str]:
    """Yield what the night came to in a few sentences."""
    if not told.is_over:
        yield "It is not over yet: this is how it stands now."
    done = sum(job.state == JobState.COMPLETED for job in told.jobs)
    failed = sum(job.state == JobState.FAILED for job in told.jobs)
    left = sum(bool(job.becomes) for job in told.jobs)
    yield (
        f"{done} of {counted(len(told.jobs), 'job')} completed, {failed} failed, {left} left over."
    )
    yield money_words(told)
    if told.interruptions:
        again = span(told.lost_work_s)
        times = counted(told.interruptions, "time")
        yield f"Jobs were interrupted {times}; {again} of work had to be done again."


def money_words(told: Morning) -> str:
    """Say what was allowed, spent, saved and wasted."""
    paid = told.money
    if paid.budget_usd is None:
        said = [f"Spent {money(paid.spent_usd)}, without a budget"]
    else:
        left = f"{small(paid.left_usd)} left" if paid.left_usd is not None else ""
        said = [f"Spent {small(paid.spent_usd)} of a budget of {money(paid.budget_usd)}, {left}"]
    if paid.reserved_usd:
        said.append(f"{small(paid.reserved_usd)} are set aside for machines that are not back")
    if paid.saved_usd is not None:
        said.append(f"{small(paid.saved_usd)} less than the same machines on demand")
    largest = sorted(told.wasted.items(), key=lambda one: -one[1])
    causes = ", ".join(f"{CAUSES[cause]} {small(usd)}" for cause, usd in largest)
    said.append(f"{small(paid.wasted_usd)} wasted" + (f" ({causes})" if causes else ""))
    return "; ".join(said) + "."


def failure_words(job: NightJob) -> str:
    """Say why a job failed, with the last that it printed; nothing twice."""
    code = "" if job.exit_code is None else f" (exit code {job.exit_code})"
    code = "" if f"ended with {job.exit_code}" in job.why else code
    said = f'; its last line: "{job.last_line}"'
    last = said if job.last_line and job.last_line not in job.why else ""
    change = f" {job.change[0].upper()}{job.change[1:]}." if job.change else ""
    return f"{job.id} ({job.project}): {job.why}{code}{last}.{change}"


def left_words(job: NightJob) -> str:
    """Say what becomes of a job that is left over, why it is, and what would change that."""
    why = f": {in_cents(job.why)}" if job.why else ""
    change = f". To change that: {in_cents(job.change, up=True)}" if job.change else ""
    return f"{job.id} ({job.project}) {job.becomes}{why}{change}"


def tonight_words(told: Morning, night: NextNight) -> str:
    """Say when the next night of the file would open, with what."""
    budget = "no budget" if night.budget_usd is None else f"a budget of {money(night.budget_usd)}"
    waiting = f", {counted(len(night.waiting), 'job')} carried over" if night.waiting else ""
    opens = datetime.fromisoformat(night.opens_at)
    return (
        f"{told.name} would open next on {opens:%Y-%m-%d} at {opens:%H:%M} and close at "
        f"{_clock(night.closes_at)}, with {budget}{waiting}."
    )


def _clock(said: str | None) -> str:
    return NOTHING if said is None else f"{datetime.fromisoformat(said):%H:%M}"


# -- tables ----------------------------------------------------------------------------------


def _projects(told: Morning) -> Sheet:
    columns = (
        Column("project", gives_way=True),
        *(Column(name, right=True) for name in ("jobs", "done", "failed", "left over")),
        *(Column(name, right=True) for name in ("spent", "saved", "wasted")),
    )
    rows = zip(
        told.projects,
        written([one.spent_usd for one in told.projects]),
        written([one.wasted_usd for one in told.projects]),
        strict=True,
    )
    return Sheet(columns, tuple(_project_row(*row) for row in rows), "By project (USD)", (MEANS,))


def written(amounts: Sequence[Decimal]) -> list[str]:
    """Return a column in cents that adds up, as `cloudwhale cost` writes it."""
    return column([micro_usd(one) for one in amounts], digits=2)


def _project_row(one: NightProject, spent: str, wasted: str) -> tuple[Cell, ...]:
    return cells(
        one.project, str(one.jobs), str(one.completed), str(one.failed), str(one.left_over),
        spent, NOTHING if one.saved_usd is None else cents(one.saved_usd), wasted,
    )  # fmt: skip


def _jobs(told: Morning, most: int | None) -> Sheet:
    columns = (
        Column("job", gives_way=True), Column("state"), Column("where", gives_way=True),
        Column("from", right=True), Column("to", right=True), Column("tries", right=True),
        Column("spent", right=True), Column("wasted", right=True, optional=True),
    )  # fmt: skip
    shown = told.jobs[:most]
    more = len(told.jobs) - len(shown)
    notes = (f"and {more:,} more; the page has them all",) if more else ()
    return Sheet(columns, tuple(map(_job_row, shown)), "What ran, where and when", notes)


def _job_row(job: NightJob) -> tuple[Cell, ...]:
    return cells(
        job.id, state_cell(job.state), job.where or NOTHING, _clock(job.started_at),
        _clock(job.ended_at), str(job.attempts), cents(job.spent_usd), cents(job.wasted_usd),
    )  # fmt: skip


def _machines(told: Morning, most: int | None) -> Sheet:
    columns = (
        Column("machine"), Column("what", gives_way=True), Column("from", right=True),
        Column("to", right=True), Column("billed", right=True), Column("jobs", right=True),
        Column("spent", right=True), Column("", gives_way=True),
    )  # fmt: skip
    shown = told.machines[:most]
    more = len(told.machines) - len(shown)
    notes = (f"and {more:,} more; the page has them all",) if more else ()
    return Sheet(columns, tuple(map(_machine_row, shown)), "What was rented", notes)


def _machine_row(one: NightMachine) -> tuple[Cell, ...]:
    if one.started_at is None:
        came = "never came"
    else:
        came = "was taken away" if one.taken_away else ""
    return cells(
        one.id, one.what, _clock(one.started_at), _clock(one.ended_at), span(one.billed_s),
        str(len(one.jobs)), cents(one.spent_usd), came,
    )  # fmt: skip
