"""What becomes of rented machines: received, kept while they are needed, returned and paid."""

from dataclasses import replace
from typing import Any

import pytest
from clouding import an_offer
from keeping_world import (
    BOOTING,
    DRAINING,
    LEASE,
    LOST,
    NAME,
    OFFER,
    READY,
    RENTAL,
    RULE,
    RUNNING,
    TOLD,
    checked,
    job,
    kept,
    kinds,
    world,
)
from makers import a_job, a_world, placed, wants

from cloudwhale.model import plan as p
from cloudwhale.model.job import JobState, Wish
from cloudwhale.model.node import NodeState
from cloudwhale.model.reason import Code
from cloudwhale.model.rental import Renewal, Rental, RentalState
from cloudwhale.model.units import MicroUsd, micro_usd
from cloudwhale.model.world import Account, Sighting
from cloudwhale.planning.keeping import at_home
from cloudwhale.planning.settling import settled

# -- on its way ------------------------------------------------------------------------------


def test_a_machine_whose_money_is_set_aside_is_launched_and_waited_for() -> None:
    of = world(RENTAL, job(), node=None)
    assert kinds(of) == ["launch"]
    assert kept(of).expected == {"j"}
    assert [step.kind for step in checked(of).steps] == ["launch"]


def test_who_waits_for_a_machine_is_not_placed_elsewhere() -> None:
    small = job(resources=wants(cpu=1))
    assert [step.kind for step in checked(world(RENTAL, small, node=None)).steps] == ["launch"]


def test_a_machine_that_boots_is_waited_for_until_it_is_late() -> None:
    of = world(BOOTING, job(), node=NodeState.EXPECTED, now=339.0)
    assert kinds(of) == [] and kept(of).look_again_at == 340.0
    late = world(BOOTING, job(), node=NodeState.EXPECTED, now=340.0)
    step, told = kept(late).steps
    assert isinstance(step, p.Return) and step.reason.code is Code.BOOT_FAILED
    assert isinstance(told, p.Explain) and told.job == "j" and told.reason == step.reason
    assert "its agent has not joined for 340 s; its offer says 20 s" in step.reason.says
    checked(late)


def test_a_machine_whose_agent_has_joined_is_received_and_its_job_placed_at_once() -> None:
    made = checked(world(BOOTING, job()))
    assert [step.kind for step in made.steps] == ["receive", "place"]
    (place,) = (step for step in made.steps if isinstance(step, p.Place))
    assert place.placement.node == NAME


@pytest.mark.parametrize("state", [NodeState.EXPECTED, NodeState.READY])
def test_a_machine_that_nobody_waits_for_any_more_goes_back(state: NodeState) -> None:
    of = BOOTING if state is NodeState.EXPECTED else READY
    for jobs in ([], [job(wish=Wish.CANCEL)], [placed(job())]):
        assert "return" in kinds(world(of, *jobs, node=state))


# -- ready -----------------------------------------------------------------------------------


@pytest.mark.parametrize("now", [910.0, 1000.0, 1110.0])
def test_a_machine_that_comes_when_its_lease_is_all_but_over_takes_nobody(now: float) -> None:
    slow = OFFER.but(boot_s=600.0)
    late = world(BOOTING.but(taken=slow), job(), now=now)
    assert [step.kind for step in checked(late).steps] == ["receive"]
    assert kept(late).expected == {"j"}
    received = world(READY.but(taken=slow), job(), now=now)
    assert kinds(received) == ["return"] and kept(received).expected == set()


@pytest.mark.parametrize("of", [BOOTING, READY])
def test_who_is_too_late_when_its_machine_comes_is_parked_and_not_placed(of: Rental) -> None:
    made = checked(world(of, job(deadline=50.0)))
    assert [step.kind for step in made.steps][0] == "park"
    assert not [step for step in made.steps if isinstance(step, p.Place)]


def test_others_are_not_placed_on_a_rented_machine() -> None:
    other = a_job("other", run="run-2", resources=wants(cpu=4))
    made = checked(world(READY, RUNNING, other))
    assert [step.kind for step in made.steps] == ["explain"]


