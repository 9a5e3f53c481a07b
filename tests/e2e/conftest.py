"""A real agent for each test that asks for one, and nothing of it left when the test is over."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_agent import LiveAgent, until


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[LiveAgent]:
    """Give an agent that is not started yet; afterwards no process and no group may be left."""
    live = LiveAgent(tmp_path)
    try:
        yield live
        if live._process is not None and live.process.poll() is None:
            live.end()
        until(lambda: not live.processes(), f"no process of {live.home} is left")
        assert not [group for group in live.groups() if group.exists()]
    finally:
        for pid in live.processes():
            os.kill(pid, signal.SIGKILL)
        if live._process is not None and live.process.poll() is None:
            live.kill()


@pytest.fixture
def small_disk(agent: LiveAgent) -> Iterator[Path]:
    """Give the attempts a disk of their own of two megabytes."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    agent.attempts.mkdir(parents=True)
    words = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(agent.attempts)]
    if subprocess.run(words, capture_output=True).returncode:
        pytest.skip("this host does not let us mount a small disk")
    yield agent.attempts
    if agent.process.poll() is None:
        agent.end()
    subprocess.run(["umount", "-l", str(agent.attempts)], check=True)
