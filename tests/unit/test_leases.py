"""The lease of a job without an agent: its shim ends it in time, and only then."""

import fcntl
import os
from pathlib import Path
from typing import Any

import pytest
from live_agent import a_start

from cloudwhale.agent.attempts import AttemptFolder
from cloudwhale.agent.duty import _lands_at
from cloudwhale.agent.leases import keep_lease, signal_number, stops_after_s, told_of_lease
from cloudwhale.agent.place import Place
from cloudwhale.agent.shim_lease import LOOK_EVERY_S, Lease
from cloudwhale.agent.state import AgentState, Attempt
from cloudwhale.model.job import CheckpointRule

LEASE_S = 600.0
WALL = 1_000_000.0


class Shim:
    """A shim's view of its lease, over time."""

    def __init__(self, tmp_path: Path, **rule: Any) -> None:
        self.place = Place(tmp_path, "gpu")
        self.place.attempts.mkdir(parents=True)
        keep_lease(self.place, LEASE_S)
        self.folder = AttemptFolder(self.place.attempts, ("job", 1))
        self.folder.path.mkdir(parents=True)
        os.mkfifo(self.folder.path / "control")
        self.pipe = os.open(self.folder.path / "control", os.O_RDWR | os.O_NONBLOCK)
        checkpoint = CheckpointRule(grace_s=60.0, signal="SIGUSR1")
        self.told = told_of_lease(self.folder, a_start(checkpoint=checkpoint))
        self.lease = Lease(str(self.folder.path), self.told)
        self.touch(0.0)

    def touch(self, at: float) -> None:
        """Let the store answer the agent."""
        note = self.place.path / "heard"
        note.touch()
        os.utime(note, (WALL + at, WALL + at))

    def look(self, at: float) -> bytes:
        """Look at a time; return what the shim is ordered."""
        self.lease.look(at, WALL + at)
        try:
            return os.read(self.pipe, 100)
        except BlockingIOError:
            return b""

    def ordered_at(self, begin: float, end: float) -> float | None:
        """Look every second; return when it was ordered to stop."""
        at = begin
        while at < end:
            if self.look(at):
                return at
            at += 1.0
        return None


def test_without_an_agent_a_job_is_stopped_so_that_it_has_ended_when_the_lease_has(
    tmp_path: Path,
) -> None:
    at = Shim(tmp_path).ordered_at(0.0, 2 * LEASE_S)
    assert at is not None
    assert at + 60.0 <= LEASE_S <= at + 60.0 + 10.0 + LOOK_EVERY_S


def test_a_lease_begins_anew_whenever_the_store_has_answered_an_agent(tmp_path: Path) -> None:
    shim = Shim(tmp_path)
    for at in (0.0, 400.0, 800.0):
        shim.touch(at)
        assert shim.ordered_at(at, at + 400.0) is None
    at_last = shim.ordered_at(1200.0, 2000.0)
    assert at_last is not None and at_last >= 800.0 + stops_after_s(LEASE_S, 60.0)


def test_a_living_agent_is_left_to_judge_and_one_that_hangs_is_not(tmp_path: Path) -> None:
    shim = Shim(tmp_path)
    lock = os.open(shim.place.path / "agent.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    assert shim.ordered_at(0.0, LEASE_S - 1.0) is None
    assert shim.ordered_at(LEASE_S - 1.0, LEASE_S + 10.0) is not None
    os.close(lock)


def test_a_clock_that_is_set_forward_ends_no_lease(tmp_path: Path) -> None:
    shim = Shim(tmp_path)
    assert not shim.look(0.0)
    shim.lease.look(100.0, WALL + 90_000.0)
    assert not shim.look(106.0)


def test_a_silence_from_before_the_shim_began_counts(tmp_path: Path) -> None:
    shim = Shim(tmp_path)
    assert not shim.look(500.0)
    assert shim.ordered_at(500.0, 540.0) is not None


def test_the_next_agent_finds_why_the_job_was_stopped(tmp_path: Path) -> None:
    shim = Shim(tmp_path)
    shim.ordered_at(0.0, LEASE_S)
    wish = shim.folder.stop()
    assert wish is not None
    assert (wish.signal, wish.grace_s) == ("SIGUSR1", 60.0)
    assert wish.why.startswith("its agent was silent for 53")


def test_it_is_ordered_once(tmp_path: Path) -> None:
    shim = Shim(tmp_path)
    at = shim.ordered_at(0.0, LEASE_S)
    assert at is not None
    assert shim.ordered_at(at + 1.0, 3 * LEASE_S) is None


def test_where_the_controller_is_on_this_host_a_job_needs_no_agent(tmp_path: Path) -> None:
    shim = Shim(tmp_path)
    keep_lease(shim.place, None)
    assert told_of_lease(shim.folder, a_start()) is None
    shim.lease = Lease(str(shim.folder.path), None)
    assert shim.ordered_at(0.0, 10 * LEASE_S) is None


@pytest.mark.parametrize("grace_s", [0.0, 5.0, 90.0, 5000.0])
@pytest.mark.parametrize("lease_s", [10.0, 600.0])
def test_a_shim_stops_when_a_living_agent_would(grace_s: float, lease_s: float) -> None:
    attempt = Attempt(order=a_start(checkpoint=CheckpointRule(grace_s=grace_s)))
    state = AgentState("gpu", "gpu-1", lease_s=lease_s, silent_since=0.0)
    assert stops_after_s(lease_s, grace_s) == _lands_at(state, attempt)


def test_signals_are_known_by_name() -> None:
    assert [signal_number(name) for name in ("SIGUSR1", "usr1", "10", "NOSUCH")] == [10, 10, 10, 15]
