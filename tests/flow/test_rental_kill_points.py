"""The controller dies before and after everything that it does to rented machines.

After one restart and one sweep no machine is unowned or doubled and the money is within the budget;
with no restart no machine outlives its lease by more than its stops allow.
"""

import pytest
from clouding import MortalCloud, account_of, adds_up, cloud_of, left_over, rentals_of
from rental_stories import (
    a_life_cut_off,
    abandoned,
    boots_of,
    drift,
    life,
    nothing_is_half_ready,
    points_of,
    stories,
)
from staging import Fuse, jobs_of, nothing_ran_twice, pass_by

from cloudwhale.model import event as e
from cloudwhale.model.reason import Code
from cloudwhale.simulation.booting import PHASES
from cloudwhale.simulation.cloud import WATCHDOG_S

STORIES = stories(MortalCloud)


def test_the_stories_do_what_they_say() -> None:
    longer = life(STORIES["extend"], Fuse(None))
    leases = [one for story in rentals_of(longer).values() for one in story]
    assert {one.told.number for one in leases if one.told is not None} >= {1, 2}
    swept = life(STORIES["sweep"], Fuse(None))
    notes = [one.event for one in swept.scenery.store.events("forgotten")]
    assert [one.reason.code for one in notes if isinstance(one, e.Noted)] == ["leftover-removed"]


def test_boots_that_fail_or_hang_are_told_by_their_phase() -> None:
    failed = boots_of(life(STORIES["boot fails"], Fuse(None)))
    assert failed["big"].has_failed and failed["big"].phase == "docker"
    hung = life(STORIES["boot hangs"], Fuse(None))
    assert boots_of(hung)["big"].under_way == "gpus"
    assert boots_of(hung)["sound"].took_s.keys() == dict(PHASES).keys()
    (says,) = {
        one.event.reason.says.partition(" s: ")[2]
        for one in hung.scenery.store.events("quick-0")
        if isinstance(one.event, e.Waits) and one.event.reason.code is Code.BOOT_FAILED
    }
    assert says.startswith("`gpus` has gone on for ")
    pass_by(hung, 5.0)
    assert not hung.scenery.objects.keys("boots"), "what machines have told is swept"


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", sorted(STORIES))
def test_after_one_restart_and_one_sweep_nothing_is_unowned_or_doubled(
    name: str, after: bool
) -> None:
    story = STORIES[name]
    points = points_of(story)
    assert points > 15
    for point in range(1, points + 1):
        stage, where = life(story, Fuse(point, after)), f"{name}: killed at {point} of {points}"
        assert not left_over(stage), where
        assert len(cloud_of(stage).hired) == story.machines, where
        assert {job.state for job in jobs_of(stage).values()} == {story.ends}, where
        nothing_ran_twice(stage)
        nothing_is_half_ready(stage)
        if name == "sweep":
            account = account_of(stage)
            assert cloud_of(stage).running == 0 and account.reserved == 0, where
        else:
            adds_up(stage)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", ["launch and return", "cancel", "extend"])
def test_with_no_restart_no_machine_outlives_its_stops_and_all_was_set_aside(
    name: str, after: bool
) -> None:
    story = STORIES[name]
    every = 1 if story.is_short else 2
    for point in range(1, points_of(story) + 1, every):
        stage, where = a_life_cut_off(story, Fuse(point, after)), f"{name}: killed at {point}"
        set_aside, last_at = abandoned(stage)
        drift(stage, last_at)
        assert cloud_of(stage).running == 0, where
        assert cloud_of(stage).bill() <= set_aside, where


def test_a_machine_without_a_stop_in_its_cloud_ends_itself() -> None:
    """The controller dies between a launch and the schedule that was to end it."""
    story = STORIES["launch and return"]
    for point in range(1, points_of(story) + 1):
        stage = a_life_cut_off(story, Fuse(point, True))
        hired = list(cloud_of(stage).hired.values())
        if hired and not hired[0].is_scheduled and hired[0].ended_at is None:
            break
    else:
        raise AssertionError("no point lies between the two")
    drift(stage, stage.scenery.clock.now() + 1000.0)
    assert cloud_of(stage).running == 0
    lease = hired[0].request.lease
    assert lease is not None and hired[0].ended_at is not None
    assert hired[0].ended_at <= lease.away_until + WATCHDOG_S
