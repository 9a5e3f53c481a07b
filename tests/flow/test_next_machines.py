"""Machines that are taken away or lost: the next comes at once, and starts nothing early."""

from collections.abc import Callable
from typing import Any

import pytest
from clouding import (
    WarnedMachine,
    WarningCloud,
    a_cloudy_stage,
    adds_up,
    an_offer,
    cloud_of,
    nothing_overlaps,
    rentals_of,
    settles,
    warn,
)
from staging import ControllerDied, Fuse, MortalEffects, MortalStore, jobs_of, pass_by

from cloudwhale.mailbox.box import inbox_from
from cloudwhale.mailbox.documents import Warned
from cloudwhale.model import event as e
from cloudwhale.model.job import Job, JobState
from cloudwhale.model.reason import Code
from cloudwhale.model.rental import Rental, RentalState
from cloudwhale.model.units import Instant, micro_usd
from cloudwhale.simulation.cloud import Shelf
from cloudwhale.simulation.stage import Stage


def events_of(stage: Stage) -> list[e.Event]:
    return [told.event for told in stage.scenery.store.since(0, 100_000)]


def job_of(stage: Stage) -> Job:
    (job,) = jobs_of(stage).values()
    return job


def open_rentals(stage: Stage) -> dict[str, Rental]:
    world = stage.scenery.store.world(stage.scenery.clock.now())
    return dict(world.rentals)


def running(stage: Stage) -> Stage:
    stage.raise_controller()
    assert stage.play(lambda: job_of(stage).state is JobState.RUNNING, 100.0)
    pass_by(stage, 10.0)
    return stage


def in_state(stage: Stage, state: JobState) -> Callable[[], bool]:
    return lambda: job_of(stage).state is state


def ended_well(stage: Stage, at_most_s: float = 3000.0) -> Job:
    """Play to the end; what was paid adds up, and no attempt ran beside another."""
    assert settles(stage, at_most_s), job_of(stage).reason
    adds_up(stage)
    nothing_overlaps(stage)
    assert stage.controller is not None and stage.controller.incident == ""
    assert job_of(stage).state is JobState.COMPLETED
    return job_of(stage)


def at(stage: Stage, holds: Callable[[e.Event], bool]) -> Instant:
    """Return when the first event of a kind happened."""
    return next(one.at for one in events_of(stage) if holds(one))


def is_lost(event: e.Event) -> bool:
    return isinstance(event, e.AttemptLost)


def is_second(event: e.Event) -> bool:
    return isinstance(event, e.Placed) and event.attempt == 2


def told(stage: Stage) -> list[Code]:
    """Return what the job was told while it waited, or recovered."""
    return [one.reason.code for one in events_of(stage) if isinstance(one, e.Waits)]


# -- notices ---------------------------------------------------------------------------------


def test_a_notice_has_its_replacement_rented_in_that_very_round() -> None:
    stage = running(a_cloudy_stage(("saving",), cloud=WarningCloud))
    (first,) = open_rentals(stage)
    warn(stage, first, stage.machine_time + 120.0)
    assert stage.play(in_state(stage, JobState.RECOVERING), 5.0) or job_of(stage).attempt == 1
    job = ended_well(stage)
    assert (job.attempt, job.retries, job.interruptions) == (2, 0, 1)
    second = next(name for name in rentals_of(stage) if name != first)
    lost_at = at(stage, is_lost)
    reserved = (one for one in events_of(stage) if isinstance(one, e.Reserved))
    assert next(one.at for one in reserved if one.rental == second) == lost_at
    (lost,) = (one for one in events_of(stage) if isinstance(one, e.AttemptLost))
    assert lost.reason.code is Code.TAKEN_AWAY and " in 1" in lost.reason.says


