"""Several mailboxes: who is met where, and a store that hangs holds up nobody else's."""

import threading

import pytest
from clouding import an_offer
from makers import a_node

from cloudwhale.control.bundle import Bundle
from cloudwhale.control.bundle_delivery import Deliveries
from cloudwhale.control.doors import Doors
from cloudwhale.control.effects import Effect, Key, ThreadedEffects
from cloudwhale.control.hiring import Where
from cloudwhale.control.mailboxes import MAIN, Mailboxes
from cloudwhale.control.watcher import HANGS_S, Watcher
from cloudwhale.mailbox.objects import Objects, open_objects
from cloudwhale.model.rental import Lease, Rental
from cloudwhale.model.units import micro_usd

RENTAL = Rental(
    id="rent-1-1", node="rent-1-1", payer="run-1", offer="big", reserved=micro_usd(2),
    taken=an_offer(provider="far"), jobs={"j": "p"},
    lease=Lease(number=1, watched_until=900.0, away_until=1000.0, stop_at=1120.0),
)  # fmt: skip


@pytest.fixture
def stores() -> tuple[Objects, Objects]:
    return open_objects("memory://"), open_objects("memory://")


@pytest.fixture
def mailboxes(stores: tuple[Objects, Objects]) -> Mailboxes:
    return Mailboxes(stores[0], {"far": lambda: stores[1]})


def test_a_cloud_without_a_mailbox_of_its_own_meets_us_in_the_main_one(
    mailboxes: Mailboxes, stores: tuple[Objects, Objects]
) -> None:
    found = [mailboxes.of(name) for name in ("", "local", "near", "far")]
    assert found == [stores[0], stores[0], stores[0], stores[1]]
    assert [mailboxes.name_of(name) for name in ("near", "far")] == [MAIN, "far"]


def test_a_node_is_met_where_its_rental_is(mailboxes: Mailboxes) -> None:
    doors = Doors()
    doors.know([RENTAL])
    assert doors.store("rent-1-1", mailboxes) is mailboxes.of("far")
    assert doors.store("workstation", mailboxes) is mailboxes.main


def test_machines_are_told_the_mailbox_of_their_cloud() -> None:
    where = Where("s3://main/m", "/", others={"far": "gs://far/m"})
    assert [where.mailbox_of(name) for name in ("near", "far")] == ["s3://main/m", "gs://far/m"]


def test_what_hangs_in_one_lane_holds_up_no_other() -> None:
    effects, hangs, rung = ThreadedEffects(lambda: rung.set()), threading.Event(), threading.Event()
    try:
        for number in range(20):  # more than there are threads
            effects.start(Effect(Key("read", f"far-{number}"), hangs.wait, lane="far"), 0.0)
        effects.start(Effect(Key("read", "near"), lambda: "heard"), 0.0)
        assert rung.wait(30)
        assert [(one.key.subject, one.value) for one in effects.done(0.0)] == [("near", "heard")]
    finally:
        hangs.set()
        effects.close()


def test_a_store_that_hangs_is_waited_for_as_long_as_one_that_answers_may_take(
    mailboxes: Mailboxes,
) -> None:
    watcher = Watcher(mailboxes, {}, {})
    watcher.doors.know([RENTAL])
    nodes = [a_node("rent-1-1", owned=False)]
    watcher.forgive(["rent-1-1"], 5.0)
    watcher.looks(nodes, 5.0, rung=False)
    assert not watcher.is_informed
    watcher.looks(nodes, 5.0 + HANGS_S, rung=False)
    assert watcher.is_informed


def test_a_main_store_that_hangs_is_waited_for(mailboxes: Mailboxes) -> None:
    watcher = Watcher(mailboxes, {}, {})
    watcher.forgive(["workstation"], 5.0)
    watcher.looks([a_node("workstation")], 5.0 + HANGS_S, rung=False)
    assert not watcher.is_informed


def test_a_folder_that_rings_asks_no_store_of_a_cloud(mailboxes: Mailboxes) -> None:
    watcher = Watcher(mailboxes, {}, {})
    watcher.doors.know([RENTAL])
    nodes = [a_node("workstation"), a_node("rent-1-1", owned=False)]
    first = watcher.looks(nodes, 5.0, rung=False)
    assert {look.key.subject for look in first} >= {"workstation", "rent-1-1"}
    rung = watcher.looks(nodes, 5.1, rung=True)
    assert [look.key.subject for look in rung if look.key.verb == "read"] == ["workstation"]


def test_the_archive_is_put_where_each_cloud_fetches_it(
    tmp_path_factory: pytest.TempPathFactory, stores: tuple[Objects, Objects], mailboxes: Mailboxes
) -> None:
    file = tmp_path_factory.mktemp("bundle") / "a.tar.gz"
    file.write_bytes(b"archive")
    bundle = Bundle(file=file, sha256="a" * 64, size_bytes=7, pythons=("3.11",))
    deliveries = Deliveries(mailboxes, lambda: bundle)
    assert deliveries.delivered("near").key == deliveries.delivered("far").key
    assert [one.get(bundle.key) for one in stores] == [b"archive", b"archive"]
