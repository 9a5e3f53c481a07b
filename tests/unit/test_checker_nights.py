"""The checker's rules about nights find faults that are planted."""

from typing import Any

import pytest
from makers import a_job, a_run, a_world, placed
from switching_world import a_rental

from cloudwhale.model import plan as p
from cloudwhale.model.job import CheckpointRule, Placement
from cloudwhale.model.night import Night, Unfinished
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Lease, Renewal, Rental, RentalState
from cloudwhale.model.units import MicroUsd
from cloudwhale.model.world import World
from cloudwhale.planning.checker_nights import RULES
from cloudwhale.planning.rules import Rules

WHY = Reason(code=Code.NIGHT, says="as it is")
NIGHT = Night(name="lab", date="2026-12-01", zone="UTC", opens_at=100.0, closes_at=1000.0)


def world(now: float, rentals: tuple[Rental, ...] = (), jobs: Any = (), **of: Any) -> World:
    run = a_run("run-1", night=NIGHT.but(**of))
    return a_world(
        list(jobs), now=now, runs={"run-1": run}, rentals={one.id: one for one in rentals}
    )


def rental(until: float = 900.0) -> Rental:
    lease = Lease(number=1, watched_until=until, away_until=until, stop_at=until + 120)
    return a_rental(payer="run-1", lease=lease)


def faults(of: World, *steps: p.Step) -> set[str]:
    plan = p.Plan(version=of.version, steps=steps)
    return {fault.rule for rule in RULES for fault in rule(plan, of, Rules())}


def rents(until: float = 900.0) -> p.Rent:
    return p.Rent(rental=rental(until), reason=WHY)


def renews(until: float) -> p.Renew:
    longer = Renewal(lease=rental(until).lease, reserved=MicroUsd(1))
    return p.Renew(rental=rental().but(renewal=longer), reason=WHY)


def joins() -> p.Join:
    return p.Join(rental=rental(), job="j", reason=WHY)


def starts() -> p.Place:
    there = Placement(node=rental().id)
    return p.Place(job="j", attempt=1, placement=there, reason=WHY)


def closes(**what: Unfinished) -> p.CloseNight:
    return p.CloseNight(run="run-1", unfinished=what, reason=WHY)


STOPS = p.AskToStop(job="j", attempt=1, wish="give-way", reason=WHY)
BACK = p.Return(rental=rental(), reason=WHY)
J, K = a_job("j"), a_job("k")
RULE = CheckpointRule(every_s=60.0, grace_s=20.0)
LONG = a_job("j", duration_s=5000.0, checkpoint=RULE)
SAVES_NOT = a_job("j", duration_s=5000.0)
DUE = a_job("j", duration_s=5000.0, checkpoint=RULE, deadline=1000.0)
THERE = placed(J, rental().id)
HOME = placed(J, "home")
ONE = (rental(),)

FAULTS: list[tuple[str, World, tuple[p.Step, ...]]] = [
    # nothing is rented, joined or started on outside of the hours
    ("in-its-hours", world(50.0), (rents(),)),
    ("in-its-hours", world(1000.0), (rents(),)),
    ("in-its-hours", world(500.0, closed_at=400.0), (rents(),)),
    ("in-its-hours", world(99.9, ONE), (joins(),)),
    ("in-its-hours", world(1000.0, ONE), (starts(), BACK)),
    # no lease goes beyond, and nothing idle is kept
    ("away-by-morning", world(500.0), (rents(1001.0),)),
    ("away-by-morning", world(500.0), (rents(5000.0),)),
    ("away-by-morning", world(500.0, ONE), (renews(1100.0),)),
    ("away-by-morning", world(1000.0, ONE), ()),
    ("away-by-morning", world(1000.0, (rental().but(state=RentalState.BOOTING),)), ()),
    # once, with all that is left over, and nothing rented running
    ("closed-once", world(1000.0, jobs=[J]), (closes(j="park"), closes(j="park"))),
    ("closed-once", world(1000.0, jobs=[J], closed_at=999.0), (closes(j="park"),)),
    ("closed-once", world(1000.0, jobs=[J, K]), (closes(j="park"),)),
    ("closed-once", world(1000.0, jobs=[J]), (closes(j="park", k="park"),)),
    ("closed-once", world(1000.0, ONE, [THERE]), (closes(j="park"),)),
    # nobody is stopped for a night that goes on
    ("stops-in-the-morning", world(500.0, jobs=[HOME]), (STOPS,)),
    ("stops-in-the-morning", world(999.9, jobs=[HOME]), (STOPS,)),
    ("stops-in-the-morning", world(50.0, jobs=[HOME]), (STOPS,)),
    ("stops-in-the-morning", world(1000.0, jobs=[HOME], unfinished="continue"), (STOPS,)),
    ("stops-in-the-morning", world(1000.0), (STOPS,)),
    # what is not done by morning goes on, and most of it is work
    ("parts-pay", world(100.0, jobs=[LONG], unfinished="park"), (rents(),)),
    ("parts-pay", world(100.0, jobs=[LONG], unfinished="continue"), (rents(),)),
    ("parts-pay", world(100.0, jobs=[SAVES_NOT], unfinished="carry-over"), (rents(),)),
    ("parts-pay", world(100.0, jobs=[DUE], unfinished="carry-over"), (rents(),)),
    ("parts-pay", world(700.0, jobs=[LONG], unfinished="carry-over"), (rents(1000.0),)),
    ("parts-pay", world(850.0, ONE, [LONG], unfinished="carry-over"), (joins(),)),
]


@pytest.mark.parametrize(("rule", "of", "steps"), FAULTS)
def test_a_planted_fault_is_caught_by_its_rule_alone(
    rule: str, of: World, steps: tuple[p.Step, ...]
) -> None:
    assert faults(of, *steps) == {rule}


def test_every_rule_has_five_planted_faults() -> None:
    rules = {rule.__name__.replace("_", "-") for rule in RULES}
    planted = [rule for rule, *_ in FAULTS]
    assert rules == set(planted) and min(planted.count(rule) for rule in rules) >= 5


@pytest.mark.parametrize(
    ("of", "steps"),
    [
        (world(500.0), (rents(1000.0),)),
        (world(100.0, jobs=[LONG], unfinished="carry-over"), (rents(1000.0),)),
        (world(500.0, ONE, [LONG], unfinished="carry-over"), (joins(),)),
        (world(500.0, ONE, [J]), (joins(), starts(), renews(1000.0))),
        (world(1000.0, ONE), (BACK,)),
        (world(1000.0, jobs=[J]), (closes(j="park"),)),
        (world(1000.0, jobs=[HOME]), (STOPS,)),
        (world(1000.0, jobs=[HOME], unfinished="continue"), (closes(j="continue"),)),
    ],
)
def test_what_a_night_allows_is_no_fault(of: World, steps: tuple[p.Step, ...]) -> None:
    assert faults(of, *steps) == set()
