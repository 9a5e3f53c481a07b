"""Who needs another machine as the stop of the one it has cannot be moved: a planned hop.

A machine whose stop is fixed is leased for as long as those there may be late. Who runs for longer
still is rented for ahead: its next machine is ready when it lands, and it goes on there from what
it has saved. The money is set aside before, or it lands as everybody does whose lease ends. Who
saves nothing stays to the end, as it would begin anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from cloudwhale.model import plan as p
from cloudwhale.model.job import Job, JobState, Placement
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import COMES_OR_IS, Rental, RentalState
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.model.world import World
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.fit import fit
from cloudwhale.planning.giving import Matched
from cloudwhale.planning.inventory import free_capacity
from cloudwhale.planning.leasing import is_fixed, landing_s, still_s, tenants
from cloudwhale.planning.needs import spec_of
from cloudwhale.planning.next_machines import as_waiting, comes, has_saved
from cloudwhale.planning.queue import earliest
from cloudwhale.planning.reserving import clock
from cloudwhale.planning.safety import TICK_S

AGAIN_S: Seconds = 60.0
"""What could not be had is asked for again so much later, as long as there is time."""

OUTRUN = 0.5
"""Who has run for longer than was expected of it is leased a machine for so much of that again."""


@dataclass(frozen=True, slots=True)
class Hops:
    """Who of a round's running jobs needs a next machine now."""

    leaving: tuple[tuple[Job, Reason], ...] = ()
    """As they will wait, and why; in the order of their machines' ends."""
    look_again_at: Instant | None = None
    of: Mapping[str, Reason] = field(default_factory=dict[str, Reason])
    """The same reasons, by job."""

    @property
    def jobs(self) -> frozenset[str]:
        """Return the ids of those who need one."""
        return frozenset(self.of)


def hops_of(world: World, durations: Durations, without: Collection[str] = ()) -> Hops:
    """Return who is to be rented for ahead; called once a round, cheap where no stop is fixed.

    `without`: ids of those that are rented for otherwise.
    """
    found: list[tuple[Instant, str, Job, Reason]] = []
    again: Instant | None = None
    for _, rental in sorted(world.rentals.items()):
        for job in _who_may(rental, world) if _ends_by_itself(rental) else ():
            if job.id in without:
                continue
            at = _look_at(job, rental, world, durations)
            if at > world.now:
                again = earliest(again, at)
            elif _needs(job, rental, world, durations):
                reason = _why(job, rental)
                lands_at = lands_by(rental, world)
                found.append((lands_at, job.id, _as_it_will_wait(job, world, durations), reason))
                again = earliest(again, world.now + AGAIN_S)
    ordered = sorted(found, key=lambda one: one[:2])
    leaving = tuple((job, reason) for _, _, job, reason in ordered)
    return Hops(leaving, again, {job.id: reason for job, reason in leaving})


def lands_by(rental: Rental, world: World) -> Instant:
    """Return when those on a machine land whose lease becomes no longer."""
    return rental.lease.away_until - landing_s(tenants(world, rental))


def _ends_by_itself(rental: Rental) -> bool:
    """Say whether nothing but its own fixed end ends a machine."""
    is_there = rental.state is RentalState.READY and rental.ended_at is None
    is_alone = not rental.gang and rental.interrupted_at is None
    return is_there and is_alone and is_fixed(rental)


def _who_may(rental: Rental, world: World) -> Iterator[Job]:
    """Yield those on a machine who can go on elsewhere from what they save, and have no way yet."""
    for job in tenants(world, rental):
        runs = job.state in (JobState.STARTING, JobState.RUNNING) and job.wish is None
        if runs and saves(job) and not _has_next(job, world):
            yield job


def saves(job: Job) -> bool:
    """Say whether a job saves something: then a stop costs it no more than it has not saved."""
    return job.spec.checkpoint is not None or has_saved(job)


def _has_next(job: Job, world: World) -> bool:
    return any(
        job.id in one.jobs and one.state in COMES_OR_IS and one.ended_at is None and comes(job, one)
        for one in world.rentals.values()
    )


