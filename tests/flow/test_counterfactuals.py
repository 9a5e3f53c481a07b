"""What a run would have cost otherwise, from the rounds of real controllers in simulated time."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from clouding import a_cloudy_stage, an_offer, settles

from cloudwhale.cli.books import books_of
from cloudwhale.control.controller import Chosen
from cloudwhale.control.counterfactuals import counterfactuals, standing_for
from cloudwhale.model.receipt import Otherwise
from cloudwhale.model.units import micro_usd, usd
from cloudwhale.planning.planner import Policies
from cloudwhale.simulation.cloud import Shelf
from cloudwhale.simulation.stage import Stage
from cloudwhale.spi.store import JobQuery
from cloudwhale_policies.fits import BestFit
from cloudwhale_policies.order import Priority
from cloudwhale_policies.renting.greedy import Greedy
from cloudwhale_policies.waiting.starburst import NoWait

SPOT = an_offer(
    "spot", market="spot", price_usd_h=micro_usd("1"), cap_usd_h=micro_usd("3.6"), hazard_per_h=0.0
)
SHELVES = (Shelf(SPOT), Shelf(an_offer("steady")))


def a_life(names: Sequence[str] = ("quick", "quick", "quick"), **of_job: object) -> Stage:
    """Rent for jobs on spot or on demand, two to a machine, and play until all is back."""
    fields: dict[str, Any] = {"market": "spot", **of_job}
    stage = a_cloudy_stage(names, SHELVES, **fields)
    made: Policies = replace(
        stage.scenery.chosen.policies, order=Priority(), score=BestFit(), wait=NoWait(),
        rent=Greedy(),
    )  # fmt: skip
    chosen = Chosen(made, "priority", "best-fit", wait="no-wait", rent="greedy")
    stage.scenery = replace(stage.scenery, chosen=chosen)
    stage.raise_controller()
    assert settles(stage)
    return stage


def told_of(stage: Stage) -> dict[str, Otherwise]:
    store = stage.scenery.store
    found = counterfactuals(store, "run-1", store.jobs(JobQuery(run="run-1")))
    return {one.course: one for one in found}


@pytest.fixture(scope="module")
def shared() -> Stage:
    return a_life()


def test_on_demand_alone_costs_what_the_dearer_offer_does_in_the_same_rounds(shared: Stage) -> None:
    one = told_of(shared)["on-demand"]
    assert one.then_usd is not None and one.other_usd is not None
    assert one.jobs == 3 and not one.without
    # The same machines for the same time: 3.60 USD an hour for each 1.00.
    assert one.other_usd == pytest.approx(one.then_usd * Decimal("3.6"), rel=Decimal("0.001"))


def test_a_machine_for_each_job_is_never_cheaper_than_sharing(shared: Stage) -> None:
    one = told_of(shared)["one-each"]
    assert one.then_usd is not None and one.other_usd is not None
    assert one.other_usd > one.then_usd


def test_the_receipt_of_a_run_holds_what_was_planned_against_what_was_planned(
    shared: Stage,
) -> None:
    one, store = told_of(shared)["one-each"], shared.scenery.store
    books = books_of(store, store.jobs(JobQuery(run="run-1")), "run-1")
    assert books.planned is not None and books.one_each is not None
    assert usd(books.planned) == one.then_usd
    assert usd(books.one_each) == one.other_usd


def test_who_fits_nowhere_here_could_not_have_waited(shared: Stage) -> None:
    one = told_of(shared)["all-waited"]
    assert one.other_s is None and len(one.without) == 3
    assert one.then_s is not None and one.then_s > 30.0


def test_it_is_the_same_each_time_it_is_asked(shared: Stage) -> None:
    assert told_of(shared) == told_of(shared)


def test_it_changes_nothing(shared: Stage) -> None:
    before = shared.scenery.store.version()
    told_of(shared)
    assert shared.scenery.store.version() == before


def test_the_rounds_that_stand_for_a_run_are_those_whose_machines_came(shared: Stage) -> None:
    store = shared.scenery.store
    standing = standing_for(store, "run-1", store.jobs(JobQuery(run="run-1")))
    machines = [name for one in standing for name in one.machines]
    came = [one.id for one in store.rentals("run-1") if one.requested_at is not None]
    assert sorted(machines) == sorted(came)


def test_jobs_that_ran_here_cost_something_when_all_are_rented_for() -> None:
    """Two of three jobs fit here, one after the other is too slow for none of them."""
    stage = a_life(("quick", "quick"), resources=small(), market="auto")
    told = told_of(stage)
    assert set(told) >= {"all-rented"}
    one = told["all-rented"]
    assert one.then_usd is not None and one.other_usd is not None
    assert one.jobs == 2
    assert one.other_usd > one.then_usd


def small() -> object:
    from makers import wants

    return wants(cpu=1)


def test_when_all_would_have_waited_they_would_have_been_done_one_after_the_other_here() -> None:
    stage = a_life(("quick",) * 4, resources=small(), market="auto")
    told = told_of(stage)
    one = told["all-waited"]
    # Two CPUs, four jobs of 30 s that want one each: when the first two are rented for, the last
    # are to start in 30 s.
    assert one.other_s == pytest.approx(60.0, abs=2.0)
    assert one.then_s == pytest.approx(50.0, abs=2.0)  # boot of 20 s
    assert one.other_usd == 0 and not one.without


def test_without_an_offer_on_demand_nobody_knows_what_that_would_have_cost() -> None:
    stage = a_cloudy_stage(("quick",), (Shelf(SPOT),), market="spot")
    chosen = Chosen(
        replace(
            stage.scenery.chosen.policies, order=Priority(), score=BestFit(), wait=NoWait(),
            rent=Greedy(),
        ),
        "priority", "best-fit", wait="no-wait", rent="greedy",
    )  # fmt: skip
    stage.scenery = replace(stage.scenery, chosen=chosen)
    stage.raise_controller()
    assert settles(stage)
    one = told_of(stage)["on-demand"]
    assert one.other_usd is None and one.without == ("quick-0",)


def test_a_run_that_nothing_is_known_of_has_no_other_course() -> None:
    stage = a_cloudy_stage()
    assert counterfactuals(stage.scenery.store, "run-9", []) == ()
