"""Who is placed on a rented machine, whose turn it is, and when nobody comes any more."""

from dataclasses import replace

import pytest
from keeping_world import (
    NAME,
    OFFER,
    READY,
    RULE,
    RUNNING,
    checked,
    job,
    kept,
    kinds,
    world,
)
from makers import a_job, wants

from cloudwhale.model import plan as p
from cloudwhale.model.job import CheckpointRule
from cloudwhale.model.rental import RentalState
from cloudwhale.model.units import micro_usd
from cloudwhale.model.world import Account, Sighting


@pytest.mark.parametrize("now", [400.0, 640.0, 900.0])
def test_who_landed_as_the_lease_ends_does_not_come_back_for_the_rest_of_it(now: float) -> None:
    slow = CheckpointRule(every_s=60.0, grace_s=570.0)  # it lands from 400 s on
    landed = job(checkpoint=slow).but(attempt=1)
    poor = world(READY, landed, now=now, limit=READY.reserved)
    assert [step.kind for step in checked(poor).steps if step.kind != "explain"] == ["return"]


def test_where_a_longer_lease_is_paid_for_a_late_machine_takes_its_job() -> None:
    slow = CheckpointRule(every_s=60.0, grace_s=570.0)
    made = checked(world(READY, job(checkpoint=slow), now=640.0))
    assert [step.kind for step in made.steps] == ["place"]
    fixed = checked(world(READY.but(is_fixed=True), job(checkpoint=slow), now=640.0))
    assert "place" not in [step.kind for step in fixed.steps]


def test_a_lease_is_lengthened_in_time_for_who_is_still_to_come() -> None:
    slow = a_job("next", resources=wants(cpu=8), duration_s=900.0,
                 checkpoint=CheckpointRule(every_s=60.0, grace_s=570.0))  # fmt: skip
    both = READY.but(jobs={"j": "default", "next": "default"})
    made = checked(world(both, RUNNING, slow, now=345.0))
    (longer,) = (step for step in made.steps if isinstance(step, p.Renew))
    assert longer.rental.renewal is not None
    assert longer.rental.renewal.lease.away_until > 1800.0


def test_who_comes_after_one_that_is_placed_in_this_round_still_has_its_turn() -> None:
    whole = {"resources": wants(cpu=8), "duration_s": 900.0, "checkpoint": RULE}
    first, second = a_job("j", **whole), a_job("next", **whole)
    both = READY.but(jobs={"j": "default", "next": "default"})
    of = replace(world(both, first, second), offers=(OFFER,))
    assert [step.kind for step in checked(of).steps] == ["place"]
    assert kept(of).expected == {"j", "next"}


@pytest.mark.parametrize("state", [RentalState.BOOTING, RentalState.READY])
def test_who_is_awaited_on_two_machines_is_placed_once_and_the_other_goes_back(
    state: RentalState,
) -> None:
    # It was late behind others, so another was rented for it; both can take it now.
    other = READY.but(id="rent-2-1", node="rent-2-1", state=state, machine="m-2")
    both = world(READY, job())
    machine = both.nodes[NAME]
    both = replace(
        both, rentals={NAME: READY, other.id: other},
        nodes={**both.nodes, other.id: machine.but(id=other.id)},
        sightings={**both.sightings, other.id: Sighting(node=other.id, heard_at=100.0)},
        accounts={"run-1": Account(payer="run-1", limit=micro_usd(50), reserved=micro_usd(4))},
    )  # fmt: skip
    made = checked(both)
    assert [step.placement.node for step in made.steps if isinstance(step, p.Place)] == [NAME]
    if state is RentalState.READY:
        assert [step.rental.id for step in made.steps if isinstance(step, p.Return)] == [other.id]


@pytest.mark.parametrize(("waits_s", "becomes"), [(79.0, []), (81.0, ["return"])])
def test_a_machine_goes_back_when_who_failed_there_tries_again_later_than_another_boots(
    waits_s: float, becomes: list[str]
) -> None:
    failed = job().but(attempt=1, not_before=100.0 + waits_s)
    of = world(READY, failed)
    assert kinds(of) == becomes, "it boots in 20 s, and a minute is billed at least"
    beside = a_job("other", resources=wants(cpu=4), duration_s=900.0)
    both = world(READY.but(jobs={"j": "default", "other": "default"}), failed, beside)
    assert kinds(both) == ["place"]
