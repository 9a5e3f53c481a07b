"""A PostgreSQL server of the tests' own: one for all workers, a database for each test.

It is started by the first who asks, listens on a socket in a scratch folder alone, runs as an
ordinary user (it refuses root), and ends with the last process that uses it, killed or not.
"""

import fcntl
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine, event

from cloudwhale.clock import SystemClock, wait
from cloudwhale.control.store import SqlStore, open_store

FOUND_IN = "/usr/lib/postgresql"  # where Debian keeps what no user calls
PROGRAM = shutil.which("initdb") or next(
    (str(each) for each in sorted(Path(FOUND_IN).glob("*/bin/initdb"), reverse=True)), None
)
USER = "whale"
TEMPLATE = "template_whale"
CONFIGURATION = """
listen_addresses = ''
fsync = off
synchronous_commit = off
full_page_writes = off
autovacuum = off
max_connections = 200
shared_buffers = 32MB
log_min_messages = fatal
"""
WARDEN = Path(__file__).with_name("postgres_warden.py")
_numbers = count(1)


class Server:
    """A running server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def url(self, database: str = "postgres", user: str = USER) -> str:
        """Return the URL of a database."""
        return f"postgresql://{user}@/{database}?host={self.folder}"

    @property
    def pid(self) -> int:
        """The process id of the server."""
        return int((self.folder / "data" / "postmaster.pid").read_text().split()[0])

    def run(self, *statements: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run statements outside of any transaction; return the rows of the last."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            for statement in statements:
                found = connection.execute(statement.encode())
            return found.fetchall() if found.description else []

    def run_in(self, url: str, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements in the database of a URL."""
        return self.run(*statements, database=name_in(url))

    def new_database(self, template: str = TEMPLATE) -> str:
        """Make a database, by default with cloudwhale's tables; return its URL."""
        name = f"test_{os.getpid()}_{next(_numbers)}"
        self.run(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return self.url(name)

    def drop(self, url: str) -> None:
        """Remove a database, whoever is connected to it."""
        self.run(f'DROP DATABASE IF EXISTS "{name_in(url)}" WITH (FORCE)')

    def sessions(self, url: str, called: str = "%") -> list[int]:
        """Return the process ids of the sessions at a database whose names are like this."""
        rows = self.run(
            f"SELECT pid FROM pg_stat_activity WHERE datname = '{name_in(url)}' "
            f"AND application_name LIKE '{called}'"
        )
        return [pid for (pid,) in rows]

    def let_in(self, url: str, allowed: bool) -> None:
        """Let programs connect to a database, or no more; who is connected stays."""
        self.run(f"ALTER DATABASE {name_in(url)} ALLOW_CONNECTIONS {allowed}")

    def end_sessions(self, url: str, called: str = "%") -> int:
        """End the sessions at a database as an operator does; return how many there were."""
        pids = self.sessions(url, called)
        for pid in pids:
            self.run(f"SELECT pg_terminate_backend({pid}, 5000)")
        return len(pids)


def name_in(url: str) -> str:
    """Return the name of the database in a URL of `Server.url`."""
    return url.partition("@/")[2].partition("?")[0]


@contextmanager
def at_statement(pattern: str, strike: Callable[[], object]) -> Iterator[None]:
    """Do something once before the next statement like a pattern."""
    left = [strike]

    def struck(*call: Any) -> None:
        if left and re.search(pattern, str(call[2])):
            left.pop()()

    event.listen(Engine, "before_cursor_execute", struck)
    try:
        yield
    finally:
        event.remove(Engine, "before_cursor_execute", struck)
    assert not left


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "postgres: needs PostgreSQL installed; skipped without")


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Give the server; skip where PostgreSQL is not installed."""
    if PROGRAM is None:
        pytest.skip("PostgreSQL is not installed: no initdb")
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    with _used(shared) as folder:
        yield Server(folder)


@pytest.fixture
def postgres_url(postgres: Server) -> Iterator[str]:
    """Give a database of this test's own, with tables."""
    url = postgres.new_database()
    yield url
    postgres.drop(url)


@pytest.fixture
def postgres_store(postgres_url: str) -> Iterator[SqlStore]:
    """Give an empty store in a database of this test's own."""
    with closing(open_store(postgres_url, may_migrate=True)) as made:
        yield made


@contextmanager
def _used(shared: Path) -> Iterator[Path]:
    """Give the folder of a running server, which lives at least as long as this is open."""
    with (shared / "postgres.users").open("w") as users:
        with _alone(shared / "postgres.lock"):
            fcntl.flock(users, fcntl.LOCK_SH)  # waits while a warden ends the last one
            known = shared / "postgres.folder"
            if not known.exists() or not Path(known.read_text()).exists():
                known.write_text(str(_begun(shared / "postgres.users")))
            folder = Path(known.read_text())
        yield folder
        with _alone(shared / "postgres.lock"):
            last = _nobody_else(users)
    if last:
        _until_gone(folder)


def _nobody_else(users: Any) -> bool:
    """Say whether only the warden has it now, or nobody."""
    for kind in (fcntl.LOCK_EX, fcntl.LOCK_SH):  # the first lets go of what we have
        try:
            fcntl.flock(users, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        return kind == fcntl.LOCK_EX
    return True


def _until_gone(folder: Path) -> None:
    """The last who uses it waits for its end, so that nothing is left when the tests are over."""
    clock = SystemClock()
    end = clock.steady() + 60.0
    while folder.exists():
        assert clock.steady() < end, f"the server in {folder} does not end"
        wait(0.02)


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _begun(users: Path) -> Path:
    """Start a server; return its folder."""
    assert PROGRAM is not None
    # A path of a socket has 107 characters at most, and the folders of tests are longer.
    folder = Path(tempfile.mkdtemp(prefix="cw-pg-", dir="/tmp"))
    uid, gid = _ordinary_user()
    whose: dict[str, Any] = {} if uid < 0 else {"user": uid, "group": gid, "extra_groups": []}
    os.chown(folder, uid, gid)
    data = folder / "data"
    subprocess.run(
        [PROGRAM, "-D", data, "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
        check=True, capture_output=True, cwd=folder, **whose,
    )  # fmt: skip
    with (data / "postgresql.conf").open("a") as configuration:
        configuration.write(f"{CONFIGURATION}unix_socket_directories = '{folder}'\n")
    program = Path(PROGRAM).with_name("postgres")
    warden = [
        sys.executable,
        str(WARDEN),
        str(users),
        str(folder),
        str(program),
        f"{uid}",
        f"{gid}",
    ]
    # A child of nobody here: it outlives the worker that started it.
    subprocess.run(["setsid", "--fork", *warden], check=True, stdin=subprocess.DEVNULL)
    server = Server(folder)
    _until_ready(server)
    server.run(f'CREATE DATABASE "{TEMPLATE}"')
    open_store(server.url(TEMPLATE), may_migrate=True).close()
    return folder


def _ordinary_user() -> tuple[int, int]:
    """Return user and group that the server runs as; -1 for our own."""
    if os.geteuid() != 0:
        return -1, -1
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return found.pw_uid, found.pw_gid
    pytest.skip("PostgreSQL refuses root, and there is no user postgres or nobody")


def _until_ready(server: Server) -> None:
    clock = SystemClock()
    end = clock.steady() + 60.0
    while True:
        try:
            server.run("SELECT 1")
            return
        except psycopg.OperationalError:
            log = server.folder / "log"
            assert clock.steady() < end, log.read_text() if log.exists() else "no log"
            wait(0.02)
