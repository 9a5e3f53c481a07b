"""The agent's threads, each by itself: what is said, what is read, what is posted of a log."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from live_agent import CLOCK, a_start, until

from cloudwhale.agent.attempts import AttemptFolder
from cloudwhale.agent.launching import Sizes
from cloudwhale.agent.logs import LogTail
from cloudwhale.agent.onward import onward
from cloudwhale.agent.orders import OrderReader, Told
from cloudwhale.agent.place import ReadTo
from cloudwhale.agent.poster import Poster
from cloudwhale.agent.seen import (
    Ordered,
    Seen,
    StoreFailed,
    StoreWorks,
    Unreadable,
)
from cloudwhale.agent.storewatch import SILENCE_S, StoreWatch
from cloudwhale.mailbox.box import Box, log_of, orders_to, whole_log_key
from cloudwhale.mailbox.documents import REPORTS, Heartbeat, LeaveOrder
from cloudwhale.mailbox.objects import StoreObjects, open_objects
from cloudwhale.spi.errors import StoreUnusable


class Refusing(StoreObjects):
    """A store that refuses to write as often as it is told to."""

    def __init__(self) -> None:
        super().__init__(open_objects("memory:///")._store)
        self.refusals = 0

    def create(self, key: str, body: bytes) -> bool:
        if self.refusals:
            self.refusals -= 1
            raise StoreUnusable("cannot write")
        return super().create(key, body)


@pytest.fixture
def objects() -> Refusing:
    """Give an empty store."""
    return Refusing()


class Hands:
    """A clock whose hands are set by a test."""

    wall, counted = 1000.0, 7.0

    def now(self) -> float:
        return self.wall

    def steady(self) -> float:
        return self.counted


# -- what is said ----------------------------------------------------------------------------


def a_beat(agent: str) -> Heartbeat:
    """Make a report that can be told from others."""
    return Heartbeat(at=0.0, agent=agent)


def said(objects: StoreObjects) -> list[str]:
    """Return what was posted, in order."""
    box = Box(objects, "inbox/host")
    bodies = [box.read(number) for number in range(1, box.newest() + 1)]
    return [REPORTS.validate_json(body).agent for body in bodies if body is not None]


def test_reports_are_posted_in_order_although_the_store_refuses_some(objects: Refusing) -> None:
    heard: list[bool] = []
    poster = Poster(Box(objects, "inbox/host"), CLOCK, lambda works, ago_s: heard.append(works))
    objects.refusals = 2
    poster.start()
    for name in "abc":
        poster.say(a_beat(name))
    assert poster.drain(20.0)
    poster.close()
    assert said(objects) == ["a", "b", "c"]
    assert heard[:3] == [False, False, True]


def test_the_lease_runs_from_when_a_report_was_written_not_from_when_it_was_taken(
    objects: Refusing,
) -> None:
    clock = Hands()

    class Slow(Box):
        def post(self, body: bytes, after: int) -> int:
            clock.counted += 25.0
            return super().post(body, after)

    heard: list[tuple[bool, float]] = []
    poster = Poster(
        Slow(objects, "inbox/host"), clock, lambda works, ago_s: heard.append((works, ago_s))
    )
    poster.start()
    poster.say(a_beat("a"), then=lambda: None)
    assert poster.drain(20.0)
    poster.close()
    assert heard == [(True, 25.0)], "what asks nothing of the store is no answer of it"


def test_what_follows_a_report_is_done_once_that_was_taken(objects: Refusing) -> None:
    order: list[str] = []
    poster = Poster(Box(objects, "inbox/host"), CLOCK, lambda works, ago_s: None)
    objects.refusals = 1
    poster.say(a_beat("a"), then=lambda: order.append(f"after {said(objects)}"))
    poster.start()
    assert poster.drain(20.0)
    poster.close()
    assert order == ["after ['a']"]


def test_a_new_agent_goes_on_after_what_an_earlier_one_said(objects: Refusing) -> None:
    for name in ("a", "b"):
        poster = Poster(Box(objects, "inbox/host"), CLOCK, lambda works, ago_s: None)
        poster.start()
        poster.say(a_beat(name))
        assert poster.drain(20.0)
        poster.close()
    assert said(objects) == ["a", "b"]


def test_a_store_that_takes_nothing_does_not_hold_up_an_agent_that_goes(objects: Refusing) -> None:
    poster = Poster(Box(objects, "inbox/host"), CLOCK, lambda works, ago_s: None)
    objects.refusals = 1_000_000
    poster.start()
    poster.say(a_beat("a"))
    assert not poster.drain(0.05)
    poster.close()


# -- what is read ----------------------------------------------------------------------------


class Reading:
    """An order reader and what it has told, batch by batch."""

    def __init__(self, objects: StoreObjects, read_to: ReadTo) -> None:
        self.batches: list[list[tuple[str, int]]] = []
        self.reader = OrderReader(objects, "host", self._tell)
        self.reader.start(read_to)

    def _tell(self, told: Sequence[Told]) -> None:
        self.batches.append([(_name(one), number) for one, number in told])

    def wait_for(self, count: int) -> list[list[tuple[str, int]]]:
        """Wait until so many orders were told, end the reader, return the batches."""
        until(lambda: sum(map(len, self.batches)) >= count, f"{count} orders")
        self.reader.close()
        return self.batches


def _name(one: Ordered | Unreadable) -> str:
    return one.order.request_id if isinstance(one, Ordered) else f"{one.key}: {one.says}"


def post(objects: StoreObjects, *names: str) -> None:
    """Post orders to start, or to leave."""
    box = orders_to(objects, "host")
    for name in names:
        order = LeaveOrder(at=0.0, fence=1, request_id=name)
        body = (order if name.startswith("leave") else a_start(request_id=name)).model_dump_json()
        box.post(body.encode(), box.newest())


def test_orders_are_told_in_order_each_once(tmp_path: Path) -> None:
    objects = open_objects(tmp_path.as_uri())
    post(objects, "a", "b")
    reading = Reading(objects, ReadTo())
    until(lambda: len(reading.batches) == 2, "two orders")
    post(objects, "c")
    assert reading.wait_for(3) == [[("a", 1)], [("b", 2)], [("c", 3)]]


def test_what_was_read_before_is_not_told_again(objects: Refusing) -> None:
    post(objects, "a", "b", "c")
    assert Reading(objects, ReadTo(number=2)).wait_for(1) == [[("c", 3)]]


def test_an_order_to_leave_is_told_together_with_what_comes_after_it(objects: Refusing) -> None:
    post(objects, "a", "leave", "b")
    assert Reading(objects, ReadTo()).wait_for(3) == [[("a", 1)], [("leave", 2), ("b", 3)]]


def test_an_order_to_leave_with_nothing_after_it_is_told(objects: Refusing) -> None:
    post(objects, "leave")
    assert Reading(objects, ReadTo()).wait_for(1) == [[("leave", 1)]]


def test_orders_that_were_deleted_unread_are_passed_over(objects: Refusing) -> None:
    post(objects, "a", "b", "c")
    orders_to(objects, "host").forget(1, 2)
    assert Reading(objects, ReadTo()).wait_for(1) == [[("c", 3)]]


def test_an_order_that_cannot_be_read_is_told_as_that_and_passed_over(objects: Refusing) -> None:
    box = orders_to(objects, "host")
    box.post(b'{"kind": "start", "job": "j", "attempt": 3}', 0)
    box.post(b'{"kind": "stop", "job": "j", "attempt": 3, "grace_s": "soon"}', 1)
    box.post(b"no JSON", 2)
    post(objects, "b")
    [[(first, _)], [(second, _)], [(third, _)], rest] = Reading(objects, ReadTo()).wait_for(4)
    assert first.startswith("('j', 3): order 1 cannot be read")
    assert second.startswith("None: order 2 cannot be read"), "a stop starts nothing"
    assert third.startswith("None: order 3 cannot be read")
    assert rest == [("b", 4)]


def test_orders_to_a_forgotten_agent_are_marked(objects: Refusing) -> None:
    told: list[Ordered] = []

    def tell(orders: Sequence[Told]) -> None:
        told.extend(one for one, _ in orders if isinstance(one, Ordered))

    post(objects, "a", "b")
    reader = OrderReader(objects, "host", tell)
    reader.start(ReadTo(missed_to=1))
    until(lambda: len(told) == 2, "two orders")
    reader.close()
    assert [one.missed for one in told] == [True, False]


# -- the store's silence ---------------------------------------------------------------------


def a_watch(tmp_path: Path, now: float) -> tuple[StoreWatch, list[Seen]]:
    """Make a watch of the store and the list of what it tells."""
    told: list[Seen] = []
    return StoreWatch(tmp_path / "heard", now, told.append), told


def test_a_silence_counts_from_the_last_answer(tmp_path: Path) -> None:
    watch, told = a_watch(tmp_path, 0.0)
    watch.heard(100.0, works=True)
    watch.heard(110.0, works=False)
    watch.heard(115.0, works=False)
    watch.heard(120.0, works=True)
    assert told == [StoreFailed(100.0), StoreWorks()]


def test_a_call_that_hangs_is_a_silence_too(tmp_path: Path) -> None:
    watch, told = a_watch(tmp_path, 0.0)
    watch.heard(100.0, works=True)
    watch.look(100.0 + SILENCE_S)
    assert told == []
    watch.look(watch.wakes_at())
    assert told == [StoreFailed(100.0)]


def test_a_silence_goes_on_over_a_restart_of_the_agent(tmp_path: Path) -> None:
    now = CLOCK.now()
    before, _ = a_watch(tmp_path, now)
    before.heard(now, works=True)
    after, told = a_watch(tmp_path, now + 500.0)
    after.heard(now + 501.0, works=False)
    [failed] = told
    assert isinstance(failed, StoreFailed)
    assert now - 1.0 <= failed.since <= now + 30.0


def test_an_agent_that_has_just_woken_tries_the_store_before_it_calls_it_silent(
    tmp_path: Path,
) -> None:
    now = CLOCK.now()
    before, _ = a_watch(tmp_path, now)
    before.heard(now, works=True)
    watch, told = a_watch(tmp_path, now + 900.0)
    watch.look(now + 900.0 + SILENCE_S)
    assert told == [], "nobody has asked the store yet"
    watch.heard(now + 901.0 + SILENCE_S, works=True)
    assert told == []
    silent, told = a_watch(tmp_path, now + 900.0)
    silent.look(silent.wakes_at())
    assert told, "a store that hangs is asked once, not for ever"


def test_a_note_from_the_future_does_not_lengthen_the_lease(tmp_path: Path) -> None:
    (tmp_path / "heard").touch()
    watch, told = a_watch(tmp_path, 1000.0)  # the clock went back by decades
    watch.heard(1001.0, works=False)
    assert told == [StoreFailed(1000.0)]


def test_a_wall_clock_that_is_set_back_does_not_turn_an_agents_time_back() -> None:
    clock = Hands()
    now = onward(clock)
    assert now() == 1000.0
    clock.wall, clock.counted = -5000.0, 9.0
    assert now() == 1002.0
    clock.wall = 9e9
    assert now() == 1002.0


# -- logs ------------------------------------------------------------------------------------

SMALL = Sizes(log_segment=10, log_head=100_000, log_tail=50)


def a_log(tmp_path: Path, text: bytes) -> AttemptFolder:
    """Make an attempt whose shim has written this."""
    folder = AttemptFolder(tmp_path, ("job", 1))
    folder.log.mkdir(parents=True, exist_ok=True)
    for number in range(0, len(text), 10):
        (folder.log / f"{number // 10 + 1:06d}").write_bytes(text[number : number + 10])
    return folder


def chunks(objects: StoreObjects) -> list[bytes]:
    """Return the posted chunks."""
    box = log_of(objects, "job", 1)
    bodies = [box.read(number + 1) for number in range(box.newest())]
    return [body for body in bodies if body is not None]


def test_output_is_posted_once_in_order(tmp_path: Path, objects: Refusing) -> None:
    tail = LogTail(a_log(tmp_path, b"one two three"), objects, SMALL)
    tail.post()
    tail.post()
    a_log(tmp_path, b"one two three four five six seven")
    tail.post()
    assert chunks(objects) == [b"one two three", b" four five six seven"]


def test_an_agent_that_takes_over_posts_what_is_missing_and_no_more(
    tmp_path: Path, objects: Refusing
) -> None:
    folder = a_log(tmp_path, b"one two three")
    LogTail(folder, objects, SMALL).post()
    (folder.path / "log.json").unlink()  # it died before it could note how far it was
    a_log(tmp_path, b"one two three four")
    LogTail(folder, objects, SMALL, adopted=True).post()
    assert b"".join(chunks(objects)) == b"one two three four"


def test_an_agent_that_takes_over_past_the_head_knows_how_far_the_log_was_posted(
    tmp_path: Path, objects: Refusing
) -> None:
    sizes = Sizes(log_segment=1_000_000, log_head=20, log_tail=50)
    folder = AttemptFolder(tmp_path, ("job", 1))
    folder.log.mkdir(parents=True)
    output = b"".join(b"line %5d\n" % number for number in range(10_000))
    (folder.log / "000001").write_bytes(output)
    LogTail(folder, objects, sizes).post()
    assert b"bytes of output were left out here" in chunks(objects)[-1]
    (folder.path / "log.json").unlink()  # it died before it could note how far it was
    (folder.log / "000001").write_bytes(output + b"more\n")
    LogTail(folder, objects, sizes, adopted=True).post()
    assert chunks(objects)[-1] == b"more\n"


def test_the_whole_log_takes_the_place_of_its_chunks(tmp_path: Path, objects: Refusing) -> None:
    tail = LogTail(a_log(tmp_path, b"one two three"), objects, SMALL)
    tail.post()
    a_log(tmp_path, b"one two three four")
    assert tail.finish() == 0
    tail.post()
    assert objects.get(whole_log_key("job", 1)) == b"one two three four"
    assert chunks(objects) == []


def test_a_job_that_said_nothing_has_an_empty_log(tmp_path: Path, objects: Refusing) -> None:
    LogTail(AttemptFolder(tmp_path, ("job", 1)), objects, SMALL).finish()
    assert objects.get(whole_log_key("job", 1)) == b""


def test_what_the_shim_has_dropped_is_said(tmp_path: Path, objects: Refusing) -> None:
    folder = a_log(tmp_path, bytes(range(65, 65 + 40)))
    (folder.log / "000002").unlink()
    assert LogTail(folder, objects, SMALL).finish() == 10
    whole = objects.get(whole_log_key("job", 1)) or b""
    assert whole.startswith(b"ABCDEFGHIJ\n[cloudwhale: 10 bytes of output were left out here]\nU")
