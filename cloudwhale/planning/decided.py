"""The events that a plan's steps lead to by themselves, before anything is done."""

from collections.abc import Iterator

from cloudwhale.model import event as e
from cloudwhale.model import plan as p
from cloudwhale.model.reason import Code
from cloudwhale.model.units import NOTHING, Instant
from cloudwhale.planning import boots, projects


def events_of(plan: p.Plan, at: Instant) -> tuple[e.Event, ...]:
    """Return the events to record with the plan; steps that only start an effect have none."""
    return tuple(event for step in plan.steps for event in _events(step, at))


def _events(step: p.Step, at: Instant) -> Iterator[e.Event]:
    match step:
        case p.Place():
            yield e.Placed(
                at=at, job=step.job, attempt=step.attempt,
                placement=step.placement, reason=step.reason, pace=step.pace,
            )  # fmt: skip
        case p.DeclareLost():
            yield e.NodeLost(at=at, node=step.node, silent_s=step.silent_s)
            for job, attempt in step.attempts:
                yield e.AttemptLost(at=at, job=job, attempt=attempt, reason=step.reason)
        case p.Drop(wish="cancel"):
            yield e.Cancelled(at=at, job=step.job, reason=step.reason)
        case p.Drop():
            yield e.Paused(at=at, job=step.job, reason=step.reason)
        case p.WakeAgent() | p.PostStart() | p.PostStop():
            return
        case p.Launch() | p.Extend() | p.TellLease() | p.Terminate():
            return
        case p.Rent() | p.Join() | p.Receive() | p.Renew() | p.Return() | p.Settle():
            yield from _of_rental(step, at)
        case p.CloseNight():
            yield e.NightClosed(at=at, run=step.run, unfinished=step.unfinished)
        case _:
            yield _plain(step, at)


def _of_rental(
    step: p.Rent | p.Join | p.Receive | p.Renew | p.Return | p.Settle, at: Instant
) -> Iterator[e.Event]:
    rental = step.rental
    payer, name, node = rental.payer, rental.id, rental.node
    match step:
        case p.Rent():
            yield e.Reserved(
                at=at, payer=payer, rental=name, amount=rental.reserved, projects=rental.projects
            )
            yield e.RentalChanged(at=at, rental=rental)
            if rental.gang in ("", rental.id):  # told once of all machines of a gang
                yield from (e.Waits(at=at, job=job, reason=step.reason) for job in rental.jobs)
        case p.Join():
            if step.projects:
                yield e.Reserved(
                    at=at, payer=payer, rental=name, amount=NOTHING, projects=step.projects
                )
            yield e.RentalChanged(at=at, rental=rental)
            yield e.Waits(at=at, job=step.job, reason=step.reason)
        case p.Renew():
            added = NOTHING if rental.renewal is None else rental.renewal.reserved
            beside = {} if rental.renewal is None else rental.renewal.projects
            yield e.Reserved(at=at, payer=payer, rental=name, amount=added, projects=beside)
            yield e.RentalChanged(at=at, rental=rental)
        case p.Return() if node is not None:
            yield from _returned(step, node, at)
        case p.Settle():
            for job, amount in step.charges.items():
                project = rental.jobs.get(job, "default")
                account = projects.account_for(rental, project)
                yield e.Charged(
                    at=at, payer=payer, rental=name, amount=amount, job=job, project=project,
                    account=account if account in rental.projects else "",
                    line=step.lines.get(job),
                )  # fmt: skip
            free = projects.unused(rental, step.charges)
            yield e.Released(at=at, payer=payer, rental=name, amount=step.released, projects=free)
            yield e.RentalChanged(at=at, rental=rental)
            if node is not None and rental.machine:
                yield e.NodeRemoved(at=at, node=node)
        case _:
            yield e.RentalChanged(at=at, rental=rental)


def _returned(step: p.Return, node: str, at: Instant) -> Iterator[e.Event]:
    rental, is_not_up = step.rental, step.reason.code is Code.BOOT_FAILED
    if is_not_up:
        yield e.Noted(at=at, subject=rental.id, reason=step.reason)
    yield e.RentalChanged(at=at, rental=rental)
    yield e.NodeDrained(at=at, node=node)
    note = boots.noted(rental, Code.BOOT_FAILED, step.reason.says, at) if is_not_up else None
    yield from () if note is None else (note,)


def _plain(step: p.Step, at: Instant) -> e.Event:
    match step:
        case p.Explain():
            return e.Waits(at=at, job=step.job, reason=step.reason)
        case p.Hold():
            return e.Held(at=at, job=step.job, until=step.until, reason=step.reason)
        case p.Park():
            return e.Parked(at=at, job=step.job, reason=step.reason)
        case p.GiveUp():
            return e.GaveUp(at=at, job=step.job, reason=step.reason)
        case p.AskToStop():
            return e.StopWished(
                at=at, job=step.job, attempt=step.attempt, wish=step.wish, reason=step.reason
            )
        case p.ForgetSaves():
            return e.SavesForgotten(
                at=at, job=step.job, attempt=step.attempt, manifests=step.manifests
            )
        case p.Late():
            return e.CheckpointLate(at=at, job=step.job, attempt=step.attempt, reason=step.reason)
        case p.Missed():
            return e.DeadlineMissed(at=at, job=step.job, reason=step.reason)
        case p.Clear():
            return e.Cleared(
                at=at, job=step.job, attempt=step.attempt, lost_s=step.lost_s, counts=step.counts
            )
        case _:
            raise TypeError(f"a step without an event: {step.kind}")
