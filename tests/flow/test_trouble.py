"""Database and mailbox that fail for a while: what was heard is kept, nobody is judged."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from staging import (
    CHOSEN,
    FACTS,
    Fuse,
    MortalEffects,
    MortalMachine,
    MortalStore,
    a_stage,
    all_ended,
    ends,
    jobs_of,
    nothing_ran_twice,
    pass_by,
    program_of,
)

from cloudwhale.mailbox.box import inbox_from
from cloudwhale.mailbox.objects import Objects, StoreObjects
from cloudwhale.model import event as e
from cloudwhale.model.job import JobState
from cloudwhale.model.node import NodeState
from cloudwhale.model.reason import Code
from cloudwhale.reporting.explain import story
from cloudwhale.simulation.stage import Scenery, Stage
from cloudwhale.spi.errors import StoreUnusable

FEW = ("quick", "saving", "failing")


class DeafObjects:
    """A store in which nothing can be read from inboxes, or written as orders, for a while."""

    folder: Path | None = None

    def __init__(self, objects: StoreObjects) -> None:
        self._objects = objects
        self.is_deaf = False
        self.is_mute = False

    def create(self, key: str, body: bytes) -> bool:
        if self.is_mute and key.startswith("orders/"):
            raise StoreUnusable("the orders cannot be written", "make room in the bucket")
        return self._objects.create(key, body)

    def get(self, key: str) -> bytes | None:
        if self.is_deaf and key.startswith("inbox/"):
            raise StoreUnusable("the inbox cannot be read")
        return self._objects.get(key)

    def keys(self, prefix: str) -> Sequence[str]:
        return self._objects.keys(prefix)

    def __getattr__(self, name: str) -> object:
        return getattr(self._objects, name)


def life_with_one_failed_write(at: int) -> tuple[Stage, int]:
    stage = a_stage(FEW)
    fuse = Fuse(at, death=StoreUnusable("the database is locked"))
    stage.raise_controller(MortalEffects(Fuse(None)), MortalStore(stage.scenery.store, fuse))
    assert ends(stage), f"write {at}: {jobs_of(stage)}"
    return stage, fuse.count


def test_a_write_that_fails_once_loses_nothing_whichever_it_is() -> None:
    _, writes = life_with_one_failed_write(10**9)
    assert writes > 10
    for at in range(1, writes + 1):
        stage, _ = life_with_one_failed_write(at)
        states = sorted(job.state.value for job in jobs_of(stage).values())
        assert states == ["completed", "completed", "failed"], f"write {at}"
        assert {job.attempt for job in jobs_of(stage).values()} == {1}
        nothing_ran_twice(stage)


def two_nodes() -> tuple[Stage, DeafObjects]:
    stage = a_stage(("endless",))
    objects = stage.scenery.objects
    assert isinstance(objects, StoreObjects)
    deaf = DeafObjects(objects)
    machines = [*stage.scenery.machines, MortalMachine("other", FACTS, objects, program_of)]
    scenery = stage.scenery
    return Stage(Scenery(scenery.clock, scenery.store, cast(Objects, deaf), machines, CHOSEN)), deaf


def test_a_controller_that_cannot_read_an_inbox_counts_nobody_as_lost() -> None:
    stage, deaf = two_nodes()
    stage.raise_controller()
    pass_by(stage, 20.0)
    deaf.is_deaf = True
    pass_by(stage, 2000.0)
    deaf.is_deaf = False
    pass_by(stage, 60.0)
    (job,) = jobs_of(stage).values()
    assert (job.state, job.attempt) == (JobState.RUNNING, 1)
    begun = [key for machine in stage.scenery.machines for key in machine.running(2e6)]
    assert len(begun) == 1
    told = [t.event for t in stage.scenery.store.since(0)]
    assert not any(isinstance(event, e.NodeLost) for event in told)


def test_an_order_that_cannot_be_posted_is_told_in_its_jobs_story_and_posted_later() -> None:
    stage, mute = two_nodes()
    mute.is_mute = True
    stage.raise_controller()
    pass_by(stage, 20.0)
    (job,) = jobs_of(stage).values()
    assert job.state is JobState.STARTING
    reasons = [each.reason for each in story(job, stage.scenery.store.events(job.id), []).tellings]
    (why,) = (each for each in reasons if each and each.code is Code.CANNOT_ACT)
    assert why.says == f"cannot start {job.id}: the orders cannot be written"
    assert why.change == "make room in the bucket"
    mute.is_mute = False
    pass_by(stage, 60.0)
    (job,) = jobs_of(stage).values()
    assert (job.state, job.attempt) == (JobState.RUNNING, 1)


def test_a_node_that_is_really_silent_is_still_lost_and_its_job_starts_elsewhere() -> None:
    stage, _ = two_nodes()
    stage.raise_controller()
    pass_by(stage, 20.0)
    (job,) = jobs_of(stage).values()
    assert job.placement is not None
    here = next(m for m in stage.scenery.machines if m.node == job.placement.node)
    stage.scenery.machines.remove(here)  # type: ignore[attr-defined]
    pass_by(stage, 700.0)
    (job,) = jobs_of(stage).values()
    assert (job.state, job.attempt) == (JobState.RUNNING, 2)
    assert stage.scenery.store.world(0.0).nodes[here.node].state is NodeState.LOST


def test_a_controller_that_slept_reads_before_it_judges() -> None:
    stage = a_stage(FEW)
    stage.raise_controller()
    pass_by(stage, 2.5)
    asleep = stage.controller
    stage.controller = None
    pass_by(stage, 8 * 3600.0)
    stage.controller = asleep
    assert stage.play(lambda: all_ended(stage), 60.0)
    assert {job.attempt for job in jobs_of(stage).values()} == {1}
    ran = {job.spec.name: job.run_s for job in jobs_of(stage).values()}
    assert ran["quick"] < 10.0, "the end was read hours late, and counts as long as it ran"


def test_a_database_begun_anew_does_not_make_the_agents_deaf() -> None:
    stage = a_stage(FEW)
    (machine,) = stage.scenery.machines
    machine.disk.fence = 50
    stage.raise_controller()
    assert ends(stage)
    assert {job.attempt for job in jobs_of(stage).values()} == {1}
    assert stage.controller is not None
    assert stage.controller.epoch > 50
    nothing_ran_twice(stage)


def test_documents_that_were_deleted_by_age_are_passed_over() -> None:
    stage = a_stage(FEW)
    (machine,) = stage.scenery.machines
    inbox = inbox_from(stage.scenery.objects, machine.node)
    for number in range(20):
        inbox.post(b"{}", number)
    inbox.forget(1, 15)
    stage.raise_controller()
    assert ends(stage)
    assert stage.scenery.store.read_to()[machine.node] > 20


def test_an_attempt_that_outlived_its_loss_is_ended_and_the_job_goes_on() -> None:
    stage = a_stage(("saving",))
    stage.raise_controller()
    (machine,) = stage.scenery.machines
    pass_by(stage, 6.0)
    stage.scenery.machines.remove(machine)  # type: ignore[attr-defined]
    pass_by(stage, 640.0)
    assert jobs_of(stage)["saving-0"].state is JobState.PENDING
    process = machine.disk.folders[("saving-0", 1)].process
    assert process is not None
    machine.disk.folders[("saving-0", 1)].process = replace(
        process, program=replace(process.program, work_s=1e6)
    )
    stage.scenery.machines.append(machine)  # type: ignore[attr-defined]
    assert ends(stage)
    (job,) = jobs_of(stage).values()
    assert job.state is JobState.COMPLETED
    assert machine.running(stage.machine_time) == []
    nothing_ran_twice(stage)
