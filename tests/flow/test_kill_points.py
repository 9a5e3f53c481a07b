"""The controller dies before and after everything it does; nothing is lost, nothing runs twice.

In simulated time, with the real controller, store contract, mailbox and agent duty.
"""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
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
from cloudwhale.planning.reconcile import Patience
from cloudwhale.simulation.clock import SteppedClock
from cloudwhale.simulation.machines import SimulatedMachine
from cloudwhale.simulation.processes import Program
from cloudwhale.simulation.stage import Scenery, Stage
from cloudwhale.spi.errors import Fenced
from cloudwhale.spi.store import JobQuery, Store
from cloudwhale_policies.fits import BestFit
from cloudwhale_policies.order import Priority

FACTS = Facts(cpu=2.0, memory_gib=8.0, disk_gib=50.0)
PATIENCE = Patience(attempt_lease_s=600.0, clock_skew_s=30.0)
CHOSEN = Chosen(Policies(Priority(), BestFit(), PATIENCE), "priority", "best-fit")
PROGRAMS = {
    "quick": Program(work_s=3.0),
    "saving": Program(work_s=30.0, saves_every_s=4.0),
    "failing": Program(work_s=2.0, exit_code=3),
    "endless": Program(work_s=1e6, saves_every_s=4.0),
    "stubborn": Program(work_s=1e6, heeds_signal=False),
}


class ControllerDied(BaseException):
    """What a kill looks like from inside: nobody catches it."""


class Fuse:
    """Counts what the controller does and blows before or after the n-th."""

    def __init__(self, at: int | None, after: bool = False) -> None:
        self.count, self._at, self._after = 0, at, after

    def around(self, do: Callable[[], Any]) -> Any:
        self.count += 1
        if self.count == self._at and not self._after:
            raise ControllerDied
        answer = do()
        if self.count == self._at:
            raise ControllerDied
        return answer


class MortalEffects(InlineEffects):
    """Effects whose controller may die around any of them."""

    def __init__(self, fuse: Fuse) -> None:
        super().__init__()
        self._fuse = fuse

    def start(self, effect: Effect, now: Instant) -> bool:
        return super().start(Effect(effect.key, lambda: self._fuse.around(effect.do)), now)


class MortalStore:
    """A store whose controller may die around any write."""

    def __init__(self, store: Store, fuse: Fuse) -> None:
        self._store, self._fuse = store, fuse

    def append(self, events: Iterable[e.Event], *, epoch: int | None = None) -> int:
        return int(self._fuse.around(lambda: self._store.append(events, epoch=epoch)))

    def record(self, round: Any, events: Iterable[e.Event], *, epoch: int) -> int:
        return int(self._fuse.around(lambda: self._store.record(round, events, epoch=epoch)))

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


def a_stage(names: Iterable[str]) -> Stage:
    clock = SteppedClock()
    objects = open_objects("memory://")
    machine = MortalMachine("host", FACTS, objects, program_of)
    stage = Stage(Scenery(clock, MemoryStore(), objects, [machine], CHOSEN))
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


MIX = ("quick", "saving", "failing", "endless", "stubborn", "quick")
EXPECTED = {
    "quick-0": JobState.COMPLETED,
    "saving-1": JobState.COMPLETED,
    "failing-2": JobState.FAILED,
    "endless-3": JobState.CANCELLED,
    "stubborn-4": JobState.CANCELLED,
    "quick-5": JobState.COMPLETED,
}


def life(fuse: Fuse) -> Stage:
    """Play the mix to its end; a controller that dies is followed by another after 3 s."""
    stage = a_stage(MIX)
    mortal = fuse
    for _ in range(3):
        try:
            stage.raise_controller(
                MortalEffects(mortal),
                MortalStore(stage.scenery.store, mortal),
            )

            def done() -> bool:
                as_one_wishes(stage)
                return all_ended(stage)

            assert stage.play(done, at_most_s=2000.0), {
                job.id: (job.state, job.reason) for job in jobs_of(stage).values()
            }
            return stage
        except ControllerDied:
            mortal = Fuse(None)
            stage.controller = None
            pass_by(stage, 3.0)
    raise AssertionError("it died more than once")


def pass_by(stage: Stage, seconds: float) -> None:
    """Let so much time pass."""
    end = stage.scenery.clock.now() + seconds
    assert stage.play(lambda: stage.scenery.clock.now() >= end, at_most_s=seconds + 1.0)


def ends(stage: Stage, at_most_s: float = 300.0) -> bool:
    """Play until every job has ended."""
    return stage.play(lambda: all_ended(stage), at_most_s)


def count_points() -> int:
    fuse = Fuse(None)
    life(fuse)
    return fuse.count


