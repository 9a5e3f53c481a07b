"""Circuit breakers: where three machines in a row do not come up, none is launched for a while."""

from typing import Any

from clouding import an_offer
from keeping_world import BOOTING

from cloudwhale.control.circuits import Circuits, barred, told_to
from cloudwhale.control.offers import Offered, Offers
from cloudwhale.model import event as e
from cloudwhale.model.reason import Code
from cloudwhale.model.rental import Rental
from cloudwhale.model.units import micro_usd
from cloudwhale.planning import boots
from cloudwhale.planning.boots import Scope, scope_of
from cloudwhale.spi.store import Told

SMALL = an_offer("small", type="g5.xlarge", zone="r-a")
LARGE = an_offer("large", type="g5.12xlarge", zone="r-b")
OTHER = an_offer(
    "other", type="p4d.24xlarge", price_usd_h=micro_usd(9), cap_usd_h=micro_usd(9)
)  # fmt: skip
AWAY = an_offer("away", type="g5.xlarge", region="s")


def a_rental(taken: Any = SMALL, name: str = "rent-1") -> Rental:
    return BOOTING.but(id=name, taken=taken, offer=taken.id)


def a_note(at: float, taken: Any = SMALL, code: Code = Code.BOOT_FAILED) -> e.Noted:
    note = boots.noted(a_rental(taken), code, "it has not joined: nobody knows why", at)
    assert note is not None
    return note


def failed(circuits: Circuits, *times: float, taken: Any = SMALL) -> list[e.Noted]:
    return [opened for at in times for opened in circuits.failed(a_note(at, taken))]


def test_a_scope_is_a_family_of_types_in_a_region() -> None:
    assert scope_of(SMALL) == scope_of(LARGE) == Scope("cloud", "r", "g5")
    assert scope_of(an_offer(type="a2-highgpu-1g")).family == "a2"
    assert scope_of(an_offer(type="")).family == "-"
    assert boots.scope_in(a_note(0.0)) == scope_of(SMALL)


def test_two_failures_open_nothing_and_the_third_does() -> None:
    circuits = Circuits()
    assert not failed(circuits, 0.0, 10.0) and not circuits.closed(10.0)
    family, whole = failed(circuits, 20.0)
    assert family.reason.code is Code.CIRCUIT_OPEN
    assert "g5 in cloud r: 3 machines in a row" in family.reason.says
    assert "for 600 s" in family.reason.says and "all of cloud" in whole.reason.says
    assert circuits.closed(619.0) and not circuits.closed(620.0)
    assert circuits.next_at(20.0) == 620.0 and circuits.next_at(620.0) is None


def test_a_machine_that_comes_up_closes_it_and_failures_count_anew() -> None:
    circuits = Circuits()
    failed(circuits, 0.0, 1.0, 2.0)
    note = circuits.came_up(a_rental(), 3.0)
    assert note is not None and note.reason.code is Code.BOOTED
    assert not circuits.closed(3.0)
    assert not failed(circuits, 4.0, 5.0) and failed(circuits, 6.0)
    assert Circuits().came_up(a_rental(), 3.0) is None, "where nothing was ill nothing is noted"


def test_other_families_go_on_while_others_of_the_provider_come_up() -> None:
    circuits = Circuits()
    failed(circuits, 0.0, 1.0)
    circuits.came_up(a_rental(OTHER), 1.5)
    failed(circuits, 2.0)
    closed = circuits.closed(3.0)
    assert [barred(one, closed) for one in (SMALL, LARGE, OTHER, AWAY)] == [
        True, True, False, False,
    ]  # fmt: skip


def test_three_families_that_fail_one_after_another_stop_the_whole_provider() -> None:
    circuits = Circuits()
    for at, taken in enumerate((SMALL, OTHER, AWAY)):
        failed(circuits, float(at), taken=taken)
    assert barred(an_offer("new", type="x1.large"), circuits.closed(3.0))
    elsewhere = an_offer("else", provider="another")
    assert not barred(elsewhere, circuits.closed(3.0))


def test_each_time_doubles_up_to_four_hours_and_late_failures_make_it_no_longer() -> None:
    circuits, at, lengths = Circuits(), 0.0, []
    failed(circuits, 0.0, 0.0)
    for _ in range(7):
        assert failed(circuits, at)
        assert not failed(circuits, at + 1.0), "launched before it opened"
        until = circuits.next_at(at)
        assert until is not None
        lengths.append(until - at)
        at = until
    assert lengths == [600.0, 1200.0, 2400.0, 4800.0, 9600.0, 14400.0, 14400.0]


def test_a_controller_that_starts_again_knows_what_the_last_one_did() -> None:
    first, notes = Circuits(), [a_note(0.0), a_note(1.0), a_note(2.0)]
    for note in notes:
        first.failed(note)
    second = Circuits()
    second.remember(Told(seq=n, event=note) for n, note in enumerate(notes))
    assert second.closed(3.0) == first.closed(3.0) != frozenset()
    up = first.came_up(a_rental(), 4.0)
    assert up is not None
    second.remember([Told(seq=9, event=up)])
    assert not second.closed(5.0)


def test_what_is_closed_is_not_offered_and_is_again_when_the_time_is_over() -> None:
    offers = Offers({})
    offers.came(Offered("cloud", (SMALL, OTHER)))
    failed(offers.circuits, 0.0, 0.0)
    offers.circuits.came_up(a_rental(OTHER), 0.0)
    assert failed(offers.circuits, 1.0)
    assert [one.id for one in offers.open(2.0)] == ["other"]
    assert offers.next_look_at() == 601.0
    assert [one.id for one in offers.open(601.0)] == ["small"], "which beats the other"


def test_those_who_waited_for_it_are_told() -> None:
    circuits = Circuits()
    opened = [*failed(circuits, 0.0, 0.0), *circuits.failed(a_note(1.0))]
    told = list(told_to(a_rental(), opened[:1], ["j", "others"]))
    assert [(one.job, one.reason.code) for one in told] == [("j", Code.CIRCUIT_OPEN)]
