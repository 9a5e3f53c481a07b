"""The sweep: what is ours and belongs to no rental goes when it is old enough; others' stays."""

from typing import Any

import pytest
from clouding import an_offer
from keeping_world import DRAINING, READY, RENTAL

from cloudwhale.control.mailboxes import Mailboxes
from cloudwhale.control.sweeping import (
    EVERY_S,
    GRACE_S,
    Boxes,
    Leftovers,
    Removed,
    Sweeping,
    described,
)
from cloudwhale.mailbox.objects import open_objects
from cloudwhale.model.rental import Rental
from cloudwhale.model.units import micro_usd
from cloudwhale.simulation.cloud import Shelf, SimulatedCloud
from cloudwhale.simulation.processes import Program
from cloudwhale.spi.errors import Denied
from cloudwhale.spi.provider import LaunchRequest, Leftover

NOW = 100_000.0


def a_cloud() -> SimulatedCloud:
    objects = open_objects("memory://")
    return SimulatedCloud([Shelf(an_offer())], objects, lambda order: Program(1.0), lambda: NOW)


def a_sweeping(cloud: SimulatedCloud | None = None) -> Sweeping:
    return Sweeping({"cloud": cloud or a_cloud()}, Mailboxes(open_objects("memory://")))


def left(**fields: Any) -> Leftover:
    base: dict[str, Any] = {"id": "i-1", "what": "instance", "node": "gone", "since": NOW - GRACE_S}
    return Leftover(**{**base, **fields})


def due(leftover: Leftover, *rentals: Rental, now: float = NOW) -> list[str]:
    found = Leftovers("cloud", (leftover,))
    return [one.key.subject for one in a_sweeping().removals(found, rentals, now)]


def test_what_is_ours_and_old_enough_goes() -> None:
    assert due(left()) == ["cloud/i-1"]
    assert due(left(node=None)) == ["cloud/i-1"]


def test_what_is_younger_may_be_a_launch_under_way() -> None:
    assert due(left(since=NOW - GRACE_S + 1.0)) == []


def test_what_another_installation_has_is_never_touched() -> None:
    assert due(left(is_ours=False, installation="another", since=0.0)) == []


@pytest.mark.parametrize("rental", [RENTAL, READY, DRAINING])
def test_what_belongs_to_a_rental_that_is_not_paid_for_stays(rental: Rental) -> None:
    assert due(left(node=rental.node), rental) == []


def test_a_rental_that_was_made_after_the_look_counts_too() -> None:
    cloud, sweeping = a_cloud(), a_sweeping()
    found = Leftovers("cloud", (left(node=RENTAL.node),))
    assert sweeping.removals(found, [RENTAL], NOW) == [] and not cloud.hired


def test_what_does_not_say_how_old_it_is_is_old_when_it_was_seen_for_so_long() -> None:
    sweeping, found = a_sweeping(), Leftovers("cloud", (left(since=None),))
    assert sweeping.removals(found, (), NOW) == []
    assert sweeping.removals(found, (), NOW + GRACE_S - 1.0) == []
    assert len(sweeping.removals(found, (), NOW + GRACE_S)) == 1
    sweeping.removals(Leftovers("cloud", ()), (), NOW + GRACE_S)
    assert sweeping.removals(found, (), NOW + GRACE_S) == [], "it was away meanwhile"


def test_providers_are_asked_at_once_and_then_every_five_minutes() -> None:
    sweeping = a_sweeping()
    assert [one.key.verb for one in sweeping.searches((), NOW)] == ["search", "tidy"]
    assert sweeping.searches((), NOW + EVERY_S - 1.0) == []
    assert len(sweeping.searches((), NOW + EVERY_S)) == 2


def test_a_host_that_rents_nothing_is_not_swept() -> None:
    assert Sweeping({}, Mailboxes(open_objects("memory://"))).searches((), NOW) == []


def test_a_sweep_removes_a_machine_that_nobody_knows_and_says_so() -> None:
    cloud = a_cloud()
    request = LaunchRequest(
        request_id="r", node="gone", offer=an_offer(), mailbox="", home="", stop_at=NOW + 9e9
    )
    cloud.launch(request)
    sweeping = a_sweeping(cloud)
    search, _ = sweeping.searches((), NOW)
    found = search.do()
    assert isinstance(found, Leftovers) and len(found.found) == 1
    (removal,) = sweeping.removals(found, (), NOW + GRACE_S)
    done = removal.do()
    assert cloud.running == 0 and isinstance(done, Removed)
    note = sweeping.removed(done, NOW)
    assert (note.subject, note.reason.code) == ("gone", "leftover-removed")
    assert note.reason.says.endswith("belongs to no machine of ours: removed")
    (schedule,) = cloud.unknown(())
    assert schedule.what == "schedule"
    cloud.remove(schedule)
    assert not list(cloud.unknown(()))


def test_the_simulated_cloud_lets_nobody_remove_what_is_anothers() -> None:
    with pytest.raises(Denied):
        a_cloud().remove(left(is_ours=False))


def test_folders_of_the_mailbox_are_found_and_removed_by_name() -> None:
    objects = open_objects("memory://")
    named = ("inbox/a", "orders/b", "agents/a", "boots/a", "boots/c")
    for key in (*(f"{folder}/000001.json" for folder in named), "x/c"):
        objects.create(key, b"{}")
    sweeping = Sweeping({"cloud": a_cloud()}, Mailboxes(objects))
    _, tidy = sweeping.searches((), NOW)
    assert tidy.do() == Boxes(frozenset({"a", "b", "c"}))
    sweeping.tidied("a").do()
    assert objects.folders("inbox") == [] and objects.folders("orders") == ["b"]
    assert objects.folders("boots") == ["c"], "a machine whose agent never lived has one too"


def test_a_leftover_is_described_with_what_it_costs() -> None:
    says = described(left(region="us-east-1", usd_h=micro_usd("1.5")))
    assert says.startswith("instance i-1 in us-east-1, since 19")
    assert "1.5" in says and "USD an hour" in says
    assert described(left(since=None)) == "instance i-1 belongs to no machine of ours"