def test_a_life_without_deaths_ends_as_it_should_in_no_time() -> None:
    stage = life(Fuse(None))
    assert {job.id: job.state for job in jobs_of(stage).values()} == EXPECTED
    assert {job.attempt for job in jobs_of(stage).values()} == {1}
    nothing_ran_twice(stage)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_controller_killed_around_anything_it_does_loses_and_doubles_nothing(
    after: bool,
) -> None:
    points = count_points()
    assert points > 60
    for point in range(1, points + 1):
        stage = life(Fuse(point, after))
        found = jobs_of(stage)
        assert {job.id: job.state for job in found.values()} == EXPECTED, f"killed at {point}"
        assert {job.attempt for job in found.values()} == {1}, f"killed at {point}"
        nothing_ran_twice(stage)
        spent = [job.lost_s for job in found.values()]
        assert sum(spent) == 0.0


def agent_life(fuse: Fuse) -> Stage:
    """Play the mix to its end with an agent that dies around one of its actions."""
    stage = a_stage(MIX)
    (machine,) = stage.scenery.machines
    assert isinstance(machine, MortalMachine)
    machine.fuse = fuse
    stage.raise_controller()

    def done() -> bool:
        as_one_wishes(stage)
        return all_ended(stage)

    assert stage.play(done, at_most_s=2000.0), fuse.count
    return stage


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_agent_killed_around_anything_it_does_loses_and_doubles_nothing(after: bool) -> None:
    counting = Fuse(None)
    agent_life(counting)
    assert counting.count > 40
    for point in range(1, counting.count + 1):
        stage = agent_life(Fuse(point, after))
        found = jobs_of(stage)
        assert {job.id: job.state for job in found.values()} == EXPECTED, f"killed at {point}"
        assert {job.attempt for job in found.values()} == {1}, f"killed at {point}"
        nothing_ran_twice(stage)


def test_agent_killed_at_any_second_is_started_again_and_adopts_what_runs() -> None:
    for second in range(1, 40, 2):
        stage = a_stage(("saving", "quick"))
        stage.raise_controller()
        machine = stage.scenery.machines[0]
        pass_by(stage, second)
        machine.kill_agent()
        assert ends(stage)
        assert {job.state for job in jobs_of(stage).values()} == {JobState.COMPLETED}
        assert {job.attempt for job in jobs_of(stage).values()} == {1}
        nothing_ran_twice(stage)


def test_a_shim_killed_costs_at_most_one_checkpoint_interval_and_resumes_there() -> None:
    stage = a_stage(("saving",))
    stage.raise_controller()
    machine = stage.scenery.machines[0]
    pass_by(stage, 18.5)
    machine.kill_shim("saving-0", stage.scenery.clock.now())
    assert ends(stage)
    (job,) = jobs_of(stage).values()
    assert (job.state, job.attempt, job.interruptions) == (JobState.COMPLETED, 2, 1)
    resumed = machine.begun[-1]
    assert resumed.from_work_s >= 12.0
    assert 0 < job.lost_s <= 4.0 + 5.0
    nothing_ran_twice(stage)


def test_a_paused_job_keeps_its_place_to_resume_from_and_goes_on_when_told() -> None:
    stage = a_stage(("saving",))
    stage.raise_controller()
    store, clock = stage.scenery.store, stage.scenery.clock
    pass_by(stage, 10.0)
    store.append([e.PauseAsked(at=clock.now(), job="saving-0")])
    paused = stage.play(lambda: jobs_of(stage)["saving-0"].state is JobState.PAUSED, 60.0)
    assert paused
    saved = jobs_of(stage)["saving-0"].checkpoint
    assert saved is not None
    store.append([e.ResumeAsked(at=clock.now(), job="saving-0")])
    assert ends(stage)
    assert stage.scenery.machines[0].begun[-1].from_work_s > 9.0
    assert jobs_of(stage)["saving-0"].lost_s == 0.0


def test_a_controller_that_was_replaced_can_write_nothing_more() -> None:
    stage = a_stage(("quick",))
    stage.raise_controller()
    old = stage.controller
    assert old is not None
    stage.raise_controller()
    with pytest.raises(Fenced):
        for _ in range(5):
            old.tick()
            stage.step()


def test_the_wall_clock_set_back_an_hour_loses_nothing() -> None:
    stage = a_stage(("saving", "quick", "quick"))
    stage.raise_controller()
    clock = stage.scenery.clock
    pass_by(stage, 8.0)
    clock.set_wall(clock.now() - 3600.0)
    assert ends(stage, at_most_s=8000.0)
    assert {job.attempt for job in jobs_of(stage).values()} == {1}
    notes = [t.event for t in stage.scenery.store.events("controller")]
    assert [n.reason.code.value for n in notes if isinstance(n, e.Noted)] == ["clock-went-back"]
