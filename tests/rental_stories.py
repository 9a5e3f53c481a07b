"""What happens to rented machines while their controller may die, told of any cloud."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol, cast

from clouding import (
    MortalDeeds,
    a_cloudy_stage,
    account_of,
    an_offer,
    cloud_of,
    dies,
    is_settled,
    left_over,
    plant_foreign,
    plant_forgotten,
)
from staging import Fuse, MortalStore, jobs_of, pass_by

from cloudwhale.control.sweeping import EVERY_S, GRACE_S
from cloudwhale.model import event as e
from cloudwhale.model.job import JobState
from cloudwhale.model.rental import Boot, Rental, RentalState
from cloudwhale.model.units import micro_usd
from cloudwhale.planning.leasing import STOP_AFTER_S
from cloudwhale.simulation.booting import BootPlan
from cloudwhale.simulation.cloud import WATCHDOG_S, Shelf, SimulatedCloud
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


def a_forgetful_stage(cloud: type[SimulatedCloud]) -> Stage:
    """Make a stage on which a machine of ours runs that nobody knows of."""
    stage = a_cloudy_stage(("quick",), cloud=cloud)
    plant_forgotten(cloud_of(stage), stage.scenery.clock.now(), GRACE_S)
    return stage


def a_booting_stage(first: BootPlan, cloud: type[SimulatedCloud]) -> Stage:
    """Make a stage whose cheapest machine boots so, and another one as it should."""
    dear = micro_usd("4")
    shelves = [
        Shelf(an_offer(boot_s=5.0), boot=first),
        Shelf(an_offer("sound", type="x1", price_usd_h=dear, cap_usd_h=dear), boot=BootPlan()),
    ]
    return a_cloudy_stage(("quick",), shelves, cloud=cloud)


def stories(cloud: type[SimulatedCloud]) -> dict[str, Story]:
    """Return all stories, told of a cloud whose caller may die: it has a `fuse`."""
    stage = partial(a_cloudy_stage, cloud=cloud)
    booting = partial(a_booting_stage, cloud=cloud)
    return {
        "launch and return": Story(partial(stage, ("quick",))),
        "extend": Story(partial(stage, ("middling",), duration_s=60.0), is_short=False),
        "cancel": Story(
            partial(stage, ("endless",)), JobState.CANCELLED, partial(cancels, when=runs)
        ),
        "cancel on the way": Story(
            partial(stage, ("endless",)), JobState.CANCELLED, partial(cancels, when=boots)
        ),
        "sweep": Story(partial(a_forgetful_stage, cloud), machines=2),
        "boot": Story(partial(booting, BootPlan())),
        "boot fails": Story(partial(booting, BootPlan(fails_in="docker")), machines=2),
        "boot hangs": Story(
            partial(booting, BootPlan(hangs_in="gpus")), machines=2, is_short=False
        ),
    }


class Mortal(Protocol):
    """A cloud whose calls burn on a fuse."""

    fuse: Fuse


def raised(stage: Stage, story: Story, fuse: Fuse) -> None:
    """Begin a life that ends when the fuse blows; the cloud's calls burn on the same one."""
    cast(Mortal, cloud_of(stage)).fuse = fuse
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


def points_of(story: Story) -> int:
    fuse = Fuse(None)
    life(story, fuse)
    return fuse.count


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
