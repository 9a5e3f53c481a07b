"""What part of a rented machine a job takes, and for how long it has held it."""

from cloudwhale.model.job import Job
from cloudwhale.model.node import Facts
from cloudwhale.model.rental import Rental
from cloudwhale.model.units import Instant


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


def held_s(old: Job, new: Job, rental: Rental, at: Instant) -> float:
    """Return for how many seconds of a whole machine a job has held its place, which it leaves.

    `old` and `new`: the job before and after the event that it leaves by. From the placement to the
    end as its agent tells it, which may lie long before the event; not beyond the machine's end.
    """
    until = at
    if old.started_at is not None:
        until = min(at, old.started_at + max(0.0, new.run_s - old.run_s))
    if rental.ended_at is not None:
        until = min(until, rental.ended_at)
    since = until if old.placed_at is None else old.placed_at
    taken = 0.0 if rental.taken is None else part_of(old, rental.taken.facts)
    return max(0.0, until - since) * taken
