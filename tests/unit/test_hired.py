"""What providers say of rented machines, as events, in whatever order it comes."""

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from clouding import BIG, an_offer
from makers import a_device, a_job, a_node, a_world

from cloudwhale.control.hired import Hired
from cloudwhale.control.hiring import EXTEND, LAUNCH, Ended, Extended, Launched
from cloudwhale.control.offers import BLOCKED_S, Kept, Offered, Offers, read_json
from cloudwhale.control.store.memory import MemoryStore
from cloudwhale.model import event as e
from cloudwhale.model.node import NodeState
from cloudwhale.model.plan import Plan, Round
from cloudwhale.model.reason import Code
from cloudwhale.model.rental import Lease, Renewal, Rental, RentalState
from cloudwhale.model.run import Run
from cloudwhale.model.units import MicroUsd, micro_usd
from cloudwhale.model.world import World
from cloudwhale.planning.allowing import Limits
from cloudwhale.spi.errors import Denied, NoCapacity, Unreachable
from cloudwhale.spi.provider import Machine

LEASE = Lease(number=1, watched_until=900.0, away_until=1000.0, stop_at=1120.0)
RENTAL = Rental(
    id="rent-1-1", node="rent-1-1", payer="run-1", offer="big", lease=LEASE,
    reserved=micro_usd(2), taken=an_offer(), jobs={"j": "default"},
)  # fmt: skip
MACHINE = Machine(id="m-1", node="rent-1-1", state="starting", owned=False, billed_from=1.0)
GONE = MACHINE.model_copy(update={"state": "gone", "billed_to": 50.0})
BOOTING = RENTAL.but(state=RentalState.BOOTING, machine="m-1", requested_at=1.0)
READY, DRAINING = (BOOTING.but(state=state) for state in (RentalState.READY, RentalState.DRAINING))
RENEWAL = Renewal(
    lease=LEASE.but(number=2, away_until=1880.0, stop_at=2000.0), reserved=MicroUsd(500_000)
)


def world(of: Rental) -> World:
    there = [] if of.state is RentalState.RESERVED else [a_node("rent-1-1", owned=False)]
    return a_world([a_job("j")], [a_node(), *there], rentals={of.id: of})


def hired(of: Rental, now: float = 60.0) -> Hired:
    return Hired(world(of), now)


def after(events: tuple[e.Event, ...]) -> list[Rental]:
    return [event.rental for event in events if isinstance(event, e.RentalChanged)]


def test_a_launch_that_is_answered_makes_a_node_that_is_waited_for() -> None:
    events = hired(RENTAL).told("rent-1-1", Launched(MACHINE))
    assert [rental.state for rental in after(events)] == ["requested", "booting"]
    assert after(events)[-1].requested_at == 1.0
    (joined,) = (event for event in events if isinstance(event, e.NodeJoined))
    assert joined.node.state is NodeState.EXPECTED and not joined.node.owned


def test_a_machine_is_known_in_the_zone_that_its_provider_chose() -> None:
    there = MACHINE.model_copy(update={"zone": "zone-z"})
    (*_, rental) = after(hired(RENTAL).told("rent-1-1", Launched(there)))
    assert rental.taken is not None and rental.taken.zone == "zone-z"
    assert rental.offer == RENTAL.offer


def test_a_machine_that_is_listed_counts_as_launched_though_nobody_answered() -> None:
    events = hired(RENTAL).seen("cloud", [MACHINE])
    assert after(events)[-1].state is RentalState.BOOTING


def test_an_agent_that_has_joined_before_its_launch_is_answered_stays_as_it_is() -> None:
    before = world(RENTAL)
    known = replace(before, nodes={**before.nodes, "rent-1-1": a_node("rent-1-1", owned=False)})
    events = Hired(known, 60.0).told("rent-1-1", Launched(MACHINE))
    assert [type(event) for event in events] == [e.RentalChanged, e.RentalChanged]


def test_no_capacity_gives_all_money_back_and_says_so() -> None:
    events = hired(RENTAL).refused("rent-1-1", LAUNCH, NoCapacity("none are left"))
    noted, told, released, changed = events
    assert isinstance(told, e.Waits) and told.reason.code is Code.NO_CAPACITY
    assert isinstance(noted, e.Noted) and noted.reason.code is Code.NO_CAPACITY
    assert isinstance(released, e.Released) and released.amount == 2_000_000
    assert isinstance(changed, e.RentalChanged) and changed.rental.state is RentalState.RETURNED


