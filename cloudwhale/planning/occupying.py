"""What part of a rented machine a job takes, and for how long it has held it."""

from cloudwhale.model import event as e
from cloudwhale.model.gpus import MODELS
from cloudwhale.model.job import Job, Peaks
from cloudwhale.model.node import Facts
from cloudwhale.model.reason import Code
from cloudwhale.model.rental import Part, Rental
from cloudwhale.model.units import GiB, Instant, Seconds
from cloudwhale.planning.growth import SIZES_GIB

HEAD_ROOM = 1.2
"""So many times what was used a GPU has, of which it is said that it would have been enough."""

OF_THE_MACHINE = frozenset(
    {
        Code.TAKEN_AWAY, Code.NODE_LOST, Code.SHIM_LOST, Code.RESTORE_FAILED, Code.START_FAILED,
        Code.DEVICE_LOST, Code.NO_GPUS_INSIDE, Code.RUNTIME_LOST, Code.MACHINE_GONE,
    }
)  # fmt: skip
"""Why an attempt is made again though its job has done nothing wrong: that interrupts it."""


def part_of(job: Job, facts: Facts) -> float:
    """Return the part of a machine that a placed job takes, in [0, 1].

    The largest of its parts of devices (times share), CPUs and memory: what is left of a machine
    is of no use to others when one of them is gone.
    """
    # The machines of a gang are alike, and so are its parts of them.
    wants, given = job.wants, () if job.placement is None else job.placement.devices
    parts = [
        (len(given) * wants.gpu.share, len(facts.devices)),
        (wants.cpu, facts.cpu),
        (wants.memory_gib or 0.0, facts.memory_gib),
    ]
    return min(1.0, max((some / whole for some, whole in parts if whole > 0), default=0.0))


def held_s(old: Job, new: Job, rental: Rental, at: Instant, *, is_there: bool = False) -> float:
    """Return for how many seconds of a whole machine a job has held its place, which it leaves.

    `old` and `new`: the job before and after the event that it leaves by. From the placement to the
    end as its agent tells it, which may lie long before the event; not beyond the machine's end.
    `is_there`: it has not left, and holds it still.
    """
    until = at
    if old.started_at is not None and not is_there:
        until = min(at, old.started_at + max(0.0, new.run_s - old.run_s))
    if rental.ended_at is not None:
        until = min(until, rental.ended_at)
    since = until if old.placed_at is None else old.placed_at
    taken = 0.0 if rental.taken is None else part_of(old, rental.taken.facts)
    return max(0.0, until - since) * taken


def as_held(old: Rental, new: Rental) -> Rental:
    """Return a machine that has moved on, held as it was: who moves it on may not know of that."""
    return new.but(held_s=old.held_s, parts=old.parts, egress=old.egress)


def left(old: Job, new: Job, rental: Rental, event: e.OfJob) -> Rental:
    """Return a machine that a job leaves by an event, with how long it was held and what for."""
    for_s = held_s(old, new, rental, event.at)
    before = rental.parts.get(old.id, Part(family=old.spec.name))
    wasted_s = _wasted_s(old, new, event, for_s)
    has_failed = _is_own_failure(event)
    now = before.but(
        lost_s=before.lost_s + (0.0 if has_failed else wasted_s),
        failed_s=before.failed_s + (wasted_s if has_failed else 0.0),
        smaller_gib=_smaller(before.smaller_gib, smaller_gib(old, event)),
    )
    held = rental.held_s | {old.id: rental.held_s.get(old.id, 0.0) + for_s}
    return rental.but(held_s=held, parts=rental.parts | {old.id: now})


def _is_own_failure(event: e.OfJob) -> bool:
    if isinstance(event, e.Retried):
        return event.reason.code not in OF_THE_MACHINE
    return isinstance(event, e.Failed | e.GaveUp)


def _wasted_s(old: Job, new: Job, event: e.OfJob, for_s: Seconds) -> Seconds:
    """Return which part of the time that a place was held came to nothing.

    All of an attempt by which a job has failed for good, and of one that has kept nothing: the time
    before its process ran, too. Else the run time that no checkpoint holds.
    """
    if isinstance(event, e.Failed | e.GaveUp):
        return for_s
    lost_s, ran_s = new.lost_s - old.lost_s, new.run_s - old.run_s
    if not isinstance(event, e.Retried | e.Cleared | e.GaveWay):
        return 0.0
    if lost_s >= ran_s:
        return for_s
    since = old.started_at if old.placed_at is None else old.placed_at
    waited_s = 0.0 if since is None or old.started_at is None else old.started_at - since
    return for_s * lost_s / (ran_s + max(0.0, waited_s))


def smaller_gib(job: Job, event: e.OfJob) -> GiB:
    """Return the size of GPU below what a job asks for that would have held what it used.

    0 where there is none, nobody has measured it, or it shares its GPU with others.
    """
    gpu = job.wants.gpu
    peak = (event.peaks if isinstance(event, e.Leaves) else Peaks()).gpu_gib
    if not gpu.count or gpu.share < 1.0 or not peak:
        return 0.0
    named = [float(MODELS[name].memory_gib) for name in gpu.models if name in MODELS]
    asked = max(gpu.memory_gib.least, min(named, default=0.0))
    enough = next((size for size in SIZES_GIB if size >= HEAD_ROOM * peak), asked)
    return enough if enough < asked else 0.0


def _smaller(before: GiB | None, now: GiB) -> GiB:
    """Return what is enough for all attempts: of one that needs all that was asked for, nothing."""
    if before is None:
        return now
    return max(before, now) if before and now else 0.0
