"""What a follower tells of the machines that its run rents."""

from typing import Any

import pytest
from clouding import an_offer

from cloudwhale.cli.fleet import SILENT_S, Fleet, Said
from cloudwhale.model import event as e
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Lease, Rental, RentalState
from cloudwhale.model.units import NOTHING, micro_usd
from cloudwhale.reporting.rented import cost_so_far, small

LEASE = Lease(number=1, watched_until=900.0, away_until=1000.0, stop_at=1120.0)
ASKED = Rental(
    id="rent-1", node="rent-1", payer="run-1", offer="big", lease=LEASE, reserved=micro_usd(2),
    taken=an_offer(type="g5.xlarge", extras_usd_h=micro_usd("0.4")), jobs={"a": "default"},
    reserved_at=10.0,
)  # fmt: skip
BOOTING = ASKED.but(state=RentalState.BOOTING, requested_at=12.0)
READY = BOOTING.but(state=RentalState.READY)
DRAINING = READY.but(state=RentalState.DRAINING)
BACK = DRAINING.but(
    state=RentalState.RETURNED, spent=micro_usd("0.25"), reserved=NOTHING, ended_at=237.0
)


def told(fleet: Fleet, rental: Rental, at: float = 30.0) -> list[str]:
    return [said.says for said in fleet.take(e.RentalChanged(at=at, rental=rental))]


def test_a_machine_is_followed_from_asking_to_its_return() -> None:
    fleet = Fleet("run-1")
    assert told(fleet, ASKED) == [
        "is asked for: cloud g5.xlarge on-demand in r-a, 4.00 USD an hour, 2.00 USD reserved"
    ]
    assert told(fleet, ASKED.but(state=RentalState.REQUESTED, requested_at=12.0)) == []
    assert told(fleet, BOOTING) == ["boots, which takes 20 s as a rule"]
    assert told(fleet, READY, 45.0) == ["is ready, 35 s after it was asked for"]
    assert told(fleet, READY.but(jobs={"a": "default", "b": "default"})) == ["is joined by b"]
    assert fleet.is_waited_for
    assert told(fleet, DRAINING) == ["is given back"]
    assert told(fleet, BACK) == ["is back, 0.25 USD for 3 min 45 s"]
    assert not fleet.is_waited_for and not fleet.there


def test_what_changes_nothing_for_a_person_is_not_told() -> None:
    fleet = Fleet("run-1", {"rent-1": READY})
    assert told(fleet, READY.but(held_s={"a": 5.0})) == []


def test_a_longer_lease_is_told_with_its_money() -> None:
    fleet = Fleet("run-1", {"rent-1": READY})
    longer = READY.but(lease=LEASE.but(number=2, away_until=4600.0), reserved=micro_usd(5))
    (says,) = told(fleet, longer)
    assert says.startswith("is ours until ") and says.endswith("5.00 USD reserved")


def test_machines_of_other_runs_are_not_told() -> None:
    fleet = Fleet("run-1")
    assert told(fleet, ASKED.but(payer="run-2")) == []
    assert fleet.rentals == {}


@pytest.mark.parametrize(
    ("state", "weight"), [(RentalState.LOST, "warn"), (RentalState.NEEDS_ATTENTION, "bad")]
)
def test_what_goes_wrong_stands_out(state: RentalState, weight: str) -> None:
    fleet = Fleet("run-1", {"rent-1": READY})
    (said,) = fleet.take(e.RentalChanged(at=1.0, rental=READY.but(state=state)))
    assert said.weight == weight


def test_nobody_waits_for_a_machine_that_a_person_has_to_see_to() -> None:
    stuck = READY.but(state=RentalState.NEEDS_ATTENTION)
    assert not Fleet("run-1", {"rent-1": stuck}).is_waited_for