def test_a_job_that_waits_to_be_tried_again_is_waited_for() -> None:
    of = world(READY, job(not_before=130.0))
    assert kinds(of) == [] and kept(of).expected == {"j"}
    assert kept(of).look_again_at == 130.0


def test_a_machine_that_does_not_suit_its_job_any_more_goes_back() -> None:
    grown = job().but(grown=wants(cpu=9))
    of = world(READY, grown)
    assert kinds(of) == ["return"] and kept(of).expected == frozenset()
    checked(of)


def test_a_machine_that_is_smaller_than_was_offered_is_received_and_then_goes_back() -> None:
    more = an_offer("more", facts=OFFER.facts.but(cpu=32.0))
    tall = job(resources=wants(cpu=16))
    for of, kinds_of in ((BOOTING, ["receive"]), (READY, ["return", "rent"])):
        at = replace(world(of, tall), offers=(more,), version=9)
        assert [step.kind for step in checked(at).steps if step.kind != "explain"] == kinds_of


def test_a_machine_whose_agent_is_silent_takes_nobody() -> None:
    of = world(READY, job(), node=NodeState.LOST)
    assert kinds(of) == ["return"]


# -- the lease -------------------------------------------------------------------------------


def test_a_lease_is_lengthened_a_minute_before_its_jobs_would_land() -> None:
    early = world(READY, RUNNING, now=879.0)
    assert kinds(early) == [] and kept(early).look_again_at == 880.0
    of = world(READY, RUNNING, now=880.0)
    (step,) = kept(of).steps
    assert isinstance(step, p.Renew) and step.rental.renewal is not None
    lease = step.rental.renewal.lease
    assert lease.number == 2 and lease.away_until >= 880.0 + 300.0
    assert step.rental.reserved == 2_000_000 + step.rental.renewal.reserved
    checked(of)


def test_an_extension_whose_answer_is_out_is_asked_for_again() -> None:
    renewal = Renewal(lease=LEASE.but(number=2), reserved=MicroUsd(1))
    assert kinds(world(READY.but(renewal=renewal), RUNNING, now=900.0)) == ["extend"]


def test_as_much_time_is_taken_as_there_is_money_for() -> None:
    long = RUNNING.but(spec=RUNNING.spec.but(duration_s=20_000.0))
    rich, poor = (world(READY, long, now=880.0, limit=micro_usd(n)) for n in (50, 14))
    ends: list[float] = []
    for of in (rich, poor):
        (step,) = kept(of).steps
        assert isinstance(step, p.Renew) and step.rental.renewal is not None
        ends.append(step.rental.renewal.lease.away_until)
        checked(of)
    assert ends[0] > ends[1] > 1000.0


def test_two_leases_that_grow_in_one_round_do_not_get_the_same_money() -> None:
    other = READY.but(id="rent-1-2", node="rent-1-2", jobs={"k": "default"}, machine="m-2")
    running = placed(a_job("k", resources=wants(cpu=4), duration_s=900.0, checkpoint=RULE))
    there = running.but(
        state=JobState.RUNNING, order_posted=True, started_at=20.0,
        placement=RUNNING.placement.but(node="rent-1-2") if RUNNING.placement else None,
    )  # fmt: skip
    one = world(READY, RUNNING, there, a_job("new", resources=wants(cpu=4)), now=880.0)
    machine = one.nodes[NAME].but(id="rent-1-2")
    of = replace(
        one, rentals={NAME: READY, "rent-1-2": other}, nodes={**one.nodes, "rent-1-2": machine},
        sightings={**one.sightings, "rent-1-2": Sighting(node="rent-1-2", heard_at=880.0)},
        offers=(OFFER,), version=7,
    )  # fmt: skip
    for limit in ("4.3", "4.35", "4.4", "4.45", "4.5", "6.0", "50"):
        money = Account(payer="run-1", limit=micro_usd(limit), reserved=micro_usd(4))
        checked(replace(of, accounts={"run-1": money}))
    both = [step.kind for step in kept(of).steps]
    assert both == ["renew", "renew"]


