"""What `night` says before it asks or begins."""

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from cloudwhale.cli.exits import WrongUsage
from cloudwhale.cli.nights import NightOptions, Tonight, night, tonight
from cloudwhale.cli.queueing import submit
from cloudwhale.cli.running import run
from cloudwhale.cli.wishes import RunOptions, Wishes
from cloudwhale.control.store.memory import MemoryStore
from cloudwhale.settings import load
from cloudwhale.spi.errors import DeadlineImpossible, SpecError

if TYPE_CHECKING:
    from cloudwhale.control.desk import Desk

GOOD = "jobs: [{name: a, command: 'true'}]\n"


def asked(path: Path) -> NightOptions:
    return NightOptions(path, Wishes(), yes=False, now=False, as_json=False)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("jobs: [{name: a, comand: x}]\nwindow: 22:00..08:00\n", "comand"),
        (GOOD, "no `window`"),
        (f"{GOOD}window: 22:00..22:00\n", "ends when it begins"),
        (f"{GOOD}window: 22:00..08:00\nbudget: -3\n", "-3"),
        (None, "no such file"),
    ],
)
def test_a_bad_night_is_refused_before_it_is_said_that_nobody_can_be_asked(
    tmp_path: Path, text: str | None, wrong: str
) -> None:
    path = tmp_path / "lab.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SpecError, match=wrong):
        night(asked(path))


def test_so_is_a_bad_file_that_is_run(tmp_path: Path) -> None:
    path = tmp_path / "lab.yaml"
    path.write_text("jobs: [{name: a, comand: x}]\n")
    with pytest.raises(SpecError, match="comand"):
        run(RunOptions(path, Wishes(), yes=False, new=False, as_json=False))


def test_a_good_night_is_not_begun_where_nobody_can_be_asked(tmp_path: Path) -> None:
    path = tmp_path / "lab.yaml"
    path.write_text(f"{GOOD}window: 22:00..08:00\n")
    with pytest.raises(WrongUsage, match="nobody can be asked"):
        night(asked(path))


AFTERNOON, OPENS = 1_796_054_400.0, 1_796_072_400.0  # 17:00 and 22:00 on 2026-11-30 in Berlin


def begun_at(path: Path, now: float) -> Tonight:
    desk = SimpleNamespace(clock=SimpleNamespace(now=lambda: now), store=MemoryStore())
    desk.settings = load(path.parent, {})
    return tonight(cast("Desk", desk), path, Wishes(), now=False)


@pytest.mark.parametrize("now", [AFTERNOON, OPENS - 60.0, OPENS + 4 * 3600])
def test_a_deadline_that_is_a_length_counts_from_when_the_night_opens(
    tmp_path: Path, now: float
) -> None:
    path = tmp_path / "lab.yaml"
    path.write_text(
        "window: 22:00..08:00\nzone: Europe/Berlin\ndeadline: 5h\njobs:\n"
        "- {name: a, command: 'true'}\n- {name: b, command: 'true', deadline: 4h30m}\n"
        "- {name: c, command: 'true', deadline: 2026-12-01T03:00+01:00}\n"
    )
    found = begun_at(path, now)
    due = [spec.deadline for spec in found.specs]
    assert due == [OPENS + 5 * 3600, OPENS + 4.5 * 3600, OPENS + 5 * 3600]
    assert found.night.deadline == OPENS + 5 * 3600


def test_a_deadline_that_is_over_since_the_night_has_opened_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "lab.yaml"
    path.write_text(f"{GOOD}window: 22:00..08:00\nzone: Europe/Berlin\ndeadline: 5h\n")
    with pytest.raises(DeadlineImpossible, match="has passed"):
        begun_at(path, OPENS + 6 * 3600)


def test_who_queues_a_night_by_day_is_told_that_its_jobs_begin_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "my lab.yaml"
    path.write_text(f"{GOOD}window: 22:00..08:00\n")
    monkeypatch.setenv("CLOUDWHALE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    assert submit([path], Wishes(), as_json=False) == 0
    assert f"`cloudwhale night '{path}'` keeps to its window" in capsys.readouterr().out
