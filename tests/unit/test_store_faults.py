"""What can be wrong with a database file: each is a sentence with a remedy."""

import ctypes
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from makers import a_job
from sqlalchemy import Engine, event
from stories import submitted

from cloudwhale.control.store import SqlStore, open_store, sqlite_url
from cloudwhale.control.store.sqlite import SqliteDatabase
from cloudwhale.spi.errors import StoreUnusable
from cloudwhale.spi.store import JobQuery

CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2  # what lets root ignore the modes of files
CAPABILITY_VERSION_3 = 0x20080522


class Capabilities(ctypes.Structure):
    """One thread's capabilities, as the kernel takes them."""

    _fields_ = [(name, ctypes.c_uint32) for name in ("effective", "permitted", "inheritable")]


def capabilities(call: str, sets: ctypes.Array[Capabilities]) -> None:
    """Read or write this thread's capabilities."""
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    if getattr(ctypes.CDLL(None, use_errno=True), call)(header, sets) != 0:
        raise OSError(ctypes.get_errno(), f"{call} was refused")


@pytest.fixture
def obeys_modes() -> Iterator[None]:
    """Make this thread obey the modes of files, even when the tests run as root."""
    if os.geteuid() != 0:
        yield
        return
    sets = (Capabilities * 2)()
    capabilities("capget", sets)
    before = sets[0].effective
    sets[0].effective = before & ~(1 << CAP_DAC_OVERRIDE | 1 << CAP_DAC_READ_SEARCH)
    capabilities("capset", sets)
    yield
    sets[0].effective = before
    capabilities("capset", sets)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Make a folder whose database holds one job."""
    store = open_store(sqlite_url(tmp_path), may_migrate=True)
    store.append(submitted(a_job("a")))
    store.close()
    return tmp_path


def test_a_database_that_somebody_else_locks_is_waited_for_and_then_named(kept: Path) -> None:
    database = SqliteDatabase(kept / "cloudwhale.db", busy_timeout_s=0.05)
    store = SqlStore(database)
    other = sqlite3.connect(database.file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnusable, match="is locked by another program") as fault:
        store.append(submitted(a_job("b")))
    assert "fuser" in fault.value.remedy
    assert len(store.jobs(JobQuery())) == 1, "who only reads does not wait"
    other.execute("ROLLBACK")
    other.close()
    assert store.append(submitted(a_job("b"))) == 2


def test_a_new_database_in_a_folder_that_may_not_be_written_is_named(
    tmp_path: Path, obeys_modes: None
) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreUnusable, match="cannot be made: Permission denied") as fault:
        open_store(sqlite_url(tmp_path), may_migrate=True)
    assert "writable" in fault.value.remedy


def test_a_database_in_a_folder_that_may_not_be_written_is_named(
    kept: Path, obeys_modes: None
) -> None:
    kept.chmod(0o500)
    with pytest.raises(StoreUnusable, match="cannot be") as fault:
        open_store(sqlite_url(kept), may_migrate=True)
    assert "writable" in fault.value.remedy


def test_a_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with pytest.raises(StoreUnusable, match="cannot be made: (File exists|Not a directory)"):
        open_store(sqlite_url(tmp_path / "home"), may_migrate=True)


def test_a_database_that_is_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "cloudwhale.db").mkdir()
    with pytest.raises(StoreUnusable, match="cannot be opened"):
        open_store(sqlite_url(tmp_path), may_migrate=True)


def test_a_file_that_may_not_be_written_is_named(kept: Path, obeys_modes: None) -> None:
    (kept / "cloudwhale.db").chmod(0o400)
    with pytest.raises(StoreUnusable, match="cannot be written") as fault:
        open_store(sqlite_url(kept), may_migrate=True).append(submitted(a_job("b")))
    assert "CLOUDWHALE_HOME" in fault.value.remedy


def test_a_file_that_may_not_be_read_is_named(kept: Path, obeys_modes: None) -> None:
    (kept / "cloudwhale.db").chmod(0)
    with pytest.raises(StoreUnusable, match="cannot be opened"):
        open_store(sqlite_url(kept), may_migrate=True)


def test_a_full_disk_is_named_and_takes_nothing_that_was_stored(kept: Path) -> None:
    room = [40]

    def limit(connection: sqlite3.Connection, _: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {room[0]}")

    event.listen(Engine, "connect", limit)
    try:
        store = open_store(sqlite_url(kept), may_migrate=True)
        with pytest.raises(StoreUnusable, match="its disk is full") as fault:
            store.append(submitted(*(a_job(f"j{number}") for number in range(200))))
    finally:
        event.remove(Engine, "connect", limit)
    assert "Free some space" in fault.value.remedy
    store.close()
    after = open_store(sqlite_url(kept), may_migrate=True)
    assert (list(after.world(0.0).jobs), after.version()) == (["a"], 1)
    assert after.append(submitted(a_job("b"))) == 2


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "cloudwhale.db").write_bytes(b"not a database, but long enough" * 100)
    with pytest.raises(StoreUnusable, match="is not a database, or is damaged") as fault:
        open_store(sqlite_url(tmp_path), may_migrate=True)
    assert "move all three away" in fault.value.remedy, "a new database alone is fenced by agents"


def test_a_damaged_database_is_named(kept: Path) -> None:
    file = kept / "cloudwhale.db"
    body = bytearray(file.read_bytes())
    body[4096:] = b"\xa5" * (len(body) - 4096)
    file.write_bytes(bytes(body))
    with pytest.raises(StoreUnusable, match="is damaged") as fault:
        open_store(sqlite_url(kept), may_migrate=True).jobs(JobQuery())
    assert "from one copy" in fault.value.remedy


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "cloudwhale.db") as connection:
        connection.execute("CREATE TABLE recipes (name)")
    connection.close()
    with pytest.raises(StoreUnusable, match="of another program .*recipes"):
        open_store(sqlite_url(tmp_path), may_migrate=True)
