"""When the agents of rented machines are told anew how long their machines are paid for."""

from dataclasses import replace

import pytest
from keeping_world import BOOTING, DRAINING, LEASE, LOST, READY, RUNNING, checked, kept, world

from cloudwhale.model.rental import Lease, Rental
from cloudwhale.planning.telling import telling

UNTOLD = READY.but(told=None)


def told(rental: Rental, now: float) -> list[Lease]:
    return [step.rental.lease for step in telling({rental.id: rental}, now).steps]


def test_a_machine_that_is_ready_is_told_at_once_of_the_lease_that_is_paid_for() -> None:
    (lease,) = told(UNTOLD, 100.0)
    assert (lease.number, lease.away_until, lease.stop_at) == (1, 1000.0, 1120.0)
    assert lease.watched_until == 1000.0


@pytest.mark.parametrize("rental", [BOOTING, DRAINING, LOST, READY.but(ended_at=5.0)])
def test_nobody_else_is_told(rental: Rental) -> None:
    assert told(rental.but(told=None), 100.0) == []


def test_it_is_told_again_at_half_time_and_not_before() -> None:
    rental = READY.but(told=LEASE)
    before = telling({rental.id: rental}, 449.0)
    assert not before.steps and before.look_again_at == 450.0
    (lease,) = told(rental, 450.0)
    assert lease.watched_until == 1350.0


def test_a_lease_that_became_longer_is_told_at_once() -> None:
    longer = LEASE.but(number=2, away_until=2000.0, stop_at=2120.0)
    (lease,) = told(READY.but(lease=longer), 100.0)
    assert (lease.number, lease.away_until) == (2, 2000.0)


def test_so_is_one_whose_end_the_provider_has_put_earlier() -> None:
    (lease,) = told(READY.but(lease=LEASE.but(away_until=900.0)), 100.0)
    assert lease.away_until == 900.0


def test_one_round_tells_all_who_are_due_soon() -> None:
    rentals = {
        f"rent-{n}": READY.but(id=f"rent-{n}", told=LEASE.but(watched_until=900.0 + 60.0 * n))
        for n in range(4)
    }
    made = telling(rentals, 450.0)
    assert [step.rental.id for step in made.steps] == ["rent-0", "rent-1", "rent-2"]
    assert made.look_again_at == 630.0


def test_who_goes_back_in_this_round_is_not_told() -> None:
    assert telling({UNTOLD.id: UNTOLD}, 100.0, {UNTOLD.id}).steps == ()


def test_a_round_tells_who_runs_there_and_the_checker_agrees() -> None:
    made = checked(world(UNTOLD, RUNNING))
    assert [step.kind for step in made.steps] == ["tell-lease"]


def test_a_round_that_gives_a_machine_back_does_not_tell_it() -> None:
    made = checked(world(UNTOLD))
    assert [step.kind for step in made.steps] == ["return"]


def test_a_machine_that_is_told_wakes_the_next_round_at_half_time() -> None:
    of = world(READY.but(told=LEASE.but(watched_until=800.0)), RUNNING)
    assert not checked(of).steps and kept(of).look_again_at == 350.0
    assert "tell-lease" in [step.kind for step in checked(replace(of, now=350.0)).steps]