def test_an_attempt_that_ignores_its_signal_keeps_its_place_until_its_machine_is_gone() -> None:
    stage = running(a_cloudy_stage(("stubborn",), cloud=WarningCloud))
    (first,) = open_rentals(stage)
    goes_at = stage.machine_time + 120.0
    warn(stage, first, goes_at)
    pass_by(stage, 40.0)
    second = next(one for name, one in open_rentals(stage).items() if name != first)
    assert second.state is RentalState.READY, "it has booted meanwhile"
    assert job_of(stage).state in (JobState.RECOVERING, JobState.PENDING)
    assert stage.play(lambda: job_of(stage).attempt == 2, 300.0)
    nothing_overlaps(stage)


def test_one_that_had_not_started_when_the_notice_came_starts_on_its_next_machine() -> None:
    stage = a_cloudy_stage(("saving",), cloud=WarningCloud)
    stage.raise_controller()
    assert stage.play(in_state(stage, JobState.STARTING), 100.0)
    (first,) = open_rentals(stage)
    warn(stage, first, stage.machine_time + 60.0)
    job = ended_well(stage)
    assert job.attempt == 2 and job.interruptions == 1


def test_a_job_that_ends_in_the_second_of_its_notice_has_ended_and_its_next_machine_goes() -> None:
    stage = a_cloudy_stage(("saving",), cloud=WarningCloud)
    stage.raise_controller()
    assert stage.play(in_state(stage, JobState.RUNNING), 100.0)
    pass_by(stage, 29.0)
    (first,) = open_rentals(stage)
    one = cloud_of(stage).hired[first]
    box = inbox_from(stage.scenery.objects, f"@ROLE:{one.id}@{first}")
    now = stage.machine_time
    said = Warned(at=now, agent=f"{first}-1", goes_at=now + 120.0, says="terminate")
    box.post(said.model_dump_json().encode(), box.newest())
    job = ended_well(stage)
    assert (job.attempt, job.interruptions) == (1, 0)
    others = [story for name, story in rentals_of(stage).items() if name != first]
    assert all(RentalState.READY not in [one.state for one in story] for story in others)


@pytest.mark.parametrize("wish", [e.CancelAsked, e.PauseAsked])
def test_a_next_machine_whose_job_nobody_wants_to_go_on_goes_back_in_that_round(
    wish: type[e.CancelAsked] | type[e.PauseAsked],
) -> None:
    stage = running(a_cloudy_stage(("stubborn",), cloud=WarningCloud))
    (first,) = open_rentals(stage)
    warn(stage, first, stage.machine_time + 120.0)
    assert stage.play(lambda: len(open_rentals(stage)) == 2, 10.0)
    pass_by(stage, 5.0)
    asked = wish(at=stage.scenery.clock.now(), job=job_of(stage).id)
    stage.scenery.store.append([asked])
    pass_by(stage, 2.0)
    assert set(open_rentals(stage)) <= {first}, "its next machine is back"
    assert job_of(stage).attempt == 1


def test_the_providers_own_list_is_a_notice_too_and_the_job_is_asked_to_save() -> None:
    stage = a_cloudy_stage(("saving",), [Shelf(an_offer(notice_s=120.0))])
    stage.raise_controller()
    pass_by(stage, 40.0)
    (one,) = cloud_of(stage).hired.values()
    one.taken_at = stage.machine_time + 121.0
    job = ended_well(stage)
    assert (job.attempt, job.retries, job.lost_s) == (2, 0, 0.0)
    lost_at = at(stage, is_lost)
    wished = (one for one in events_of(stage) if isinstance(one, e.StopWished))
    assert next(wished).reason.code is Code.TAKEN_AWAY
    rented = [one.at for one in events_of(stage) if isinstance(one, e.Reserved)]
    assert rented[1] == lost_at


