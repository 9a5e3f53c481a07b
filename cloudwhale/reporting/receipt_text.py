"""A receipt in full, for who asks where the money went: by machine, by purpose, and otherwise."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from cloudwhale.model.receipt import (
    Course,
    JobReceipt,
    LineReceipt,
    MachineReceipt,
    Otherwise,
    Parts,
    RunReceipt,
    TollReceipt,
)
from cloudwhale.reporting.bars import bar, taken
from cloudwhale.reporting.figures import NOTHING, counted, dollars, percent, span
from cloudwhale.reporting.rented import small
from cloudwhale.reporting.sheet import Cell, Column, Sheet, cells

ROWS_MOST = 60
BAR_WIDTH = 20

BOUGHT: Mapping[str, str] = {
    "machine_usd": "machines",
    "disk_usd": "disks",
    "address_usd": "addresses",
    "egress_usd": "egress, for checkpoints from other clouds",
}
MEANT: Mapping[str, str] = {
    "useful_usd": "work that lasted",
    "wasted_boot_usd": "booting: billed and not ready yet",
    "wasted_idle_usd": "idle: ready, and no job there",
    "wasted_lost_work_usd": "work that was done again",
    "wasted_failed_attempts_usd": "attempts that failed",
    "wasted_over_asking_usd": "asked for and never used",
    "egress_usd": "egress, for checkpoints from other clouds",
}


def run_sheets(receipt: RunReceipt) -> Iterator[Sheet]:
    """Yield what stands below the table of jobs: where the money went, and otherwise."""
    if receipt.machines:
        yield machines_sheet(receipt.machines)
    if receipt.spent_usd:
        yield purposes_sheet(receipt.parts, receipt.spent_usd)
    yield from _told(receipt.jobs)
    if receipt.otherwise is not None:
        yield otherwise_sheet(receipt.otherwise)


def job_sheets(job: JobReceipt, lines: Sequence[LineReceipt]) -> Iterator[Sheet]:
    """Yield a job's receipt: its part of each machine, what that was for, its interruptions."""
    said = f"{dollars(job.spent_usd)} USD"
    if job.saved_usd is not None and job.spent_usd:
        said += f", {small(job.saved_usd)} less than on demand"
    said += f"; ran for {span(job.run_s)}, {counted(job.attempt, 'attempt')}"
    if job.restores:
        said += f", went on from a checkpoint {counted(job.restores, 'time')}"
    yield Sheet((), (), f"receipt of {job.id} ({job.project})", (f"{said}.",))
    if lines:
        yield _lines_sheet(lines)
    if job.spent_usd:
        yield purposes_sheet(job.parts, job.spent_usd)
    yield from _told([job])


# -- by machine ------------------------------------------------------------------------------


def machines_sheet(machines: Sequence[MachineReceipt]) -> Sheet:
    """Show each machine: seconds times price, what was bought, how much of it was boot and idle."""
    columns = (
        Column("machine"), Column("type", gives_way=True), Column("market"),
        Column("seconds", right=True), Column("USD/h", right=True),
        *(Column(name, right=True, optional=True) for name in ("alone", "disk", "address")),
        *(Column(name, right=True, optional=True) for name in ("egress", "on demand")),
        Column("boot", right=True), Column("idle", right=True), Column("USD", right=True),
    )  # fmt: skip
    shown = machines[:ROWS_MOST]
    more = len(machines) - len(shown)
    notes = (f"and {more:,} more: --json has them all",) if more else ()
    return Sheet(columns, tuple(map(_machine_row, shown)), "Machines", notes)


def _machine_row(one: MachineReceipt) -> tuple[Cell, ...]:
    if one.started_at is None:
        return cells(one.id, _what(one), one.market, "never came", *(NOTHING,) * 9)
    price = None if one.price_usd_h is None else one.price_usd_h + one.extras_usd_h
    return cells(
        one.id, _what(one), one.market, f"{one.billed_s:,.0f}", _or_nothing(price),
        *(_some(getattr(one.parts, name)) for name in BOUGHT), _or_nothing(one.on_demand_usd),
        _share(one.parts.wasted_boot_usd, one), _share(one.parts.wasted_idle_usd, one),
        dollars(one.spent_usd),
    )  # fmt: skip


def _what(one: MachineReceipt) -> str:
    return f"{one.provider} {one.type} {one.zone}"


def _share(part: Decimal, one: MachineReceipt) -> str:
    return percent(taken(float(part), float(one.spent_usd)))


def _or_nothing(amount: Decimal | None) -> str:
    return NOTHING if amount is None else dollars(amount)


def _some(amount: Decimal) -> str:
    return dollars(amount) if amount else NOTHING


