"""A real agent for each test that asks for one, and nothing of it left when the test is over."""

import os
import signal
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
