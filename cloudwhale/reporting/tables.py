"""What the commands show as tables: jobs, receipts, nodes, checks."""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from cloudwhale.model.job import ENDED, Job, JobState, Placement, Wish
from cloudwhale.model.reason import Code
from cloudwhale.model.receipt import (
    JobReceipt,
    MachineReceipt,
    Parts,
    ProviderReceipt,
    RunReceipt,
)
from cloudwhale.model.rental import Rental, RentalState
from cloudwhale.model.units import Instant
from cloudwhale.reporting.costs import WASTE_KEYS
from cloudwhale.reporting.figures import (
    NOTHING,
    cents,
    counted,
    dollars,
    moment,
    money,
    span,
    watch,
)
from cloudwhale.reporting.receipt import waited_s
from cloudwhale.reporting.rented import small
from cloudwhale.reporting.sentences import array_words, gave_way, where
from cloudwhale.reporting.sheet import Cell, Column, Sheet, Tone, cells
from cloudwhale.spi.provider import Check

TONES: Mapping[str, Tone] = {
    JobState.PENDING: "warn",
    JobState.STARTING: "busy",
    JobState.RUNNING: "busy",
    JobState.RECOVERING: "warn",
    JobState.PAUSED: "warn",
    JobState.PARKED: "bad",
    JobState.COMPLETED: "good",
    JobState.FAILED: "bad",
    JobState.CANCELLED: "quiet",
}

MARKS: Mapping[str, str] = {
    JobState.PENDING: "·",
    JobState.STARTING: "◌",
    JobState.RUNNING: "●",
    JobState.RECOVERING: "↻",
    JobState.PAUSED: "‖",
    JobState.PARKED: "■",
    JobState.COMPLETED: "✓",
    JobState.FAILED: "✗",
    JobState.CANCELLED: "-",
}


NOTHING_RENTED: Mapping[str, Rental] = {}


def state_cell(state: str) -> Cell:
    """Return a state with what it means."""
    return Cell(state, TONES[state])


def jobs_sheet(
    jobs: Sequence[Job],
    now: Instant,
    notes: Sequence[str] = (),
    rentals: Mapping[str, Rental] = NOTHING_RENTED,
) -> Sheet:
    """Show jobs, one a row; `rentals`: rented machines by the names of their nodes."""
    columns = (
        Column("job"),
        Column("state"),
        Column("node", on="pipe"),
        Column("devices", on="pipe"),
        Column("machine", on="pipe"),
        Column("ran", right=True),
        Column("tries", right=True, optional=True),
        Column("array", optional=True, on="terminal"),
        Column("project", optional=True),
        Column("submitted", optional=True),
        Column("why", on="pipe"),
        Column("where, why", gives_way=True, on="terminal"),
    )
    rows = tuple(_job_row(job, now, _machine(job, rentals)) for job in jobs)
    return Sheet(columns, rows, notes=tuple(notes))


def _machine(job: Job, rentals: Mapping[str, Rental]) -> str:
    """Return what kind of machine a job is on, where it is rented."""
    rental = None if job.placement is None else rentals.get(job.placement.node)
    if rental is None or rental.taken is None:
        return ""
    offer = rental.taken
    return f"{offer.provider} {offer.type or offer.id} {offer.market}, {offer.zone}"


def _job_row(job: Job, now: Instant, machine: str) -> tuple[Cell, ...]:
    place = job.placement
    ran = job.ran_s(now)
    return cells(
        job.id,
        state_cell(job.state),
        _nodes(place) if place else NOTHING,
        ", ".join(place.devices) if place and place.devices else NOTHING,
        machine or NOTHING,
        watch(ran) if ran or job.attempt else NOTHING,
        str(job.attempt) if job.attempt > 1 else NOTHING,
        array_words(job.spec) or NOTHING,
        job.spec.project if job.spec.project != "default" else NOTHING,
        moment(job.submitted_at, now),
        why(job, now),
        Cell(_where_and_why(job, now, machine), "quiet"),
    )


def _nodes(place: Placement) -> str:
    """Return a place's node; of a gang all of them."""
    return ", ".join(place.nodes)


def _where_and_why(job: Job, now: Instant, machine: str) -> str:
    is_there = job.placement is not None and job.state is not JobState.FAILED
    on = f"on {where(job.placement)}" if is_there and job.placement else ""
    on += f" [{machine}]" if on and machine else ""
    return ", ".join(part for part in (on, why(job, now)) if part)


def why(job: Job, now: Instant) -> str:
    """Say in a sentence why a job is where it is; empty when there is nothing to say."""
    if job.state in (JobState.RUNNING, JobState.STARTING) and job.wish is None:
        return _progress(job, now)
    if job.state is JobState.COMPLETED:
        return f"attempt {job.attempt}" if job.attempt > 1 else ""
    if job.state in (JobState.RUNNING, JobState.STARTING) and job.reason is not None:
        return f"{_STOPPING.get(job.wish, 'is stopping')}: {job.reason.says}"
    if job.state is JobState.PENDING and job.attempt and gave_way(job):
        return _gave_way(job)
    if job.reason is None:
        return f"queued {span(waited_s(job, now))} ago" if job.state not in ENDED else ""
    return _with_code(job.reason.says, job.exit_code if job.state is JobState.FAILED else None)


