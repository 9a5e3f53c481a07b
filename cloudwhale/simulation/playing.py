"""Plays hours of arrivals through the whole house, and says what became of every job.

Only machines and clouds are pretended: how long jobs truly run, what neighbours cost, what fails.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cloudwhale.control.controller import Chosen
from cloudwhale.control.store.memory import MemoryStore
from cloudwhale.model import event as e
from cloudwhale.model import plan as p
from cloudwhale.model.job import Job, JobState, Placement
from cloudwhale.model.node import Node
from cloudwhale.model.rental import Rental
from cloudwhale.model.units import MICRO_PER_USD, Instant, Seconds
from cloudwhale.model.world import World
from cloudwhale.simulation.engine import BrokenOff, Engine, PlanRefused, Progress, Stuck
from cloudwhale.simulation.setting import Arrival, Offered, Setting
from cloudwhale.spi.store import JobQuery, Told

__all__ = [
    "Arrival", "BrokenOff", "Decide", "Offered", "PlanRefused", "Played", "PlayedJob", "Progress",
    "Setting", "Stay", "Stuck", "play",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stay:
    """One attempt's time on its devices."""

    job: str
    attempt: int
    placement: Placement
    share: float
    since: Instant
    until: Instant


@dataclass(frozen=True, slots=True)
class PlayedJob:
    """What became of one job."""

    job: Job
    wait_s: Seconds
    """All the time that it held no place, after preemptions too."""
    completion_s: Seconds | None
    """From its arrival to its end; None when it did not complete."""
    device_s: Seconds
    """Seconds times devices times share that it held."""
    preemptions: int


@dataclass(frozen=True, slots=True)
class Played:
    """A whole play."""

    jobs: Mapping[str, PlayedJob]
    stays: tuple[Stay, ...]
    began_at: Instant
    ended_at: Instant
    """When the last job ended."""
    rounds: int
    """Plans that were made."""
    store: MemoryStore
    """Everything that happened, to explain and replay."""
    rentals: tuple[Rental, ...] = ()
    """Every machine that was rented, as it was at the end, in the order of their ids."""

    @property
    def cost_usd(self) -> float:
        """Return what was paid for rented machines."""
        paid = (one.event.amount for one in told(self.store) if isinstance(one.event, e.Charged))
        return sum(paid) / MICRO_PER_USD

    @property
    def digest(self) -> str:
        """Return the SHA-256 of all that happened, in order: the same play has the same."""
        found = hashlib.sha256()
        for one in told(self.store):
            found.update(one.event.model_dump_json().encode())
        return found.hexdigest()

    def device_use(self, nodes: Sequence[Node]) -> Mapping[tuple[str, str], float]:
        """Return the share in [0, 1] of each device that was held until the last job ended."""
        whole_s = max(self.ended_at - self.began_at, 1e-9)
        used = {(node.id, device.id): 0.0 for node in nodes for device in node.facts.devices}
        for stay in self.stays:
            for device in stay.placement.devices:
                used[stay.placement.node, device] += stay.share * (stay.until - stay.since)
        return {key: held_s / whole_s for key, held_s in used.items()}


Decide = Callable[[World], p.Plan]
"""Makes the plan of a round; `plan` with some policies, or less than it."""


def play(
    setting: Setting,
    chosen: Chosen,
    decide: Decide | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Played:
    """Play until every job has ended; the same setting and policies give the same play.

    `decide`: another planner than the house's, for comparison. `progress`: told whenever jobs have
    ended. Raise PlanRefused when the checker finds a fault in any plan.
    """
    engine = Engine(setting, chosen if decide is None else replace(chosen, decide=decide))
    engine.play(progress)
    stays = tuple(_stays(engine.store, engine.now))
    held: dict[str, list[Stay]] = {}
    for stay in stays:
        held.setdefault(stay.job, []).append(stay)
    jobs = {
        job.id: _played(job, held.get(job.id, []), engine.now)
        for job in sorted(engine.store.jobs(JobQuery()), key=lambda one: one.id)
    }
    ends = [j.job.ended_at for j in jobs.values() if j.job.ended_at is not None]
    return Played(
        jobs=jobs, stays=stays, began_at=engine.began_at, ended_at=max(ends, default=engine.now),
        rounds=engine.rounds, store=engine.store, rentals=_rentals(engine.store),
    )  # fmt: skip


def told(store: MemoryStore) -> Iterator[Told]:
    """Yield everything that happened, in order."""
    seq = 0
    while page := store.since(seq):
        yield from page
        seq = page[-1].seq


def _played(job: Job, stays: Sequence[Stay], now: Instant) -> PlayedJob:
    until = now if job.ended_at is None else job.ended_at
    held_s = sum(stay.until - stay.since for stay in stays)
    done = job.state is JobState.COMPLETED
    return PlayedJob(
        job=job,
        wait_s=max(0.0, until - job.submitted_at - held_s),
        completion_s=until - job.submitted_at if done else None,
        device_s=sum((s.until - s.since) * s.share * len(s.placement.devices) for s in stays),
        preemptions=max(0, len(stays) - 1),
    )


def _stays(store: MemoryStore, now: Instant) -> Iterator[Stay]:
    """Yield who held which place from when to when, in the order of their ends."""
    held: dict[str, Stay] = {}
    shares: dict[str, float] = {}
    for one in told(store):
        event = one.event
        if isinstance(event, e.Submitted):
            shares[event.job] = event.first.wants.gpu.share
        elif isinstance(event, e.Placed):
            held[event.job] = Stay(
                event.job, event.attempt, event.placement, shares[event.job], event.at, now
            )
        elif isinstance(event, e.Leaves | e.Cleared | e.GaveUp) and event.job in held:
            if not isinstance(event, e.OfAttempt) or event.attempt == held[event.job].attempt:
                yield replace(held.pop(event.job), until=event.at)
        if isinstance(event, e.Retried) and event.grown is not None:
            shares[event.job] = event.grown.gpu.share
    yield from held.values()


def _rentals(store: MemoryStore) -> tuple[Rental, ...]:
    """Return every rental as it was left."""
    found: dict[str, Rental] = {}
    for one in told(store):
        if isinstance(one.event, e.RentalChanged):
            found[one.event.rental.id] = one.event.rental
    return tuple(found[name] for name in sorted(found))
