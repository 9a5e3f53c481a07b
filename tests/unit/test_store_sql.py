"""The database's store: several processes at one file, restarts, and what is read again."""

import subprocess
import sys
from pathlib import Path

import pytest
from makers import a_job
from sqlalchemy import Connection, Engine, Table, event
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable
from stories import WHY, a_place, a_round, submitted, was_placed

from cloudwhale.control.store import SqlStore, open_store, sqlite_url, tables
from cloudwhale.model import event as e
from cloudwhale.spi.errors import StoreUnusable
from cloudwhale.spi.store import JobQuery


def opened(home: Path) -> SqlStore:
    return open_store(sqlite_url(home), may_migrate=True)


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
