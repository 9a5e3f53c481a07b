"""What a night allows: when its jobs may be rented for, how long machines stay, when it closes.

Before it opens nothing is rented for its jobs; machines of ours may run them. A machine's lease
never goes beyond its end, so that all have landed by then. Then what is left over is dealt with,
once. A night without anything that could still happen is closed before.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cloudwhale.model import plan as p
from cloudwhale.model.job import HOLDS_A_PLACE, Job, JobState, Wish
from cloudwhale.model.night import Night, Unfinished
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Lease, Rental, RentalState
from cloudwhale.model.run import Run
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.model.world import World
from cloudwhale.planning import ledger
from cloudwhale.planning.queue import Queue, earliest

BACK_WITHIN_S: Seconds = 900.0
"""A night waits so long for machines that are on their way back: then its money is all known."""

ASIDE = (JobState.PAUSED, JobState.PARKED)

HOPELESS = frozenset({*ledger.FOR_MONEY, Code.WORTH, Code.NIGHT, Code.WAITS_FOR_JOB})
"""What a job of a night waits for that brings nothing by itself before morning."""


def nights(world: World) -> Sequence[tuple[Run, Night]]:
    """Return the runs that are nights, by id; most worlds have none."""
    return [(run, run.night) for _, run in sorted(world.runs.items()) if run.night is not None]


def night_of(world: World, run: str) -> Night | None:
    """Return what makes a run a night; None: it may be rented for at any time."""
    found = world.runs.get(run)
    return None if found is None else found.night


def ends_at(world: World, payer: str) -> Instant:
    """Return until when a payer may have machines; infinity: nothing bounds it."""
    night = night_of(world, payer)
    return math.inf if night is None else night.closed_at or night.closes_at


def is_over(world: World, payer: str) -> bool:
    """Say whether a payer's night has come to its end."""
    return world.now >= ends_at(world, payer)


def capped(lease: Lease, until: Instant) -> Lease:
    """Return a lease that goes no further than a night."""
    over_s = lease.away_until - until
    if over_s <= 0:
        return lease
    return lease.but(away_until=until, stop_at=lease.stop_at - over_s)


def horizon_s(world: World, payer: str, landing: Seconds) -> Seconds:
    """Return for how long a machine of a payer can be planned from now on; 0: for none."""
    night = night_of(world, payer)
    if night is None:
        return math.inf
    return (
        0.0 if world.now < night.opens_at else max(0.0, ends_at(world, payer) - landing - world.now)
    )


def barred(world: World) -> Mapping[str, Reason]:
    """Return the jobs for which nothing may be rented at this hour, by id, and why."""
    if not any(run.night for run in world.runs.values()):
        return {}
    found: dict[str, Reason] = {}
    said = {run.id: _closed_to(night, world.now) for run, night in nights(world)}
    for job in world.jobs.values():
        reason = said.get(job.run)
        if reason is not None:
            found[job.id] = reason
    return found


def _closed_to(night: Night, now: Instant) -> Reason | None:
    if now < night.opens_at:
        says = f"nothing is rented before its night opens, {clock(night, night.opens_at)}"
        return Reason(code=Code.NIGHT, says=says, change="the night opens")
    if now >= (night.closed_at or night.closes_at):
        return _after(night)
    return None


def _after(night: Night) -> Reason:
    says = f"nothing is rented after its night, which closed {clock(night, night.closes_at)}"
    return Reason(code=Code.NIGHT, says=says, change=f"the next night of {night.name}")


def after_landing(world: World, rental: Rental) -> str:
    """Return what would let a job run on that lands as its machine's lease ends."""
    night, home = night_of(world, rental.payer), "a place on a machine of your own"
    if night is None or rental.lease.away_until < night.closes_at:
        return f"a larger budget, or {home}"
    is_carried = night.unfinished == "carry-over"
    return f"{f'the next night of {night.name}' if is_carried else 'a longer window'}, or {home}"


def clock(night: Night, at: Instant) -> str:
    """Return what the clock of a night shows at a moment, with its day: `22:00 on 2026-11-30`."""
    there = datetime.fromtimestamp(at, UTC).astimezone(ZoneInfo(night.zone))
    return f"at {there:%H:%M} on {there:%Y-%m-%d}"


def look_again_at(world: World) -> Instant | None:
    """Return when the next night opens or closes, by time alone."""
    times = (at for _, night in nights(world) for at in _times(night))
    return earliest(*(at for at in times if at > world.now))


def _times(night: Night) -> tuple[Instant, ...]:
    if night.closed_at is not None:
        return ()
    return (night.opens_at, night.closes_at, night.closes_at + BACK_WITHIN_S)


# -- the queue -------------------------------------------------------------------------------


def held(queue: Queue, world: World) -> Queue:
    """Return the queue without those whose night is over: they start nowhere."""
    waits = {run.id: _waits(run.id, night, world.now) for run, night in nights(world)}
    if not any(waits.values()):
        return queue
    mine = {job.id: waits.get(job.run) for job in (*queue.ready, *queue.seeking)}
    gone = {name: reason for name, reason in mine.items() if reason is not None}
    return replace(
        queue,
        ready=tuple(job for job in queue.ready if job.id not in gone),
        seeking=tuple(job for job in queue.seeking if job.id not in gone),
        held={**queue.held, **{job.id: gone[job.id] for job in queue.ready if job.id in gone}},
    )


def _waits(run: str, night: Night, now: Instant) -> Reason | None:
    """Return why those that are left over of a night start nowhere; None: they may, here."""
    is_closed = night.closed_at is not None
    if night.unfinished == "continue" or (not is_closed and now < night.closes_at):
        return None
    if is_closed and night.unfinished == "park":
        return None  # a person has resumed it
    return left_over(run, night, night.unfinished)


