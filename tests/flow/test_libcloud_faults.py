"""Machines behind a driver of libcloud, under a controller that dies and calls that fail.

The dummy's kind of driver: it lists machines and knows no other way to ask for one. Its machines
end themselves, and what has switched itself off stays until it is ended; so we pay for what is
billed, or a little more.
"""

import random
from collections.abc import Callable
from typing import Any

import pytest
from clouding import (
    a_cloudy_stage,
    account_of,
    an_offer,
    cloud_of,
    is_settled,
    left_over,
    plant_foreign,
    rentals_of,
)
from driven_cloud import DrivenCloud, MortalDriven
from makers import a_job, wants
from rental_stories import (
    Story,
    a_life_cut_off,
    abandoned,
    drift,
    life,
    nothing_is_half_ready,
    points_of,
    stories,
)
from staging import Fuse, jobs_of, nothing_ran_twice

from cloudwhale.control.sweeping import EVERY_S, GRACE_S
from cloudwhale.model import event as e
from cloudwhale.model.job import JobState
from cloudwhale.model.rental import RentalState
from cloudwhale.simulation.cloud import Shelf
from cloudwhale.simulation.stage import Stage

STORIES = stories(MortalDriven)
POINTS = 12
"""Places of each story at which the controller dies, drawn from all; who is killed at each of them
in the simulated cloud is the same controller."""


def some_of(story: Story, name: str) -> list[int]:
    """Return where the controller dies."""
    points = range(1, points_of(story) + 1)
    return sorted(random.Random(name).sample(points, min(POINTS, len(points))))


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", ["launch and return", "cancel on the way", "sweep", "boot fails"])
def test_after_one_restart_and_one_sweep_nothing_is_unowned_or_doubled(
    name: str, after: bool
) -> None:
    story = STORIES[name]
    for point in some_of(story, name):
        stage, where = life(story, Fuse(point, after)), f"{name}: killed at {point}"
        assert not left_over(stage), where
        assert len(cloud_of(stage).hired) == story.machines, where
        assert {job.state for job in jobs_of(stage).values()} == {story.ends}, where
        nothing_ran_twice(stage)
        nothing_is_half_ready(stage)
        account = account_of(stage)
        assert cloud_of(stage).running == 0 and account.reserved == 0, where
        if name != "sweep":  # nobody pays for what nobody knew of
            assert cloud_of(stage).bill() <= account.spent <= (account.limit or 0), where


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_with_no_restart_no_machine_outlives_its_lease(after: bool) -> None:
    story = STORIES["launch and return"]
    for point in some_of(story, "abandoned"):
        stage, where = a_life_cut_off(story, Fuse(point, after)), f"killed at {point}"
        set_aside, last_at = abandoned(stage)
        drift(stage, last_at)
        assert cloud_of(stage).running == 0, where
        assert cloud_of(stage).bill() <= set_aside, where


# -- calls that fail ---------------------------------------------------------------------------

LAUNCHES = 1000
AT_ONCE = 50
FAULTS = 0.2
FOREIGN = 50
SHELVES = 30


class Troubled(Exception):
    """As libcloud's HTTP errors are."""

    def __init__(self, code: int, says: str) -> None:
        super().__init__(says)
        self.code = code


KINDS: dict[str, tuple[bool, Callable[[], Exception]]] = {
    "error before": (False, lambda: Troubled(500, "HTTP 500")),
    "error after success": (True, lambda: Troubled(502, "Bad Gateway")),
    "timeout": (True, lambda: TimeoutError("timed out")),
    "throttle": (False, lambda: Troubled(429, "429 Rate limit exceeded")),
    "no capacity": (False, lambda: Troubled(409, "not enough capacity")),
    "its own bug": (True, lambda: KeyError("server")),
}


class Failing(DrivenCloud):
    """A cloud of which one call in five fails, each in one of several ways."""

    dice = random.Random("driven-faults")
    failed: dict[str, int] = {}

    def ask(self, verb: str, do: Callable[[], Any]) -> Any:
        if verb == "list" and self.dice.random() < FAULTS / 4:
            self.failed["empty list"] = self.failed.get("empty list", 0) + 1
            return []
        if verb == "sweep" or self.dice.random() >= FAULTS:
            return do()
        kind = self.dice.choice(sorted(KINDS))
        self.failed[kind] = self.failed.get(kind, 0) + 1
        is_done, error = KINDS[kind]
        if is_done:
            do()
        raise error()


def submit(stage: Stage, wave: int) -> None:
    """Queue as many quick jobs as may run at once."""
    now = stage.scenery.clock.now()
    jobs = [
        a_job(f"quick-{wave}-{n}", name="quick", resources=wants(cpu=4), duration_s=30.0)
        for n in range(AT_ONCE)
    ]
    stage.scenery.store.append(
        [e.Submitted(at=now, job=job.id, first=job.but(submitted_at=now)) for job in jobs]
    )


def test_launches_of_which_one_call_in_five_fails_leak_double_and_touch_nothing() -> None:
    shelves = [
        Shelf(an_offer(f"big-{n}", zone=f"r-{n}", type=f"big-{n}", boot_s=5.0))
        for n in range(SHELVES)
    ]
    stage = a_cloudy_stage((), shelves, budget="900", cloud=Failing)
    cloud = cloud_of(stage)
    foreign = plant_foreign(cloud, FOREIGN)
    stage.raise_controller()
    wave = 0
    while len(cloud.hired) < LAUNCHES:
        if wave % 5 == 4 and isinstance(cloud, DrivenCloud):
            cloud.reborn()
            stage.raise_controller()
        submit(stage, wave)
        wave += 1
        assert stage.play(lambda: is_settled(stage), 8000.0), jobs_of(stage)
    assert set(Failing.failed) == {*KINDS, "empty list"}
    stage.play(lambda: not left_over(stage), 2 * EVERY_S + GRACE_S)
    assert cloud.running == 0 and not left_over(stage)
    assert {job.state for job in jobs_of(stage).values()} == {JobState.COMPLETED}
    nothing_ran_twice(stage)
    told = rentals_of(stage)
    assert cloud.hired.keys() <= told.keys()
    assert {story[-1].state for story in told.values()} == {RentalState.RETURNED}
    assert cloud.foreign == foreign
    account = account_of(stage)
    assert account.reserved == 0 and cloud.bill() <= account.spent <= (account.limit or 0)
