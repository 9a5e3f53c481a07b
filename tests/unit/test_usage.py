"""What is used of a machine and by each attempt, measured on real processes."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from cloudwhale.agent.usage import HostUsage, JobUsage
from cloudwhale.clock import SystemClock, wait
from cloudwhale.model.job import Peaks

KEY = ("job", 1)
CLOCK = SystemClock()
Start = Callable[[str], int]
BUSY = "x = bytearray(50 << 20)\nprint('there', flush=True)\nwhile True: pass"
STILL = "import time\nprint('there', flush=True)\ntime.sleep(100)"


@pytest.fixture
def start() -> Iterator[Start]:
    """Start Python programs that say `there`; afterwards they are gone."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(program: str) -> int:
        words = [sys.executable, "-I", "-S", "-c", program]
        started.append(subprocess.Popen(words, stdout=subprocess.PIPE))
        assert started[-1].stdout is not None
        assert started[-1].stdout.readline() == b"there\n"
        return started[-1].pid

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def busy(usage: JobUsage, pids: list[int]) -> Peaks:
    """Look again and again until the processor was used."""
    for _ in range(200):
        wait(0.1)
        found = usage.look({KEY: pids}, CLOCK.steady())[KEY]
        if found.cpu:
            return found
    raise AssertionError("no processor was used for 20 s")


def test_an_attempt_uses_what_its_processes_use_together(start: Start) -> None:
    usage, pids = JobUsage(), [start(BUSY), start(STILL)]
    first = usage.look({KEY: pids}, CLOCK.steady())[KEY]
    assert first.memory_gib is not None
    assert 50 / 1024 < first.memory_gib < 0.2
    assert first.cpu is None, "a rate needs two looks"
    found = busy(usage, pids)
    assert found.cpu is not None
    assert 0 < found.cpu < (os.cpu_count() or 1) + 1
    assert found.network_mb_s is None, "it has the machine's network"


def test_what_was_used_before_the_first_look_is_no_peak(start: Start) -> None:
    usage, pid = JobUsage(), start(BUSY)
    wait(0.3)
    usage.look({}, CLOCK.steady() - 0.001)
    assert usage.look({KEY: [pid]}, CLOCK.steady())[KEY].cpu is None


def test_a_process_that_ends_meanwhile_takes_nothing_back(start: Start) -> None:
    usage, pids = JobUsage(), [start(BUSY), start(STILL)]
    busy(usage, pids)
    found = usage.look({KEY: pids[1:]}, CLOCK.steady() + 1.0)[KEY]
    assert found.cpu is not None
    assert found.cpu >= 0


def test_one_whose_processes_are_gone_uses_nothing_and_is_no_trouble() -> None:
    usage = JobUsage()
    for now in (1.0, 2.0):
        found = usage.look({KEY: [2**22 + 1]}, now)[KEY]
    assert (found.cpu, found.disk_io_mb_s) == (0.0, None)
    assert usage.look({KEY: []}, 3.0)[KEY].memory_gib is None


def test_a_machine_has_a_load_from_the_second_look_on(start: Start) -> None:
    host = HostUsage()
    first = host.look(CLOCK.steady())
    assert first.memory_gib is not None
    assert first.memory_gib > 0
    assert (first.cpu, first.network_mb_s) == (None, None)
    start(BUSY)
    for _ in range(200):
        wait(0.1)
        load = host.look(CLOCK.steady())
        if load.cpu:
            break
    assert load.cpu is not None
    assert 0 < load.cpu < (os.cpu_count() or 1) + 1
    assert load.disk_io_mb_s is not None
