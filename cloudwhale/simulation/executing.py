"""Pretend attempts on pretend devices: how fast each goes, when it saves and when it ends."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from cloudwhale.model import event as e
from cloudwhale.model.gpus import speed
from cloudwhale.model.job import Checkpoint, Job, JobSpec, Placement
from cloudwhale.model.node import Node
from cloudwhale.model.plan import Place
from cloudwhale.model.units import Instant, Seconds

CLOSE = 1e-6  # sums of floats: what is nearer than this has happened


@dataclass(frozen=True, slots=True)
class Physics:
    """How the pretended machines behave."""

    neighbour: float = 0.95
    """Throughput that is left for each other job on the same device; measured ones: 0.65 to 1."""
    start_s: Seconds = 1.0
    """From the order to the first instruction."""
    restore_s: Seconds = 30.0
    """What a resumed attempt needs on top before it goes on."""
    stop_s: Seconds = 10.0
    """From the order to stop to the end: signal, save, end."""


@dataclass(slots=True)
class Attempt:
    """One attempt that holds a place."""

    job: str
    number: int
    spec: JobSpec
    placement: Placement
    work_s: Seconds
    """All of it, on the reference GPU."""
    placed_at: Instant
    begins_at: Instant
    """When its process starts to get on."""
    resumed_from: int | None
    done_s: Seconds
    """Work that is done, as of `since`."""
    since: Instant
    rate: float = 1.0
    """Work per second from `since` on."""
    stops_at: Instant = math.inf
    saved: tuple[Instant, Seconds] | None = None
    """When it saved last in this attempt, and the work that is in it."""
    told: tuple[Instant, Seconds] | None = None
    saves: int = 0
    is_started: bool = False

    @property
    def ends_at(self) -> Instant:
        """Return when it will end, if nothing changes."""
        left_s = max(0.0, self.work_s - self.done_s)
        return min(self.stops_at, self.since + left_s / self.rate)

    @property
    def is_done(self) -> bool:
        """Say whether all its work is done."""
        return self.done_s >= self.work_s * (1 - CLOSE) - CLOSE

    def has_ended(self, now: Instant) -> bool:
        """Say whether it is over; it was moved on to now before."""
        return self.is_done or now >= self.stops_at - CLOSE

    def move_to(self, now: Instant) -> None:
        """Work until now at the rate that held."""
        if now <= self.since:
            return
        self._save_until(now)
        self.done_s = min(self.work_s, self.done_s + self.rate * (now - self.since))
        self.since = now

    def _save_until(self, now: Instant) -> None:
        rule = self.spec.checkpoint
        if rule is None:
            return
        count = math.floor((min(now, self.stops_at) - self.begins_at) / rule.every_s + CLOSE)
        at = self.begins_at + count * rule.every_s
        if count > 0 and at > self.since - CLOSE:
            self.saved = (at, min(self.work_s, self.done_s + self.rate * (at - self.since)))
            self.saves = count

    def is_new_at(self, now: Instant) -> bool:
        """Say whether it has begun and nobody was told."""
        return not self.is_started and now >= self.begins_at - CLOSE

    def started(self, now: Instant) -> e.Started:
        """Return what is told of its start."""
        self.is_started = True
        return e.Started(at=now, job=self.job, attempt=self.number, resumed_from=self.resumed_from)

    def untold_save(self, now: Instant) -> e.CheckpointSaved | None:
        """Return what is told of its newest checkpoint, once."""
        if self.saved is None or self.saved == self.told:
            return None
        self.told = self.saved
        at, work_s = self.saved
        checkpoint = Checkpoint(
            attempt=self.number, seq=self.saves, name=f"work-{work_s:.6f}", size_bytes=1,
            saved_at=at, manifest=f"{self.job}/{self.number}-{self.saves}",
        )  # fmt: skip
        return e.CheckpointSaved(at=now, job=self.job, attempt=self.number, checkpoint=checkpoint)

    def unsaved_s(self, now: Instant) -> Seconds:
        """Return how long it has run since its last checkpoint or its start."""
        last = self.begins_at if self.saved is None else self.saved[0]
        return max(0.0, now - last)


@dataclass(slots=True)
class Floor:
    """All attempts that hold a place, and the devices that they hold."""

    nodes: Mapping[str, Node]
    physics: Physics
    attempts: dict[str, Attempt] = field(default_factory=dict[str, Attempt])
    on_device: dict[tuple[str, str], set[str]] = field(
        default_factory=dict[tuple[str, str], set[str]]
    )
    kept: dict[str, Seconds] = field(default_factory=dict[str, Seconds])
    """Work in each job's newest checkpoint."""

    def next_at(self) -> Instant | None:
        """Return when an attempt starts or ends next."""
        times = [
            attempt.ends_at if attempt.is_started else min(attempt.begins_at, attempt.stops_at)
            for attempt in self.attempts.values()
        ]
        return min(times, default=None)

    def moved_to(self, now: Instant) -> Iterator[Attempt]:
        """Move every attempt on, and yield each; one that is yielded may leave."""
        for attempt in list(self.attempts.values()):
            attempt.move_to(now)
        yield from list(self.attempts.values())

    def place(self, job: Job, work_s: Seconds, step: Place, now: Instant) -> None:
        """Begin an attempt, from what is kept of the job's work."""
        kept_s = self.kept.get(job.id, 0.0)
        restore_s = self.physics.restore_s if job.checkpoint is not None else 0.0
        begins_at = now + self.physics.start_s + restore_s
        self.attempts[job.id] = Attempt(
            job=job.id, number=step.attempt, spec=job.spec, placement=step.placement,
            work_s=work_s, placed_at=now, begins_at=begins_at,
            resumed_from=None if job.checkpoint is None else job.checkpoint.attempt,
            done_s=kept_s, since=begins_at,
        )  # fmt: skip
        for device in step.placement.devices:
            self.on_device.setdefault((step.placement.node, device), set()).add(job.id)
        self._change_rates(step.placement, now)

    def stop(self, job: str, now: Instant) -> None:
        """Let an attempt end soon; what it has not saved is lost."""
        attempt = self.attempts[job]
        attempt.stops_at = min(attempt.stops_at, now + self.physics.stop_s)

    def leave(self, attempt: Attempt, now: Instant) -> None:
        """Take an attempt off its devices, and keep what it saved."""
        del self.attempts[attempt.job]
        if attempt.saved is not None:
            self.kept[attempt.job] = attempt.saved[1]
        where = attempt.placement
        for device in where.devices:
            self.on_device[where.node, device].discard(attempt.job)
        self._change_rates(where, now)

    def _change_rates(self, placement: Placement, now: Instant) -> None:
        """Let every attempt on these devices go on at the rate that holds from now."""
        held = [self.on_device.get((placement.node, name), ()) for name in placement.devices]
        for job in sorted({job for jobs in held for job in jobs}):
            self.attempts[job].move_to(now)
            self.attempts[job].rate = self._rate(self.attempts[job])

    def _rate(self, attempt: Attempt) -> float:
        """Return the rate of the slowest of its devices."""
        node = self.nodes[attempt.placement.node]
        models = {device.id: device.model for device in node.facts.devices}
        rates = [
            true_speed(attempt.spec, models[device])
            * self.physics.neighbour ** (len(self.on_device[node.id, device]) - 1)
            for device in attempt.placement.devices
        ]
        return min(rates, default=1.0)


def true_speed(spec: JobSpec, model: str) -> float:
    """Return how fast a GPU model is for a job beside its reference; 1 when nobody knows."""
    said = spec.speeds.get(model)
    if said is not None:
        return said
    known = speed(model, spec.reference) if spec.reference is not None else None
    return 1.0 if known is None else known