def test_who_is_out_of_reach_may_have_launched_so_nothing_is_given_back() -> None:
    assert hired(RENTAL).refused("rent-1-1", LAUNCH, Unreachable("no answer")) == ()


def test_an_extension_is_the_lease_that_the_provider_says() -> None:
    asked = READY.but(renewal=RENEWAL)
    (lease,) = after(hired(asked).told("rent-1-1", Extended(2, 1900.0)))
    assert lease.lease.stop_at == 1900.0 and lease.renewal is None
    assert hired(asked).told("rent-1-1", Extended(1, 1900.0)) == ()
    assert hired(READY).told("rent-1-1", Extended(2, 1900.0)) == ()


def test_a_stop_that_is_moved_less_far_than_was_asked_for_is_landed_before() -> None:
    asked = READY.but(renewal=RENEWAL)
    (less,) = after(hired(asked).told("rent-1-1", Extended(2, RENEWAL.lease.stop_at - 60.0)))
    assert less.lease.away_until == RENEWAL.lease.away_until - 60.0
    (all_of_it,) = after(hired(asked).told("rent-1-1", Extended(2, RENEWAL.lease.stop_at)))
    assert all_of_it.lease == RENEWAL.lease


@pytest.mark.parametrize("denied", [False, True])
def test_a_stop_that_is_fixed_frees_what_was_set_aside_for_more(denied: bool) -> None:
    asked = READY.but(renewal=RENEWAL)
    if denied:
        events = hired(asked).refused("rent-1-1", EXTEND, Denied("not allowed"))
    else:
        events = hired(asked).told("rent-1-1", Extended(2, "fixed"))
    released, _ = events
    assert isinstance(released, e.Released) and released.amount == 500_000
    (fixed,) = after(events)
    assert fixed.is_fixed and fixed.renewal is None and fixed.reserved == 1_500_000


@pytest.mark.parametrize("of", [BOOTING, READY])
def test_a_machine_that_is_gone_before_it_was_given_back_is_lost(of: Rental) -> None:
    (lost,) = after(hired(of).seen("cloud", [GONE]))
    assert (lost.state, lost.ended_at) == (RentalState.LOST, 50.0)


def test_a_machine_that_was_given_back_has_ended_when_its_bill_has() -> None:
    (ended,) = after(hired(DRAINING).seen("cloud", [GONE]))
    assert (ended.state, ended.ended_at) == (RentalState.DRAINING, 50.0)
    assert after(hired(DRAINING).told("rent-1-1", Ended(GONE))) == [ended]
    (unlisted,) = after(hired(DRAINING).told("rent-1-1", Ended(None)))
    assert unlisted.ended_at == 60.0
    stopping = MACHINE.model_copy(update={"state": "stopping"})
    assert hired(DRAINING).told("rent-1-1", Ended(stopping)) == ()


def test_a_machine_that_is_not_listed_is_there_until_its_own_stop_has_passed() -> None:
    assert hired(READY, 1209.0).seen("cloud", []) == ()
    (lost,) = after(hired(READY, 1210.0).seen("cloud", []))
    assert lost.ended_at == 1120.0
    (never,) = after(hired(RENTAL, 1210.0).seen("cloud", []))
    assert never.state is RentalState.RETURNED


def test_a_notice_takes_the_machine_out_of_use() -> None:
    stopping = MACHINE.model_copy(update={"state": "stopping"})
    events = hired(READY).seen("cloud", [stopping])
    assert after(events)[-1].state is RentalState.DRAINING
    assert any(isinstance(event, e.NodeDrained) for event in events)
    assert hired(DRAINING).seen("cloud", [stopping]) == ()


def test_the_list_of_another_provider_says_nothing_of_it() -> None:
    assert hired(READY).seen("other", [GONE]) == ()


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_in_whatever_order_answers_come_the_story_is_legal(order: tuple[int, ...]) -> None:
    """Fold what one breath of answers means, as the store does: it raises when it is not legal."""
    store = MemoryStore()
    run = Run(id="run-1", opened_at=0.0, user="u", folder="/", budget=micro_usd(5))
    store.append([
        e.RunOpened(at=0.0, run=run),
        e.Submitted(at=0.0, job="j", first=a_job("j")),
        e.Reserved(at=0.0, payer="run-1", rental="rent-1-1", amount=micro_usd(2)),
        e.RentalChanged(at=0.0, rental=RENTAL),
    ])  # fmt: skip
    says = Hired(store.world(60.0), 60.0)
    answers: list[Callable[[], tuple[e.Event, ...]]] = [
        lambda: says.told("rent-1-1", Launched(MACHINE)),
        lambda: says.seen("cloud", [MACHINE]),
        lambda: says.seen("cloud", [GONE]),
        lambda: says.refused("rent-1-1", LAUNCH, NoCapacity("none are left")),
    ]
    for number in order:
        store.append(answers[number]())
    account = store.world(60.0).accounts["run-1"]
    assert account.reserved in (0, 2_000_000) and account.spent == 0


