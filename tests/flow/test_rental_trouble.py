"""Clouds that do not end, do not boot, do not stop, or warn: told, waited out, never forgotten."""

from collections.abc import Callable
from typing import TypeVar

import pytest
from clouding import (
    WarningCloud,
    a_cloudy_stage,
    account_of,
    adds_up,
    an_offer,
    cloud_of,
    is_settled,
    left_over,
    plant_forgotten,
    rentals_of,
    settles,
    warn,
)
from staging import jobs_of, pass_by

from cloudwhale.control.sweeping import EVERY_S, GRACE_S
from cloudwhale.mailbox.box import inbox_from
from cloudwhale.mailbox.documents import Joined
from cloudwhale.model import event as e
from cloudwhale.model.job import JobState
from cloudwhale.model.node import Facts
from cloudwhale.model.reason import Code
from cloudwhale.model.rental import Rental, RentalState
from cloudwhale.model.units import micro_usd
from cloudwhale.simulation.cloud import Shelf, SimulatedCloud
from cloudwhale.simulation.stage import Stage
from cloudwhale.spi.errors import Denied, NoCapacity, Unreachable
from cloudwhale.spi.provider import LaunchRequest, Machine, Stop

T = TypeVar("T")


def noted(stage: Stage, code: Code) -> list[str]:
    """Return what was noted under a code."""
    events = [told.event for told in stage.scenery.store.since(0, 100_000)]
    return [
        one.reason.says for one in events if isinstance(one, e.Noted) if one.reason.code is code
    ]


def open_rentals(stage: Stage) -> list[Rental]:
    return list(stage.scenery.store.world(stage.scenery.clock.now()).rentals.values())


# -- launches that nobody has heard of -------------------------------------------------------


class Unheard(SimulatedCloud):
    """A cloud that makes a machine, does not say so, and then lets nobody in."""

    is_open = True
    has_made = False

    def ask(self, verb: str, do: Callable[[], T]) -> T:
        if not self.is_open:
            raise Denied("ExpiredToken: the credentials have run out", "Renew them.")
        found = do()
        if verb == "create" and not self.has_made:
            self.has_made, self.is_open = True, False
            raise Unreachable("the connection was cut")
        return found


@pytest.mark.parametrize("restarts", [False, True])
def test_what_may_have_been_made_is_paid_for_although_nobody_may_look(restarts: bool) -> None:
    stage = a_cloudy_stage(("quick",), cloud=Unheard)
    cloud = cloud_of(stage)
    assert isinstance(cloud, Unheard)
    stage.raise_controller()
    assert stage.play(lambda: cloud.running == 1, 60.0)
    if restarts:
        stage.controller = None
        pass_by(stage, 5.0)
        stage.raise_controller()
    pass_by(stage, 30.0)
    (rental,) = open_rentals(stage)
    assert account_of(stage).reserved == rental.reserved > 0, "its money stays set aside"
    cloud.is_open = True
    assert settles(stage)
    assert len(cloud.hired) == 1
    adds_up(stage)


# -- machines that cannot be ended -----------------------------------------------------------


class Clinging(SimulatedCloud):
    """A cloud that ends no machine while it refuses to."""

    refuses = True

    def ask(self, verb: str, do: Callable[[], T]) -> T:
        if verb == "terminate" and self.refuses:
            raise Denied("UnauthorizedOperation: ec2:TerminateInstances", "Allow it in the role.")
        return do()


def a_machine_that_cannot_be_ended() -> Stage:
    stage = a_cloudy_stage(("quick",), cloud=Clinging)
    stage.raise_controller()

    def stuck() -> bool:
        return any(one.state is RentalState.NEEDS_ATTENTION for one in open_rentals(stage))

    assert stage.play(stuck, 900.0)
    return stage


def test_a_machine_whose_end_is_refused_needs_attention_in_the_clouds_own_words() -> None:
    stage = a_machine_that_cannot_be_ended()
    (says,) = noted(stage, Code.NEEDS_ATTENTION)
    assert "cannot be given back, tried 10 times in" in says
    assert "UnauthorizedOperation: ec2:TerminateInstances" in says
    (rental,) = open_rentals(stage)
    assert account_of(stage).reserved == rental.reserved > 0, "its money stays set aside"


def test_it_is_tried_for_ever_and_paid_for_once_it_works() -> None:
    stage = a_machine_that_cannot_be_ended()
    pass_by(stage, 60.0)
    cloud = cloud_of(stage)
    assert isinstance(cloud, Clinging) and cloud.running == 1
    cloud.refuses = False
    assert settles(stage, 120.0)
    adds_up(stage)
    assert len(noted(stage, Code.NEEDS_ATTENTION)) == 1


