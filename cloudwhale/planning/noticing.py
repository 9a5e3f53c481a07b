"""What is worth telling a person, out of what has happened: pure, the same events tell the same.

A notice's id is what makes it one: its kind, its subject and the occasion. So whoever reads the
same events again, after a kill or a restart, finds the same notices, which are known already.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from cloudwhale.model import event as e
from cloudwhale.model.job import ENDED, Job, JobState, NotifyRule
from cloudwhale.model.notice import ALL, EVERY_KIND, OWN, Notice, NoticeKind, Way
from cloudwhale.model.reason import Code
from cloudwhale.model.rental import RentalState
from cloudwhale.model.run import Run
from cloudwhale.model.units import NOTHING, MicroUsd
from cloudwhale.model.world import Account
from cloudwhale.planning.payers import called, project_and_month
from cloudwhale.spi.store import Told

POSITION = ":events"
"""Under this name, which no node has, stands up to which event was looked for what is to tell."""
OFTEN = 3  # interruptions; then at 6, 12, ...: a job that is moved all night tells it four times
UNASKED = frozenset({"completed", "failed", "parked"})
"""What a job's own webhook is told when its file does not say."""

BY_MACHINE = frozenset(
    {
        Code.NODE_LOST, Code.MACHINE_GONE, Code.TAKEN_AWAY, Code.PREEMPTED, Code.RUNTIME_LOST,
        Code.DEVICE_LOST, Code.SHIM_LOST,
    }
)  # fmt: skip
"""Why an attempt ended that did nothing wrong itself."""


@dataclass(frozen=True, slots=True)
class Known:
    """What the events' subjects are, as far as it is known when they are read."""

    jobs: Mapping[str, Job]
    runs: Mapping[str, Run] = field(default_factory=dict[str, Run])
    accounts: Mapping[str, Account] = field(default_factory=dict[str, Account])
    """Those of which one of the events is, and of runs of nights that are over."""
    interruptions: Mapping[str, int] = field(default_factory=dict[str, int])
    """Of jobs that were interrupted: how often."""
    counts: Mapping[str, Mapping[JobState, int]] = field(
        default_factory=dict[str, Mapping[JobState, int]]
    )
    """Of runs of nights that are over: how many jobs are in each state."""


def notices(told: Iterable[Told], known: Known) -> Iterator[Notice]:
    """Yield what is to be told of some events, without the targets; an id may come twice."""
    for one in told:
        for told_of, notice in _TOLD.items():
            if isinstance(one.event, told_of):
                yield from notice(one, known)


def jobs_in(events: Iterable[e.Event]) -> set[str]:
    """Return the jobs that have to be known."""
    return {event.job for event in events if isinstance(event, _OF_JOBS)}


def interrupted_in(events: Iterable[e.Event]) -> set[str]:
    """Return the jobs of which it has to be known how often they were interrupted."""
    return {event.job for event in events if isinstance(event, _STOPS) and interrupts(event)}


def interrupts(event: e.Event) -> bool:
    """Say whether a job was stopped, and goes on later, for no fault of its own."""
    if isinstance(event, e.Retried):
        return event.reason.code in BY_MACHINE
    return isinstance(event, e.Cleared | e.GaveWay)


def ways(notice: Notice, rule: NotifyRule, wanted: Mapping[str, frozenset[str]]) -> dict[str, Way]:
    """Return to whom a notice goes, by target; `rule`: of its job, else an empty one.

    `wanted`: the kinds that each target of the settings asks for.
    """
    asked = kinds(rule.on)
    # Of a refusal those who do not ask for this job have heard, as of its run's.
    is_its_own = notice.kind is NoticeKind.BUDGET and bool(notice.job)
    found = {name for name, on in wanted.items() if notice.kind in on and not is_its_own}
    if rule.webhook is None:
        found |= {name for name, on in wanted.items() if notice.kind in asked - on}
    elif notice.kind in (asked or UNASKED):
        found.add(own_name(rule.webhook))
    return {name: Way() for name in sorted(found)}


def own_name(webhook: str) -> str:
    """Return how a job's own webhook is called; those with one address are one target."""
    return f"{OWN}{hashlib.sha256(webhook.encode()).hexdigest()[:8]}"


def kinds(words: Iterable[str]) -> frozenset[str]:
    """Return the kinds that some words mean."""
    found = frozenset(words)
    return EVERY_KIND if ALL in found else found


# -- jobs ------------------------------------------------------------------------------------


def _of_job(job: Job, kind: NoticeKind, occasion: object, event: e.Event) -> Notice:
    reason = getattr(event, "reason", None)
    return Notice(
        id=f"{kind}:{job.id}:{occasion}", kind=kind, at=event.at, subject=job.id, job=job.id,
        name=job.spec.name, project=job.spec.project, run=job.run, attempt=job.attempt or None,
        ran_s=job.run_s or None, spent=job.spent or None,
        says="" if reason is None else reason.says,
        change="" if reason is None else reason.change,
    )  # fmt: skip


def _ended(kind: NoticeKind) -> Callable[[Told, Known], Iterator[Notice]]:
    """Return what tells of the end of a job, or of its parking: once for each such event."""

    def told(one: Told, known: Known) -> Iterator[Notice]:
        job = known.jobs.get(getattr(one.event, "job", ""))
        if job is not None:
            yield _of_job(job, kind, one.seq, one.event)

    return told


def _interrupted(one: Told, known: Known) -> Iterator[Notice]:
    job = known.jobs.get(getattr(one.event, "job", ""))
    if job is None or not interrupts(one.event):
        return
    times, line = known.interruptions.get(job.id, 0), OFTEN
    while line <= times:
        notice = _of_job(job, NoticeKind.PREEMPTED, line, one.event)
        yield notice.but(interruptions=line)
        line *= 2