def test_past_the_soft_line_what_has_started_goes_on() -> None:
    of = world(READY, RUNNING, now=880.0, spent=micro_usd(44))
    assert kinds(of) == ["renew"]


def test_where_money_is_short_a_lease_is_lengthened_as_far_as_it_goes() -> None:
    of = world(READY, RUNNING, now=880.0, limit=micro_usd("2.1"))
    (step,) = kept(of).steps
    assert isinstance(step, p.Renew) and step.rental.renewal is not None
    longer_s = step.rental.renewal.lease.away_until - READY.lease.away_until
    assert 98.0 <= longer_s <= 100.0, "a tenth of a dollar is 100 s at 3.60 USD an hour"
    checked(of)


def test_what_is_pledged_to_a_machine_is_no_money_for_another() -> None:
    of = world(READY, RUNNING, now=880.0, limit=micro_usd("4.1"), reserved=micro_usd(4))
    other = READY.but(id="m-2", node="m-2", jobs={"k": "default"}, late_until=1060.0)
    assert [step.kind for step in kept(replace(of, rentals={NAME: READY})).steps] == ["renew"]
    assert kept(replace(of, rentals={NAME: READY, "m-2": other})).steps[0].kind != "renew"


@pytest.mark.parametrize(
    ("rental", "money"),
    [(READY, {"limit": micro_usd("2.05")}), (READY.but(is_fixed=True), {})],
    ids=["no money", "a fixed stop"],
)
def test_a_lease_that_cannot_be_lengthened_ends_with_a_landing(
    rental: Rental, money: dict[str, Any]
) -> None:
    waits = world(rental, RUNNING, now=880.0, **money)
    assert kinds(waits) == [] and kept(waits).look_again_at == 940.0
    lands = world(rental, RUNNING, now=940.0, **money)
    (step,) = kept(lands).steps
    assert isinstance(step, p.AskToStop) and step.wish == "give-way"
    assert step.reason.code is Code.LEASE_ENDS
    checked(lands)
    assert kinds(world(rental, RUNNING.but(wish=Wish.GIVE_WAY), now=945.0, **money)) == []


def test_who_has_landed_is_not_placed_there_again() -> None:
    of = world(READY, job(), now=945.0)
    assert kinds(of) == ["return"] and kept(of).expected == frozenset()


# -- on its way back -------------------------------------------------------------------------


def test_a_machine_that_is_taken_away_lands_its_jobs_and_is_then_ended() -> None:
    (step,) = kept(world(DRAINING, RUNNING, node=NodeState.DRAINING)).steps
    assert isinstance(step, p.AskToStop)
    assert kinds(world(DRAINING, job(), node=NodeState.DRAINING)) == ["terminate"]


def test_what_ran_on_a_machine_that_is_gone_is_lost_at_once_and_starts_elsewhere() -> None:
    first = world(LOST, RUNNING)
    (step,) = kept(first).steps
    assert isinstance(step, p.DeclareLost) and step.attempts == (("j", 1),)
    checked(first)
    recovering = RUNNING.but(state=JobState.RECOVERING)
    second = world(LOST, recovering, node=NodeState.LOST)
    assert [step.kind for step in checked(second).steps] == ["clear", "explain"]
    third = world(LOST, job(), node=NodeState.LOST)
    assert "settle" in kinds(third)


def test_a_machine_that_is_gone_is_paid_for_once_and_the_rest_is_free_again() -> None:
    (step,) = kept(world(LOST, job(), node=NodeState.LOST)).steps
    assert isinstance(step, p.Settle)
    assert step.charges == {"j": 100_000}
    assert step.released == 1_900_000
    assert step.rental.state is RentalState.RETURNED
    assert (step.rental.spent, step.rental.reserved) == (100_000, 0)