def test_a_controller_that_starts_again_goes_on_trying() -> None:
    stage = a_machine_that_cannot_be_ended()
    stage.controller = None
    pass_by(stage, 5.0)
    cloud = cloud_of(stage)
    assert isinstance(cloud, Clinging)
    cloud.refuses = False
    stage.raise_controller()
    assert settles(stage, 120.0)
    adds_up(stage)


def test_what_is_never_ended_is_ended_by_its_own_stop_within_what_was_set_aside() -> None:
    stage = a_machine_that_cannot_be_ended()
    set_aside = account_of(stage).reserved
    assert settles(stage, 3000.0)
    adds_up(stage)
    assert cloud_of(stage).bill() <= set_aside


# -- machines that do not boot ---------------------------------------------------------------


def test_three_machines_that_do_not_boot_open_the_circuit_and_the_jobs_are_told() -> None:
    shelves = [
        Shelf(an_offer(f"bad-{n}", type="g5.xlarge", zone=f"r-{n}"), failed_boots=1.0)
        for n in range(6)
    ]
    stage = a_cloudy_stage(shelves=shelves, budget="50")
    stage.raise_controller()
    assert stage.play(lambda: bool(noted(stage, Code.CIRCUIT_OPEN)), 2000.0)
    assert len(cloud_of(stage).hired) == 3
    says = noted(stage, Code.CIRCUIT_OPEN)[0]
    assert says == (
        "g5 in cloud r: 3 machines in a row did not come up, so none is launched there for 600 s"
    )
    pass_by(stage, 2.0)
    told = [one.event for one in stage.scenery.store.events("quick-0")]
    assert Code.CIRCUIT_OPEN in [one.reason.code for one in told if isinstance(one, e.Waits)]
    pass_by(stage, 400.0)
    assert len(cloud_of(stage).hired) == 3, "nothing is launched meanwhile"
    stage.raise_controller()
    pass_by(stage, 150.0)
    assert len(cloud_of(stage).hired) == 3, "a restart changes nothing"
    assert stage.play(lambda: len(cloud_of(stage).hired) == 4, 200.0)


def test_machines_that_end_before_they_are_heard_open_it_too() -> None:
    shelves = [
        Shelf(an_offer(f"bad-{n}", type="g5.xlarge", zone=f"r-{n}", hazard_per_h=20_000.0))
        for n in range(6)
    ]
    stage = a_cloudy_stage(shelves=shelves, budget="50")
    stage.raise_controller()
    assert stage.play(lambda: bool(noted(stage, Code.CIRCUIT_OPEN)), 2000.0)
    pass_by(stage, 400.0)
    # The round that pays for the third has asked for another already.
    assert len(cloud_of(stage).hired) == 4
    assert len(noted(stage, Code.BOOT_FAILED)) == 4


def test_a_machine_that_comes_up_closes_it() -> None:
    bad = Shelf(an_offer("bad", type="g5.xlarge"), failed_boots=1.0)
    good = Shelf(an_offer("good", type="p4d.24xlarge", price_usd_h=micro_usd("3.61"),
                          cap_usd_h=micro_usd("3.61")))  # fmt: skip
    stage = a_cloudy_stage(shelves=[bad, good], budget="50")
    stage.raise_controller()
    assert settles(stage, 3000.0)
    adds_up(stage)
    assert noted(stage, Code.BOOT_FAILED) and noted(stage, Code.BOOTED)
    assert not noted(stage, Code.CIRCUIT_OPEN)


# -- notices ---------------------------------------------------------------------------------


def say_warned(stage: Stage, in_s: float | None) -> str:
    """Let a machine's provider warn it; return its name."""
    (rental,) = open_rentals(stage)
    now = stage.machine_time
    warn(stage, rental.id, None if in_s is None else now + in_s)
    return rental.id


def running(stage: Stage) -> Stage:
    stage.raise_controller()
    assert stage.play(
        lambda: {job.state for job in jobs_of(stage).values()} == {JobState.RUNNING}, 100.0
    )
    pass_by(stage, 10.0)
    return stage