def test_a_notice_is_told_with_its_code() -> None:
    fleet = Fleet("run-1", {"rent-1": READY})
    reason = Reason(code=Code.MACHINE_GONE, says="rent-1 is taken away by its provider")
    said = fleet.take(e.Noted(at=5.0, subject="rent-1", reason=reason))
    assert said == [Said("rent-1", "is taken away by its provider [machine-gone]", 5.0, "warn")]
    assert fleet.take(e.Noted(at=5.0, subject="other", reason=reason)) == []


def test_a_machine_that_never_came_cost_nothing() -> None:
    fleet = Fleet("run-1", {"rent-1": ASKED})
    gone = ASKED.but(state=RentalState.RETURNED, reserved=NOTHING)
    assert told(fleet, gone) == ["never came, and costs nothing"]


def test_why_nothing_can_be_had_somewhere_is_told_once_in_a_while_with_its_remedy() -> None:
    fleet = Fleet("run-1", providers=frozenset({"cloud"}))
    reason = Reason(
        code=Code.CANNOT_ACT, says="cannot look cloud: its API is off", change="Enable it."
    )
    (said,) = fleet.take(e.Noted(at=5.0, subject="cloud", reason=reason))
    assert said.machine == "cloud"
    assert said.says == "cannot be asked now: its API is off: Enable it. [cannot-act]"
    assert fleet.take(e.Noted(at=6.0, subject="cloud", reason=reason)) == []
    assert len(fleet.take(e.Noted(at=5.0 + SILENT_S, subject="cloud", reason=reason))) == 1
    assert fleet.take(e.Noted(at=1e6, subject="another", reason=reason)) == []


# -- the lid ---------------------------------------------------------------------------------


def lids(*rentals: Rental) -> tuple[Fleet, str]:
    fleet = Fleet("run-1", {rental.id: rental for rental in rentals})
    return fleet, fleet.lid(50.0)


def test_the_lid_may_be_closed_once_every_machine_is_there() -> None:
    other = READY.but(id="rent-2", reserved=micro_usd("1.20"), lease=LEASE.but(away_until=9000.0))
    _, said = lids(READY, other)
    assert said.startswith("You may close the lid: it continues until ")
    assert said.endswith(", 3.20 USD reserved")


@pytest.mark.parametrize("rentals", [(), (BOOTING,), (READY, BOOTING), (BACK,), (DRAINING,)])
def test_it_may_not_while_one_is_on_its_way_or_none_is_there(rentals: tuple[Any, ...]) -> None:
    named = [rental.but(id=f"rent-{number}") for number, rental in enumerate(rentals)]
    assert lids(*named)[1] == ""


def test_that_is_said_once_and_again_when_it_is_for_longer() -> None:
    fleet, _ = lids(READY)
    assert fleet.lid(60.0) == ""
    fleet.rentals["rent-1"] = READY.but(lease=LEASE.but(away_until=9000.0))
    assert fleet.lid(70.0) != ""
    assert fleet.lid(80.0) == ""


# -- money so far ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rental", "now", "usd"),
    [
        (ASKED, 500.0, "0"),
        (BOOTING, 13.0, "0.066667"),  # a minute at least
        (READY, 192.0, "0.2"),
        (READY.but(price_usd_h=micro_usd("1.4")), 192.0, "0.09"),
        (READY, 1e6, "2"),  # never more than is set aside
        (BACK, 1e6, "0.25"),
    ],
)
def test_what_a_machine_has_cost_is_what_would_be_billed_now(
    rental: Rental, now: float, usd: str
) -> None:
    assert cost_so_far(rental, now) == micro_usd(usd)


@pytest.mark.parametrize(
    ("amount", "words"),
    [("0", "0.00 USD"), ("0.000001", "0.0001 USD"), ("0.0123", "0.01 USD"), ("3.456", "3.46 USD"),
     ("0.0042", "0.0042 USD")],
)  # fmt: skip
def test_small_money_keeps_digits_that_say_something(amount: str, words: str) -> None:
    assert small(micro_usd(amount)) == words
