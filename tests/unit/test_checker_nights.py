"""The checker's rules about nights find faults that are planted."""

from typing import Any

import pytest
from makers import a_job, a_run, a_world, placed
from switching_world import a_rental

from cloudwhale.model import plan as p
from cloudwhale.model.night import Night
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Lease, Renewal, Rental
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


@pytest.mark.parametrize(
    ("now", "until", "wanted"),
    [
        (50.0, 900.0, {"in-its-hours"}),
        (500.0, 900.0, set[str]()),
        (500.0, 1001.0, {"away-by-morning"}),
        (1000.0, 900.0, {"in-its-hours"}),
    ],
)
def test_what_is_rented_outside_of_a_night_or_for_too_long_is_found(
    now: float, until: float, wanted: set[str]
) -> None:
    assert faults(world(now), p.Rent(rental=rental(until), reason=WHY)) == wanted


def test_a_lease_that_is_made_longer_than_its_night_is_found() -> None:
    longer = Renewal(lease=rental(1100.0).lease, reserved=MicroUsd(1))
    step = p.Renew(rental=rental().but(renewal=longer), reason=WHY)
    assert faults(world(500.0, (rental(),)), step) == {"away-by-morning"}


def test_an_idle_machine_that_is_kept_beyond_its_night_is_found() -> None:
    assert faults(world(1000.0, (rental(),))) == {"away-by-morning"}
    assert faults(world(1000.0, (rental(),)), p.Return(rental=rental(), reason=WHY)) == set()


def test_a_night_is_closed_once_with_all_that_is_left_over() -> None:
    job = a_job("j")
    close = p.CloseNight(run="run-1", unfinished={"j": "park"}, reason=WHY)
    assert faults(world(1000.0, jobs=[job]), close) == set()
    assert faults(world(1000.0, jobs=[job]), close, close) == {"closed-once"}
    assert faults(world(1000.0, jobs=[job], closed_at=999.0), close) == {"closed-once"}
    assert "closed-once" in faults(world(1000.0, jobs=[job, a_job("k")]), close)
    there = placed(job, rental().id)
    assert "closed-once" in faults(world(1000.0, (rental(),), [there]), close)


def test_nobody_is_stopped_for_a_night_that_goes_on() -> None:
    stop = p.AskToStop(job="j", attempt=1, wish="give-way", reason=WHY)
    jobs = [placed(a_job("j"), "home")]
    assert faults(world(500.0, jobs=jobs), stop) == {"stops-in-the-morning"}
    assert faults(world(1000.0, jobs=jobs), stop) == set()
    continues = world(1000.0, jobs=jobs, unfinished="continue")
    assert faults(continues, stop) == {"stops-in-the-morning"}
