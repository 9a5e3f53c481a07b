"""Who is stopped to go on on its next machine, now that this is ready.

A job that runs on spot and was rented for on on-demand, for its deadline, is stopped with a
checkpoint once that machine is there; and so is one whose machine's stop cannot be moved
(`hopping`). Who is expected to be done where it is, before staying stops being safe
(`safety.stays_until`, or before it lands), is not moved: the machine stands by for it.
"""

import math
from collections.abc import Collection, Iterator, Sequence

from cloudwhale.model import plan as p
from cloudwhale.model.job import Job, JobState
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Rental, RentalState
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.model.world import World
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.hopping import lands_by
from cloudwhale.planning.leasing import coming_s, is_fixed
from cloudwhale.planning.next_machines import as_waiting, comes
from cloudwhale.planning.queue import earliest
from cloudwhale.planning.reserving import clock, fixed
from cloudwhale.planning.safety import TICK_S, stays_until
from cloudwhale.planning.speeds import model_of, run_s
from cloudwhale.planning.switching import changeover, is_on_spot, is_sure


def moves(
    world: World, durations: Durations, returned: Collection[str]
) -> tuple[Sequence[p.AskToStop], Instant | None]:
    """Return who is stopped to go on on a next machine that is ready, and when to look.

    Who is expected to be done where it is, before that stops being safe, stays. `returned`: ids of
    the machines that this round gives back.
    """
    steps: list[p.AskToStop] = []
    again: Instant | None = None
    for name, rental in sorted(world.rentals.items()):
        for job in () if name in returned else _ready_to_move(rental, world):
            stays = _stays_until(job, rental, world, durations)
            if world.now + _left_there_s(job, world, durations) <= stays:
                again = earliest(again, stays)
                continue
            steps.append(_moved(job, rental, world))
    return steps, again


def _ready_to_move(rental: Rental, world: World) -> Iterator[Job]:
    node = world.nodes.get(rental.node or "")
    is_ready = rental.state is RentalState.READY and rental.ended_at is None
    if not is_ready or node is None or node.state.value != "ready":
        return
    for name in rental.moves:
        job = world.jobs.get(name)
        if job is None or job.wish is not None or not comes(job, rental):
            continue
        if job.state in (JobState.STARTING, JobState.RUNNING):
            if _switches(job, rental, world) or _left(job, world) is not None:
                yield job


def _switches(job: Job, rental: Rental, world: World) -> bool:
    """Say whether a machine is one that a job goes to for its deadline."""
    has_deadline = job.spec.deadline is not None
    return has_deadline and is_sure(rental) and is_on_spot(job, world)


def _left(job: Job, world: World) -> Rental | None:
    """Return the machine that a job is on, if its stop cannot be moved; None: it is not so."""
    rental = None if job.placement is None else world.rentals.get(job.placement.node)
    return rental if rental is not None and is_fixed(rental) else None


def _stays_until(job: Job, rental: Rental, world: World, durations: Durations) -> Instant:
    offer, deadline = rental.taken, job.spec.deadline
    there = _left(job, world)
    if there is not None and not _switches(job, rental, world):
        return lands_by(there, world) - TICK_S
    if offer is None or deadline is None:
        return -math.inf
    left_s = coming_s([as_waiting(job, world.now)], rental, durations)
    return stays_until(deadline, left_s, changeover(job, offer, world))


def _left_there_s(job: Job, world: World, durations: Durations) -> Seconds:
    """Return how much longer a job is expected to run where it is."""
    place = job.placement
    rental = None if place is None else world.rentals.get(place.node)
    devices = () if rental is None or rental.taken is None else rental.taken.facts.devices
    ran_s = 0.0 if job.started_at is None else world.now - job.started_at
    left_s = run_s(job, model_of(place, devices), 0, durations) - ran_s
    return left_s if left_s > 0 else math.inf


def _moved(job: Job, rental: Rental, world: World) -> p.AskToStop:
    there = _left(job, world)
    if there is not None and not _switches(job, rental, world):
        return _hops(job, rental, there)
    says = f"stops, checkpoint first, to go on on {rental.id} ({rental.offer}), on-demand"
    if job.spec.deadline is not None:
        says += f": for its deadline at {fixed(job.spec.deadline)}"
    reason = Reason(code=Code.SWITCHES, says=says, change="a later deadline")
    return p.AskToStop(job=job.id, attempt=job.attempt, wish="give-way", reason=reason)


def _hops(job: Job, rental: Rental, there: Rental) -> p.AskToStop:
    says = (
        f"stops, checkpoint first, to go on on {rental.id} ({rental.offer}): the stop of "
        f"{there.id} cannot be moved, and it ends by {clock(there.lease.away_until)}"
    )
    reason = Reason(code=Code.HOPS, says=says)
    return p.AskToStop(job=job.id, attempt=job.attempt, wish="give-way", reason=reason)
