"""What a night came to, gathered for who reads it in the morning."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

from cloudwhale.model.cost import Waste
from cloudwhale.model.job import Job, JobState
from cloudwhale.model.morning import (
    Morning,
    NextNight,
    NightJob,
    NightMachine,
    NightMoney,
    NightProject,
)
from cloudwhale.model.night import Night, Unfinished
from cloudwhale.model.reason import Reason
from cloudwhale.model.receipt import JobReceipt, MachineReceipt, RunReceipt
from cloudwhale.model.rental import SETTLED, Rental
from cloudwhale.model.run import Run
from cloudwhale.model.units import Instant, MicroUsd, usd
from cloudwhale.planning.night_hours import next_after
from cloudwhale.reporting.costs import WASTE_KEYS
from cloudwhale.reporting.receipt import NO_BOOKS, Books, run_receipt

ZERO = Decimal(0)


@dataclass(frozen=True, slots=True)
class Told:
    """What is known of a night beside its jobs and its money."""

    unfinished: Mapping[str, Unfinished] = field(default_factory=dict[str, Unfinished])
    """What became of each job that was left over when it closed, by id."""
    reasons: Mapping[str, Reason] = field(default_factory=dict[str, Reason])
    """Why each of them had not run, or was not done: the last that was said before it closed."""
    last_lines: Mapping[str, str] = field(default_factory=dict[str, str])
    """The last that each failed job has printed, by id."""


NOTHING_TOLD = Told()


def morning(
    run: Run, jobs: Sequence[Job], now: Instant, books: Books = NO_BOOKS, told: Told = NOTHING_TOLD
) -> Morning:
    """Return the report of a run that is a night; raise ValueError for one that is none."""
    night = run.night
    if night is None:
        raise ValueError(f"{run.id} is no night")
    receipt = run_receipt(run, jobs, now, books)
    rows = tuple(_jobs(jobs, receipt, night, told))
    left = tuple(row.id for row in rows if row.becomes)
    rentals = {bill.rental.id: bill.rental for bill in books.bills}
    return Morning(
        run=run.id,
        name=night.name,
        date=night.date,
        zone=night.zone,
        opens_at=_iso(night.opens_at, night),
        closes_at=_iso(night.closes_at, night),
        told_at=_iso(now, night),
        is_over=_is_over(jobs, rentals, told),
        money=_money(receipt),
        wasted=_wasted(receipt),
        projects=tuple(_projects(rows, receipt)),
        jobs=rows,
        machines=tuple(_machine(one, rentals[one.id], night) for one in receipt.machines),
        lost_work_s=receipt.lost_work_s,
        interruptions=receipt.interruptions,
        tonight=next_night(run, night, left),
    )


def _is_over(jobs: Sequence[Job], rentals: Mapping[str, Rental], told: Told) -> bool:
    is_done = all(job.ended or job.id in told.unfinished for job in jobs)
    return is_done and all(rental.state in SETTLED for rental in rentals.values())


def _iso(at: Instant, night: Night) -> str:
    """Return a time in a night's own zone."""
    local = datetime.fromtimestamp(at, UTC).astimezone(ZoneInfo(night.zone))
    return local.isoformat(timespec="seconds")


def _in_zone(said: str | None, night: Night) -> str | None:
    return None if said is None else _iso(datetime.fromisoformat(said).timestamp(), night)


def _money(receipt: RunReceipt) -> NightMoney:
    """Return the sums; a machine that is not back is in what was spent, with what it is by now."""
    taken, budget = receipt.spent_usd + receipt.reserved_usd, receipt.budget_usd
    return NightMoney(
        budget_usd=budget,
        spent_usd=receipt.spent_usd + receipt.running_usd,
        reserved_usd=receipt.reserved_usd,
        left_usd=None if budget is None else max(ZERO, budget - taken),
        saved_usd=receipt.saved_usd,
        wasted_usd=receipt.wasted_usd,
    )


def _wasted(receipt: RunReceipt) -> dict[Waste, Decimal]:
    amounts = {cause: getattr(receipt.parts, f"{key}_usd") for cause, key in WASTE_KEYS.items()}
    return {cause: amount for cause, amount in amounts.items() if amount}


# -- jobs ------------------------------------------------------------------------------------