_STOPPING: Mapping[Wish | None, str] = {
    Wish.GIVE_WAY: "gives way",
    Wish.PAUSE: "is being paused",
    Wish.CANCEL: "is being cancelled",
    Wish.LIMIT: "is stopped at its limit",
}


_OF_MACHINES = frozenset(
    {
        Code.TAKEN_AWAY,
        Code.MACHINE_GONE,
        Code.LEASE_ENDS,
        Code.SWITCHES,
        Code.HOPS,
        Code.RENTED,
        Code.JOINS,
    }
)
"""What a job is told that was interrupted for its machine's sake, and not for another job."""


def _gave_way(job: Job) -> str:
    """Say what a job is that was stopped, for another one or its machine, and waits to go on."""
    count = gave_way(job)
    often = "" if count == 1 else f" {count} times"
    goes_on = f", goes on from {job.checkpoint.name}" if job.checkpoint else ", starts over"
    is_new = job.reason is None or job.reason.code is Code.PREEMPTED
    now = "" if is_new or job.reason is None else f"; {job.reason.says}"
    what = "was interrupted" if job.reason and job.reason.code in _OF_MACHINES else "gave way"
    return f"{what}{often}{goes_on}{now}"


def _with_code(says: str, exit_code: int | None) -> str:
    """Name the exit code, unless the sentence does."""
    if not exit_code or f"ended with {exit_code}" in says:
        return says
    return f"exit code {exit_code}: {says}"


def _progress(job: Job, now: Instant) -> str:
    again = f"attempt {job.attempt}" if job.attempt > 1 else ""
    saved = (
        f"checkpoint {job.checkpoint.name} {span(max(0.0, now - job.checkpoint.saved_at))} ago"
        if job.checkpoint
        else ""
    )
    return ", ".join(part for part in (again, saved) if part)


ASIDES_MOST = 20
RECEIPT_ROWS_MOST = 60
"""Of more jobs only those stand in the table that did not complete."""


def receipt_sheet(receipt: RunReceipt) -> Sheet:
    """Show what a run came to."""
    columns = (
        Column("job"),
        Column("state"),
        Column("node"),
        Column("waited", right=True),
        Column("ran", right=True),
        Column("lost", right=True),
        Column("tries", right=True),
        Column("USD", right=True),
        Column("why", on="pipe"),
    )
    jobs = receipt.jobs
    notes: list[str] = []
    if len(jobs) > RECEIPT_ROWS_MOST:
        jobs = tuple(job for job in jobs if job.state != JobState.COMPLETED)
        if jobs:  # else the total says all
            notes.append(f"{len(receipt.jobs) - len(jobs):,} more completed")
    return Sheet(
        columns,
        tuple(_receipt_row(job) for job in jobs),
        f"receipt of {receipt.run}",
        (*notes, *_machines(receipt), _total(receipt)),
        tuple(_asides(jobs)),
    )


MACHINES_MOST = 10
"""So many rented machines are named below a receipt."""


def _machines(receipt: RunReceipt) -> list[str]:
    """Say what was rented: provider, market, zone, price, how long, what it cost and whom."""
    lines = [_machine_line(machine) for machine in receipt.machines]
    more = len(lines) - MACHINES_MOST
    lines = lines[:MACHINES_MOST] + ([f"and {counted(more, 'machine')} more"] if more > 0 else [])
    return lines + _provider_lines(receipt.providers) + _store_line(receipt.machines)


def _provider_lines(providers: Sequence[ProviderReceipt]) -> list[str]:
    """Say what each cloud had of it, where they are several, or something has left one."""
    if len(providers) < 2 and not any(one.egress_usd for one in providers):
        return []
    return [_provider_line(one) for one in providers]


def _provider_line(one: ProviderReceipt) -> str:
    left = f", {small(one.egress_usd)} of it for what left it" if one.egress_usd else ""
    machines = counted(one.machines, "machine")
    return f"{one.provider or NOTHING}: {small(one.spent_usd)} for {machines}{left}"


def _store_line(machines: Sequence[MachineReceipt]) -> list[str]:
    """Say what their agents have asked of the store: it bills that itself."""
    asked = sum(machine.store_requests for machine in machines)
    if not asked:
        return []
    usd = sum((machine.store_usd for machine in machines), Decimal(0))
    return [f"their agents asked the store {counted(asked, 'time')}: {small(usd)}, on its own bill"]


def _machine_line(machine: MachineReceipt) -> str:
    what = f"{machine.provider} {machine.type} {machine.market} in {machine.zone}"
    if machine.started_at is None:
        return f"{machine.id}: {what}, never came"
    price = "" if machine.price_usd_h is None else f" at {cents(machine.price_usd_h)} USD an hour"
    if price and machine.extras_usd_h:
        price += f" and {cents(machine.extras_usd_h)} for disk and address"
    is_short = machine.billed_s < machine.billed_least_s
    least = f" (billed as {span(machine.billed_least_s)})" if is_short else ""
    each = ", ".join(f"{job} {small(paid)}" for job, paid in machine.jobs.items())
    paid = f": {each}" if len(machine.jobs) > 1 else ""
    if machine.egress_usd:
        paid += f", {small(machine.egress_usd)} of it for a checkpoint from another cloud"
    state = "" if machine.state == RentalState.RETURNED else f", {machine.state}"
    return (
        f"{machine.id}: {what}{price}, {span(machine.billed_s)}{least} for "
        f"{small(machine.spent_usd)}{paid}{state}"
    )


