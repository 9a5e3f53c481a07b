"""Who goes onto a machine that its run has rented already, and who does not."""

from dataclasses import replace
from typing import Any

import pytest
from clouding import RENTING, an_offer
from makers import a_job, a_node, a_world, placed, wants

from cloudwhale.model import plan as p
from cloudwhale.model.job import Job, JobState
from cloudwhale.model.node import NodeState
from cloudwhale.model.reason import Code
from cloudwhale.model.rental import Lease, Rental, RentalState
from cloudwhale.model.units import micro_usd
from cloudwhale.model.world import Account, Sighting, World
from cloudwhale.planning.checker import check
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.joining import joins
from cloudwhale.planning.next_machines import as_waiting
from cloudwhale.planning.planner import plan
from cloudwhale.planning.stock import Stock

OFFER = an_offer()
NAME = "rent-1-1"
RENTAL = Rental(
    id=NAME, node=NAME, payer="run-1", offer="big", state=RentalState.READY, taken=OFFER,
    lease=Lease(number=1, watched_until=900.0, away_until=8000.0, stop_at=8120.0),
    reserved=micro_usd(9), jobs={"first": "default"}, machine="m-1", requested_at=0.0,
)  # fmt: skip
FIRST = placed(a_job("first", resources=wants(cpu=4), duration_s=6000.0), NAME).but(
    state=JobState.RUNNING, order_posted=True, started_at=20.0
)


def job(name: str = "j", **fields: Any) -> Job:
    return a_job(name, **{"resources": wants(cpu=4), "duration_s": 3600.0, **fields})


def world(*jobs: Job, of: Rental = RENTAL, first: Job | None = FIRST, **money: Any) -> World:
    machine = a_node(NAME, cpu=8.0, memory_gib=32.0, owned=False, provider="cloud")
    nodes = [a_node(), machine]
    sums = {"limit": micro_usd(50), "reserved": of.reserved, **money}
    return a_world(
        [*jobs, *([] if first is None else [first])], nodes, now=100.0, rentals={NAME: of},
        accounts={"run-1": Account(payer="run-1", **sums)}, offers=(OFFER,),
        sightings={each.id: Sighting(node=each.id, heard_at=100.0) for each in nodes},
    )  # fmt: skip


def joined(of: World) -> list[str]:
    waiting = [one for one in of.jobs.values() if one.state is JobState.PENDING]
    found = joins(of, waiting, Durations({}), Stock(of.offers, Durations({})))
    return [step.job for step in found]


def test_a_job_joins_where_there_is_room_and_time_that_is_paid_for() -> None:
    assert joined(world(job())) == ["j"]


def test_who_may_still_run_there_does_not_join_it() -> None:
    small = job(resources=wants(cpu=2))
    lost = placed(small, NAME).but(state=JobState.RECOVERING, attempt=1, order_posted=True)
    of = world(lost, of=RENTAL.but(jobs={**RENTAL.jobs, "j": "default"}))
    stock = Stock(of.offers, Durations({}))
    assert joins(of, [as_waiting(lost, of.now)], Durations({}), stock) == []
    elsewhere = lost.but(placement=placed(small, "host").placement)
    found = joins(world(elsewhere), [as_waiting(elsewhere, of.now)], Durations({}), stock)
    assert [step.job for step in found] == ["j"]


def test_as_many_join_as_there_is_room_for() -> None:
    assert joined(world(job("a"), job("b"))) == ["a"]
    small = [job(name, resources=wants(cpu=2)) for name in ("a", "b", "c")]
    assert joined(world(*small)) == ["a", "b"]


@pytest.mark.parametrize(
    "fields",
    [
        {"run": "run-2"},
        {"resources": wants(cpu=5)},
        {"market": "spot"},
        {"budget": micro_usd(40)},
    ],
)
def test_who_does_not_suit_or_pays_otherwise_does_not_join(fields: dict[str, Any]) -> None:
    assert joined(world(job(**fields))) == []