def left_over(run: str, night: Night, what: Unfinished) -> Reason:
    """Return what is told to a job that its night leaves over."""
    says = f"its night of {night.date} has closed, and it is not done"
    change = {
        "park": f"`cloudwhale resume {run}` lets it go on; the next night has jobs of its own",
        "carry-over": f"the next night of {night.name}, which goes on with it",
        "continue": "room on a machine of yours",
    }
    return Reason(code=Code.LEFT_OVER, says=says, change=change[what])


# -- the end ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _End:
    """One night that may be closed now."""

    run: Run
    night: Night
    jobs: Sequence[Job]
    world: World

    @property
    def is_due(self) -> bool:
        return self.world.now >= self.night.closes_at

    @property
    def machines(self) -> int:
        """Return how many machines are to come back yet."""
        mine = (one for one in self.world.rentals.values() if one.payer == self.run.id)
        return sum(one.state is not RentalState.NEEDS_ATTENTION for one in mine)

    def is_rented(self, job: Job) -> bool:
        """Say whether a job holds a place on a rented machine."""
        place = job.placement
        return place is not None and any(node in self.world.rentals for node in place.nodes)

    def stays(self, job: Job) -> bool:
        """Say whether a job runs on, on a machine of ours."""
        return self.night.unfinished == "continue" and not self.is_rented(job)

    def to_stop(self) -> list[Job]:
        """Return those that hold a place and are not to."""
        return [one for one in self.jobs if one.state in HOLDS_A_PLACE and not self.stays(one)]


def closings(world: World, queue: Queue, steps: Collection[p.Step]) -> Iterator[p.Step]:
    """Yield what closes the nights that are over; `steps`: what this round does otherwise."""
    for run, night in nights(world):
        if night.closed_at is None:
            jobs = [job for job in world.jobs.values() if job.run == run.id]
            yield from _closing(_End(run, night, jobs, world), queue, steps)


def _closing(end: _End, queue: Queue, steps: Collection[p.Step]) -> Iterator[p.Step]:
    if not end.is_due:
        if _is_idle(end, steps):
            yield from _closed(end, queue, steps)
        return
    busy, is_late = end.to_stop(), end.world.now >= end.night.closes_at + BACK_WITHIN_S
    if busy and (not is_late or any(map(end.is_rented, busy))):
        yield from _stops(end, busy)
    elif is_late or not end.machines:  # else what they have cost is to be known
        yield from _closed(end, queue, steps)


def _stops(end: _End, busy: Sequence[Job]) -> Iterator[p.Step]:
    for job in busy:
        if job.wish is None and job.state is not JobState.RECOVERING and not end.is_rented(job):
            closed = clock(end.night, end.night.closes_at)
            reason = Reason(
                code=Code.NIGHT,
                says=f"stops, checkpoint first: its night closed {closed}",
                change="`unfinished: continue` lets jobs run on at home",
            )
            yield p.AskToStop(job=job.id, attempt=job.attempt, wish="give-way", reason=reason)


def _is_idle(end: _End, steps: Collection[p.Step]) -> bool:
    """Say whether nothing more can happen in a night by itself, before its end.

    All its jobs have ended or wait for a person, or what is left of its money is less than any of
    those left may cost. Nothing is rented for it, and nothing runs.
    """
    if end.machines or any(job.state in HOLDS_A_PLACE for job in end.jobs):
        return False
    waiting = {job.id: job for job in end.jobs if job.state is JobState.PENDING}
    if not waiting:
        return True
    if end.world.now < end.night.opens_at or not end.world.offers:
        return False
    told = {step.job: step.reason for step in steps if isinstance(step, p.Explain)}
    acts = (step for step in steps if not isinstance(step, p.Explain))
    touched = {job for step in acts for job in _of_step(step)}
    reasons = {name: told.get(name, job.reason) for name, job in waiting.items()}
    return touched.isdisjoint(waiting) and all(
        reason is not None and reason.code in HOPELESS for reason in reasons.values()
    )


def _of_step(step: p.Step) -> Collection[str]:
    return step.rental.jobs if isinstance(step, p.Rent) else (getattr(step, "job", ""),)


def _ending(steps: Collection[p.Step]) -> Iterator[str]:
    """Yield who ends in this round without having been started: nobody is left over of them."""
    for step in steps:
        if isinstance(step, p.GiveUp) or (isinstance(step, p.Drop) and step.wish == "cancel"):
            yield step.job


def _closed(end: _End, queue: Queue, steps: Collection[p.Step]) -> Iterator[p.Step]:
    """Yield what closes a night, with what becomes of those that do not end in this round."""
    what = end.night.unfinished
    rest: dict[str, Unfinished] = {}
    parked: list[p.Step] = []
    ends = set(_ending(steps))
    for job in (job for job in end.jobs if job.id not in ends):
        is_aside = job.state in ASIDE or job.wish is Wish.PAUSE or job.id in queue.expired
        is_mine = job.state is JobState.PENDING and job.wish is None and not is_aside
        # Who could not be stopped at home, in all that time, cannot be parked either.
        is_stuck = what == "park" and job.state in HOLDS_A_PLACE
        rest[job.id] = "park" if is_aside else "continue" if is_stuck else what
        if what == "park" and is_mine:
            parked.append(p.Park(job=job.id, reason=left_over(end.run.id, end.night, what)))
    left = "1 job is" if len(rest) == 1 else f"{len(rest)} jobs are"
    says = f"night {end.night.name} of {end.night.date} is closed, {left} left over"
    yield p.CloseNight(run=end.run.id, unfinished=rest, reason=Reason(code=Code.NIGHT, says=says))
    yield from parked