def _look_at(job: Job, rental: Rental, world: World, durations: Durations) -> Instant:
    """Return when it is to be asked whether a job needs another machine; not to come: now.

    So long before it lands that another machine of the kind has booted; and who is expected to end
    in time then, when it should have.
    """
    lands_at = lands_by(rental, world)
    if world.now >= lands_at:
        return lands_at + AGAIN_S  # it lands as it is; what comes then is asked when it waits
    boot_s = 0.0 if rental.taken is None else rental.taken.boot_s
    begins_at = lands_at - boot_s - TICK_S
    if world.now < begins_at:
        return begins_at
    ends_at = world.now + still_s([job], rental, durations, world.now)
    return ends_at if ends_at <= lands_at else begins_at


def _needs(job: Job, rental: Rental, world: World, durations: Durations) -> bool:
    """Say whether a job does not end in time, and no place of ours would take it when it lands."""
    ends_at = world.now + still_s([job], rental, durations, world.now)
    if ends_at <= lands_by(rental, world):
        return False
    owned = [node for node in world.nodes.values() if node.owned]
    there = [one for one in world.jobs.values() if one.placement is not None]
    spec = spec_of(as_waiting(job, world.now))
    free = free_capacity(owned, there, world.sightings).values()
    return not any(isinstance(fit(spec, one), Placement) for one in free)


def _as_it_will_wait(job: Job, world: World, durations: Durations) -> Job:
    """Return a job as it waits for its next machine: its length is at least what it turns out."""
    waits = as_waiting(job, world.now)
    outruns_s = (1.0 + OUTRUN) * waits.kept_s
    if durations.length_s(waits.spec) >= outruns_s:
        return waits
    return waits.but(spec=waits.spec.but(duration_s=outruns_s))


def longer_than_thought(job: Job, world: World, durations: Durations) -> Job:
    """Return a waiting job that saves nothing with the length that it has at least.

    Where stops are fixed, it has lost a whole lease; with the same one it would lose that again.
    """
    if saves(job) or job.checkpoint is not None or job.run_s <= durations.length_s(job.spec):
        return job
    if all(offer.stop_moves for offer in world.offers):
        return job
    return job.but(spec=job.spec.but(duration_s=(1.0 + OUTRUN) * job.run_s))


def _why(job: Job, rental: Rental) -> Reason:
    says = (
        f"the stop of {rental.id} cannot be moved: it is paid for until "
        f"{clock(rental.lease.away_until)}, and the job is not done by then"
    )
    return Reason(code=Code.HOPS, says=says, change="it ends sooner")


# -- what is done ----------------------------------------------------------------------------


def settled(found: Matched, hops: Hops) -> Matched:
    """Return what was found for a round, where those who need a next machine leave for it first."""
    if not hops.leaving:
        return found
    return replace(found, leaving=(*hops.leaving, *found.leaving))


def told(step: p.Rent, hops: Hops, jobs: Mapping[str, Job]) -> p.Rent:
    """Return a step that rents for those who hop, with their reason; who cannot hop is told so."""
    mine = [name for name in step.rental.jobs if name in hops.of]
    reason, says = step.reason, step.reason.says
    if mine:
        reason = hops.of[mine[0]].but(change=reason.change)
        says = f"{reason.says}; {says}"
    says += "".join(
        f"; {warns}" for name in step.rental.jobs if (warns := warning(jobs[name], step))
    )
    return (
        step
        if says == step.reason.says
        else step.model_copy(update={"reason": reason.but(says=says)})
    )


def warning(job: Job, step: p.Rent) -> str:
    """Say what a job risks that saves nothing where its machine cannot be had for longer."""
    rental, most_s = step.rental, job.spec.max_duration_s
    if saves(job) or not is_fixed(rental):
        return ""
    lands_at = rental.lease.away_until - landing_s([job])
    starts_at = max((one.starts_at for one in step.seats if one.job == job.id), default=lands_at)
    if most_s is not None and starts_at + most_s <= lands_at:
        return ""
    return (
        f"{job.id} saves nothing, and the machine's stop cannot be moved: "
        f"unless it is done by {clock(lands_at)} it would begin anew"
    )


def hops_from(job: Job, rental: Rental) -> bool:
    """Say whether a waiting job was stopped to hop from a machine: that waits for it no more."""
    is_hop = job.reason is not None and job.reason.code is Code.HOPS
    return is_hop and job.id in rental.held_s and is_fixed(rental)
