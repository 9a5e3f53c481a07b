"""The checker finds what is planned past a last safe moment, by its own arithmetic."""

from typing import Any

import pytest
from makers import placed
from switching_world import (
    CHANGES,
    FIRM,
    HOUR,
    IS_READY,
    LEASE,
    NOW,
    ON_ITS_WAY,
    ON_SPOT,
    RULES,
    SPOT,
    a_rental,
    runs,
    waits,
    world,
)

from cloudwhale.model import plan as p
from cloudwhale.model.job import (
    JobState,
    Wish,
)
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import RentalState
from cloudwhale.model.units import micro_usd
from cloudwhale.model.world import World
from cloudwhale.planning import checker, checker_deadlines


def a_plan(*steps: p.Step, again: float | None = None) -> p.Plan:
    return p.Plan(version=1, steps=steps, look_again_at=again)


def stop(job: str = "j") -> p.AskToStop:
    why = Reason(code=Code.SWITCHES, says="stops to go on elsewhere")
    return p.AskToStop(job=job, attempt=1, wish="give-way", reason=why)


def hop() -> p.AskToStop:
    return stop().model_copy(update={"reason": Reason(code=Code.HOPS, says="its lease ends")})


def back() -> p.Return:
    why = Reason(code=Code.RETURNED, says="is given back")
    return p.Return(rental=IS_READY.but(state=RentalState.DRAINING), reason=why)


def rent(offer: Any = FIRM, moves: tuple[str, ...] = ("j",), **of: Any) -> p.Rent:
    why = Reason(code=Code.SWITCHES, says="its deadline")
    rental = a_rental("rent-9-1", offer, state=RentalState.RESERVED, moves=moves, **of)
    return p.Rent(rental=rental, reason=why)


LATE = runs(NOW + HOUR + CHANGES + 110.0)
TIGHT = waits(NOW + 2 * HOUR + CHANGES - 10.0)
LOST = LATE.but(state=JobState.RECOVERING)
CALM = world(runs(NOW + 4 * HOUR), rentals=ON_SPOT)
MOVES = world(LATE, rentals=(*ON_SPOT, IS_READY))
FIXED = FIRM.but(id="fixed", stop_moves=False)
SOON = LEASE.but(away_until=NOW + 240.0, stop_at=NOW + 360.0)
ENDS = a_rental(offer=FIXED, lease=SOON, told=SOON)
HOPS = LATE.but(spec=LATE.spec.but(deadline=None))
HOPPING = world(HOPS, rentals=(ENDS, IS_READY))
FAULTS: list[tuple[str, World, p.Plan]] = [
    ("last-safe-moment", world(LATE, rentals=ON_SPOT), a_plan()),
    ("last-safe-moment", world(LATE, rentals=ON_SPOT), a_plan(again=NOW + 1.0)),
    ("last-safe-moment", world(LATE, rentals=ON_SPOT), a_plan(rent(SPOT))),
    ("last-safe-moment", world(TIGHT), a_plan()),
    ("last-safe-moment", world(LOST, rentals=ON_SPOT), a_plan()),
    ("last-safe-moment", CALM, a_plan()),
    ("last-safe-moment", CALM, a_plan(again=NOW + 3.5 * HOUR)),
    ("moved-for-a-deadline", MOVES, a_plan(stop(), stop())),
    ("moved-for-a-deadline", MOVES, a_plan(stop(), back())),
    ("moved-for-a-deadline", world(LATE, rentals=ON_SPOT), a_plan(stop())),
    ("moved-for-a-deadline", world(LATE, rentals=(*ON_SPOT, ON_ITS_WAY)), a_plan(stop())),
    ("moved-for-a-deadline", world(LATE.but(wish=Wish.GIVE_WAY), rentals=(*ON_SPOT, IS_READY)),
     a_plan(stop())),
    ("moved-for-a-deadline", world(LOST, rentals=(*ON_SPOT, IS_READY)), a_plan(stop())),
    ("moved-for-a-deadline", world(LATE.but(spec=LATE.spec.but(deadline=None)),
     rentals=(*ON_SPOT, IS_READY)), a_plan(stop())),
    ("moved-for-a-deadline", world(placed(waits(NOW + 3 * HOUR), "host").but(
        state=JobState.RUNNING), rentals=(IS_READY,)), a_plan(stop())),
    ("moves-are-due", CALM, a_plan(rent(SPOT))),
    ("moves-are-due", CALM, a_plan(rent(jobs={"k": "default"}))),
    ("moves-are-due", world(LATE.but(spec=LATE.spec.but(deadline=None)), rentals=ON_SPOT),
     a_plan(rent())),
    ("moves-are-due", world(runs(NOW - 1.0), rentals=ON_SPOT), a_plan(rent())),
    ("moves-are-due", CALM, a_plan(rent(moves=("nobody",)))),
    ("moves-are-due", world(HOPS, rentals=(ENDS.but(lease=LEASE),)), a_plan(rent())),
    ("moved-to-hop", HOPPING, a_plan(hop(), back())),
    ("moved-to-hop", world(HOPS, rentals=(ENDS, ON_ITS_WAY)), a_plan(hop())),
    ("moved-to-hop", world(HOPS, rentals=(ENDS.but(lease=LEASE), IS_READY)), a_plan(hop())),
    ("moved-to-hop", world(HOPS, rentals=(ENDS.but(taken=FIRM), IS_READY)), a_plan(hop())),
    ("moved-to-hop", world(HOPS.but(wish=Wish.PAUSE), rentals=(ENDS, IS_READY)), a_plan(hop())),
    ("moved-to-hop", world(HOPS.but(state=JobState.RECOVERING), rentals=(ENDS, IS_READY)),
     a_plan(hop())),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "of", "made"), FAULTS, ids=[f"{rule}-{n}" for n, (rule, *_) in enumerate(FAULTS)]
)
def test_a_planted_fault_is_found(rule: str, of: World, made: p.Plan) -> None:
    assert rule in {fault.rule for fault in checker.check(made, of, RULES)}


