"""All that is PostgreSQL's own: reaching it, turns of writers, what tells of commits."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError

from cloudwhale.control.store.address import REMEDY, for_libpq, masked
from cloudwhale.control.store.database import Advice
from cloudwhale.control.store.postgres_faults import unusable
from cloudwhale.spi.errors import CloudwhaleError, StoreUnusable

OLDEST_SERVER = 130000  # as PostgreSQL writes 13.0: the oldest that this was made for
DIALECT = "postgresql+psycopg://"

UNLESS_SAID: dict[str, Any] = {
    "application_name": "cloudwhale",
    "connect_timeout": "5",
    # A server that vanished is noticed after 5 + 3 x 2 s, not after two hours.
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
"""Parameters of a connection that the URL does not set."""

SESSION = (
    b"SET client_encoding = 'UTF8';"
    # A writer has the lock for milliseconds; five seconds is a fault.
    b"SET lock_timeout = '5s';"
    # The longest question, all events for a replay, takes seconds.
    b"SET statement_timeout = '60s'"
)

# An advisory lock has two numbers: ours, and what it is for. Each schema has its own, so that two
# installations may share a database.
WRITE, CONTROL = 1, 2
SPACE = f"({0x63776C} # hashtext(current_schema()))"  # "cwl"; `#` is exclusive or
TAKE_WRITE_LOCK = f"SELECT pg_advisory_xact_lock({SPACE}, {WRITE})"
# A writer that was stopped or sleeps lets the others go on. The longest pause of a living one is
# the folding of a submission of ten thousand jobs: two seconds.
LET_GO = "SET LOCAL idle_in_transaction_session_timeout = '15s'"
TAKE_TIME = "SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL statement_timeout = 0"
NEWEST = b"SELECT coalesce(max(seq), 0) FROM events"

ADVICE = Advice(
    older="End the controllers that run (they are of an older version). No copy is made of a "
    "PostgreSQL database: make one with `pg_dump`. Then start `cloudwhale controller` or "
    "`cloudwhale run FILE` of this version: it migrates.",
    newer="Upgrade cloudwhale here.",
    another="Name another database, made with `createdb`, in `database`.",
)


class PostgresDatabase:
    """A Database on a PostgreSQL server; see database.Database.

    Raise StoreUnusable with a sentence when it cannot be used.
    """

    def __init__(self, url: str) -> None:
        self.name = masked(url)
        self.advice = ADVICE
        self._conninfo = conninfo(url)
        self._connected = 0
        self._pulse: psycopg.Connection[Any] | None = None
        self._reconnected = 0
        engine = create_engine(
            DIALECT,
            creator=self._connect,
            pool_size=1,  # the store asks one thing at a time
            max_overflow=0,
            use_native_hstore=False,
        )
        self.reader = engine.execution_options(isolation_level="REPEATABLE READ")
        # Each statement sees what was committed before it: the first one is the wait for the lock.
        self.writer = engine.execution_options(isolation_level="READ COMMITTED")
        event.listen(self.writer, "begin", _take_turns)
        self._engine: Engine = engine
        try:
            with self.faults():
                self._look_at_server()
        except CloudwhaleError:
            self.close()
            raise

    def beat(self) -> int:
        """See Database; one question on a connection of its own, which is in no transaction."""
        try:
            return self._ask()
        except psycopg.OperationalError:
            self._reconnected += 1
            self._let_pulse_go()
            return self._ask()

    def returned(self) -> int:
        """See Database."""
        return max(0, self._connected - 1) + self._reconnected

    def before_migration(self, connection: Connection, head: str) -> None:
        """See Database; who has a server makes copies of it by its own means."""
        connection.exec_driver_sql(TAKE_TIME)

    @contextmanager
    def faults(self) -> Generator[None]:
        """See Database."""
        try:
            yield
        except (DBAPIError, psycopg.Error) as error:
            found = unusable(self.name, error)
            if found is None:
                raise
            raise found from error

    def close(self) -> None:
        """See Database."""
        self._let_pulse_go()
        self._engine.dispose()

    def _connect(self) -> Any:
        connection = connect(self._conninfo)
        connection.autocommit = False
        self._connected += 1
        return connection

    def _ask(self) -> int:
        if self._pulse is None:
            self._pulse = connect(self._conninfo)
        found = self._pulse.execute(NEWEST).fetchone()
        assert found is not None
        return int(found[0])

    def _let_pulse_go(self) -> None:
        pulse, self._pulse = self._pulse, None
        if pulse is not None:
            pulse.close()

    def _look_at_server(self) -> None:
        with self.reader.connect() as connection:
            driver: Any = connection.connection.driver_connection
            version = driver.info.server_version
            encoding = driver.info.parameter_status("server_encoding")
        if version < OLDEST_SERVER:
            raise StoreUnusable(
                f"{self.name} is on PostgreSQL {version // 10000}, which is too old",
                f"Use PostgreSQL {OLDEST_SERVER // 10000} or newer.",
            )
        if encoding != "UTF8":
            raise StoreUnusable(
                f"{self.name} cannot hold every text: its encoding is {encoding}",
                "Make it anew: `createdb -E UTF8 -T template0 NAME`.",
            )


def conninfo(url: str) -> str:
    """Return how to connect, secrets included, as the driver takes it.

    Raise StoreUnusable for a URL that PostgreSQL does not understand.
    """
    try:
        said: dict[str, Any] = {**conninfo_to_dict(for_libpq(url))}
    except psycopg.Error:
        # What the driver says quotes the URL, with whatever password is in it.
        raise StoreUnusable(
            f"{masked(url)} is no URL that PostgreSQL understands",
            f"{REMEDY} In user and password write @ as %40, / as %2F, : as %3A.",
        ) from None
    return make_conninfo("", **(UNLESS_SAID | said))


def connect(how: str) -> "psycopg.Connection[Any]":
    """Return a new connection that is in no transaction; raise psycopg.Error."""
    connection = psycopg.connect(how, autocommit=True)
    try:
        connection.execute(SESSION)
    except psycopg.Error:
        connection.close()
        raise
    return connection


def _take_turns(connection: Connection) -> None:
    connection.exec_driver_sql(f"{LET_GO}; {TAKE_WRITE_LOCK}")
