"""Hundreds of launches at a cloud that fails in every way: nothing leaked, doubled or overspent."""

import random
from collections.abc import Callable
from typing import TypeVar

from clouding import (
    CALLS,
    a_cloudy_stage,
    account_of,
    an_offer,
    cloud_of,
    is_settled,
    left_over,
    plant_foreign,
    rentals_of,
)
from makers import a_job, wants
from staging import jobs_of, nothing_ran_twice

from cloudwhale.control.sweeping import EVERY_S, GRACE_S
from cloudwhale.model import event as e
from cloudwhale.model.job import JobState
from cloudwhale.model.rental import RentalState
from cloudwhale.simulation.cloud import Shelf, SimulatedCloud
from cloudwhale.simulation.stage import Stage
from cloudwhale.spi.errors import NoCapacity, Unreachable
from cloudwhale.spi.provider import LaunchRequest, Machine

T = TypeVar("T")

LAUNCHES = 1000
AT_ONCE = 50
FAULTS = 0.2
FOREIGN = 50
SHELVES = 30  # one that was refused is left out for minutes
KINDS = ("error before", "error after success", "timeout", "throttle")


class Failing(SimulatedCloud):
    """A cloud of which one call in five fails, each in one of four ways."""

    dice = random.Random("launch-faults")
    calls = 0
    failed: dict[str, int] = {}

    def launch(self, request: LaunchRequest) -> Machine:
        # Whoever has launched it already says so: that is what its token is for.
        if request.request_id not in self.hired and self.dice.random() < FAULTS / len(KINDS):
            also = f"big-{self.dice.randrange(SHELVES)}"
            raise NoCapacity("there is none left", offers=(also,))
        return super().launch(request)

    def ask(self, verb: str, do: Callable[[], T]) -> T:
        type(self).calls += verb in CALLS
        if self.dice.random() >= FAULTS:
            return do()
        kind = self.dice.choice(KINDS)
        type(self).failed[kind] = self.failed.get(kind, 0) + 1
        if kind == "error before":
            raise Unreachable("HTTP 500")
        if kind == "throttle":
            raise Unreachable("Rate exceeded", "It is asked again more slowly.")
        do()
        raise Unreachable("the connection was cut" if kind == "timeout" else "HTTP 500")


def submit(stage: Stage, wave: int) -> None:
    """Queue as many quick jobs as may run at once."""
    now = stage.scenery.clock.now()
    events: list[e.Event] = []
    for number in range(AT_ONCE):
        name = f"quick-{wave}-{number}"
        job = a_job(name, name="quick", resources=wants(cpu=4), duration_s=30.0)
        job = job.but(submitted_at=now)
        events.append(e.Submitted(at=now, job=name, first=job))
    stage.scenery.store.append(events)


def test_launches_of_which_one_call_in_five_fails_leak_double_and_touch_nothing() -> None:
    shelves = [Shelf(an_offer(f"big-{n}", zone=f"r-{n}", boot_s=5.0)) for n in range(SHELVES)]
    stage = a_cloudy_stage((), shelves, budget="900", cloud=Failing)
    cloud = cloud_of(stage)
    foreign = plant_foreign(cloud, FOREIGN)
    stage.raise_controller()
    wave = 0
    while len(cloud.hired) < LAUNCHES:
        submit(stage, wave)
        wave += 1
        assert stage.play(lambda: is_settled(stage), 4000.0), not_settled(stage)
    assert Failing.calls > 4 * LAUNCHES and set(Failing.failed) == set(KINDS)
    stage.play(lambda: not left_over(stage), 2 * EVERY_S + GRACE_S)
    # nothing leaked
    assert cloud.running == 0 and not left_over(stage)
    # nothing doubled: each launch is of another rental, which had one machine
    assert {job.state for job in jobs_of(stage).values()} == {JobState.COMPLETED}
    nothing_ran_twice(stage)
    stories = rentals_of(stage)
    assert cloud.hired.keys() <= stories.keys()
    assert {story[-1].state for story in stories.values()} == {RentalState.RETURNED}
    # none of the others' touched, and all paid as billed, within the budget
    assert cloud.foreign == foreign
    account = account_of(stage)
    assert account.reserved == 0 and account.spent == cloud.bill() <= (account.limit or 0)


def not_settled(stage: Stage) -> object:
    world = stage.scenery.store.world(stage.scenery.clock.now())
    return list(world.rentals.values())[:3], [(j.id, j.reason) for j in world.jobs.values()][:5]
