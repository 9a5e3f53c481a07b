"""Plays planning rounds over hours of arrivals: the real planner, checker and store, pretend jobs.

Only the machines are pretended: how long jobs truly run, and that agents obey within seconds. For
experiments with policies; what agents, mailboxes and crashes do is not played here.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from cloudwhale.control.controller import SETTLES_ITSELF, Chosen
from cloudwhale.control.store.memory import MemoryStore
from cloudwhale.model import event as e
from cloudwhale.model import plan as p
from cloudwhale.model.job import Job, JobSpec, JobState, Placement
from cloudwhale.model.node import Node
from cloudwhale.model.run import Run
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.model.world import Sighting, World
from cloudwhale.planning.checker import check
from cloudwhale.planning.decided import events_of
from cloudwhale.planning.outcome import End, meaning
from cloudwhale.planning.planner import plan
from cloudwhale.planning.queue import earliest
from cloudwhale.simulation.executing import Attempt, Floor, Physics
from cloudwhale.spi.store import JobQuery

RUN = "played"
ROUNDS_AT_ONCE = 1000  # far more than a round can lead to; a planner that repeats itself is stuck
STOPPED = 143  # what a shell reports for a program that SIGTERM ended


class PlanRefused(Exception):
    """The checker found a fault in a plan: the play means nothing."""


class Stuck(Exception):
    """The planner makes one plan after another at the same instant."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A job that will come, and what only the world knows of it."""

    at: Instant
    job: str
    """Its id."""
    spec: JobSpec
    work_s: Seconds
    """How long it truly runs, alone on the GPU model that its spec has as reference."""
    after: tuple[str, ...] = ()
    """Ids of jobs that must complete first."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a play begins with."""

    nodes: Sequence[Node]
    """Ready ones."""
    arrivals: Sequence[Arrival]
    physics: Physics = Physics()
    at_most_s: Seconds = 30 * 24 * 3600.0
    """The play is broken off then: some jobs can never run."""


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


def play(setting: Setting, chosen: Chosen, decide: Decide | None = None) -> Played:
    """Play until every job has ended; the same setting and policies give the same play.

    `decide`: another planner than the house's, for comparison. Raise PlanRefused when the checker
    finds a fault in any plan.
    """
    stage = _Stage(setting, chosen, decide or (lambda world: plan(world, chosen.policies)))
    stage.begin()
    while stage.next_at() is not None:
        stage.step()
    return stage.played()


