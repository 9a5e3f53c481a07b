"""A zone that has just taken a machine is not the first choice again, and is after a while."""

from clouding import a_cloudy_stage, an_offer, rentals_of, settles
from staging import jobs_of

from cloudwhale.model import event as e
from cloudwhale.model.job import JobState
from cloudwhale.model.units import micro_usd
from cloudwhale.simulation.cloud import Shelf
from cloudwhale.simulation.stage import Stage

ALMOST = micro_usd("3.605")


def two_zones(taken_per_h: float) -> Stage:
    """Make a stage with two zones of spot, all but as cheap: one takes what it gives."""
    cheap = an_offer("cheap", type="x1", market="spot", zone="r-a", hazard_per_h=0.01)
    other = cheap.but(id="other", zone="r-b", price_usd_h=ALMOST, cap_usd_h=ALMOST)
    shelves = [Shelf(cheap, hazard_per_h=taken_per_h), Shelf(other, hazard_per_h=0.0)]
    stage = a_cloudy_stage(("long",), shelves, seed=3, duration_s=1500.0)
    stage.raise_controller()
    return stage


def test_the_replacement_stands_in_another_zone_than_the_machine_that_was_taken() -> None:
    stage = two_zones(taken_per_h=40.0)
    assert settles(stage, 6000.0)
    stories = rentals_of(stage)
    first, *rest = [story[-1] for _, story in sorted(stories.items())]
    assert first.offer == "cheap"
    assert first.interrupted_at is not None
    assert [one.offer for one in rest] == ["other"]
    assert next(iter(jobs_of(stage).values())).state is JobState.COMPLETED


def test_a_zone_that_takes_nothing_keeps_the_price_that_makes_it_first() -> None:
    stage = two_zones(taken_per_h=0.0)
    assert settles(stage, 6000.0)
    assert {story[-1].offer for story in rentals_of(stage).values()} == {"cheap"}


def test_rounds_keep_the_hazard_that_they_were_made_with() -> None:
    stage = two_zones(taken_per_h=40.0)
    assert settles(stage, 6000.0)
    store = stage.scenery.store
    reserved = [
        told.event.rental.taken
        for told in store.since(0, 100_000)
        if isinstance(told.event, e.RentalChanged)
    ]
    hazards = {one.id: one.hazard_per_h for one in reserved if one is not None}
    assert hazards["cheap"] == 0.01
    assert hazards["other"] is not None and hazards["other"] > 0.01  # its neighbour's burst
