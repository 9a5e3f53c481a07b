"""The controller's lock in PostgreSQL: one holder, named, gone with its session or its process."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from makers import a_job
from postgres import Server
from shell import until
from stories import submitted

from cloudwhale.control.host import ControllerHost
from cloudwhale.control.store import lock_for, open_store, turn_lock
from cloudwhale.control.store.session_lock import SessionLock
from cloudwhale.settings import Settings
from cloudwhale.spi.errors import StoreUnusable

pytestmark = pytest.mark.postgres

HOLDER = """
import sys
from cloudwhale.control.store.session_lock import SessionLock
lock = SessionLock(sys.argv[1])
assert lock.acquire()
print("held", flush=True)
sys.stdin.read()
"""


class StoppedClock:
    """A clock that shows one moment."""

    def now(self) -> float:
        return 0.0

    def steady(self) -> float:
        return 0.0


LockAt = Callable[..., SessionLock]


@pytest.fixture
def lock_at(postgres_url: str) -> Iterator[LockAt]:
    """Make locks of this test's database; all are let go at the end."""
    with ExitStack() as stack:

        def made(url: str = postgres_url) -> SessionLock:
            lock = SessionLock(url, StoppedClock())
            stack.callback(lock.release)
            return lock

        yield made


def test_one_holds_the_lock_and_the_other_does_not(lock_at: LockAt) -> None:
    one, other = lock_at(), lock_at()
    assert one.acquire()
    assert one.acquire(), "who holds it may ask again"
    assert not other.acquire()
    assert (one.is_held(), other.is_held()) == (True, False)


def test_a_released_lock_is_free(lock_at: LockAt) -> None:
    one, other = lock_at(), lock_at()
    assert one.acquire()
    assert not other.acquire()
    one.release()
    one.release()
    until("the session to be gone", other.acquire, limit_s=5)
    assert not one.is_held()


def test_a_lock_says_who_holds_it(lock_at: LockAt) -> None:
    one, other = lock_at(), lock_at()
    assert other.holder() == ""
    assert one.acquire()
    said = f"pid {os.getpid()} on {socket.gethostname()}"
    assert one.holder().startswith(said[:30])
    assert other.holder() == one.holder()
    assert " since 19" in one.holder()


def test_asking_in_vain_does_not_change_who_holds_it(lock_at: LockAt) -> None:
    one, other = lock_at(), lock_at()
    assert one.acquire()
    said = one.holder()
    assert not other.acquire()
    assert one.holder() == said


def test_the_locks_of_two_databases_are_two(
    postgres: Server, lock_at: LockAt, postgres_url: str
) -> None:
    another = postgres.new_database()
    one, other = lock_at(), lock_at(another)
    assert (one.acquire(), other.acquire()) == (True, True)
    other.release()
    postgres.drop(another)


def test_the_locks_of_two_schemas_are_two(
    postgres: Server, lock_at: LockAt, postgres_url: str
) -> None:
    postgres.run_in(postgres_url, "CREATE SCHEMA b")
    one, other = lock_at(), lock_at(f"{postgres_url}&options=-csearch_path%3Db")
    assert (one.acquire(), other.acquire()) == (True, True)
    assert one.holder() and other.holder()


@pytest.mark.parametrize("host", ["whale", "a-host-whose-name-is-far-too-long-for-a-session" * 2])
def test_a_holder_is_named_in_what_the_server_has_room_for(
    lock_at: LockAt, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: host)
    lock = lock_at()
    assert lock.acquire()
    assert lock.holder().startswith(f"pid {os.getpid()} on {host[:9]}"[:18])
    assert " since 19" in lock.holder()


def test_a_lock_whose_session_was_ended_is_lost_and_known_to_be(
    postgres: Server, postgres_url: str, lock_at: LockAt
) -> None:
    one, other = lock_at(), lock_at()
    assert one.acquire()
    postgres.end_sessions(postgres_url)
    assert not one.is_held()
    assert other.acquire()
    assert not one.acquire()
    other.release()
    until("the session to be gone", one.acquire, limit_s=5)


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    lock = SessionLock(f"postgresql://ann:secret@/whale?host={tmp_path}")
    with pytest.raises(StoreUnusable, match="cannot be reached") as fault:
        lock.acquire()
    assert "secret" not in str(fault.value)


