"""What is asked of a store is counted as its bill counts it, and agents say it."""

from decimal import Decimal
from pathlib import Path

import pytest
from live_agent import CLOCK, until
from makers import a_world
from obstore.store import MemoryStore

from cloudwhale.agent.poster import Poster
from cloudwhale.agent.traffic import Traffic
from cloudwhale.control.reports import Reading
from cloudwhale.mailbox.box import Box
from cloudwhale.mailbox.documents import REPORTS, AttemptEnded, Heartbeat
from cloudwhale.mailbox.objects import PART_BYTES, StoreObjects, open_objects
from cloudwhale.model.event import StoreUsed
from cloudwhale.model.rental import Lease, Rental
from cloudwhale.model.requests import StoreUse
from cloudwhale.model.units import MicroUsd
from cloudwhale.reporting.receipt import Bill, machine_receipt


@pytest.fixture
def objects() -> StoreObjects:
    return open_objects("memory://")


def test_each_kind_of_request_is_counted_with_its_bytes(objects: StoreObjects) -> None:
    objects.create("a/1", b"one")
    objects.create("a/1", b"other")  # refused, after a look at what is there
    objects.get("a/1")
    objects.get("a/2")
    objects.modified_at("a/1")
    objects.keys("a")
    objects.folders("")
    objects.delete(["a/1", "a/2"])
    assert objects.counts.use == StoreUse(
        puts=2, gets=4, lists=2, deletes=2, sent_bytes=8, received_bytes=3
    )


def test_each_part_of_a_large_object_is_a_request(objects: StoreObjects, tmp_path: Path) -> None:
    body = bytes(2 * PART_BYTES + 1)
    (tmp_path / "large").write_bytes(body)
    objects.put_file("large", tmp_path / "large")
    objects.get_file("large", tmp_path / "back")
    objects.get_file("none", tmp_path / "none")
    use = objects.counts.use
    assert (use.puts, use.sent_bytes) == (3 + 2, len(body))
    assert (use.gets, use.received_bytes) == (2, len(body))


def test_a_heartbeat_tells_what_was_asked_until_then(objects: StoreObjects) -> None:
    objects.create("before", b"four")
    poster = Poster(Box(objects, "inbox/n"), CLOCK, lambda works, ago_s: None, Traffic(objects).use)
    poster.start()
    poster.say(Heartbeat(at=0.0, agent="n-1"))
    body = until(lambda: objects.get("inbox/n/000001.json"), "a heartbeat")
    poster.close()
    beat = REPORTS.validate_json(body)
    assert isinstance(beat, Heartbeat) and beat.store is not None
    assert (beat.store.puts, beat.store.sent_bytes) == (1, 4)


def test_a_store_in_a_folder_costs_nothing(tmp_path: Path) -> None:
    assert Traffic(open_objects(tmp_path.as_uri())).use() is None


def test_what_leaves_the_machine_is_told_where_it_can_be_known(objects: StoreObjects) -> None:
    away = Traffic(objects).use()
    assert away is not None and away.left_bytes is not None


@pytest.mark.parametrize(
    ("url", "name"), [("s3://b/f", "AWS_ENDPOINT_URL"), ("gs://b/f", "STORAGE_EMULATOR_HOST")]
)
def test_of_a_store_on_this_host_nobody_knows_what_leaves(
    monkeypatch: pytest.MonkeyPatch, url: str, name: str
) -> None:
    monkeypatch.setenv(name, "http://127.0.0.1:5000")
    boxed = Traffic(StoreObjects(MemoryStore(), url=url)).use()
    assert boxed is not None and boxed.left_bytes is None


def test_what_goes_to_the_store_does_not_count_as_leaving(objects: StoreObjects) -> None:
    traffic = Traffic(objects)
    objects.create("large", bytes(1 << 24))  # a store in memory: nothing of it leaves
    use = traffic.use()
    assert use is not None and use.left_bytes == 0


def test_what_a_rented_machine_has_asked_is_on_the_receipt() -> None:
    use = StoreUse(puts=1000, gets=10_000, lists=200, deletes=50)
    assert (use.requests, use.cost) == (11_250, 10_000)  # micro-dollars: 6,000 and 4,000
    both = use.and_(StoreUse(puts=1, left_bytes=7)).and_(StoreUse(left_bytes=5))
    assert (both.puts, both.left_bytes) == (1001, 12)
    bill = Bill(a_rental(), used=use)
    line = machine_receipt(bill, 100.0)
    assert (line.store_requests, line.store_usd) == (11_250, Decimal("0.010000"))


def test_an_agent_of_a_rented_machine_is_asked_for_nothing_to_say_it() -> None:
    world = a_world(rentals={"r": a_rental(node="r")})
    ended = AttemptEnded(
        at=1.0, agent="r-1", job="j", attempt=1, how="exited", exit_code=0, store=StoreUse(puts=3)
    )
    body = ended.model_dump_json().encode()
    told = Reading(world, 1.0).events("r", body)
    assert [one.use.puts for one in told if isinstance(one, StoreUsed)] == [3]
    assert not any(isinstance(one, StoreUsed) for one in Reading(a_world(), 1.0).events("r", body))


def a_rental(**fields: str) -> Rental:
    lease = Lease(number=1, watched_until=1.0, away_until=2.0, stop_at=3.0)
    return Rental(id="r", payer="run-1", offer="o", lease=lease, reserved=MicroUsd(1), **fields)
