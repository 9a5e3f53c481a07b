"""What was chosen for each payer of a round, then and when it is solved again: in words."""

from typing import Any

from clouding import an_offer
from stories import WHY

from cloudwhale.control.solved import Side, solved_again
from cloudwhale.model.plan import Plan, Rent, Tender
from cloudwhale.model.rental import Lease, Rental
from cloudwhale.model.units import MicroUsd, micro_usd

LEASE = Lease(number=1, watched_until=1.0, away_until=2.0, stop_at=3.0)


def rent(offer: str, *jobs: str, payer: str = "run-1") -> Rent:
    made = Rental(
        id=f"rent-{offer}-{jobs[0]}", payer=payer, offer=offer, lease=LEASE, reserved=MicroUsd(9),
        taken=an_offer(offer), jobs=dict.fromkeys(jobs, "p"),
    )  # fmt: skip
    return Rent(rental=made, reason=WHY)


def tender(usd: str, *jobs: str, payer: str = "run-1", **fields: Any) -> Tender:
    return Tender(payer=payer, jobs=jobs, cost=micro_usd(usd), worst=MicroUsd(0), **fields)


def a_plan(*steps: Rent, tenders: tuple[Tender, ...] = ()) -> Plan:
    return Plan(version=1, steps=steps, tenders=tenders)


def test_cost_machines_and_bound_are_named_on_both_sides() -> None:
    then = a_plan(rent("a", "x"), rent("a", "y"), tenders=(tender("12.4", "x", "y"),))
    now = a_plan(rent("b", "x", "y"), tenders=(tender("10", "x", "y", bound=micro_usd("9.5")),))
    (one,) = solved_again(then, now)
    assert one.says == "run-1: 12.40 USD on 2 a then; 10.00 USD (at least 9.50) on 1 b now"
    assert not one.is_same


def test_what_is_the_same_is_said_once() -> None:
    plan = a_plan(rent("a", "x"), tenders=(tender("12.4", "x"),))
    (one,) = solved_again(plan, plan)
    assert one.says == "run-1: the same again, 12.40 USD on 1 a" and one.is_same


def test_each_payer_is_compared_with_itself() -> None:
    then = a_plan(
        rent("a", "x"), rent("a", "z", payer="run-2"),
        tenders=(tender("1", "x"), tender("2", "z", payer="run-2")),
    )  # fmt: skip
    now = a_plan(
        rent("b", "z", payer="run-2"), rent("a", "x"),
        tenders=(tender("1", "x"), tender("2", "z", payer="run-2")),
    )  # fmt: skip
    first, second = solved_again(then, now)
    assert (first.payer, first.is_same) == ("run-1", True)
    assert (second.payer, second.is_same, second.now.machines) == ("run-2", False, {"b": 1})


def test_who_is_only_asked_for_once_has_an_empty_side() -> None:
    (one,) = solved_again(a_plan(), a_plan(rent("a", "x"), tenders=(tender("1", "x"),)))
    assert one.then == Side()
    assert one.says.startswith("run-1: a cost that was not kept on no machine then; ")


def test_a_round_of_an_older_program_is_known_by_its_machines() -> None:
    (one,) = solved_again(a_plan(rent("a", "x"), rent("b", "y")), a_plan())
    assert one.jobs == ("x", "y") and one.then.machines == {"a": 1, "b": 1}
    assert one.then.cost is None