def test_a_notice_of_a_machine_that_nobody_rents_is_told_once() -> None:
    stage = running(a_cloudy_stage(("long",)))
    box = inbox_from(stage.scenery.objects, "host")
    for _ in range(3):
        now = stage.machine_time
        said = Warned(at=now, agent="host-1", goes_at=now + 120.0, says="terminate")
        box.post(said.model_dump_json().encode(), box.newest())
        pass_by(stage, 10.0)
        stage.raise_controller()
    noted = [one for one in events_of(stage) if isinstance(one, e.Noted)]
    (says,) = (one.reason.says for one in noted if one.reason.code is Code.TAKEN_AWAY)
    assert says == "host says that it is taken away, and nobody rents it here: terminate"
    assert job_of(stage).state is JobState.RUNNING and job_of(stage).attempt == 1


# -- without a notice ------------------------------------------------------------------------


def test_a_machine_that_is_gone_at_once_is_replaced_at_once() -> None:
    stage = running(a_cloudy_stage(("saving",)))
    (one,) = cloud_of(stage).hired.values()
    one.taken_at = stage.machine_time + 0.5
    job = ended_well(stage)
    assert (job.attempt, job.retries) == (2, 0), "it had saved something"
    assert 0 < job.lost_s < 15.0
    seen_at = at(stage, is_lost)
    rented = [one.at for one in events_of(stage) if isinstance(one, e.Reserved)]
    assert rented[1] - seen_at <= 1.0


@pytest.mark.parametrize("missed", [1, 9])
def test_missed_heartbeats_relaunch_nothing(missed: int) -> None:
    stage = running(a_cloudy_stage(("long",), duration_s=1500.0))
    (one,) = cloud_of(stage).hired.values()
    one.machine.lose(stage.machine_time)
    pass_by(stage, 60.0 * missed + 30.0)
    one.machine.come_back(stage.machine_time)
    pass_by(stage, 30.0)
    assert len(cloud_of(stage).hired) == 1 and not any(map(is_lost, events_of(stage)))
    assert job_of(stage).attempt == 1


def silent(stage: Stage) -> Stage:
    """Let the machine fall silent until it counts as lost."""
    running(stage)
    pass_by(stage, 30.0)
    (one,) = cloud_of(stage).hired.values()
    one.machine.lose(stage.machine_time)
    assert stage.play(in_state(stage, JobState.RECOVERING), 700.0)
    return stage


def test_a_silent_machine_is_replaced_when_it_counts_as_lost_and_nothing_starts_before() -> None:
    stage = silent(a_cloudy_stage(("long",), duration_s=1500.0))
    pass_by(stage, 1.0)
    assert len(cloud_of(stage).hired) == 2, "its next machine boots while the skew passes"
    assert stage.play(lambda: job_of(stage).attempt == 2, 200.0)
    assert at(stage, is_second) - at(stage, is_lost) >= 30.0
    nothing_overlaps(stage)
    assert job_of(stage).retries == 0 and job_of(stage).checkpoint is not None


def test_one_that_is_heard_again_goes_on_and_its_next_machine_goes_back() -> None:
    stage = silent(a_cloudy_stage(("long",), duration_s=1500.0))
    pass_by(stage, 1.0)
    first, second = cloud_of(stage).hired.values()
    first.machine.come_back(stage.machine_time)
    assert stage.play(in_state(stage, JobState.RUNNING), 60.0) or job_of(stage).attempt == 1
    assert stage.play(lambda: second.ended_at is not None, 60.0)
    assert first.ended_at is None


# -- where it goes ---------------------------------------------------------------------------


def zones(*names: str, market: str = "spot", price: str = "1", **fields: Any) -> list[Shelf]:
    return [
        Shelf(
            an_offer(
                name, zone=name, market=market, hazard_per_h=0.1,
                price_usd_h=micro_usd(price), cap_usd_h=micro_usd(price), **fields,
            ),
            hazard_per_h=0.0,
        )
        for name in names
    ]  # fmt: skip


def test_the_zone_that_has_just_taken_a_machine_is_not_the_first_choice_again() -> None:
    stage = running(a_cloudy_stage(("saving",), zones("r-a", "r-b"), cloud=WarningCloud))
    (first,) = open_rentals(stage)
    warn(stage, first, stage.machine_time + 120.0)
    ended_well(stage)
    assert [one.shelf.offer.zone for one in cloud_of(stage).hired.values()] == ["r-a", "r-b"]


