"""A stage for whole lives in simulated time: mortal controllers and agents, and what must hold."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from makers import a_job, wants

from cloudwhale.agent.actions import Action
from cloudwhale.agent.seen import Seen
from cloudwhale.control.controller import Chosen
from cloudwhale.control.effects import Effect, InlineEffects
from cloudwhale.control.store.memory import MemoryStore
from cloudwhale.mailbox.documents import StartOrder
from cloudwhale.mailbox.objects import open_objects
from cloudwhale.model import event as e
from cloudwhale.model.job import CheckpointRule, Job, JobState
from cloudwhale.model.node import Facts
from cloudwhale.model.run import Run
from cloudwhale.model.units import Instant
from cloudwhale.planning.planner import Policies
from cloudwhale.planning.rules import Patience, Rules
from cloudwhale.simulation.clock import SteppedClock
from cloudwhale.simulation.machines import SimulatedMachine
from cloudwhale.simulation.processes import Program
from cloudwhale.simulation.stage import Scenery, Stage
from cloudwhale.spi.errors import StoreUnusable
from cloudwhale.spi.store import JobQuery, Store
from cloudwhale_policies.fits import BestFit
from cloudwhale_policies.order import Priority

FACTS = Facts(cpu=2.0, memory_gib=8.0, disk_gib=50.0)
RULES = Rules(patience=Patience(attempt_lease_s=600.0, clock_skew_s=30.0))
CHOSEN = Chosen(Policies(Priority(), BestFit(), RULES), "priority", "best-fit")
PROGRAMS = {
    "quick": Program(work_s=3.0),
    "saving": Program(work_s=30.0, saves_every_s=4.0),
    "failing": Program(work_s=2.0, exit_code=3),
    "endless": Program(work_s=1e6, saves_every_s=4.0),
    "long": Program(work_s=1500.0, saves_every_s=20.0),
    "middling": Program(work_s=500.0, saves_every_s=20.0),
    "stubborn": Program(work_s=1e6, heeds_signal=False),
}


class ControllerDied(BaseException):
    """What a kill looks like from inside: nobody catches it."""


class Fuse:
    """Counts what the controller does and blows before or after the n-th."""

    def __init__(
        self, at: int | None, after: bool = False, death: BaseException | None = None
    ) -> None:
        self.count, self._at, self._after = 0, at, after
        self._death = death or ControllerDied()

    def around(self, do: Callable[[], Any]) -> Any:
        self.count += 1
        if self.count == self._at and not self._after:
            raise self._death
        answer = do()
        if self.count == self._at:
            raise self._death
        return answer


class MortalEffects(InlineEffects):
    """Effects whose controller may die around any of them."""

    def __init__(self, fuse: Fuse) -> None:
        super().__init__()
        self._fuse = fuse

    def start(self, effect: Effect, now: Instant) -> bool:
        return super().start(Effect(effect.key, lambda: self._fuse.around(effect.do)), now)


if TYPE_CHECKING:
    Rest = MemoryStore  # what `__getattr__` passes on, for the type checkers
else:
    Rest = object


class MortalStore(Rest):
    """A store whose controller may die around any write."""

    def __init__(self, store: Store, fuse: Fuse) -> None:
        self._store, self._fuse = store, fuse
        self.is_locked = False

    def append(self, events: Iterable[e.Event], *, epoch: int | None = None) -> int:
        self._wait()
        return int(self._fuse.around(lambda: self._store.append(events, epoch=epoch)))

    def record(self, round: Any, events: Iterable[e.Event], *, epoch: int, offers: str = "") -> int:
        self._wait()
        return int(
            self._fuse.around(lambda: self._store.record(round, events, epoch=epoch, offers=offers))
        )

    def _wait(self) -> None:
        if self.is_locked:
            raise StoreUnusable("the database is locked", "Let the other program finish.")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class AgentDied(BaseException):
    """A kill of the agent, seen from inside."""


class MortalMachine(SimulatedMachine):
    """A machine whose agent may die around any of its actions; its disk stays as it is."""

    fuse = Fuse(None)

    def _do(self, action: Action, now: Instant) -> Seen | None:
        try:
            answer: Seen | None = self.fuse.around(
                lambda: super(MortalMachine, self)._do(action, now)
            )
        except ControllerDied:
            raise AgentDied from None
        return answer

    def start_agent(self, now: Instant) -> None:
        self._until_death(lambda: super(MortalMachine, self).start_agent(now))

    def step(self, now: Instant) -> None:
        self._until_death(lambda: super(MortalMachine, self).step(now))

    def _until_death(self, live: Callable[[], None]) -> None:
        try:
            live()
        except AgentDied:
            self.kill_agent()


def program_of(order: StartOrder) -> Program:
    return PROGRAMS[order.name]


def a_stage(names: Iterable[str], store: Store | None = None) -> Stage:
    """Make a stage with one machine and a job of each program named, all submitted."""
    clock = SteppedClock()
    objects = open_objects("memory://")
    machine = MortalMachine("host", FACTS, objects, program_of)
    stage = Stage(Scenery(clock, store or MemoryStore(), objects, [machine], CHOSEN))
    now = clock.now()
    opened = e.RunOpened(at=now, run=Run(id="run-1", opened_at=now, user="u", folder="/"))
    submitted: list[e.Event] = [opened]
    for number, name in enumerate(names):
        job = a_job(
            f"{name}-{number}",
            name=name,
            resources=wants(cpu=1),
            checkpoint=CheckpointRule(every_s=5.0, grace_s=10.0),
        ).but(submitted_at=now + number)
        submitted.append(e.Submitted(at=now, job=job.id, first=job))
    stage.scenery.store.append(submitted)
    return stage


def jobs_of(stage: Stage) -> dict[str, Job]:
    return {job.id: job for job in stage.scenery.store.jobs(JobQuery())}


def all_ended(stage: Stage) -> bool:
    return all(job.ended for job in jobs_of(stage).values())


def nothing_ran_twice(stage: Stage) -> None:
    """Check the machine's own book: each attempt began once, and none beside another."""
    for machine in stage.scenery.machines:
        keys = [beginning.key for beginning in machine.begun]
        assert len(keys) == len(set(keys))
        for key, folder in machine.disk.folders.items():
            later = [b for b in machine.begun if b.key[0] == key[0] and b.key[1] > key[1]]
            if folder.process is not None:
                assert all(b.at >= folder.process.ends_at for b in later)


def as_one_wishes(stage: Stage) -> None:
    """Ask for the ends of jobs that have none of their own, once they run."""
    for job in jobs_of(stage).values():
        if job.spec.name in ("endless", "stubborn") and job.state is JobState.RUNNING:
            if job.wish is None:
                asked = e.CancelAsked(at=stage.scenery.clock.now(), job=job.id)
                stage.scenery.store.append([asked])


def pass_by(stage: Stage, seconds: float) -> None:
    """Let so much time pass."""
    end = stage.scenery.clock.now() + seconds
    assert stage.play(lambda: stage.scenery.clock.now() >= end, at_most_s=seconds + 1.0)


def ends(stage: Stage, at_most_s: float = 300.0) -> bool:
    """Play until every job has ended."""
    return stage.play(lambda: all_ended(stage), at_most_s)