def test_every_rule_has_five_planted_faults() -> None:
    rules = {rule.__name__.replace("_", "-") for rule in checker_deadlines.RULES}
    planted = [rule for rule, *_ in FAULTS]
    assert rules == set(planted) and min(planted.count(rule) for rule in rules) >= 5


@pytest.mark.parametrize("made", [a_plan(hop()), a_plan(rent())])
def test_who_hops_in_time_is_no_fault(made: p.Plan) -> None:
    of = HOPPING if made.steps == (hop(),) else world(HOPS, rentals=(ENDS,))
    found = [rule(made, of, RULES) for rule in checker_deadlines.RULES]
    assert [fault for some in found for fault in some] == []


@pytest.mark.parametrize(
    ("why", "of"),
    [
        ("there is no money", world(LATE, rentals=ON_SPOT, limit=6)),
        ("nothing would be in time", world(runs(NOW + HOUR), rentals=ON_SPOT)),
        ("it is safe already", world(LATE, rentals=(*ON_SPOT, ON_ITS_WAY))),
        ("nothing is offered", world(LATE, rentals=ON_SPOT, offers=(SPOT,))),
        ("none can be had", world(LATE, rentals=ON_SPOT, offers=(FIRM.but(capacity=0), SPOT))),
        ("its quota is used up", world(LATE, rentals=ON_SPOT, offers=(
            FIRM.but(quota="q", quota_units=4.0, quota_left=2.0), SPOT))),
        ("the soft line is passed", world(LATE, rentals=(a_rental(reserved=micro_usd(95)),))),
        ("nobody knows its length", world(LATE.but(spec=LATE.spec.but(duration_s=None)),
         rentals=ON_SPOT)),
    ],
)  # fmt: skip
def test_no_fault_is_found_where(why: str, of: World) -> None:
    found = [rule(a_plan(), of, RULES) for rule in checker_deadlines.RULES]
    assert [fault for some in found for fault in some] == [], why