def test_a_notice_lands_the_job_and_it_goes_on_elsewhere_without_a_retry() -> None:
    stage = running(a_cloudy_stage(("saving",), cloud=WarningCloud))
    name = say_warned(stage, 120.0)
    pass_by(stage, 3.0)
    states = [one.state for one in open_rentals(stage) if one.id != name]
    assert states == [RentalState.BOOTING], "its next machine is on its way"
    assert RentalState.DRAINING in [one.state for one in rentals_of(stage)[name]]
    assert settles(stage)
    adds_up(stage)
    (job,) = jobs_of(stage).values()
    assert (job.state, job.attempt, job.retries, job.lost_s) == (JobState.COMPLETED, 2, 0, 0.0)
    says, *_ = noted(stage, Code.TAKEN_AWAY)
    assert says.startswith(f"{name} is taken away by its provider in 1")
    assert says.endswith("terminate at 12:00")


def test_that_it_may_go_is_told_and_changes_nothing() -> None:
    stage = running(a_cloudy_stage(("saving",), cloud=WarningCloud))
    name = say_warned(stage, None)
    assert settles(stage)
    (job,) = jobs_of(stage).values()
    assert (job.state, job.attempt) == (JobState.COMPLETED, 1)
    assert noted(stage, Code.TAKEN_AWAY) == [
        f"{name} may be taken away by its provider: terminate at 12:00"
    ]


# -- stops, fleets, strangers ----------------------------------------------------------------


class Endless(SimulatedCloud):
    """A cloud that ends nothing by itself."""

    @property
    def stops(self) -> frozenset[Stop]:
        return frozenset()


def test_nothing_is_rented_where_nobody_ends_a_machine_in_time_and_that_is_told_once() -> None:
    stage = a_cloudy_stage(cloud=Endless)
    stage.raise_controller()
    pass_by(stage, 200.0)
    assert not cloud_of(stage).hired
    (says,) = noted(stage, Code.NO_STOP)
    assert says.startswith("nothing is rented from cloud: neither it nor its machines end them")


def test_a_machine_that_nobody_ends_is_swept_as_others_are() -> None:
    stage = a_cloudy_stage((), cloud=Endless)
    plant_forgotten(cloud_of(stage), stage.scenery.clock.now(), GRACE_S)
    stage.raise_controller()
    stage.play(lambda: not left_over(stage), EVERY_S + GRACE_S)
    assert cloud_of(stage).running == 0 and not left_over(stage)


class Fleet(SimulatedCloud):
    """A cloud that tries several at once, and says which."""

    asked: list[str] = []

    def launch(self, request: LaunchRequest) -> Machine:
        assert request.offer is not None
        self.asked.append(request.offer.id)
        raise NoCapacity("none of them", offers=("big-1", "big-2"))


def test_of_a_fleet_that_was_refused_none_is_asked_for_again_soon() -> None:
    Fleet.asked = []
    stage = a_cloudy_stage(shelves=[Shelf(an_offer(f"big-{n}")) for n in range(4)], cloud=Fleet)
    stage.raise_controller()
    pass_by(stage, 100.0)
    assert Fleet.asked == ["big-0", "big-3"]


def test_the_agent_of_a_machine_that_nobody_pays_for_is_told_to_leave_and_gets_no_job() -> None:
    stage = a_cloudy_stage(("quick",))
    stage.raise_controller()
    assert settles(stage)
    (name,) = rentals_of(stage)
    box, now = inbox_from(stage.scenery.objects, name), stage.machine_time
    facts = Facts(cpu=8.0, memory_gib=32.0, disk_gib=100.0)
    said = Joined(at=now, agent="again", facts=facts, public_key="k")
    box.post(said.model_dump_json().encode(), 50)  # it goes on behind what was read
    pass_by(stage, 60.0)
    assert name not in stage.scenery.store.world(stage.scenery.clock.now()).nodes
    orders = [
        stage.scenery.objects.get(key) for key in stage.scenery.objects.keys(f"orders/{name}")
    ]
    assert any(b'"kind":"leave"' in (body or b"") for body in orders)


def test_an_end_that_is_not_answered_for_a_while_needs_nobody() -> None:
    class Slow(SimulatedCloud):
        calls = 0

        def ask(self, verb: str, do: Callable[[], T]) -> T:
            if verb == "terminate":
                Slow.calls += 1
                if Slow.calls < 5:
                    raise Unreachable("timeout")
            return do()

    stage = a_cloudy_stage(("quick",), cloud=Slow)
    stage.raise_controller()
    assert settles(stage) and is_settled(stage)
    adds_up(stage)
    assert not noted(stage, Code.NEEDS_ATTENTION)
