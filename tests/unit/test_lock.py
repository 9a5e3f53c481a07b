"""The controller's lock: one holder, named, gone with its process in whatever way that ends."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cloudwhale.control.host import ControllerHost
from cloudwhale.control.store import HolderLock, database_url, lock_file, lock_for
from cloudwhale.settings import Settings
from cloudwhale.spi.errors import StoreUnusable

PARENT = """
import subprocess, sys
from pathlib import Path
from cloudwhale.control.store.lock import HolderLock
lock = HolderLock(Path(sys.argv[1]))
assert lock.acquire()
child = subprocess.Popen(["sleep", "60"], close_fds=False, stdout=subprocess.DEVNULL)
print(child.pid, flush=True)
sys.stdin.read()
"""


class StoppedClock:
    """A clock that shows one moment."""

    def now(self) -> float:
        return 0.0

    def steady(self) -> float:
        return 0.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "controller.lock"


def test_one_holds_the_lock_and_the_other_does_not(path: Path) -> None:
    one, other = HolderLock(path), HolderLock(path)
    assert one.acquire()
    assert not other.acquire()


def test_who_holds_the_lock_may_ask_again(path: Path) -> None:
    lock = HolderLock(path)
    assert lock.acquire()
    assert lock.acquire()


def test_a_released_lock_is_free(path: Path) -> None:
    one, other = HolderLock(path), HolderLock(path)
    one.acquire()
    one.release()
    one.release()
    assert other.acquire()


def test_a_lock_says_who_holds_it(path: Path) -> None:
    lock = HolderLock(path, StoppedClock())
    lock.acquire()
    said = HolderLock(path).holder()
    assert said.startswith(f"pid {os.getpid()} on {socket.gethostname()} since 19")


def test_asking_for_a_lock_in_vain_does_not_change_who_holds_it(path: Path) -> None:
    lock = HolderLock(path)
    lock.acquire()
    said = lock.holder()
    HolderLock(path).acquire()
    assert lock.holder() == said


def test_nobody_holds_a_lock_that_was_released_or_never_taken(path: Path) -> None:
    lock = HolderLock(path)
    assert lock.holder() == ""
    lock.acquire()
    lock.release()
    assert lock.holder() == ""


def test_a_shorter_holder_leaves_nothing_of_a_longer_one(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("x" * 500)
    lock = HolderLock(path)
    lock.acquire()
    assert "x" * 10 not in lock.holder()


def test_a_killed_holder_leaves_the_lock_free_and_its_children_do_not_keep_it(path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    child = int(holder.stdout.readline())
    lock = HolderLock(path)
    try:
        assert not lock.acquire()
        assert f"pid {holder.pid} " in lock.holder()
        holder.send_signal(signal.SIGKILL)
        holder.communicate(timeout=10)
        os.kill(child, 0)  # it lives, and would hold an inherited lock
        assert lock.acquire()
    finally:
        holder.kill()
        os.kill(child, signal.SIGKILL)


def test_a_lock_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with pytest.raises(StoreUnusable, match="controller.lock cannot be taken") as fault:
        HolderLock(tmp_path / "home" / "controller.lock").acquire()
    assert "CLOUDWHALE_HOME" in fault.value.remedy


def test_the_lock_lies_beside_the_database(tmp_path: Path) -> None:
    assert lock_file(Settings(home=tmp_path)) == tmp_path / "cloudwhale.db.lock"
    elsewhere = Settings(home=tmp_path, database=f"sqlite:///{tmp_path}/data/a%20b.db")
    assert lock_file(elsewhere) == tmp_path / "data" / "a b.db.lock"


def test_two_homes_with_one_database_have_one_controller(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to("data")
    one, other = (
        ControllerHost(
            Settings(home=tmp_path / where, database=f"sqlite:///{tmp_path}/{where}/shared.db")
        )
        for where in ("data", "link")
    )
    try:
        assert one.try_start()
        assert not other.try_start()
        one.stop(leave_agents=False)
        assert other.try_start()
    finally:
        one.stop(leave_agents=False)
        other.stop(leave_agents=False)


def test_links_that_lead_nowhere_are_named(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("other")
    (tmp_path / "other").symlink_to("one")
    settings = Settings(home=tmp_path, database=f"sqlite:///{tmp_path}/one/a.db")
    with pytest.raises(StoreUnusable, match=r"a.db.lock cannot be taken"):
        HolderLock(lock_file(settings)).acquire()


def test_two_databases_in_one_folder_have_a_controller_each(tmp_path: Path) -> None:
    locks = {
        lock_file(Settings(home=tmp_path, database=f"sqlite:///{tmp_path}/{name}"))
        for name in ("a.db", "b.db", "a.sqlite")
    }
    assert len(locks) == 3


@pytest.mark.parametrize("url", ["sqlite://", "mysql://db/whale", "cloudwhale.db"])
def test_a_database_that_is_no_file_has_no_lock(tmp_path: Path, url: str) -> None:
    settings = Settings(home=tmp_path, database=url)
    with pytest.raises(StoreUnusable, match="sqlite:////absolute/path"):
        lock_for(settings)
    assert database_url(settings) == url
