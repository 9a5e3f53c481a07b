"""Several processes at one database, restarts, and what is read again: on each kind of it."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from makers import a_job, a_node, a_run
from sqlalchemy import Engine, event
from sqlalchemy.exc import OperationalError
from stories import completes, rented, submitted

from cloudwhale.control.store import SqlStore, open_store, sqlite_url
from cloudwhale.model import event as e
from cloudwhale.model.job import JobState
from cloudwhale.model.rental import RentalState
from cloudwhale.model.units import MicroUsd
from cloudwhale.spi.errors import StoreUnusable
from cloudwhale.spi.store import JobQuery


class Place:
    """A database that may be opened several times, as processes do."""

    def __init__(self, url: str, stack: ExitStack) -> None:
        self.url = url
        self._stack = stack

    def opened(self) -> SqlStore:
        return self._stack.enter_context(closing(open_store(self.url, may_migrate=True)))


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Make an empty database of each kind."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            yield Place(sqlite_url(tmp_path), stack)
        else:
            yield Place(request.getfixturevalue("postgres_url"), stack)


def a_busy_day() -> list[e.Event]:
    """Return events that leave something in every table that a world is made of."""
    return [
        e.RunOpened(at=0.0, run=a_run(budget=MicroUsd(100))),
        e.NodeJoined(at=0.0, node=a_node("host")),
        e.NodeJoined(at=0.0, node=a_node("gone")),
        *submitted(
            a_job("first", affinity=("llama",)), a_job("second", after=("first",)), a_job("third")
        ),
        *completes("first"),
        rented(RentalState.RESERVED),
        e.Reserved(at=1.0, payer="run-1", rental="m", amount=MicroUsd(9)),
        e.Read(at=1.0, node="host", number=3),
        e.NodeRemoved(at=2.0, node="gone"),
    ]


def test_a_restart_is_a_non_event(place: Place) -> None:
    before = place.opened()
    before.append(a_busy_day())
    world, read_to = before.world(9.0), before.read_to()
    before.close()
    after = place.opened()
    assert after.world(9.0) == world
    assert list(after.world(9.0).jobs) == list(world.jobs)
    assert after.read_to() == read_to


def test_what_another_process_appends_is_seen(place: Place) -> None:
    mine, other = place.opened(), place.opened()
    assert mine.world(0.0).jobs == {}
    other.append(submitted(a_job("a")))
    assert mine.version() == 1
    assert list(mine.world(0.0).jobs) == ["a"]


def test_a_whole_day_by_another_process_is_caught_up_with(place: Place) -> None:
    mine, other = place.opened(), place.opened()
    mine.world(0.0)
    for happened in a_busy_day():
        other.append([happened])
        assert mine.world(9.0) == other.world(9.0)


def test_jobs_of_another_process_come_in_their_order(place: Place) -> None:
    mine, other = place.opened(), place.opened()
    mine.world(0.0)
    other.append(submitted(a_job("b"), a_job("c"), a_job("a")))
    assert list(mine.world(0.0).jobs) == ["b", "c", "a"]


def test_a_run_that_another_process_opens_after_its_jobs_is_seen(place: Place) -> None:
    mine, other = place.opened(), place.opened()
    other.append(submitted(a_job("a")))
    assert mine.world(0.0).runs == {}
    other.append([e.RunOpened(at=0.0, run=a_run())])
    assert list(mine.world(0.0).runs) == ["run-1"]


def test_two_processes_take_turns_and_agree(place: Place) -> None:
    turns = [place.opened(), place.opened()]
    for store in turns:
        store.world(0.0)
    for number, happened in enumerate(a_busy_day()):
        turns[number % 2].append([happened])
    assert turns[0].world(9.0) == turns[1].world(9.0)
    assert turns[0].world(9.0) == turns[0].world_at(turns[0].version(), 9.0)


def test_a_submitter_needs_no_world_to_cancel(place: Place) -> None:
    controller, submitter = place.opened(), place.opened()
    controller.append([*submitted(a_job("a"), a_job("b")), *completes("b")])
    submitter.append([e.CancelAsked(at=9.0, job=job) for job in ("a", "b")])
    assert controller.world(9.0).jobs["a"].wish == "cancel"
    assert submitter.jobs(JobQuery(names_or_ids=("b",)))[0].state is JobState.COMPLETED


def test_money_is_right_for_a_process_that_has_seen_no_world(place: Place) -> None:
    place.opened().append([e.RunOpened(at=0.0, run=a_run("r", budget=MicroUsd(7)))])
    for amount in (3, 4):
        store = place.opened()
        store.append([e.Reserved(at=0.0, payer="r", rental="m", amount=MicroUsd(amount))])
        store.close()
    assert place.opened().world(0.0).accounts["r"].reserved == 7


def test_threads_may_share_a_store(place: Place) -> None:
    store = place.opened()

    def submit(who: str) -> None:
        for number in range(20):
            store.append(submitted(a_job(f"{who}-{number}")))
            store.world(0.0)

    threads = [threading.Thread(target=submit, args=(who,)) for who in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.version() == 60
    assert store.world(0.0) == store.world_at(60, 0.0)


def test_writers_in_several_processes_number_events_without_gaps(place: Place) -> None:
    place.opened().close()
    program = (
        "import sys\n"
        "from cloudwhale.control.store import open_store\n"
        "from cloudwhale.model.event import Noted\n"
        "from cloudwhale.model.reason import Code, Reason\n"
        "store = open_store(sys.argv[1], may_migrate=False)\n"
        "why = Reason(code=Code.FINISHED, says='x')\n"
        "for _ in range(50): store.append([Noted(at=0.0, subject=sys.argv[2], reason=why)])\n"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", program, place.url, who]) for who in ("one", "two")
    ]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0]
    store = place.opened()
    assert [told.seq for told in store.since(0)] == list(range(1, 101))
    assert len(store.events("one")) == 50


def test_a_world_after_a_failed_commit_is_the_one_that_was_stored(place: Place) -> None:
    store = place.opened()
    store.append(submitted(a_job("a")))
    world = store.world(0.0)

    def fail(_: object) -> None:
        raise OperationalError("COMMIT", None, Exception("the disk is gone"))

    event.listen(Engine, "commit", fail)
    try:
        with pytest.raises(StoreUnusable, match="the disk is gone"):
            store.append(completes("a"))
    finally:
        event.remove(Engine, "commit", fail)
    assert store.world(0.0) == world
    assert store.version() == 1


def test_nodes_are_read_without_the_jobs(place: Place) -> None:
    store = place.opened()
    store.append(a_busy_day())
    asked: list[str] = []

    def note(*call: object) -> None:
        asked.append(str(call[2]))

    event.listen(Engine, "before_cursor_execute", note)
    try:
        assert [node.id for node in store.nodes()] == ["host"]
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert [words for words in asked if "FROM" in words and "FROM nodes" not in words] == []
    assert len([words for words in asked if "FROM nodes" in words]) == 1
