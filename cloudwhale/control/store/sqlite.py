"""All that is SQLite's own: how it is opened, how it tells of commits, how its file is copied.

Another database needs its own version of this module, and nothing else.
"""

import os
import sqlite3
import threading
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event

from cloudwhale.clock import SystemClock, pause
from cloudwhale.control.store.address import ELSEWHERE
from cloudwhale.control.store.database import Advice
from cloudwhale.control.store.faults import as_sentences, is_busy
from cloudwhale.control.store.network import mount_table, refuse_network
from cloudwhale.model.units import Seconds
from cloudwhale.spi.errors import StoreUnusable

WAL = "PRAGMA journal_mode = WAL"  # readers never wait for the writer
SYNCHRONOUS = "PRAGMA synchronous = FULL"  # what was decided outlives a power cut, as orders may

ASK_AGAIN_S: Seconds = 0.01
OPEN_FOR_WRITING = "cloudwhale_writes"
BUSY_TIMEOUT_S: Seconds = 5.0  # a writer holds the lock for milliseconds; five seconds is a fault

ADVICE = Advice(
    older="End the controller that runs (it is of an older version), then start "
    "`cloudwhale controller` or `cloudwhale run FILE` of this version: it migrates.",
    newer="Upgrade cloudwhale here. ({name}.before-{found} is a copy from before that, without "
    "what happened since.)",
    another="Choose another file with `database` or CLOUDWHALE_HOME.",
)

_making = threading.Lock()


class SqliteDatabase:
    """A Database in a file; see database.Database. Raise StoreUnusable when it cannot be there."""

    def __init__(self, file: Path, busy_timeout_s: Seconds = BUSY_TIMEOUT_S) -> None:
        self.file = file
        self.name = str(file)
        self.advice = ADVICE
        make_place(file)
        self.reader = engine_of(file, busy_timeout_s)
        self.writer = writing(self.reader)
        self._pulse: Pulse | None = None

    def beat(self) -> int:
        """See Database."""
        if self._pulse is None:
            self._pulse = Pulse(self.reader)
        return self._pulse.beat()

    def returned(self) -> int:
        """See Database; a file stays."""
        return 0

    def before_migration(self, connection: Connection, head: str) -> None:
        """See Database; a copy is made of what was stored before this transaction."""
        target = self.file.with_name(f"{self.file.name}.before-{head}")
        try:
            copy(self.file, target)
        except OSError as error:
            raise StoreUnusable(
                f"{self.file} was not migrated: its copy {target} cannot be written: "
                f"{error.strerror}",
                "Free some space there, and make the folder writable.",
            ) from error

    def faults(self) -> AbstractContextManager[None]:
        """See Database."""
        return as_sentences(self.name)

    def close(self) -> None:
        """See Database."""
        if self._pulse is not None:
            self._pulse.close()
        self.reader.dispose()


def make_place(file: Path) -> None:
    """Make the file and its folder where they are missing, readable by their owner only.

    Raise StoreUnusable when that cannot be, or on a network file system.
    """
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        refuse_network(file, mount_table())
        # One thread at a time: to close a file ends all locks that this process has on it, those of
        # a thread that had opened the database meanwhile too.
        with _making:
            if not file.exists():
                file.touch(mode=0o600)  # jobs carry environments, and those carry passwords
    except OSError as error:
        raise StoreUnusable(
            f"{file} cannot be made: {error.strerror}",
            f"Make its folder writable; or, {ELSEWHERE}",
        ) from error


def engine_of(file: Path, busy_timeout_s: Seconds) -> Engine:
    """Return an engine whose transactions begin as they are meant to go on.

    A reader's transaction is one snapshot; a writer's takes the write lock at once, so that it
    cannot fail half-way because somebody else wrote.
    """
    engine = create_engine(
        URL.create("sqlite", database=str(file)), connect_args={"timeout": busy_timeout_s}
    )

    def set_up(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # the driver begins nothing by itself
        _keep_a_wal(connection, busy_timeout_s)
        connection.execute(SYNCHRONOUS).close()

    event.listen(engine, "connect", set_up)
    event.listen(engine, "begin", _begin)
    return engine


def writing(engine: Engine) -> Engine:
    """Return the same engine for transactions that write."""
    return engine.execution_options(**{OPEN_FOR_WRITING: True})


def _keep_a_wal(connection: sqlite3.Connection, patience_s: Seconds) -> None:
    """Change a new database to a write-ahead log; it stays so, and asking again changes nothing.

    When several do it at once each holds what the others need, and SQLite answers some of them
    "busy" without the wait that it was asked for. So the wait is here.
    """
    clock = SystemClock()
    end = clock.steady() + patience_s
    while True:
        try:
            connection.execute(WAL).close()
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error) or clock.steady() >= end:
                connection.close()
                raise
        pause(ASK_AGAIN_S)


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get(OPEN_FOR_WRITING, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


class Pulse:
    """Tells in microseconds whether anybody has committed, this process included."""

    def __init__(self, engine: Engine) -> None:
        pooled = engine.raw_connection()
        self._connection: Any = pooled.driver_connection
        pooled.detach()  # a connection of its own: SQLite counts the commits of others only

    def beat(self) -> int:
        """Return a number that is another one after every commit."""
        return int(self._connection.execute("PRAGMA data_version").fetchone()[0])

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()


def copy(source: Path, target: Path) -> None:
    """Copy a database that others may be reading; the copy appears whole or not at all."""
    begun = target.with_name(target.name + ".part")
    begun.unlink(missing_ok=True)
    reader, writer = sqlite3.connect(source), sqlite3.connect(begun)
    try:
        reader.backup(writer)
    finally:
        writer.close()
        reader.close()
    os.replace(begun, target)
