"""One new database that many open at once: nobody fails, and all see the same one."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier

import pytest

from cloudwhale.control.desk import open_desk
from cloudwhale.control.host import ControllerHost
from cloudwhale.control.store import open_store, sqlite_url
from cloudwhale.model import event as e
from cloudwhale.model.reason import Code, Reason
from cloudwhale.settings import Settings

ROUNDS = 50
THREADS = 8
PROCESSES = 4
NOTED = e.Noted(at=0.0, subject="x", reason=Reason(code=Code.FINISHED, says="x"))

OPENER = """
import sys
from cloudwhale.control.store import open_store
import cloudwhale.control.store.sql
from cloudwhale.model.event import Noted
from cloudwhale.model.reason import Code, Reason
noted = Noted(at=0.0, subject="x", reason=Reason(code=Code.FINISHED, says="x"))
print("ready", flush=True)
for line in sys.stdin:
    store = open_store(line.strip(), may_migrate=True)
    print(store.append([noted]), flush=True)
    store.close()
"""


def test_threads_that_open_one_new_database_at_once_all_can(tmp_path: Path) -> None:
    together = Barrier(THREADS)

    def open_and_write(home: Path) -> int:
        together.wait(timeout=60)
        store = open_store(sqlite_url(home), may_migrate=True)
        number = store.append([NOTED])
        store.close()
        return number

    with ThreadPoolExecutor(THREADS) as threads:
        for number in range(ROUNDS):
            homes = [tmp_path / f"home-{number}"] * THREADS
            assert sorted(threads.map(open_and_write, homes)) == list(range(1, THREADS + 1))


def test_processes_that_open_one_new_database_at_once_all_can(tmp_path: Path) -> None:
    with ExitStack() as ended:
        openers = [ended.enter_context(an_opener()) for _ in range(PROCESSES)]
        assert [said(opener) for opener in openers] == ["ready"] * PROCESSES
        for number in range(ROUNDS):
            for opener in openers:
                assert opener.stdin is not None
                opener.stdin.write(sqlite_url(tmp_path / f"home-{number}") + "\n")
                opener.stdin.flush()
            numbers = [said(opener) for opener in openers]
            assert sorted(numbers) == [str(each) for each in range(1, PROCESSES + 1)]
        for opener in openers:
            opener.communicate(timeout=60)
        assert [opener.returncode for opener in openers] == [0] * PROCESSES


def an_opener() -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", OPENER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def said(opener: "subprocess.Popen[str]") -> str:
    assert opener.stdout is not None
    return opener.stdout.readline().strip()


@pytest.mark.parametrize("number", range(10))
def test_a_command_and_its_controller_begin_a_new_home_at_once(tmp_path: Path, number: int) -> None:
    settings = Settings(home=tmp_path / "home", node=f"host-{number}")
    host = ControllerHost(settings)
    try:
        assert host.try_start()
        with open_desk(settings) as desk:
            desk.store.append([NOTED])
            assert desk.store.version() >= 1
    finally:
        host.stop(leave_agents=False)
    assert host.failure is None
