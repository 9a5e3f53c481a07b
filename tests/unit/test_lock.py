"""The controller's lock: one holder, named, gone with its process in whatever way that ends."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cloudwhale.control.store import HolderLock
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