def _asides(jobs: Sequence[JobReceipt]) -> list[str]:
    told = [f"{job.id}: {said}" for job in jobs if (said := _why_not_completed(job))]
    more = len(told) - ASIDES_MOST
    return told[:ASIDES_MOST] + ([f"and {more:,} more"] if more > 0 else [])


def _receipt_row(job: JobReceipt) -> tuple[Cell, ...]:
    return cells(
        job.id,
        state_cell(job.state),
        job.node or NOTHING,
        watch(job.wait_s),
        watch(job.run_s) if job.attempt else NOTHING,
        watch(job.lost_work_s) if job.lost_work_s else NOTHING,
        str(job.attempt) if job.attempt else NOTHING,
        dollars(job.spent_usd),
        _why_not_completed(job),
    )


TELLS_NOTHING = (JobState.COMPLETED, JobState.RUNNING, JobState.STARTING)
"""States whose reason is why the job was placed, which a receipt does not repeat."""


def _why_not_completed(job: JobReceipt) -> str:
    if job.state in TELLS_NOTHING or job.reason is None:
        return ""
    change = f"; {job.reason.change}" if job.reason.change else ""
    return _with_code(job.reason.says, job.exit_code) + change


def _total(receipt: RunReceipt) -> str:
    done = sum(job.state == JobState.COMPLETED for job in receipt.jobs)
    bound = f" of {money(receipt.budget_usd)}" if receipt.budget_usd is not None else ""
    rented = " (nothing was rented)" if receipt.spent_usd == Decimal(0) else ""
    parts = [
        f"{done} of {counted(len(receipt.jobs), 'job')} completed",
        f"spent {money(receipt.spent_usd)}{bound}{rented}",
    ]
    if receipt.released_usd:
        parts.append(f"{small(receipt.released_usd)} of what was reserved were not needed")
    if receipt.reserved_usd:
        parts.append(f"{small(receipt.reserved_usd)} are reserved still")
    parts += _less(receipt)
    if receipt.wasted_usd:
        parts.append(f"{small(receipt.wasted_usd)} wasted ({waste_words(receipt.parts)})")
    if receipt.interruptions or receipt.lost_work_s:
        parts.append(
            f"{counted(receipt.interruptions, 'interruption')}, "
            f"{span(receipt.lost_work_s)} of work lost"
        )
    return ", ".join(parts) + "."


def waste_words(parts: Parts) -> str:
    """Return what was wasted by cause, the most first: `boot 0.40, idle 0.12`."""
    amounts = [(getattr(parts, f"{key}_usd"), cause) for cause, key in WASTE_KEYS.items()]
    largest = sorted((one for one in amounts if one[0]), key=lambda one: -one[0])
    return ", ".join(f"{cause.value} {small(amount)}" for amount, cause in largest)


def _less(receipt: RunReceipt) -> list[str]:
    """Say what the machines cost less than others would have; expected beside expected alone."""
    compared: list[str] = []
    if receipt.saved_usd:
        compared.append(f"{small(receipt.saved_usd)} less than on demand")
    planned, alone = receipt.planned_usd, receipt.one_each_usd
    is_shared = any(len(machine.jobs) > 1 for machine in receipt.machines)
    if is_shared and planned is not None and alone is not None and alone > planned:
        compared.append(
            f"planned were {small(planned)}, and {small(alone)} with a machine for each job"
        )
    return compared


def counts_line(counts: Mapping[JobState, int]) -> str:
    """Return `2 running, 7 pending, 1,204 completed`, live states first."""
    order = list(JobState)
    said = [f"{counts[state]:,} {state}" for state in _live_first(order) if counts.get(state)]
    return ", ".join(said) or "no jobs"


def _live_first(states: Sequence[JobState]) -> list[JobState]:
    first = (JobState.RUNNING, JobState.STARTING, JobState.RECOVERING)
    return [*first, *(state for state in states if state not in first)]


CHECK_TONES: Mapping[str, Tone] = {"ok": "good", "warning": "warn", "failed": "bad"}


def _with_remedy(check: Check) -> str:
    ends = "" if not check.remedy or check.says.endswith((".", ":", "?")) else "."
    return f"{check.says}{ends} {check.remedy}".strip()


def checks_sheet(checks: Sequence[Check]) -> Sheet:
    """Show what `doctor` found."""
    columns = (Column("check"), Column("is"), Column("found", gives_way=True))
    rows = tuple(
        cells(
            check.name,
            Cell(check.state, CHECK_TONES[check.state]),
            _with_remedy(check) if check.state != "ok" else check.says,
        )
        for check in checks
    )
    return Sheet(columns, rows)
