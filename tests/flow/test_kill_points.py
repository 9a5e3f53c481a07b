"""Controller and agent die before and after everything they do: nothing lost, nothing twice.

In simulated time, with the real controller, store contract, mailbox and agent duty.
"""

from pathlib import Path

import pytest
from staging import (
    ControllerDied,
    Fuse,
    MortalEffects,
    MortalMachine,
    MortalStore,
    a_stage,
    all_ended,
    as_one_wishes,
    ends,
    jobs_of,
    nothing_ran_twice,
    pass_by,
)

from cloudwhale.control.replay import plan_again
from cloudwhale.control.store import open_store, sqlite_url
from cloudwhale.model import event as e
from cloudwhale.model.job import JobState
from cloudwhale.simulation.stage import Stage
from cloudwhale.spi.errors import Fenced
from cloudwhale.spi.store import Store

MIX = ("quick", "saving", "failing", "endless", "stubborn", "quick")
EXPECTED = {
    "quick-0": JobState.COMPLETED,
    "saving-1": JobState.COMPLETED,
    "failing-2": JobState.FAILED,
    "endless-3": JobState.CANCELLED,
    "stubborn-4": JobState.CANCELLED,
    "quick-5": JobState.COMPLETED,
}


def life(fuse: Fuse, store: Store | None = None) -> Stage:
    """Play the mix to its end; a controller that dies is followed by another after 3 s."""
    stage = a_stage(MIX, store)
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


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_the_same_holds_on_the_databases_that_people_use(
    after: bool, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    every = 9 if kind == "sqlite" else 16  # a server's answer takes longer than a file's
    for point in range(3, count_points() + 1, every):
        if kind == "sqlite":
            url = sqlite_url(tmp_path / str(point))
        else:
            url = request.getfixturevalue("postgres").new_database()
        store = open_store(url, may_migrate=True)
        stage = life(Fuse(point, after), store)
        assert {job.id: job.state for job in jobs_of(stage).values()} == EXPECTED
        nothing_ran_twice(stage)
        replayed_bit_for_bit(store)
        store.close()
        if kind == "postgres":
            request.getfixturevalue("postgres").drop(url)


def replayed_bit_for_bit(store: Store) -> None:
    """Make every stored round again from its events alone."""
    numbers = range(1, 1000)
    rounds = [stored for n in numbers if (stored := store.round(n)) is not None]
    assert len(rounds) >= 3
    for stored in rounds:
        assert plan_again(store, stored).model_dump_json() == stored.plan.model_dump_json()


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
    machine.kill_shim("saving-0", stage.machine_time)
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
    assert stage.scenery.machines[0].begun[-1].from_work_s > 8.0
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
