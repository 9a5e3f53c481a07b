"""The agent's eyes as a thread: what hangs them, and what is read of a container."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from cloudwhale.agent.eyes import HANGS_AFTER_S, IDLE_EVERY_S, Eyes, container_of
from cloudwhale.agent.gpu_sight import GpuSight
from cloudwhale.agent.seen import Seen, Used
from cloudwhale.agent.underway import Attempts
from cloudwhale.host.gpus import GpuUse
from cloudwhale.model.node import Facts

FACTS = Facts(cpu=2.0, memory_gib=8.0, disk_gib=50.0)


def test_a_driver_that_hangs_is_told_once_and_nobody_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reached, go_on, used = threading.Event(), threading.Event(), threading.Event()
    now = [0.0]

    def hang(sight: GpuSight, at: float) -> dict[str, GpuUse]:
        reached.set()
        go_on.wait(60.0)
        return {}

    def hear(event: Seen) -> None:
        assert isinstance(event, Used)
        used.set()

    monkeypatch.setattr(GpuSight, "look", hang)
    eyes = Eyes(cast(Attempts, SimpleNamespace(here={})), lambda: now[0], hear)
    eyes.start(FACTS)
    now[0] = IDLE_EVERY_S
    assert reached.wait(20.0)
    assert not eyes.hangs(now[0] + HANGS_AFTER_S - 1)
    assert eyes.hangs(now[0] + HANGS_AFTER_S)
    assert not eyes.hangs(now[0] + 2 * HANGS_AFTER_S), "once"
    eyes.close()
    go_on.set()
    assert used.wait(20.0)


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"id": ', '{"name": 1}'])
def test_a_folder_that_names_no_container_has_none(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "container.json").write_text(text)
    assert container_of(tmp_path) == ""


def test_a_container_is_named_by_its_id(tmp_path: Path) -> None:
    (tmp_path / "container.json").write_text('{"id": "4f1d"}')
    assert container_of(tmp_path) == "4f1d"
