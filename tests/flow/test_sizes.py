"""Jobs that are sized by their family, in simulated time: smaller, out of memory, right at once."""

from collections.abc import Iterable
from typing import Any

from makers import a_device, a_job, wants
from staging import CHOSEN, all_ended, jobs_of, nothing_ran_twice

from cloudwhale.agent import actions as a
from cloudwhale.agent.seen import Seen
from cloudwhale.control.store.memory import MemoryStore
from cloudwhale.mailbox.documents import StartOrder
from cloudwhale.mailbox.objects import open_objects
from cloudwhale.model import event as e
from cloudwhale.model.job import JobState, Peaks, RetryCause, RetryRule
from cloudwhale.model.node import Facts
from cloudwhale.model.reason import Code
from cloudwhale.model.run import Run
from cloudwhale.model.units import GiB, Instant
from cloudwhale.planning.sizing import HEAD_ROOM
from cloudwhale.simulation.clock import SteppedClock
from cloudwhale.simulation.machines import SimulatedMachine
from cloudwhale.simulation.processes import Program
from cloudwhale.simulation.stage import Scenery, Stage

FACTS = Facts(cpu=8.0, memory_gib=16.0, disk_gib=50.0, devices=(a_device(),))
FIRST = ("fit-0", "fit-1", "fit-2")
ASKED: GiB = 12.0
"""By the file: of 16 GiB one such job at a time."""


class MeasuringMachine(SimulatedMachine):
    """A machine that says how much memory each attempt has used, and ends it at its limit."""

    needs: dict[str, GiB]
    limits: dict[tuple[str, int], GiB | None]

    def _prepare(self, order: StartOrder, now: Instant) -> Seen | None:
        self.limits[order.job, order.attempt] = order.memory_gib
        return super()._prepare(order, now)

    def _close(self, action: a.Close) -> None:
        report = action.report
        needs = self.needs[report.job]
        limit = self.limits[report.job, report.attempt]
        if limit is not None and needs > limit:
            # What it had asked for beyond its limit nobody could see.
            changes: dict[str, Any] = {
                "how": "oom", "exit_code": 137, "peaks": Peaks(memory_gib=0.9 * limit),
            }  # fmt: skip
        else:
            changes = {"peaks": Peaks(memory_gib=needs)}
        super()._close(a.Close(report.model_copy(update=changes)))


def a_family_stage() -> Stage:
    clock, objects = SteppedClock(), open_objects("memory://")
    machine = MeasuringMachine("host", FACTS, objects, lambda order: Program(work_s=30.0))
    machine.needs, machine.limits = {}, {}
    stage = Stage(Scenery(clock, MemoryStore(), objects, [machine], CHOSEN))
    now = clock.now()
    run = Run(id="run-1", opened_at=now, user="u", folder="/")
    stage.scenery.store.append([e.RunOpened(at=now, run=run)])
    return stage


def queue(stage: Stage, needs: dict[str, GiB], retries: int = 3) -> None:
    """Queue jobs of the family that need so much, and ask for what its file has always said."""
    now = stage.scenery.clock.now()
    [machine] = stage.scenery.machines
    assert isinstance(machine, MeasuringMachine)
    machine.needs |= needs
    rule = RetryRule(max=retries, on=(RetryCause.OOM,), backoff_s=1.0)
    stage.scenery.store.append([
        e.Submitted(at=now, job=name, first=a_job(
            name, name="fit", resources=wants(cpu=1, memory_gib=ASKED), auto_size=True,
            duration_s=30.0, retry=rule, submitted_at=now,
        ))
        for name in needs
    ])  # fmt: skip


def played(stage: Stage) -> None:
    if stage.controller is None:
        stage.raise_controller()
    assert stage.play(lambda: all_ended(stage), 900.0), jobs_of(stage)
    nothing_ran_twice(stage)


def told(stage: Stage, job: str, kind: type[Any]) -> list[Any]:
    events: Iterable[Any] = (one.event for one in stage.scenery.store.events(job))
    return [event for event in events if isinstance(event, kind)]


def most_at_once(stage: Stage, jobs: Iterable[str]) -> int:
    spans: list[tuple[float, float]]
    spans = [(told(stage, job, e.Placed)[0].at, told(stage, job, e.Finished)[0].at) for job in jobs]
    return max(sum(since <= at < until for since, until in spans) for at, _ in spans)


def known(stage: Stage) -> None:
    """Play three of the family: each uses 2 GiB of the 12 that it asks for."""
    queue(stage, dict.fromkeys(FIRST, 2.0))
    played(stage)


def test_a_family_that_uses_little_is_sized_and_more_of_it_run_at_once() -> None:
    stage = a_family_stage()
    known(stage)
    assert most_at_once(stage, FIRST) == 1
    later = [f"fit-{n}" for n in range(3, 8)]
    queue(stage, dict.fromkeys(later, 2.0))
    played(stage)
    for job in later:
        assert jobs_of(stage)[job].wants.memory_gib == 3.0  # 1.2 times 2, up to the next size
        [sized] = told(stage, job, e.Sized)
        assert sized.reason.code is Code.SIZED
        assert "3 attempts have used 2 GiB at most" in sized.reason.says
        assert "instead of 12 GiB" in sized.reason.says
    assert most_at_once(stage, later) == 5  # of 16 GiB


def test_one_that_runs_out_grows_and_the_next_of_its_family_begins_there() -> None:
    stage = a_family_stage()
    known(stage)
    queue(stage, {"larger": 4.0})
    played(stage)
    larger = jobs_of(stage)["larger"]
    assert (larger.state, larger.attempt) == (JobState.COMPLETED, 2)
    assert told(stage, "larger", e.Retried)[0].reason.code is Code.OUT_OF_MEMORY
    assert larger.wants.memory_gib == 4.5  # 1.5 times the 3 GiB that were too few
    queue(stage, {"next": 4.0})
    played(stage)
    following = jobs_of(stage)["next"]
    assert following.attempt == 1, "it was not right from the start"
    assert following.wants.memory_gib is not None
    assert HEAD_ROOM * 4.0 <= following.wants.memory_gib < ASKED
    # Whoever needs little again changes nothing: nobody is sized below what was seen.
    queue(stage, {"small": 1.0})
    played(stage)
    queue(stage, {"again": 4.0})
    played(stage)
    assert jobs_of(stage)["again"].attempt == 1


def test_one_that_is_not_tried_again_teaches_its_family_too() -> None:
    stage = a_family_stage()
    known(stage)
    queue(stage, {"gives-up": 3.5}, retries=0)
    played(stage)
    assert jobs_of(stage)["gives-up"].state is JobState.FAILED
    queue(stage, {"next": 3.5})
    played(stage)
    following = jobs_of(stage)["next"]
    assert (following.state, following.attempt) == (JobState.COMPLETED, 1)
    assert following.wants.memory_gib == 4.0  # above the 3 GiB that were too few