# -- offers ----------------------------------------------------------------------------------


A, B = an_offer("a"), an_offer("b", boot_s=10.0, extras_usd_h=micro_usd("0.1"))
"""Neither beats the other."""


def offers() -> Offers:
    found = Offers({}, 60.0)
    found.came(Offered("cloud", (B, A)))
    return found


def ids(of: Offers, now: float, *rentals: Rental) -> list[str]:
    return [offer.id for offer in of.open(now, rentals)]


def test_offers_are_kept_by_name_and_are_the_same_object_while_nothing_changes() -> None:
    of = offers()
    open_ = of.open(0.0)
    assert [offer.id for offer in open_] == ["a", "b"]
    of.came(Offered("cloud", (A.but(), B.but())))
    assert of.open(1.0) is open_
    assert read_json(of.kept.text) == open_


def test_lists_of_the_same_offers_are_kept_as_the_same_and_others_are_not() -> None:
    of, other = offers(), offers()
    assert of.kept == Kept("", ""), "nobody has asked for it yet"
    of.open(0.0)
    other.open(0.0)
    assert of.kept == other.kept and of.kept.digest
    other.block("a", 0.0)
    other.open(1.0)
    assert of.kept.digest != other.kept.digest


def test_a_refused_offer_is_left_out_for_a_while() -> None:
    of = offers()
    of.block("a", 0.0)
    assert [offer.id for offer in of.open(0.0)] == ["b"]
    assert of.next_look_at() == BLOCKED_S
    assert [offer.id for offer in of.open(BLOCKED_S)] == ["a", "b"]


def test_an_offer_whose_price_moved_is_left_out_until_it_is_told_anew() -> None:
    of = offers()
    assert of.looks(0.0) == [] and of.looks(1.0) == []
    of.moved("a")
    assert [offer.id for offer in of.open(1.0)] == ["b"]
    assert of.next_look_at() is None, "it is asked for at the next chance"
    of.came(Offered("cloud", (A.but(price_usd_h=micro_usd(1)), B)))
    assert [offer.id for offer in of.open(2.0)] == ["a", "b"]


def test_a_price_that_moves_is_another_offer() -> None:
    of = offers()
    before = of.open(0.0)
    of.came(Offered("cloud", (A.but(price_usd_h=micro_usd(1)), B)))
    assert of.open(0.0) is not before
    of.came(Offered("cloud", ()))
    assert of.open(0.0) == () and of.kept == Kept("", "")


def test_a_round_that_was_stored_before_offers_were_kept_has_none() -> None:
    made = Plan(version=1)
    now = Round(
        number=1, version=1, now=0.0, seed=0, epoch=1, order="fifo", score="best-fit",
        settings="{}", sightings="{}", plan=made,
    )  # fmt: skip
    of_old = now.model_dump(mode="json", exclude={"offers", "wait", "rent", "answers"})
    read = Round.model_validate(of_old)
    assert read == now and (read.offers, read.wait, read.rent, read.answers) == ("", "", "", "")


def test_an_offer_that_another_beats_stands_in_when_that_is_refused() -> None:
    of = Offers({}, 60.0)
    of.came(Offered("cloud", (an_offer("r-b", zone="r-b"), an_offer("r-a", zone="r-a"))))
    assert ids(of, 0.0) == ["r-a"]
    of.block("r-a", 0.0)
    assert ids(of, 0.0) == ["r-b"]


def test_each_refusal_doubles_the_time_and_a_long_peace_begins_anew() -> None:
    of = offers()
    of.block("a", 0.0)
    of.block("a", BLOCKED_S)
    assert ids(of, 3 * BLOCKED_S - 1) == ["b"] and ids(of, 3 * BLOCKED_S) == ["a", "b"]
    for _ in range(9):
        of.block("a", 1e5)
    assert ids(of, 1e5 + 3599) == ["b"] and ids(of, 1e5 + 3600) == ["a", "b"]
    of.block("a", 2e5)
    assert ids(of, 2e5 + BLOCKED_S) == ["a", "b"]