def _lines_sheet(lines: Sequence[LineReceipt]) -> Sheet:
    columns = (
        Column("machine"), Column("GPU-hours", right=True),
        *(Column(name, right=True, optional=True) for name in ("alone", "disk", "address")),
        *(Column(name, right=True) for name in ("egress", "on demand", "USD")),
    )  # fmt: skip
    rows = tuple(
        cells(
            line.rental, f"{line.gpu_s / 3600:.2f}" if line.gpu_s else NOTHING,
            *(_some(getattr(line.parts, name)) for name in BOUGHT),
            _or_nothing(line.on_demand_usd), dollars(line.spent_usd),
        )
        for line in lines
    )  # fmt: skip
    return Sheet(columns, rows, "Its part of each machine")


# -- by purpose ------------------------------------------------------------------------------


def purposes_sheet(parts: Parts, spent: Decimal) -> Sheet:
    """Show what a sum was for; the rows add up to it."""
    columns = (
        Column("for", gives_way=True), Column("", on="terminal"), Column("share", right=True),
        Column("USD", right=True),
    )  # fmt: skip
    amounts = [(says, getattr(parts, name)) for name, says in MEANT.items()]
    rows = tuple(
        cells(
            says, bar(taken(float(amount), float(spent)), BAR_WIDTH),
            percent(taken(float(amount), float(spent))), dollars(amount),
        )
        for says, amount in amounts
        if amount
    )  # fmt: skip
    return Sheet(columns, rows, f"What {dollars(spent)} USD were for")


# -- interruptions ---------------------------------------------------------------------------


def _told(jobs: Sequence[JobReceipt]) -> Iterator[Sheet]:
    """Yield the interruptions, where there were any."""
    rows = [_toll_row(job, toll) for job in jobs for toll in job.tolls]
    if not rows:
        return
    columns = (
        Column("job"), Column("why", gives_way=True), Column("work lost", right=True),
        Column("away", right=True), Column("USD wasted", right=True),
    )  # fmt: skip
    more = len(rows) - ROWS_MOST
    notes = (f"and {more:,} more: --json has them all",) if more > 0 else ()
    yield Sheet(columns, tuple(rows[:ROWS_MOST]), "Interruptions", notes)


def _toll_row(job: JobReceipt, toll: TollReceipt) -> tuple[Cell, ...]:
    return cells(
        job.id, toll.why, span(toll.lost_work_s), span(toll.away_s), _or_nothing(toll.wasted_usd)
    )


# -- otherwise -------------------------------------------------------------------------------

COURSES: Mapping[Course, str] = {
    "on-demand": "on demand only",
    "one-each": "a machine for each job",
    "all-rented": "all rented, nothing on your own machines",
    "all-waited": "nothing rented, all waited for your own machines",
}
EXPECTED = (
    "What the planner expected then, and what it expects when it plans the same stored rounds "
    "again for the same jobs in another way; not what was paid."
)


def otherwise_sheet(courses: Sequence[Otherwise]) -> Sheet:
    """Show what the same jobs would have cost in other courses of things."""
    columns = (
        Column("course", gives_way=True), Column("jobs", right=True),
        Column("as planned", right=True), Column("otherwise", right=True),
        Column("difference", right=True), Column("at least", right=True, optional=True),
        Column("rounds", right=True, optional=True),
    )  # fmt: skip
    if not courses:
        says = "No machine was rented and no job placed by a round that is stored."
        return Sheet((), (), "What it would have cost", (says,))
    notes = [EXPECTED, *(says for one in courses if (says := _without(one)))]
    rows = tuple(map(_course_row, courses))
    return Sheet(columns, rows, "What it would have cost (USD)", tuple(notes))


def _course_row(one: Otherwise) -> tuple[Cell, ...]:
    rounds = str(len(one.rounds))
    if one.course == "all-waited":
        later = None if one.then_s is None or one.other_s is None else one.other_s - one.then_s
        differs = NOTHING if later is None else f"{span(abs(later))} {_sooner(later)}"
        return cells(
            COURSES[one.course], str(one.jobs), span(one.then_s), span(one.other_s), differs,
            NOTHING, rounds,
        )  # fmt: skip
    more = None
    if one.then_usd is not None and one.other_usd is not None:
        more = one.other_usd - one.then_usd
    differs = NOTHING if more is None else f"{'+' if more >= 0 else '-'}{dollars(abs(more))}"
    return cells(
        COURSES[one.course], str(one.jobs), _or_nothing(one.then_usd), _or_nothing(one.other_usd),
        differs, _or_nothing(one.bound_usd), rounds,
    )  # fmt: skip


def _sooner(later_s: float) -> str:
    return "later" if later_s >= 0 else "sooner"


def _without(one: Otherwise) -> str:
    """Say of whom nothing is known in a course; empty where all are in it."""
    if not one.without:
        return ""
    named = ", ".join(one.without[:3]) + (" and others" if len(one.without) > 3 else "")
    what = "could run there" if one.course == "all-waited" else "can be rented for"
    return f"{COURSES[one.course]}: nobody knows, as not all {what}: {named}"