def test_the_price_that_the_provider_says_goes_before_the_one_that_was_offered() -> None:
    assert settled(LOST.but(price_usd_h=micro_usd(36))).charges == {"j": 1_000_000}
    assert settled(LOST.but(taken=OFFER.but(price_usd_h=None))).released == 0


def test_nobody_is_ever_charged_more_than_was_set_aside() -> None:
    dear = settled(LOST.but(price_usd_h=micro_usd(360)))
    assert (sum(dear.charges.values()), dear.released) == (2_000_000, 0)


def test_several_jobs_share_what_a_machine_cost() -> None:
    shared = settled(LOST.but(jobs={"a": "x", "b": "y", "c": "x"}))
    assert sorted(shared.charges.values()) == [33_333, 33_333, 33_334]


def test_a_machine_that_never_was_costs_nothing() -> None:
    never = settled(RENTAL)
    assert (never.charges, never.released) == ({}, 2_000_000)


# -- at home ---------------------------------------------------------------------------------


def test_a_world_without_rented_machines_is_at_home_as_it_is() -> None:
    of = a_world([job()])
    assert at_home(of) is of


def test_at_home_are_our_own_machines_and_those_who_wait() -> None:
    waiting = a_job("waiting")
    home = at_home(world(READY, RUNNING, waiting))
    assert list(home.nodes) == ["host"] and list(home.jobs) == ["waiting"]
    assert replace(home, jobs={}).rentals == {NAME: READY}


# -- one after another -----------------------------------------------------------------------

TWO = READY.but(jobs={"j": "default", "k": "default"}, starts_at={"j": 20.0, "k": 920.0})
SECOND = a_job("k", resources=wants(cpu=6), duration_s=600.0, checkpoint=RULE)


def test_who_comes_after_others_waits_for_them_on_its_machine() -> None:
    found = kept(world(TWO, RUNNING, SECOND))
    assert found.expected == {"k"}
    assert [step.kind for step in found.steps] == []


def test_a_lease_is_renewed_for_those_who_are_still_to_come() -> None:
    alone = world(READY, RUNNING, now=880.0)
    both = world(TWO, RUNNING, SECOND, now=880.0)
    (one,), (two,) = kept(alone).steps, kept(both).steps
    assert isinstance(one, p.Renew) and isinstance(two, p.Renew)
    assert one.rental.renewal is not None and two.rental.renewal is not None
    assert two.rental.renewal.lease.away_until > one.rental.renewal.lease.away_until + 500.0


def test_who_would_start_much_later_than_planned_goes_elsewhere() -> None:
    # Half of its own length and ten minutes after its planned start.
    late_at = 920.0 + 300.0 + 600.0
    longer = TWO.but(lease=LEASE.but(away_until=9000.0, stop_at=9120.0))
    assert kept(world(longer, RUNNING, SECOND, now=late_at - 1)).expected == {"k"}
    found = kept(world(longer, RUNNING, SECOND, now=late_at))
    assert found.expected == frozenset()
    assert kept(world(longer, RUNNING, SECOND, now=950.0)).look_again_at == late_at


def test_when_those_before_it_have_ended_it_is_placed_however_late() -> None:
    long = {"away_until": 9000.0, "stop_at": 9120.0}
    two = TWO.but(lease=LEASE.but(**long), told=TOLD.but(**long))
    of = world(two, SECOND, now=5000.0)
    (step,) = kept(of).steps
    assert isinstance(step, p.Place) and step.job == "k"


def test_nobody_is_asked_to_land_whose_machine_is_declared_lost_in_the_same_round() -> None:
    lands = world(READY, RUNNING, now=950.0, limit=READY.reserved)
    assert any(isinstance(step, p.AskToStop) for step in checked(lands).steps)
    silent = {NAME: Sighting(node=NAME, heard_at=950.0 - 700.0)}
    steps = checked(replace(lands, sightings={**lands.sightings, **silent})).steps
    assert any(isinstance(step, p.DeclareLost) for step in steps)
    assert not any(isinstance(step, p.AskToStop) for step in steps)