@pytest.mark.parametrize(
    ("project", "image", "beside", "joins_it"),
    [
        ("default", None, None, True),
        ("default", "net:1", None, True),
        ("default", None, "net:1", True),
        ("other", None, None, False),
        ("other", "net:1", None, False),
        ("other", None, "net:1", False),
        ("other", "net:1", "net:1", True),
    ],
)
def test_jobs_of_two_projects_share_a_machine_in_containers_only(
    project: str, image: str | None, beside: str | None, joins_it: bool
) -> None:
    first = FIRST.but(spec=FIRST.spec.but(image=beside))
    of = world(job(project=project, image=image), first=first)
    machine = of.nodes[NAME]
    facts = machine.facts.but(runtimes=("process", "container"))
    of = replace(of, nodes={**of.nodes, NAME: machine.but(facts=facts)})
    assert joined(of) == (["j"] if joins_it else [])


def test_nobody_joins_a_machine_that_is_not_ready_or_awaits_others() -> None:
    assert joined(world(job(), of=RENTAL.but(state=RentalState.DRAINING))) == []
    assert joined(world(job(), of=RENTAL.but(state=RentalState.BOOTING))) == []
    assert joined(world(job(), of=RENTAL.but(ended_at=90.0))) == []
    assert joined(world(job(), first=None)) == []
    second = job("second")
    awaits = RENTAL.but(jobs={"first": "default", "second": "default"})
    assert joined(world(job(), second, of=awaits)) == []
    lost = replace(world(job()), nodes={NAME: a_node(NAME, owned=False, state=NodeState.LOST)})
    assert joined(lost) == []


def test_a_job_that_keeps_the_machine_for_longer_than_its_own_would_cost_does_not_join() -> None:
    ends_soon = FIRST.but(spec=FIRST.spec.but(duration_s=120.0))
    cheaper = an_offer("cheap", price_usd_h=micro_usd(1), cap_usd_h=micro_usd(1))
    of = world(job(), first=ends_soon)
    assert joined(of) == ["j"]
    assert joined(replace(of, offers=(OFFER, cheaper))) == []


def test_a_longer_lease_must_be_paid_for_beside_what_has_started() -> None:
    longer = job(duration_s=7200.0)
    assert joined(world(longer)) == ["j"]
    assert joined(world(longer, limit=micro_usd("10"))) == []
    assert joined(world(longer, of=RENTAL.but(is_fixed=True))) == []
    assert joined(world(job(), of=RENTAL.but(is_fixed=True))) == ["j"]


def test_a_round_lets_it_join_and_rents_nothing_and_the_next_places_it() -> None:
    of = world(job())
    made = plan(of, RENTING)
    assert check(made, of, RENTING.rules) == ()
    (step,) = (step for step in made.steps if isinstance(step, p.Join | p.Rent))
    assert isinstance(step, p.Join) and step.reason.code is Code.JOINS
    then = replace(of, rentals={NAME: step.rental})
    again = plan(then, RENTING)
    assert check(again, then, RENTING.rules) == ()
    (place,) = (step for step in again.steps if isinstance(step, p.Place))
    assert (place.job, place.placement.node) == ("j", NAME)


def test_nobody_joins_a_machine_in_the_round_that_lengthens_its_lease() -> None:
    ends = RENTAL.lease.but(away_until=200.0, stop_at=320.0)
    of = replace(world(job(), of=RENTAL.but(lease=ends)), version=7)
    made = plan(of, RENTING)
    assert check(made, of, RENTING.rules) == ()
    longer = [step for step in made.steps if isinstance(step, p.Renew)]
    assert len(longer) == 1 and longer[0].rental.renewal is not None
    assert not any(isinstance(step, p.Join) for step in made.steps)


def test_nobody_joins_whose_machine_is_bounded_by_a_budget_of_its_own() -> None:
    bound = FIRST.but(spec=FIRST.spec.but(budget=micro_usd(20)))
    assert joined(world(job(), first=bound)) == []
