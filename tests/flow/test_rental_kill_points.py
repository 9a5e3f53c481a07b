"""The controller dies before and after everything that it does to rented machines.

After one restart and one sweep no machine is unowned or doubled and the money is within the budget;
with no restart no machine outlives its lease by more than its stops allow.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest
from clouding import (
    MortalCloud,
    MortalDeeds,
    a_cloudy_stage,
    account_of,
    adds_up,
    an_offer,
    cloud_of,
    dies,
    is_settled,
    left_over,
    plant_foreign,
    plant_forgotten,
    rentals_of,
)
from staging import Fuse, MortalStore, jobs_of, nothing_ran_twice, pass_by

from cloudwhale.control.sweeping import EVERY_S, GRACE_S
from cloudwhale.model import event as e
from cloudwhale.model.job import JobState
from cloudwhale.model.reason import Code
from cloudwhale.model.rental import Boot, Rental, RentalState
from cloudwhale.model.units import micro_usd
from cloudwhale.planning.leasing import STOP_AFTER_S
from cloudwhale.simulation.booting import PHASES, BootPlan
from cloudwhale.simulation.cloud import WATCHDOG_S, Shelf
from cloudwhale.simulation.stage import Stage

FOREIGN = 5


@dataclass(frozen=True)
class Story:
    """What happens to whom, and how it must end."""

    made: Callable[[], Stage]
    ends: JobState | None = JobState.COMPLETED
    wishes: Callable[[Stage], None] = lambda stage: None
    """What a person does meanwhile, asked after every step."""
    machines: int = 1
    is_short: bool = True
    """So short that the controller may die around every write, too."""


def cancels(stage: Stage, when: Callable[[Stage], bool]) -> None:
    """Cancel the job when something is so."""
    job = jobs_of(stage)["endless-0"]
    if job.wish is None and not job.ended and when(stage):
        at = stage.scenery.clock.now()
        stage.scenery.store.append([e.CancelAsked(at=at, job=job.id)])


def runs(stage: Stage) -> bool:
    return jobs_of(stage)["endless-0"].state is JobState.RUNNING


def boots(stage: Stage) -> bool:
    rentals = stage.scenery.store.world(stage.scenery.clock.now()).rentals.values()
    return any(one.state is RentalState.BOOTING for one in rentals)


def a_forgetful_stage() -> Stage:
    """Make a stage on which a machine of ours runs that nobody knows of."""
    stage = a_cloudy_stage(("quick",), cloud=MortalCloud)
    plant_forgotten(cloud_of(stage), stage.scenery.clock.now(), GRACE_S)
    return stage


def a_taken_stage() -> Stage:
    """Make a stage whose first machine is taken away without a word."""
    shelf = Shelf(an_offer(hazard_per_h=40.0))
    return a_cloudy_stage(("saving",), [shelf], seed=3, cloud=MortalCloud)


def a_booting_stage(first: BootPlan) -> Stage:
    """Make a stage whose cheapest machine boots so, and another one as it should."""
    dear = micro_usd("4")
    shelves = [
        Shelf(an_offer(boot_s=5.0), boot=first),
        Shelf(an_offer("sound", type="x1", price_usd_h=dear, cap_usd_h=dear), boot=BootPlan()),
    ]
    return a_cloudy_stage(("quick",), shelves, cloud=MortalCloud)


STORIES = {
    "launch and return": Story(partial(a_cloudy_stage, ("quick",), cloud=MortalCloud)),
    "extend": Story(
        partial(a_cloudy_stage, ("middling",), duration_s=60.0, cloud=MortalCloud), is_short=False
    ),
    "cancel": Story(
        partial(a_cloudy_stage, ("endless",), cloud=MortalCloud),
        JobState.CANCELLED, partial(cancels, when=runs),
    ),
    "cancel on the way": Story(
        partial(a_cloudy_stage, ("endless",), cloud=MortalCloud),
        JobState.CANCELLED, partial(cancels, when=boots),
    ),
    "sweep": Story(a_forgetful_stage, machines=2),
    "boot": Story(partial(a_booting_stage, BootPlan())),
    "boot fails": Story(partial(a_booting_stage, BootPlan(fails_in="docker")), machines=2),
    "boot hangs": Story(
        partial(a_booting_stage, BootPlan(hangs_in="gpus")), machines=2, is_short=False
    ),
}  # fmt: skip


def raised(stage: Stage, story: Story, fuse: Fuse) -> None:
    """Begin a life that ends when the fuse blows; the cloud's calls burn on the same one."""
    cloud = cloud_of(stage)
    assert isinstance(cloud, MortalCloud)
    cloud.fuse = fuse
    store = MortalStore(stage.scenery.store, fuse) if story.is_short else None
    stage.raise_controller(MortalDeeds(fuse), store)


