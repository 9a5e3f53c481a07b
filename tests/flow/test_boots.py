"""Machines that end in the middle of their boots, and words of boots that are no words."""

import random
from functools import partial
from typing import Any

import pytest
from clouding import (
    a_cloudy_stage,
    adds_up,
    an_offer,
    cloud_of,
    is_settled,
    left_over,
    rentals_of,
    settles,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from staging import jobs_of, nothing_ran_twice, pass_by

from cloudwhale.control.circuits import TRIPS_AFTER
from cloudwhale.mailbox.box import boot_of, folder_of
from cloudwhale.mailbox.documents import BootTold
from cloudwhale.model import event as e
from cloudwhale.model.job import JobState
from cloudwhale.model.reason import Code
from cloudwhale.model.rental import RentalState
from cloudwhale.model.units import micro_usd
from cloudwhale.simulation.booting import PHASES, BootPlan
from cloudwhale.simulation.cloud import Shelf, SimulatedCloud, door_of
from cloudwhale.simulation.stage import Stage

TIMES = 20


def a_stage(*plans: BootPlan) -> Stage:
    """Make a stage with one offer for each way to boot, the first the cheapest."""
    shelves: list[Shelf] = []
    for number, plan in enumerate(plans):
        price = micro_usd(str(3.6 + number / 100))
        name = f"offer-{number}"
        offer = an_offer(name, type=f"t{number}.x", price_usd_h=price, cap_usd_h=price)
        shelves.append(Shelf(offer, boot=plan))
    return a_cloudy_stage(("quick",), shelves)


def told(stage: Stage) -> list[e.BootTold]:
    events = (one.event for one in stage.scenery.store.since(0, 100_000))
    return [one for one in events if isinstance(one, e.BootTold)]


def reasons(stage: Stage, subject: str, code: Code) -> list[str]:
    events = (one.event for one in stage.scenery.store.events(subject))
    return [
        one.reason.says
        for one in events
        if isinstance(one, e.Noted | e.Waits) and one.reason.code is code
    ]


def is_well(stage: Stage) -> None:
    """Check that the job is done, once, and that nothing is left or half-ready."""
    assert {job.state for job in jobs_of(stage).values()} == {JobState.COMPLETED}
    assert not left_over(stage)
    nothing_ran_twice(stage)
    adds_up(stage)
    read: dict[str, list[int]] = {}
    for event in told(stage):
        read.setdefault(event.rental, []).append(event.number)
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in read.values())
    for story in rentals_of(stage).values():
        states = [rental.state for rental in story]
        if RentalState.READY in states:
            before = story[states.index(RentalState.READY) - 1]
            assert before.state is RentalState.BOOTING and not story[-1].boot.has_failed


def has_hired(cloud: SimulatedCloud) -> bool:
    return bool(cloud.hired)


@pytest.mark.parametrize("phase", [phase for phase, s in PHASES if s > 0])
def test_a_machine_that_ends_at_any_time_of_any_phase_leaves_nothing(phase: str) -> None:
    sums = [sum(s for _, s in PHASES[:number]) for number in range(len(PHASES))]
    begins, lasts = dict(zip(dict(PHASES), sums, strict=True))[phase], dict(PHASES)[phase]
    dice = random.Random(phase)
    for _ in range(TIMES):
        stage = a_stage(BootPlan(), BootPlan())
        stage.raise_controller()
        cloud = cloud_of(stage)
        assert stage.play(partial(has_hired, cloud), 60.0)
        (hired,) = cloud.hired.values()
        hired.taken_at = hired.launched_at + begins + dice.uniform(0.0, lasts - 0.01)
        if dice.random() < 0.5:  # the controller is away when it happens
            pass_by(stage, dice.uniform(0.0, hired.taken_at - hired.launched_at))
            stage.controller = None
            pass_by(stage, 30.0)
            stage.raise_controller()
        assert settles(stage)
        assert len(cloud.hired) == 2
        is_well(stage)


def test_a_machine_that_ends_while_it_boots_is_told_with_its_phase_to_its_jobs() -> None:
    stage = a_stage(BootPlan(), BootPlan())
    stage.raise_controller()
    assert stage.play(lambda: bool(told(stage)), 60.0)
    (hired,) = cloud_of(stage).hired.values()
    hired.taken_at = hired.launched_at + 8.0
    assert settles(stage)
    (says,) = reasons(stage, "quick-0", Code.BOOT_FAILED)
    assert "was taken away by its provider, or has ended, while it booted: `docker`" in says


def test_three_kinds_whose_boots_fail_stop_launches_and_all_is_paid() -> None:
    stage = a_stage(*[BootPlan(fails_in="docker")] * TRIPS_AFTER, BootPlan())
    stage.raise_controller()
    assert stage.play(lambda: bool(reasons(stage, "boots", Code.CIRCUIT_OPEN)), 300.0)
    pass_by(stage, 60.0)
    assert len(cloud_of(stage).hired) == TRIPS_AFTER, "and not the fourth, which would boot"
    assert cloud_of(stage).running == 0
    assert reasons(stage, "quick-0", Code.CIRCUIT_OPEN)
    assert settles(stage), "it goes on once the circuit closes"
    is_well(stage)


# -- whatever lies in `boots/` -----------------------------------------------------------------

NAMES = st.sampled_from([*dict(PHASES), "firmware", "", "d\x1b[2Jocker", "p" * 500])
FLOATS = st.floats(width=32)  # NaN and infinity too


def a_document(phase: str, state: Any, at: float, took_s: float | None, says: str) -> bytes:
    told = BootTold(at=at, phase=phase, state=state, took_s=took_s, says=says)
    return told.model_dump_json().encode()


STATES = st.sampled_from(["begun", "done", "failed"])
DOCUMENTS = st.builds(a_document, NAMES, STATES, FLOATS, st.none() | FLOATS, st.text(max_size=400))
OTHERS = st.sampled_from(
    [b"", b"{", b"null", b"\xff\x00", b'{"phase":"docker","state":"skipped","at":1.0}',
     b'{"v":99,"at":1.0,"phase":"docker","state":"begun","more":{"a":[1]}}']
)  # fmt: skip
WORDS = st.lists(DOCUMENTS | OTHERS, max_size=40)


@settings(max_examples=40, deadline=None)
@given(words=WORDS, again=st.booleans(), restarts_after=st.none() | st.floats(0.0, 30.0))
def test_whatever_a_machine_tells_of_its_boot_nothing_is_lost_doubled_or_left(
    words: list[bytes], again: bool, restarts_after: float | None
) -> None:
    stage = a_stage(BootPlan(), BootPlan())
    stage.raise_controller()
    assert stage.play(lambda: bool(cloud_of(stage).hired), 60.0)
    (name,) = cloud_of(stage).hired
    box = boot_of(stage.scenery.objects, folder_of(name, door_of(cloud_of(stage).hired[name].id)))
    for body in (*words, *(words if again else ())):
        box.post(body, box.newest())
    if restarts_after is not None:
        pass_by(stage, restarts_after)
        stage.controller = None
        pass_by(stage, 3.0)
        stage.raise_controller()
    assert stage.play(lambda: is_settled(stage), 6000.0)
    is_well(stage)
    for event in told(stage):
        assert event.phase.isprintable() and event.says.isprintable()
        assert len(event.phase) <= 32 and len(event.says) <= 300
    for rental in stage.scenery.store.rentals("run-1"):
        assert all(0 <= took_s < 1e6 for took_s in rental.boot.took_s.values())
