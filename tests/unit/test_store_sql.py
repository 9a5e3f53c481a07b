"""The database's store: several processes at one file, restarts, and what is read again."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from makers import a_job, a_node, a_run
from sqlalchemy import Connection, Engine, Table, event
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import OperationalError
from sqlalchemy.schema import CreateTable
from stories import WHY, a_place, a_round, completes, rented, submitted, was_placed

from cloudwhale.control.store import SqlStore, open_store, sqlite_url, tables
from cloudwhale.model import event as e
from cloudwhale.model.job import JobState
from cloudwhale.model.rental import RentalState
from cloudwhale.model.units import MicroUsd
from cloudwhale.spi.errors import StoreUnusable
from cloudwhale.spi.store import JobQuery


def opened(home: Path) -> SqlStore:
    return open_store(sqlite_url(home), may_migrate=True)


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


def test_a_restart_is_a_non_event(tmp_path: Path) -> None:
    before = opened(tmp_path)
    before.append(a_busy_day())
    world, read_to = before.world(9.0), before.read_to()
    before.close()
    after = opened(tmp_path)
    assert after.world(9.0) == world
    assert list(after.world(9.0).jobs) == list(world.jobs)
    assert after.read_to() == read_to


def test_what_another_process_appends_is_seen(tmp_path: Path) -> None:
    mine, other = opened(tmp_path), opened(tmp_path)
    assert mine.world(0.0).jobs == {}
    other.append(submitted(a_job("a")))
    assert mine.version() == 1
    assert list(mine.world(0.0).jobs) == ["a"]


def test_a_whole_day_by_another_process_is_caught_up_with(tmp_path: Path) -> None:
    mine, other = opened(tmp_path), opened(tmp_path)
    mine.world(0.0)
    for happened in a_busy_day():
        other.append([happened])
        assert mine.world(9.0) == other.world(9.0)


def test_jobs_of_another_process_come_in_their_order(tmp_path: Path) -> None:
    mine, other = opened(tmp_path), opened(tmp_path)
    mine.world(0.0)
    other.append(submitted(a_job("b"), a_job("c"), a_job("a")))
    assert list(mine.world(0.0).jobs) == ["b", "c", "a"]


def test_a_run_that_another_process_opens_after_its_jobs_is_seen(tmp_path: Path) -> None:
    mine, other = opened(tmp_path), opened(tmp_path)
    other.append(submitted(a_job("a")))
    assert mine.world(0.0).runs == {}
    other.append([e.RunOpened(at=0.0, run=a_run())])
    assert list(mine.world(0.0).runs) == ["run-1"]


def test_two_processes_take_turns_and_agree(tmp_path: Path) -> None:
    turns = [opened(tmp_path), opened(tmp_path)]
    for store in turns:
        store.world(0.0)
    for number, happened in enumerate(a_busy_day()):
        turns[number % 2].append([happened])
    assert turns[0].world(9.0) == turns[1].world(9.0)
    assert turns[0].world(9.0) == turns[0].world_at(turns[0].version(), 9.0)


def test_a_submitter_needs_no_world_to_cancel(tmp_path: Path) -> None:
    controller, submitter = opened(tmp_path), opened(tmp_path)
    controller.append([*submitted(a_job("a"), a_job("b")), *completes("b")])
    submitter.append([e.CancelAsked(at=9.0, job=job) for job in ("a", "b")])
    assert controller.world(9.0).jobs["a"].wish == "cancel"
    assert submitter.jobs(JobQuery(names_or_ids=("b",)))[0].state is JobState.COMPLETED


def test_money_is_right_for_a_process_that_has_seen_no_world(tmp_path: Path) -> None:
    opened(tmp_path).append([e.RunOpened(at=0.0, run=a_run("r", budget=MicroUsd(7)))])
    for amount in (3, 4):
        store = opened(tmp_path)
        store.append([e.Reserved(at=0.0, payer="r", rental="m", amount=MicroUsd(amount))])
        store.close()
    assert opened(tmp_path).world(0.0).accounts["r"].reserved == 7


def test_threads_may_share_a_store(tmp_path: Path) -> None:
    store = opened(tmp_path)

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


def test_writers_in_several_processes_number_events_without_gaps(tmp_path: Path) -> None:
    opened(tmp_path).close()
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
        subprocess.Popen([sys.executable, "-c", program, sqlite_url(tmp_path), who])
        for who in ("one", "two")
    ]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0]
    store = opened(tmp_path)
    assert [told.seq for told in store.since(0)] == list(range(1, 101))
    assert len(store.events("one")) == 50


def test_a_world_after_a_failed_commit_is_the_one_that_was_stored(tmp_path: Path) -> None:
    store = opened(tmp_path)
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


def test_a_body_that_is_no_value_is_named(tmp_path: Path) -> None:
    import sqlite3

    store = opened(tmp_path)
    store.append(submitted(a_job("a")))
    with sqlite3.connect(tmp_path / "cloudwhale.db") as connection:
        connection.execute("""UPDATE jobs SET body = '{"id": "a"}'""")
    connection.close()
    with pytest.raises(StoreUnusable, match="holds a Job that this program cannot read"):
        store.jobs(JobQuery())


def test_the_database_is_for_its_owner_only(tmp_path: Path) -> None:
    store = opened(tmp_path / "new" / "home")
    store.append(submitted(a_job("a")))
    home = tmp_path / "new" / "home"
    modes = [path.stat().st_mode & 0o077 for path in (home, *home.iterdir())]
    assert set(modes) == {0}


@pytest.mark.parametrize("folder", ["a b", "50% done", "why?", "a#b"])
def test_any_folder_will_do(tmp_path: Path, folder: str) -> None:
    store = opened(tmp_path / folder)
    store.append([e.Noted(at=0.0, subject="x", reason=WHY)])
    store.close()
    assert (tmp_path / folder / "cloudwhale.db").is_file()
    assert opened(tmp_path / folder).version() == 1


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///:memory:", "mysql://db/whale", "cloudwhale.db"]
)
def test_a_database_that_is_no_file_is_refused(url: str) -> None:
    with pytest.raises(StoreUnusable, match="sqlite:////absolute/path"):
        open_store(url, may_migrate=True)


@pytest.mark.parametrize("table", tables.metadata.sorted_tables, ids=str)
def test_no_table_is_sqlites_own(table: Table) -> None:
    made = str(CreateTable(table).compile(dialect=postgresql.dialect()))  # type: ignore[no-untyped-call]
    assert made.strip().startswith("CREATE TABLE")


def test_nothing_of_the_database_is_imported_before_it_is_opened() -> None:
    program = (
        "import sys\n"
        "import cloudwhale.control.store as s\n"
        "s.HolderLock, s.MemoryStore, s.open_store, s.sqlite_url, s.lock_file\n"
        "sys.exit('sqlalchemy' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0


def test_a_store_is_opened_without_alembic(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from cloudwhale.control.store import open_store\n"
        "open_store(sys.argv[1], may_migrate=True).close()\n"
        "open_store(sys.argv[1], may_migrate=True).close()\n"
        "sys.exit('alembic' in sys.modules)\n"
    )
    command = [sys.executable, "-c", program, sqlite_url(tmp_path)]
    assert subprocess.run(command, timeout=60, check=False).returncode == 0


def test_what_was_stored_is_on_the_disk_before_anybody_acts_on_it(tmp_path: Path) -> None:
    store = opened(tmp_path)
    levels: list[int] = []

    def note(connection: Connection) -> None:
        levels.append(connection.exec_driver_sql("PRAGMA synchronous").scalar_one())

    event.listen(Engine, "commit", note)
    try:
        store.append(submitted(a_job("a")))
        store.record(a_round(1, a_place("a")), [was_placed("a")], epoch=store.new_epoch("h", 0.0))
    finally:
        event.remove(Engine, "commit", note)
    full = 2  # as SQLite numbers it: every commit waits for the disk
    assert levels == [full] * 3


def test_nodes_are_read_without_the_jobs(tmp_path: Path) -> None:
    store = opened(tmp_path)
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
