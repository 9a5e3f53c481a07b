"""Rented machines from end to end: rented, used, given back, paid as billed; nothing leaks."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, TypeVar

import pytest
from clouding import (
    RENTING,
    a_cloudy_stage,
    account_of,
    adds_up,
    an_offer,
    cloud_of,
    rentals_of,
    settles,
)
from makers import wants
from staging import (
    ControllerDied,
    Fuse,
    MortalEffects,
    MortalStore,
    jobs_of,
    nothing_ran_twice,
    pass_by,
)

from cloudwhale.control.replay import world_of
from cloudwhale.control.store import open_store, sqlite_url
from cloudwhale.model import event as e
from cloudwhale.model.job import JobState, RetryRule
from cloudwhale.model.reason import Code
from cloudwhale.model.rental import RentalState
from cloudwhale.model.units import micro_usd
from cloudwhale.planning.planner import plan
from cloudwhale.simulation.cloud import Shelf, SimulatedCloud, door_of
from cloudwhale.simulation.stage import Stage
from cloudwhale.spi.errors import Unreachable
from cloudwhale.spi.provider import LaunchRequest, Machine

T = TypeVar("T")

WAY = [
    RentalState.RESERVED, RentalState.REQUESTED, RentalState.BOOTING, RentalState.READY,
    RentalState.DRAINING, RentalState.RETURNED,
]  # fmt: skip


def played(stage: Stage, at_most_s: float = 3000.0) -> Stage:
    """Play to the end and check that the money adds up."""
    if stage.controller is None:
        stage.raise_controller()
    assert settles(stage, at_most_s), {j.id: (j.state, j.reason) for j in jobs_of(stage).values()}
    adds_up(stage)
    assert stage.controller is not None and stage.controller.incident == ""
    return stage


def states_of(stage: Stage) -> list[list[RentalState]]:
    """Return the states of each rental, in the order in which it met them, once each."""
    found: list[list[RentalState]] = []
    for story in rentals_of(stage).values():
        states = [rental.state for rental in story]
        found.append([state for n, state in enumerate(states) if state not in states[:n]])
    return found


def told(stage: Stage, job: str) -> list[Code]:
    """Return what a job was told while it waited."""
    events = [one.event for one in stage.scenery.store.events(job)]
    return [event.reason.code for event in events if isinstance(event, e.Waits)]


def test_a_job_that_cannot_run_here_runs_on_a_rented_machine_that_is_given_back() -> None:
    stage = played(a_cloudy_stage())
    (job,) = jobs_of(stage).values()
    assert (job.state, job.attempt) == (JobState.COMPLETED, 1)
    assert states_of(stage) == [WAY]
    assert len(cloud_of(stage).hired) == 1
    assert 0 < account_of(stage).spent < micro_usd("0.10")
    assert stage.scenery.objects.folders("inbox") == ["host"], "nothing of it is left"


def test_what_is_said_to_a_rented_machine_and_by_it_lies_behind_its_door() -> None:
    stage = a_cloudy_stage(("quick",))
    stage.raise_controller()
    assert stage.play(
        lambda: {job.state for job in jobs_of(stage).values()} == {JobState.RUNNING}, 900.0
    )
    (name,) = cloud_of(stage).hired
    objects = stage.scenery.objects
    assert objects.folders("orders") == [f"@{door_of('m-1')}@{name}"]
    assert objects.folders("inbox") == [f"@{door_of('m-1')}@{name}", "host"]


def test_a_job_that_fits_here_is_never_rented_for() -> None:
    stage = played(a_cloudy_stage(("quick", "quick"), resources=wants(cpu=1)))
    assert not cloud_of(stage).hired and account_of(stage).spent == 0


def test_what_is_billed_by_run_time_alone_costs_the_run_time_alone() -> None:
    free = an_offer(boot_s=0.0, billing_step_s=0.0, billing_least_s=0.0)
    stage = played(a_cloudy_stage(("saving",), [Shelf(free)]))
    (job,) = jobs_of(stage).values()
    assert account_of(stage).spent == pytest.approx(job.run_s * 1000, abs=3000)


def test_each_job_gets_a_machine_of_its_own() -> None:
    stage = played(a_cloudy_stage(("quick", "saving", "failing")))
    assert len(cloud_of(stage).hired) == 3
    states = {job.id: job.state for job in jobs_of(stage).values()}
    assert states["failing-2"] is JobState.FAILED
    assert states["quick-0"] is states["saving-1"] is JobState.COMPLETED


def test_without_a_budget_nothing_is_rented_and_the_job_says_so() -> None:
    stage = a_cloudy_stage(budget=None)
    stage.raise_controller()
    pass_by(stage, 100.0)
    assert not cloud_of(stage).hired
    (job,) = jobs_of(stage).values()
    assert job.reason is not None and job.reason.code is Code.OVER_BUDGET
    assert "--budget" in job.reason.change


def test_a_budget_for_one_machine_rents_them_one_after_another() -> None:
    stage = played(a_cloudy_stage(("quick", "quick"), budget="0.80"), 6000.0)
    assert [job.state for job in jobs_of(stage).values()] == [JobState.COMPLETED] * 2
    first, second = cloud_of(stage).hired.values()
    assert first.ended_at is not None and second.launched_at >= first.ended_at


def test_an_offer_without_capacity_gives_the_money_back_and_another_is_taken() -> None:
    cheap = Shelf(an_offer("cheap", price_usd_h=micro_usd(1)), capacity=0)
    stage = played(a_cloudy_stage(shelves=[cheap, Shelf(an_offer())]))
    assert states_of(stage) == [[RentalState.RESERVED, RentalState.RETURNED], WAY]
    (machine,) = cloud_of(stage).hired.values()
    assert machine.shelf.offer.id == "big"


def test_a_drought_is_waited_out_without_asking_all_the_time() -> None:
    now = 1_000_000.0
    stage = played(a_cloudy_stage(shelves=[Shelf(an_offer(), droughts=((now, now + 400.0),))]))
    refused = [states for states in states_of(stage) if states != WAY]
    assert 1 <= len(refused) <= 3


def test_a_price_that_moved_before_the_launch_is_asked_for_and_paid_as_it_is_now() -> None:
    began_at = 1_000_000.0
    moved = ((began_at + 0.5, micro_usd("7.2")),)
    stage = played(a_cloudy_stage(shelves=[Shelf(an_offer(cap_usd_h=micro_usd(8)), prices=moved)]))
    assert states_of(stage) == [[RentalState.RESERVED, RentalState.RETURNED], WAY]
    (machine,) = cloud_of(stage).hired.values()
    assert machine.price_usd_h == micro_usd("7.2")


def test_a_price_that_falls_is_paid_as_the_cloud_bills_it() -> None:
    fallen = ((1_000_000.5, micro_usd(2)),)
    stage = played(a_cloudy_stage(shelves=[Shelf(an_offer(), prices=fallen)]))
    (machine,) = cloud_of(stage).hired.values()
    assert machine.price_usd_h == micro_usd(2)


def test_a_machine_that_is_taken_away_costs_its_time_and_the_job_resumes_on_another() -> None:
    stage = a_cloudy_stage(("saving",))
    stage.raise_controller()
    pass_by(stage, 40.0)
    (machine,) = cloud_of(stage).hired.values()
    machine.taken_at = stage.machine_time + 0.5
    played(stage)
    (job,) = jobs_of(stage).values()
    assert (job.state, job.attempt, job.retries) == (JobState.COMPLETED, 2, 0)
    assert 0 < job.lost_s < 15.0
    assert RentalState.LOST in states_of(stage)[0]
    assert len(cloud_of(stage).hired) == 2


def test_a_notice_lands_the_job_before_its_machine_goes() -> None:
    stage = a_cloudy_stage(("saving",), [Shelf(an_offer(notice_s=120.0))])
    stage.raise_controller()
    pass_by(stage, 40.0)
    (machine,) = cloud_of(stage).hired.values()
    machine.taken_at = stage.machine_time + 121.0
    played(stage)
    (job,) = jobs_of(stage).values()
    assert (job.state, job.attempt, job.lost_s) == (JobState.COMPLETED, 2, 0.0)
    assert all(RentalState.LOST not in states for states in states_of(stage))


def test_a_machine_that_never_boots_is_given_back_and_another_offer_is_taken() -> None:
    cheap = Shelf(an_offer("cheap", price_usd_h=micro_usd(1)), failed_boots=1.0)
    stage = played(a_cloudy_stage(shelves=[cheap, Shelf(an_offer())]))
    first, second = cloud_of(stage).hired.values()
    assert not first.is_up and second.is_up
    assert RentalState.READY not in states_of(stage)[0]


def test_a_lease_that_proves_too_short_is_lengthened_while_there_is_money() -> None:
    stage = a_cloudy_stage(("long",), duration_s=60.0)
    played(stage, 6000.0)
    (job,) = jobs_of(stage).values()
    assert (job.state, job.attempt, job.interruptions) == (JobState.COMPLETED, 1, 0)
    leases = {rental.lease.number for story in rentals_of(stage).values() for rental in story}
    assert len(leases) >= 2


def test_a_job_lands_at_a_checkpoint_before_a_lease_ends_that_nobody_can_pay_for() -> None:
    stage = a_cloudy_stage(("long",), duration_s=60.0, budget="0.75")
    stage.raise_controller()
    assert stage.play(lambda: jobs_of(stage)["long-0"].interruptions == 1, 3000.0)
    job = jobs_of(stage)["long-0"]
    assert (job.state, job.lost_s) == (JobState.PENDING, 0.0)
    assert stage.play(lambda: cloud_of(stage).running == 0, 200.0)
    pass_by(stage, 5.0)
    adds_up(stage)


def test_a_job_that_is_cancelled_on_the_way_sends_the_machine_back() -> None:
    stage = a_cloudy_stage(("endless",))
    stage.raise_controller()
    pass_by(stage, 5.0)
    stage.scenery.store.append([e.CancelAsked(at=stage.scenery.clock.now(), job="endless-0")])
    played(stage)
    assert jobs_of(stage)["endless-0"].state is JobState.CANCELLED
    assert RentalState.READY not in states_of(stage)[0]


class Flaky(SimulatedCloud):
    """A cloud that does not answer every other call, before or after it has done what it was asked.

    Which of the calls is drawn from a seed.
    """

    drawn = random.Random("flaky")

    def launch(self, request: LaunchRequest) -> Machine:
        return self._perhaps(lambda: super(Flaky, self).launch(request))

    def machines(self) -> Sequence[Machine]:
        return self._perhaps(lambda: super(Flaky, self).machines())

    def extend(self, machine: str, stop_at: float) -> float | Literal["fixed"]:
        return self._perhaps(lambda: super(Flaky, self).extend(machine, stop_at))

    def terminate(self, machine: str) -> None:
        self._perhaps(lambda: super(Flaky, self).terminate(machine))

    def _perhaps(self, do: Callable[[], T]) -> T:
        fate = self.drawn.random()
        if fate < 0.25:
            raise Unreachable("no answer")
        answer = do()
        if fate < 0.5:
            raise Unreachable("no answer")
        return answer


@pytest.mark.parametrize("seed", range(5))
def test_a_cloud_that_answers_every_other_time_gives_one_machine_and_takes_it_back(
    seed: int,
) -> None:
    stage = a_cloudy_stage(("long",), duration_s=60.0, cloud=Flaky)
    Flaky.drawn = random.Random(f"flaky-{seed}")
    played(stage, 6000.0)
    assert len(cloud_of(stage).hired) == 1
    (job,) = jobs_of(stage).values()
    assert (job.state, job.attempt) == (JobState.COMPLETED, 1)


# -- controllers that die --------------------------------------------------------------------


def life(fuse: Fuse, stage: Stage) -> Stage:
    """Play to the end; a controller that dies is followed by another after 3 s."""
    mortal = fuse
    for _ in range(3):
        try:
            stage.raise_controller(MortalEffects(mortal), MortalStore(stage.scenery.store, mortal))
            return played(stage)
        except ControllerDied:
            mortal = Fuse(None)
            stage.controller = None
            pass_by(stage, 3.0)
    raise AssertionError("it died more than once")


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_controller_killed_around_anything_it_does_leaks_no_machine_and_rents_none_twice(
    after: bool,
) -> None:
    counting = Fuse(None)
    life(counting, a_cloudy_stage(("quick",)))
    assert counting.count > 60
    for point in range(1, counting.count + 1):
        stage = life(Fuse(point, after), a_cloudy_stage(("quick",)))
        (job,) = jobs_of(stage).values()
        assert (job.state, job.attempt) == (JobState.COMPLETED, 1), f"killed at {point}"
        assert len(cloud_of(stage).hired) == 1, f"killed at {point}"


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_the_same_holds_while_a_lease_grows_and_a_machine_is_taken_away(after: bool) -> None:
    def a_story() -> Stage:
        dry = Shelf(an_offer("dry", price_usd_h=micro_usd(1)), capacity=0)
        taken = an_offer(notice_s=0.0, hazard_per_h=9.0)
        # Which machine is taken when hangs on its name: so often that none gives up is enough.
        often = RetryRule(max=100)
        return a_cloudy_stage(("long",), [dry, Shelf(taken)], duration_s=60.0, seed=2, retry=often)

    counting = Fuse(None)
    calm = life(counting, a_story())
    assert any(RentalState.LOST in states for states in states_of(calm))
    assert Code.RECOVERING not in told(calm, "long-0"), "nobody waits for a machine that is gone"
    for point in range(1, counting.count + 1, max(1, counting.count // 7)):
        stage = life(Fuse(point, after), a_story())
        (job,) = jobs_of(stage).values()
        assert job.state is JobState.COMPLETED, f"killed at {point}"
        nothing_ran_twice(stage)


def test_the_same_holds_on_a_database_and_every_round_is_made_again(tmp_path: Path) -> None:
    counting = Fuse(None)
    life(counting, a_cloudy_stage(("saving",)))
    for point in range(5, counting.count + 1, 15):
        store = open_store(sqlite_url(tmp_path / str(point)), may_migrate=True)
        stage = life(Fuse(point), a_cloudy_stage(("saving",), store=store))
        assert len(cloud_of(stage).hired) == 1
        number = 1
        while (stored := store.round(number)) is not None:
            again = plan(world_of(store, stored), RENTING)
            assert again.model_dump_json() == stored.plan.model_dump_json()
            number += 1
        assert number > 3
        store.close()