def _jobs(jobs: Sequence[Job], receipt: RunReceipt, night: Night, told: Told) -> Iterator[NightJob]:
    machines = {one.id: one for one in receipt.machines}
    for job, line in zip(jobs, receipt.jobs, strict=True):
        reason = told.reasons.get(job.id, job.reason)
        is_ill = job.state is not JobState.COMPLETED and reason is not None
        yield NightJob(
            id=job.id,
            name=job.spec.name,
            project=job.spec.project,
            state=job.state.value,
            where=_where(line, machines),
            started_at=_in_zone(line.started_at, night),
            ended_at=_in_zone(line.ended_at, night),
            run_s=line.run_s,
            lost_work_s=line.lost_work_s,
            attempts=job.attempt,
            interruptions=job.interruptions,
            spent_usd=line.spent_usd,
            wasted_usd=line.wasted_usd,
            becomes=_becomes(job, night, told),
            why=reason.says if is_ill and reason else "",
            change=reason.change if is_ill and reason else "",
            exit_code=job.exit_code,
            last_line=told.last_lines.get(job.id, ""),
        )


def _where(line: JobReceipt, machines: Mapping[str, MachineReceipt]) -> str:
    if line.node is None:
        return ""
    rented = machines.get(line.node)
    return line.node if rented is None else _what(rented)


def _what(one: MachineReceipt) -> str:
    return f"{one.provider} {one.type} {one.market} in {one.zone}"


BECOMES: Mapping[Unfinished, str] = {
    "park": "is parked until you resume it",
    "carry-over": "is carried over to the next night",
    "continue": "goes on where that costs nothing, on machines of your own",
}


def _becomes(job: Job, night: Night, told: Told) -> str:
    """Say what becomes of a job that its night has left over; empty for one that has ended."""
    if job.id in told.unfinished:
        return BECOMES[told.unfinished[job.id]]
    if job.ended:
        return ""
    return "is not done yet" if job.state is not JobState.PARKED else BECOMES["park"]


# -- projects and machines -------------------------------------------------------------------


def _projects(rows: Sequence[NightJob], receipt: RunReceipt) -> Iterator[NightProject]:
    """Yield each project's part, the dearest first."""
    lines = {job.id: job for job in receipt.jobs}
    members: dict[str, list[NightJob]] = {}
    for row in rows:
        members.setdefault(row.project, []).append(row)
    parts = [_project(name, mine, lines) for name, mine in members.items()]
    yield from sorted(parts, key=lambda part: (-part.spent_usd, part.project))


def _project(name: str, rows: Sequence[NightJob], lines: Mapping[str, JobReceipt]) -> NightProject:
    saved = [amount for row in rows if (amount := lines[row.id].saved_usd) is not None]
    return NightProject(
        project=name,
        jobs=len(rows),
        completed=sum(row.state == JobState.COMPLETED for row in rows),
        failed=sum(row.state == JobState.FAILED for row in rows),
        left_over=sum(bool(row.becomes) for row in rows),
        gpu_s=sum(lines[row.id].gpu_s for row in rows),
        spent_usd=sum((row.spent_usd for row in rows), ZERO),
        saved_usd=sum(saved, ZERO) if saved else None,
        wasted_usd=sum((row.wasted_usd for row in rows), ZERO),
    )


def _machine(one: MachineReceipt, rental: Rental, night: Night) -> NightMachine:
    return NightMachine(
        id=one.id,
        what=_what(one),
        state=one.state,
        started_at=_in_zone(one.started_at, night),
        ended_at=_in_zone(one.ended_at, night),
        billed_s=one.billed_s,
        spent_usd=one.spent_usd,
        jobs=tuple(rental.jobs),
        taken_away=rental.interrupted_at is not None,
    )


# -- what follows ----------------------------------------------------------------------------


def next_night(run: Run, night: Night, left: tuple[str, ...]) -> NextNight | None:
    """Return when the next night of the same file opens, on its days; None: there is none."""
    hours = next_after(night)
    if hours is None:
        return None
    return NextNight(
        opens_at=_iso(hours.opens_at, night),
        closes_at=_iso(hours.closes_at, night),
        budget_usd=None if run.budget is None else usd(MicroUsd(run.budget)),
        waiting=left if night.unfinished == "carry-over" else (),
    )
