"""Runs that are followed on a terminal: the question, the live rows, Ctrl-C."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from shell import Shell, Terminal, until

INTERRUPT = "\x03"


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    typed = Shell(tmp_path)
    yield typed
    typed.close()


def a_long_job(shell: Shell, gate: Path) -> str:
    command = f"echo begun; while [ ! -e {gate} ]; do sleep 0.1; done; echo ended"
    return shell.write("long.yaml", f"name: long\ncommand: '{command}'\n")


def test_a_person_is_shown_the_plan_and_asked(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "gate").touch()
    terminal = Terminal(shell, "run", a_long_job(shell, tmp_path / "gate"))
    terminal.shows("runs now")
    terminal.shows("[Y/n]")
    terminal.press("\n")
    terminal.shows("1 of 1 job completed")
    assert terminal.ends() == 0
    assert "begun" in terminal.shown


def test_a_person_who_says_no_has_queued_nothing(shell: Shell, tmp_path: Path) -> None:
    terminal = Terminal(shell, "run", a_long_job(shell, tmp_path / "gate"))
    terminal.shows("[Y/n]")
    terminal.press("n\n")
    assert terminal.ends() == 0
    assert shell.jobs() == []


def test_of_two_people_who_say_yes_to_the_same_run_one_submits_it(
    shell: Shell, tmp_path: Path
) -> None:
    file = a_long_job(shell, tmp_path / "gate")
    terminals = [Terminal(shell, "run", file), Terminal(shell, "run", file)]
    for terminal in terminals:
        terminal.shows("[Y/n]")
    for terminal in terminals:
        terminal.press("\n")
    for terminal in terminals:
        terminal.shows("begun")
    (tmp_path / "gate").touch()
    assert [terminal.ends() for terminal in terminals] == [0, 0]
    assert sum("taking up run-" in terminal.shown for terminal in terminals) == 1
    assert len(shell.jobs()) == 1


def test_ctrl_c_offers_to_stop_the_jobs(shell: Shell, tmp_path: Path) -> None:
    terminal = Terminal(shell, "run", "-y", a_long_job(shell, tmp_path / "gate"))
    terminal.shows("begun")
    terminal.press(INTERRUPT)
    terminal.shows("[s]top")
    terminal.press("s")
    assert terminal.ends() == 116
    assert shell.states() == {"long": "cancelled"}


def test_ctrl_c_offers_to_detach(shell: Shell, tmp_path: Path) -> None:
    terminal = Terminal(shell, "run", "-y", a_long_job(shell, tmp_path / "gate"))
    terminal.shows("begun")
    terminal.press(INTERRUPT)
    terminal.shows("[d]etach")
    terminal.press("d")
    assert terminal.ends() == 0
    assert "cloudwhale attach run-" in terminal.shown
    assert shell.states() == {"long": "running"}
    (tmp_path / "gate").touch()
    shell.until_state("long", "completed")
    until("all that was left behind to end by itself", lambda: shell.processes() == [])


def test_ctrl_c_offers_to_go_on(shell: Shell, tmp_path: Path) -> None:
    terminal = Terminal(shell, "run", "-y", a_long_job(shell, tmp_path / "gate"))
    terminal.shows("begun")
    terminal.press(INTERRUPT)
    terminal.shows("[c]ontinue")
    terminal.press("c")
    (tmp_path / "gate").touch()
    assert terminal.ends() == 0


def test_a_second_ctrl_c_detaches(shell: Shell, tmp_path: Path) -> None:
    terminal = Terminal(shell, "run", "-y", a_long_job(shell, tmp_path / "gate"))
    terminal.shows("begun")
    terminal.press(INTERRUPT)
    terminal.shows("[d]etach")
    terminal.press(INTERRUPT)
    assert terminal.ends() == 0
    assert shell.states() == {"long": "running"}


def test_a_terminal_that_closes_loses_nothing(shell: Shell, tmp_path: Path) -> None:
    terminal = Terminal(shell, "run", "-y", a_long_job(shell, tmp_path / "gate"))
    terminal.shows("begun")
    terminal.closes()
    (tmp_path / "gate").touch()
    shell.until_state("long", "completed")