def test_what_may_not_be_had_takes_its_neighbours_with_it_and_nothing_else() -> None:
    near, far = an_offer("b", boot_s=10.0), an_offer("r", region="elsewhere")
    spot, theirs = an_offer("s", market="spot"), an_offer("t", provider="other")
    kind = an_offer("k", facts=BIG.but(devices=(a_device(),)))
    of = Offers({}, 60.0)
    of.came(Offered("cloud", (an_offer("a"), near, far, spot, kind)))
    of.came(Offered("other", (theirs,)))
    of.deny("a", 0.0)
    left = {name for name, block in blocks(of).items() if block > 0.0}
    assert left == {"a", "b"}, "one region, market and kind of machine of one provider"
    of.deny("a", BLOCKED_S)
    assert blocks(of)["a"] == 3 * BLOCKED_S, "longer each time"
    assert blocks(of)["b"] == 2 * BLOCKED_S, "and its neighbours get their turn before it"
    of.block("b", 2 * BLOCKED_S)
    assert blocks(of)["b"] == 3 * BLOCKED_S, "what was never refused itself begins with the least"


def blocks(of: Offers) -> dict[str, float]:
    return {name: one.until for name, one in of._blocked.items()}  # pyright: ignore[reportPrivateUsage]


def test_quotas_that_hold_no_gpu_are_told_of_once_and_again_when_they_are_lost_again() -> None:
    gpu = BIG.but(devices=(a_device(),))
    none = an_offer("a", facts=gpu, quota="cloud/gpus", quota_units=1.0, quota_left=0.0)
    unknown, plain = none.but(id="b", quota_left=None), an_offer("c")
    of = Offers({}, 60.0)
    told = of.came(Offered("cloud", (none, plain)))
    assert told is not None and told.code is Code.QUOTA and "doctor cloud" in told.change
    assert of.came(Offered("cloud", (none, plain))) is None
    assert of.came(Offered("cloud", (none, unknown))) is None, "unknown is not zero"
    assert of.came(Offered("cloud", (none,))) is not None
    assert Offers({}, 60.0).came(Offered("cloud", (plain,))) is None


def test_what_may_not_be_had_says_how_that_is_mended() -> None:
    error = Denied("a policy forbids addresses", "Set external_address = false.")
    noted, told, *_ = hired(RENTAL).refused("rent-1-1", LAUNCH, error)
    assert isinstance(noted, e.Noted) and noted.reason.change == error.remedy
    assert isinstance(told, e.Waits) and told.reason.change == error.remedy


def quota_offers(**fields: Any) -> Offers:
    of = Offers({}, 60.0)
    group = {"quota": "g", "quota_units": 8.0, **fields}
    dear = an_offer("c", boot_s=5.0, price_usd_h=micro_usd(5), cap_usd_h=micro_usd(5))
    of.came(Offered("cloud", (A.but(**group), B.but(**group), dear)))
    return of


def test_a_quota_that_refuses_is_known_from_then_on_for_the_whole_group() -> None:
    of = quota_offers()
    assert ids(of, 0.0) == ["a", "b", "c"], "unknown is not nothing: it is tried"
    taken = A.but(quota="g", quota_units=8.0)
    there = RENTAL.but(id="rent-0-1", state=RentalState.READY, taken=taken)
    of.exhaust("a", 0.0, [there])
    assert ids(of, 1.0, there) == ["c"]
    assert ids(of, 2.0, there.but(ended_at=2.0)) == ["a", "b", "c"], "it was given back"
    assert of.open(2.0, [there.but(ended_at=2.0)])[0].quota_left == 8.0
    assert ids(of, 3600.0, there) == ["a", "b", "c"], "it may have been raised since"


def test_what_a_provider_says_is_left_of_a_quota_is_kept() -> None:
    assert ids(quota_offers(quota_left=7.0), 0.0) == ["c"]
    assert ids(quota_offers(quota_left=8.0), 0.0) == ["a", "b", "c"]


def test_a_refusal_by_a_quota_that_nobody_knows_blocks_the_offer_alone() -> None:
    of = offers()
    of.exhaust("a", 0.0, [])
    assert ids(of, 0.0) == ["b"]


def test_only_what_the_settings_allow_is_offered() -> None:
    of = offers()
    of.limit_to(Limits(max_price_usd_h=micro_usd("3.65")))
    assert ids(of, 0.0) == ["a"]
    of.limit_to(Limits(never=("a",)))
    assert ids(of, 0.0) == ["b"]