@dataclass(slots=True)
class _Stage:
    """Where a play stands."""

    setting: Setting
    chosen: Chosen
    decide: Decide
    store: MemoryStore = field(default_factory=MemoryStore)
    now: Instant = 0.0
    began_at: Instant = 0.0
    stays: list[Stay] = field(default_factory=list[Stay])
    rounds: int = 0
    look_again_at: Instant | None = None
    epoch: int = 0
    floor: Floor = field(init=False)
    coming: list[Arrival] = field(init=False)
    truth: dict[str, Arrival] = field(init=False)

    def __post_init__(self) -> None:
        """Sort what will come, the next one last."""
        self.floor = Floor({node.id: node for node in self.setting.nodes}, self.setting.physics)
        order = sorted(self.setting.arrivals, key=lambda each: (each.at, each.job))
        self.coming = order[::-1]
        self.truth = {each.job: each for each in order}

    # -- time --------------------------------------------------------------------------------

    def begin(self) -> None:
        """Raise the nodes and open the run, at the first arrival."""
        self.began_at = self.now = self.coming[-1].at if self.coming else 0.0
        self.epoch = self.store.new_epoch("play", self.now)
        run = Run(id=RUN, opened_at=self.now, user="play", folder="/")
        joined = [e.NodeJoined(at=self.now, node=node) for node in self.setting.nodes]
        self._append([e.RunOpened(at=self.now, run=run), *joined])

    def next_at(self) -> Instant | None:
        """Return when something is due next; None when all have ended, or the time is up."""
        arrival = self.coming[-1].at if self.coming else None
        alive = bool(self.floor.attempts) or bool(self.store.world(self.now).jobs)
        if arrival is None and not alive:
            return None
        due = earliest(arrival, self.floor.next_at(), self.look_again_at)
        last = self.began_at + self.setting.at_most_s
        return None if due is None or due > last else due

    def step(self) -> None:
        """Move to what is due next, tell what happened, and let rounds be planned for it."""
        due = self.next_at()
        self.now = self.now if due is None else max(self.now, due)
        self.look_again_at = None
        self._append([*self._arrived(), *self._happened()])
        for _ in range(ROUNDS_AT_ONCE):
            if self._round():
                return
        raise Stuck(f"{ROUNDS_AT_ONCE} rounds at {self.now}")

    # -- what happens ------------------------------------------------------------------------

    def _arrived(self) -> Iterator[e.Event]:
        while self.coming and self.coming[-1].at <= self.now:
            one = self.coming.pop()
            job = Job(id=one.job, run=RUN, spec=one.spec, submitted_at=self.now, after=one.after)
            yield e.Submitted(at=self.now, job=one.job, first=job)

    def _happened(self) -> Iterator[e.Event]:
        jobs = self.store.world(self.now).jobs
        for attempt in self.floor.moved_to(self.now):
            if attempt.is_new_at(self.now):
                yield attempt.started(self.now)
            saved = attempt.untold_save(self.now)
            if saved is not None:
                yield saved
            if attempt.has_ended(self.now):
                yield self._ended(attempt, jobs[attempt.job])

    def _ended(self, attempt: Attempt, job: Job) -> e.Event:
        self.floor.leave(attempt, self.now)
        self.stays.append(
            Stay(
                attempt.job, attempt.number, attempt.placement, job.wants.gpu.share,
                attempt.placed_at, self.now,
            )
        )  # fmt: skip
        done = attempt.is_done
        end = End(
            attempt=attempt.number,
            how="exited" if done else "stopped",
            exit_code=0 if done else STOPPED,
            says="",
            unsaved_s=0.0 if done else attempt.unsaved_s(self.now),
            ran_s=max(0.0, self.now - attempt.begins_at),
        )
        return cast(e.Event, meaning(job, end, self.now))

    # -- rounds ------------------------------------------------------------------------------

    def _round(self) -> bool:
        """Plan once; say whether the same world would give no other plan now."""
        seen = {n.id: Sighting(node=n.id, heard_at=self.now, agent_alive=True)
                for n in self.setting.nodes}  # fmt: skip
        world = replace(self.store.world(self.now), seed=self.chosen.seed, sightings=seen)
        made = self.decide(world)
        self.rounds += 1
        self.look_again_at = made.look_again_at
        if not made.steps:
            return True
        faults = check(made, world, self.chosen.policies.rules)
        if faults:
            raise PlanRefused("; ".join(f"{fault.rule}: {fault.says}" for fault in faults))
        self._record(made, world)
        self._append([each for step in made.steps for each in self._obeyed(step, world)])
        return all(isinstance(step, SETTLES_ITSELF) for step in made.steps)

    def _record(self, made: p.Plan, world: World) -> None:
        round_ = p.Round(
            number=0, version=world.version, now=world.now, seed=world.seed, epoch=self.epoch,
            order=self.chosen.order, score=self.chosen.score, plan=made,
            settings=self.chosen.policies.rules.model_dump_json(),
            sightings=json.dumps(
                {name: seen.model_dump(mode="json") for name, seen in world.sightings.items()}
            ),
        )  # fmt: skip
        self.store.record(round_, events_of(made, world.now), epoch=self.epoch)

    def _obeyed(self, step: p.Step, world: World) -> Iterator[e.Event]:
        """Do at once what an agent would do within a second of its order."""
        if isinstance(step, p.Place):
            job, truth = world.jobs[step.job], self.truth[step.job]
            self.floor.place(job, truth.work_s, step, self.now)
            yield e.OrderPosted(at=self.now, job=step.job, attempt=step.attempt, number=1)
        elif isinstance(step, p.AskToStop):
            self.floor.stop(step.job, self.now)
            yield e.StopPosted(at=self.now, job=step.job, attempt=step.attempt, number=1)

    def _append(self, events: Sequence[e.Event]) -> None:
        if events:
            self.store.append(events, epoch=self.epoch)

    # -- the end -----------------------------------------------------------------------------

    def played(self) -> Played:
        """Return what came of it."""
        held: dict[str, list[Stay]] = {}
        for stay in self.stays:
            held.setdefault(stay.job, []).append(stay)
        known = {job.id: job for job in self.store.jobs(JobQuery())}
        jobs = {
            each.job: self._of(known[each.job], held.get(each.job, []))
            for each in sorted(self.setting.arrivals, key=lambda one: one.job)
            if each.job in known
        }
        ends = [j.job.ended_at for j in jobs.values() if j.job.ended_at is not None]
        return Played(
            jobs=jobs, stays=tuple(self.stays), began_at=self.began_at,
            ended_at=max(ends, default=self.now), rounds=self.rounds, store=self.store,
        )  # fmt: skip

    def _of(self, job: Job, stays: list[Stay]) -> PlayedJob:
        until = self.now if job.ended_at is None else job.ended_at
        held_s = sum(stay.until - stay.since for stay in stays)
        done = job.state is JobState.COMPLETED
        return PlayedJob(
            job=job,
            wait_s=max(0.0, until - job.submitted_at - held_s),
            completion_s=until - job.submitted_at if done else None,
            device_s=sum((s.until - s.since) * s.share * len(s.placement.devices) for s in stays),
            preemptions=max(0, len(stays) - 1),
        )
