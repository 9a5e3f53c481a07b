"""The controller's lock in PostgreSQL: held as long as one session lives, and gone with it."""

import os
import socket
from typing import Any

import psycopg

from cloudwhale.clock import SystemClock, iso
from cloudwhale.control.store.address import masked
from cloudwhale.control.store.postgres import CONTROL, SPACE, connect, conninfo
from cloudwhale.control.store.postgres_faults import unusable
from cloudwhale.spi.clock import Clock
from cloudwhale.spi.errors import StoreUnusable

LONGEST_NAME = 63  # bytes that PostgreSQL keeps of what a session calls itself

TRY = f"SELECT pg_try_advisory_lock({SPACE}, {CONTROL})".encode()
WHOSE = f"""
SELECT application_name FROM pg_stat_activity JOIN pg_locks USING (pid)
WHERE locktype = 'advisory' AND granted AND objsubid = 2
  AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND classid::bigint = ({SPACE})::bigint & 4294967295 AND objid = {CONTROL}
""".encode()
# The server's own keepalives: a holder whose host vanished keeps nobody waiting for two hours.
KEEPALIVES = (
    b"SET tcp_keepalives_idle = 2; SET tcp_keepalives_interval = 1; SET tcp_keepalives_count = 2;"
    b"SET statement_timeout = '3s'; SET application_name = 'cloudwhale'"
)


class SessionLock:
    """A Lock in the database that it guards; see lock.Lock.

    It has a connection of its own: whatever ends that, a kill of this process or of the session,
    a cut cable or a restart of the server, lets the lock go.
    """

    def __init__(self, url: str, clock: Clock | None = None) -> None:
        self._name = masked(url)
        self._conninfo = conninfo(url)
        self._clock = clock or SystemClock()
        self._session: psycopg.Connection[Any] | None = None
        self._held = False

    def acquire(self) -> bool:
        """See Lock."""
        if self.is_held():
            return True
        try:
            self._held = bool(self._ask(TRY))
            if self._held:
                self._sign()
        except psycopg.Error as error:
            self._let_go()
            raise self._unusable(error) from error
        return self._held

    def is_held(self) -> bool:
        """See Lock; asks the session, which takes the lock along when it goes."""
        if not self._held or self._session is None:
            return False
        try:
            self._session.execute("SELECT 1")
        except psycopg.Error:
            self._let_go()
        return self._held

    def release(self) -> None:
        """See Lock."""
        self._let_go()

    def holder(self) -> str:
        """See Lock."""
        try:
            return str(self._ask(WHOSE) or "")
        except psycopg.Error as error:
            if not self._held:
                self._let_go()
            raise self._unusable(error) from error

    def _ask(self, question: bytes) -> object:
        """Return the first value of the answer, None for no answer.

        A session that is not held for the lock may have gone since the last question.
        """
        if self._session is not None and not self._held:
            try:
                self._session.execute("SELECT 1")
            except psycopg.Error:
                self._let_go()
        if self._session is None:
            self._session = connect(self._conninfo)
            self._session.execute(KEEPALIVES)
        found = self._session.execute(question).fetchone()
        return None if found is None else found[0]

    def _sign(self) -> None:
        """Say in the server's list of sessions who holds the lock."""
        since = iso(self._clock.now())
        said = f"pid {os.getpid()} on {{host}} since {since}"
        room = LONGEST_NAME - len(said.format(host=""))
        self._ask_to_be_called(said.format(host=socket.gethostname()[:room]))

    def _ask_to_be_called(self, name: str) -> None:
        assert self._session is not None
        self._session.execute("SELECT set_config('application_name', %s, false)", [name])

    def _let_go(self) -> None:
        session, self._session, self._held = self._session, None, False
        if session is not None:
            session.close()

    def _unusable(self, error: psycopg.Error) -> StoreUnusable:
        return unusable(self._name, error) or StoreUnusable(
            f"the lock of {self._name} cannot be taken: {error}", "See the server's log."
        )