def _waits(one: Told, known: Known) -> Iterator[Notice]:
    """What would be rented for, and is not, as the money does not reach: once for each bound."""
    event = one.event
    assert isinstance(event, e.Waits | e.Parked)
    job = known.jobs.get(event.job)
    if job is None or event.reason.code is not Code.OVER_BUDGET:
        return
    account = known.accounts.get(job.run)
    if account is None or not account.limit:
        return
    own = _of_job(job, NoticeKind.BUDGET, f"refused:{account.limit}", event).but(
        attempt=None, ran_s=None, limit=account.limit, spent=account.spent,
        reserved=account.reserved,
    )  # fmt: skip
    yield own.but(id=f"budget:{job.run}:refused:{account.limit}", subject=job.run, job="")
    if job.spec.notify != NotifyRule():
        yield own


# -- money -----------------------------------------------------------------------------------


def payers_in(event: e.Event) -> tuple[str, ...]:
    """Return the accounts that an event has moved."""
    match event:
        case e.Reserved():
            return (event.payer, *event.projects)
        case e.Charged():
            return (event.payer, event.account) if event.account else (event.payer,)
        case e.RunBudgetSet():
            return (event.run,)
        case _:
            return ()


def _paid(one: Told, known: Known) -> Iterator[Notice]:
    for payer in payers_in(one.event):
        account = known.accounts.get(payer)
        if account is not None:
            yield from _lines(account, known.runs.get(payer), one.event)


def _lines(account: Account, run: Run | None, event: e.Event) -> Iterator[Notice]:
    """Yield the lines that an account has reached, by what is spent and what is set aside."""
    limit, taken = account.limit, account.spent + account.reserved
    if not limit:
        return
    found = project_and_month(account.payer)
    for line, at in (("soft", limit * account.soft), ("bound", float(limit))):
        if taken >= at and not (line == "soft" and account.soft >= 1.0):
            yield Notice(
                id=f"budget:{account.payer}:{line}:{limit}", kind=NoticeKind.BUDGET, at=event.at,
                subject=account.payer, name=called(account.payer), run=run.id if run else "",
                project=found[0] if found else "", user=run.user if run else "",
                spent=account.spent, reserved=account.reserved, limit=limit,
                share=account.soft if line == "soft" else 1.0,
            )  # fmt: skip


# -- machines and nights ---------------------------------------------------------------------


def _noted(one: Told, known: Known) -> Iterator[Notice]:
    event = one.event
    assert isinstance(event, e.Noted)
    # What stays is found again by each controller, and told once.
    occasions = {Code.LEFTOVER_REMOVED: str(one.seq), Code.LEFTOVER_STAYS: "stays"}
    occasion = occasions.get(event.reason.code)
    if occasion is not None:
        yield Notice(
            id=f"leak:{event.subject}:{occasion}", kind=NoticeKind.LEAK, at=event.at,
            subject=event.subject, says=event.reason.says, change=event.reason.change,
        )  # fmt: skip


def _machine(one: Told, known: Known) -> Iterator[Notice]:
    event = one.event
    assert isinstance(event, e.RentalChanged)
    rental = event.rental
    if rental.state is RentalState.NEEDS_ATTENTION:
        yield Notice(
            id=f"attention:{rental.id}", kind=NoticeKind.ATTENTION, at=event.at,
            subject=rental.id, name=rental.machine or rental.id, run=rental.payer,
            says=rental.offer, reserved=MicroUsd(max(NOTHING, rental.reserved - rental.spent)),
        )  # fmt: skip


def _night(one: Told, known: Known) -> Iterator[Notice]:
    event = one.event
    assert isinstance(event, e.NightClosed)
    run, account = known.runs.get(event.run), known.accounts.get(event.run)
    night = None if run is None else run.night
    # Each job once: those that have not ended are what becomes of them, not what they were.
    ended = {s.value: n for s, n in known.counts.get(event.run, {}).items() if s in ENDED and n}
    counts = ended | Counter(event.unfinished.values())
    yield Notice(
        id=f"night:{event.run}", kind=NoticeKind.NIGHT, at=event.at, subject=event.run,
        run=event.run, name=event.run if night is None else f"{night.name} of {night.date}",
        user="" if run is None else run.user, counts=counts,
        spent=None if account is None else account.spent,
        reserved=None if account is None else account.reserved,
        limit=None if account is None else account.limit,
    )  # fmt: skip


_TOLD: dict[type | tuple[type, ...], Callable[[Told, Known], Iterator[Notice]]] = {
    e.Finished: _ended(NoticeKind.COMPLETED),
    (e.Failed, e.GaveUp): _ended(NoticeKind.FAILED),
    e.Cancelled: _ended(NoticeKind.CANCELLED),
    e.Parked: _ended(NoticeKind.PARKED),
    e.CheckpointLate: _ended(NoticeKind.CHECKPOINT_LATE),
    (e.Retried, e.Cleared, e.GaveWay): _interrupted,
    (e.Waits, e.Parked): _waits,
    (e.Reserved, e.Charged, e.RunBudgetSet): _paid,
    e.Noted: _noted,
    e.RentalChanged: _machine,
    e.NightClosed: _night,
}
_STOPS = (e.Retried, e.Cleared, e.GaveWay)
_OF_JOBS = (
    e.Finished, e.Failed, e.GaveUp, e.Cancelled, e.Parked, e.CheckpointLate, *_STOPS, e.Waits,
)  # fmt: skip