def a_holder(url: str) -> "subprocess.Popen[str]":
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


@contextmanager
def ended(holder: "subprocess.Popen[str]") -> Iterator[None]:
    try:
        yield
    finally:
        holder.kill()
        holder.communicate()


def test_a_killed_holder_leaves_the_lock_free(postgres_url: str, lock_at: LockAt) -> None:
    holder = a_holder(postgres_url)
    lock = lock_at()
    with ended(holder):
        assert not lock.acquire()
        assert f"pid {holder.pid} " in lock.holder()
        holder.send_signal(signal.SIGKILL)
        until("the lock to be free", lock.acquire, limit_s=5)


def test_a_stopped_holder_whose_session_is_ended_leaves_the_lock_free(
    postgres: Server, postgres_url: str, lock_at: LockAt
) -> None:
    holder = a_holder(postgres_url)
    lock = lock_at()
    with ended(holder):
        holder.send_signal(signal.SIGSTOP)
        assert not lock.acquire(), "a holder that sleeps has not gone"
        assert postgres.end_sessions(postgres_url, f"pid {holder.pid} %") == 1
        until("the lock to be free", lock.acquire, limit_s=5)
        holder.send_signal(signal.SIGCONT)


# -- controllers -----------------------------------------------------------------------------


def settings(tmp_path: Path, url: str, who: str = "one") -> Settings:
    return Settings(home=tmp_path / who, database=url, node=who, cpu=1)


def test_the_settings_say_which_lock(tmp_path: Path, postgres_url: str) -> None:
    here = settings(tmp_path, postgres_url)
    assert isinstance(lock_for(here), SessionLock)
    turn = turn_lock(here)
    assert turn.acquire()
    assert [file.name for file in here.home.iterdir()] == ["submit.lock"]
    turn.release()


@pytest.fixture
def hosts(tmp_path: Path, postgres_url: str) -> Iterator[tuple[ControllerHost, ControllerHost]]:
    """Make two controllers of one database, on two hosts as it were; end them after."""
    one, other = (ControllerHost(settings(tmp_path, postgres_url, who)) for who in ("a", "b"))
    yield one, other
    for host in (one, other):
        host.stop(leave_agents=False)


def epochs(postgres: Server, url: str) -> list[str]:
    rows = postgres.run_in(url, "SELECT holder FROM epochs ORDER BY number")
    return [holder for (holder,) in rows]


def test_one_controller_works_and_the_other_takes_over_when_it_ends(
    postgres: Server, postgres_url: str, hosts: tuple[ControllerHost, ControllerHost]
) -> None:
    one, other = hosts
    assert one.try_start()
    assert not other.try_start()
    assert f"pid {os.getpid()} " in other.holder()
    until("its epoch", lambda: epochs(postgres, postgres_url) == ["a"])
    one.stop(leave_agents=False)
    until("the take-over", other.try_start, limit_s=5)
    until("its epoch", lambda: epochs(postgres, postgres_url) == ["a", "b"])


def test_a_controller_that_lost_its_session_goes_on_under_a_new_epoch(
    postgres: Server, postgres_url: str, hosts: tuple[ControllerHost, ControllerHost]
) -> None:
    one, _ = hosts
    assert one.try_start()
    until("its epoch", lambda: epochs(postgres, postgres_url) == ["a"])
    assert postgres.end_sessions(postgres_url) >= 2
    until("the next epoch", lambda: epochs(postgres, postgres_url) == ["a", "a"])
    with_a_job = open_store(postgres_url, may_migrate=False)
    with_a_job.append(submitted(a_job("a")))
    with_a_job.close()
    assert one.holds
    assert one.failure is None