def played(stage: Stage, story: Story) -> None:
    """Play until nothing is left to do and one sweep has passed."""

    def over() -> bool:
        story.wishes(stage)
        return is_settled(stage)

    assert stage.play(over, 6000.0), [(j.id, j.state, j.reason) for j in jobs_of(stage).values()]
    if left_over(stage):
        stage.play(lambda: not left_over(stage), EVERY_S + GRACE_S + 10.0)


def lived(stage: Stage, story: Story, fuse: Fuse) -> None:
    """Begin a life and play it."""
    raised(stage, story, fuse)
    played(stage, story)


def life(story: Story, fuse: Fuse) -> Stage:
    """Live to the end; a controller that dies is followed by another after 3 s."""
    stage = story.made()
    foreign = plant_foreign(cloud_of(stage), FOREIGN)
    if dies(partial(lived, stage, story, fuse)):
        stage.controller = None
        pass_by(stage, 3.0)
        lived(stage, story, Fuse(None))
    assert cloud_of(stage).foreign == foreign
    return stage


def test_the_stories_do_what_they_say() -> None:
    longer = life(STORIES["extend"], Fuse(None))
    leases = [one for story in rentals_of(longer).values() for one in story]
    assert {one.told.number for one in leases if one.told is not None} >= {1, 2}
    swept = life(STORIES["sweep"], Fuse(None))
    notes = [one.event for one in swept.scenery.store.events("forgotten")]
    assert [one.reason.code for one in notes if isinstance(one, e.Noted)] == ["leftover-removed"]


def nothing_is_half_ready(stage: Stage) -> None:
    """Check that jobs were placed on ready machines alone, and no word of a boot was doubled."""
    rentals: dict[str, Rental] = {}
    read: dict[str, list[int]] = {}
    for told in stage.scenery.store.since(0, 100_000):
        match told.event:
            case e.RentalChanged(rental=rental):
                rentals[rental.id] = rental
            case e.Placed(placement=place) if place.node in rentals:
                assert rentals[place.node].state is RentalState.READY
            case e.BootTold(rental=name, number=number):
                assert rentals[name].state is RentalState.BOOTING
                read.setdefault(name, []).append(number)
            case _:
                continue
    for name, numbers in read.items():
        assert numbers == list(range(1, len(numbers) + 1)), name


def boots_of(stage: Stage) -> dict[str, Boot]:
    """Return what every machine has told of its boot."""
    return {one.offer: one.boot for one in stage.scenery.store.rentals("run-1")}


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


def points_of(story: Story) -> int:
    fuse = Fuse(None)
    life(story, fuse)
    return fuse.count


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


def a_life_cut_off(story: Story, fuse: Fuse) -> Stage:
    """Live until the controller dies, or to the end; nobody comes after it."""
    stage = story.made()
    dies(partial(lived, stage, story, fuse))
    stage.controller = None
    return stage


def abandoned(stage: Stage) -> tuple[int, float]:
    """Return what is spent or set aside, and when the last machine ends by the latest."""
    account = account_of(stage)
    assert account.reserved + account.spent <= (account.limit or 0)
    ends = [stage.scenery.clock.now()]
    for one in cloud_of(stage).hired.values():
        tenure, lease = one.machine.disk.tenure, one.request.lease
        assert lease is not None
        away_until = lease.away_until if tenure is None else tenure.away_until
        ends.append(one.stop_at if one.is_scheduled else away_until + WATCHDOG_S)
    assert STOP_AFTER_S > WATCHDOG_S, "a machine ends itself before its cloud does"
    return account.reserved + account.spent, max(ends) + 1.0


def drift(stage: Stage, until: float) -> None:
    """Let time pass with nobody there but the machines and their cloud."""
    clock, cloud = stage.scenery.clock, cloud_of(stage)
    while clock.now() < until:
        cloud.step(stage.machine_time)
        clock.advance_to(min(until, clock.now() + 5.0))
    cloud.step(stage.machine_time)


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