def test_a_replacement_that_is_taken_before_it_is_ready_is_replaced_too() -> None:
    stage = running(a_cloudy_stage(("stubborn",), zones("r-a", "r-b", "r-c"), cloud=WarningCloud))
    (first,) = open_rentals(stage)
    warn(stage, first, stage.machine_time + 120.0)
    assert stage.play(lambda: len(cloud_of(stage).hired) == 2, 10.0)
    second = list(cloud_of(stage).hired.values())[1]
    second.taken_at = stage.machine_time + 5.0
    assert stage.play(lambda: len(cloud_of(stage).hired) == 3, 60.0)
    assert stage.play(lambda: job_of(stage).attempt == 2, 300.0)
    nothing_overlaps(stage)
    job = job_of(stage)
    assert job.placement is not None
    assert job.placement.node == list(cloud_of(stage).hired.values())[2].machine.node


def with_one_zone(**job: Any) -> Stage:
    """Let the only zone take its only machine: it has no other."""
    dear = zones("r-x", market="on-demand", price="3")
    (only,) = zones("r-a")
    last = Shelf(only.offer, capacity=1, hazard_per_h=0.0)
    stage = running(a_cloudy_stage(("saving",), [last, *dear], cloud=WarningCloud, **job))
    (first,) = open_rentals(stage)
    one = cloud_of(stage).hired[first]
    warn(stage, first, stage.machine_time + 120.0)
    now = stage.scenery.clock.now()
    dry = Shelf(only.offer, droughts=((now, now + 1e6),), hazard_per_h=0.0)
    cloud_of(stage)._shelves["r-a"] = dry
    one.shelf = dry
    return stage


def test_where_the_last_zone_has_none_left_the_job_goes_on_on_demand() -> None:
    stage = with_one_zone()
    ended_well(stage)
    assert [one.shelf.offer.market for one in cloud_of(stage).hired.values()] == [
        "spot", "on-demand",
    ]  # fmt: skip


def test_a_job_for_spot_alone_waits_there_and_is_told_why() -> None:
    stage = with_one_zone(market="spot")
    pass_by(stage, 400.0)
    job = job_of(stage)
    assert job.state is JobState.PENDING and len(cloud_of(stage).hired) == 1
    assert Code.NO_CAPACITY in told(stage)
    assert job.reason is not None and job.reason.says


# -- controllers that die --------------------------------------------------------------------


class FirstIsTaken(WarningCloud):
    """A cloud that warns its first machine 32 s after the launch, and takes it a minute later."""

    is_warned = False

    def step(self, now: Instant) -> None:
        first = next(iter(self.hired.values()), None)
        if first is not None and not self.is_warned and now >= first.launched_at + 32.0:
            self.is_warned = True
            first.taken_at = first.launched_at + 92.0
            assert isinstance(first.machine, WarnedMachine)
            first.machine.told(first.taken_at, now)
        super().step(now)


def life(fuse: Fuse) -> Stage:
    """Play to the end; a controller that dies is followed by another after 3 s."""
    stage = a_cloudy_stage(("saving",), cloud=FirstIsTaken)
    mortal = fuse
    for _ in range(2):
        try:
            stage.raise_controller(MortalEffects(mortal), MortalStore(stage.scenery.store, mortal))
            job = ended_well(stage)
        except ControllerDied:
            mortal, stage.controller = Fuse(None), None
            pass_by(stage, 3.0)
            continue
        assert (job.attempt, job.retries, job.lost_s) == (2, 0, 0.0)
        assert len(cloud_of(stage).hired) == 2
        return stage
    raise AssertionError("it died more than once")


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_controller_killed_around_a_notice_rents_one_replacement_and_starts_it_once(
    after: bool,
) -> None:
    counting = Fuse(None)
    life(counting)
    assert counting.count > 60
    for point in range(1 + after, counting.count + 1, 9):
        life(Fuse(point, after))
