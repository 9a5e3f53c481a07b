"""An end by SIGKILL is the kernel's for memory when it counted one just before, and only then."""

from pathlib import Path

import pytest

from cloudwhale.agent import shim_oom
from cloudwhale.agent.shim_oom import KILLED, LOOK_EVERY_S, WHOLE_MACHINE, KernelKills, counter


def counted(path: Path, kills: int) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"low 0\noom 9\noom_kill {kills}\noom_group_kill 0\n")
    return str(path)


def test_a_kill_that_was_counted_explains_an_end_by_sigkill_alone(tmp_path: Path) -> None:
    kernel = KernelKills(0.0, counted(tmp_path / "events", 3))
    assert not kernel.explain(KILLED)
    counted(tmp_path / "events", 4)
    assert kernel.explain(KILLED)
    assert not kernel.explain(1)
    assert not kernel.explain(None)


def test_a_kill_of_long_ago_explains_nothing(tmp_path: Path) -> None:
    kernel = KernelKills(0.0, counted(tmp_path / "events", 3))
    counted(tmp_path / "events", 4)
    kernel.look(LOOK_EVERY_S - 1.0)
    kernel.look(LOOK_EVERY_S)
    assert kernel.explain(KILLED), "it is not ten seconds ago"
    kernel.look(2 * LOOK_EVERY_S)
    assert not kernel.explain(KILLED)


def test_kills_are_counted_where_fewest_others_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shim_oom, "GROUPS", str(tmp_path))
    own = tmp_path / "own"
    own.write_text("9:name=systemd:/\n4:cpu,memory:/agent\n0::/agent\n")
    job = str(tmp_path / "job")
    assert counter([job], str(own)) == WHOLE_MACHINE
    newer = counted(tmp_path / "agent" / "memory.events.local", 0)
    assert counter([job], str(own)) == newer
    older = counted(tmp_path / "memory" / "agent" / "memory.oom_control", 0)
    assert counter([job], str(own)) == older
    its_own = counted(tmp_path / "job" / "memory.events", 0)
    assert counter([job], str(own)) == its_own


def test_a_host_that_counts_nothing_explains_nothing(tmp_path: Path) -> None:
    assert not KernelKills(0.0, str(tmp_path / "none")).explain(KILLED)
    assert counter([], str(tmp_path / "none")) == WHOLE_MACHINE
