"""Commands and controllers at one PostgreSQL server: take-overs, outages, and no password shown."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres import Server, name_in
from shell import Shell, until

pytestmark = pytest.mark.postgres

TAKE_OVER_S = 5.0
SECRET = "pass-word-1"


@pytest.fixture
def shell(tmp_path: Path, postgres_url: str) -> Iterator[Shell]:
    typed = Shell(tmp_path, {"CLOUDWHALE_CPU": "2", "CLOUDWHALE_DATABASE": postgres_url})
    yield typed
    typed.close()


class Team:
    """What the server knows of the controllers at it."""

    def __init__(self, postgres: Server, url: str) -> None:
        self._postgres, self._url = postgres, url

    def epoch(self) -> int:
        rows = self._postgres.run_in(self._url, "SELECT max(number) FROM epochs")
        return int(rows[0][0] or 0)

    def wrote(self) -> list[int]:
        """Return the epochs of the controllers that wrote, in the order of what they wrote."""
        asked = "SELECT epoch FROM events WHERE epoch IS NOT NULL ORDER BY seq"
        return [epoch for (epoch,) in self._postgres.run_in(self._url, asked)]

    def end_lock_of(self, process: "subprocess.Popen[str]") -> None:
        """End the session that a controller holds its lock with, as an operator may."""
        assert self._postgres.end_sessions(self._url, f"pid {process.pid} %") == 1

    def open_to_all(self, allowed: bool) -> None:
        """Let programs connect, or no more."""
        name = name_in(self._url)
        self._postgres.run(f"ALTER DATABASE {name} ALLOW_CONNECTIONS {allowed}")
        if not allowed:
            self._postgres.end_sessions(self._url)


@pytest.fixture
def team(postgres: Server, postgres_url: str) -> Team:
    return Team(postgres, postgres_url)


def controller(shell: Shell, team: Team) -> "subprocess.Popen[str]":
    """Start a controller that holds the lock before anybody else does, and has begun to work."""
    before = team.epoch()
    process = shell.start("controller")
    until("its epoch", lambda: team.epoch() == before + 1)
    hear(process, "working on the queue")
    return process


def hear(process: "subprocess.Popen[str]", words: str) -> str:
    """Read what a process prints up to some words; fail when it ends without them."""
    assert process.stdout is not None
    heard = ""
    while words not in heard:
        line = process.stdout.readline()
        assert line, f"it ended before it said {words!r}: {heard}"
        heard += line
    return heard


def waiting(shell: Shell) -> "subprocess.Popen[str]":
    """Start a controller that waits for the lock."""
    process = shell.start("controller")
    hear(process, "waiting: pid ")
    return process


def submit(shell: Shell, *names: str) -> None:
    jobs = [{"name": name, "command": "sleep 0.1"} for name in names]
    file = shell.write("some.yaml", json.dumps({"jobs": jobs}))
    said = shell("submit", file)
    assert said.code == 0, said.err


def test_a_killed_controller_is_followed_within_five_seconds(shell: Shell, team: Team) -> None:
    first = controller(shell, team)
    waiting(shell)
    submit(shell, "a")
    shell.until_state("a", "completed")
    first.send_signal(signal.SIGKILL)
    until("the take-over", lambda: team.epoch() == 2, limit_s=TAKE_OVER_S)
    submit(shell, "b")
    shell.until_state("b", "completed")
    assert team.wrote() == sorted(team.wrote())
    assert set(team.wrote()) == {1, 2}


def test_a_stopped_controller_whose_session_is_ended_is_followed_and_never_writes_again(
    shell: Shell, team: Team
) -> None:
    first = controller(shell, team)
    second = waiting(shell)
    submit(shell, "a")
    shell.until_state("a", "completed")
    first.send_signal(signal.SIGSTOP)
    team.end_lock_of(first)
    until("the take-over", lambda: team.epoch() == 2, limit_s=TAKE_OVER_S)
    submit(shell, "b")
    first.send_signal(signal.SIGCONT)
    shell.until_state("b", "completed")
    out, _ = first.communicate(timeout=30)
    assert first.returncode not in (0, None), out
    assert "has lost the lock of the queue" in out or "has taken over" in out
    assert second.poll() is None
    assert team.wrote() == sorted(team.wrote()), "nobody wrote after the other had"


def test_a_run_outlasts_a_server_that_goes_away_for_a_while(shell: Shell, team: Team) -> None:
    gate = shell.folder / "gate"
    command = f"while [ ! -e {gate} ]; do sleep 0.05; done; echo through"
    run = shell.start(
        "run", "-y", shell.write("one.yaml", json.dumps({"name": "one", "command": command}))
    )
    until("it runs", lambda: "running" in shell.states().values())
    team.open_to_all(False)
    seen = hear(run, "waiting: ")
    gate.touch()
    team.open_to_all(True)
    out, _ = run.communicate(timeout=60)
    assert run.returncode == 0, seen + out
    assert "through" in out
    (job,) = shell.jobs()
    assert (job.state.value, job.attempt) == ("completed", 1)


@pytest.mark.parametrize("words", [["doctor"], ["doctor", "--json"], ["ps"], ["version"]])
def test_no_command_shows_the_password_of_the_database(tmp_path: Path, words: list[str]) -> None:
    shell = Shell(
        tmp_path, {"CLOUDWHALE_DATABASE": f"postgresql://ann:{SECRET}@/whale?host={tmp_path}"}
    )
    said = shell(*words)
    assert SECRET not in said.out + said.err
    if "version" not in words:
        assert "ann:***@" in said.out + said.err


def test_the_log_of_a_controller_shows_no_password(
    tmp_path: Path, shell: Shell, team: Team, postgres: Server
) -> None:
    url = shell.settings["CLOUDWHALE_DATABASE"].replace("whale@", f"whale:{SECRET}@")
    shell = Shell(tmp_path, {"CLOUDWHALE_CPU": "1", "CLOUDWHALE_DATABASE": url})
    process = controller(shell, team)
    until("it works", lambda: bool(team.wrote()))  # who only begins ends without its database
    team.open_to_all(False)
    seen = hear(process, "controller waits: ")
    team.open_to_all(True)
    until("it goes on", lambda: team.epoch() == 2)
    process.terminate()
    out, _ = process.communicate(timeout=30)
    assert SECRET not in seen + out
    assert "whale:***@" in seen


def test_doctor_names_the_server_and_says_when_the_mailbox_is_not_shared(shell: Shell) -> None:
    rows = {row["name"]: row for row in shell("doctor", "--json").document["checks"]}
    assert rows["database"]["state"] == "ok"
    assert "postgresql://" in rows["database"]["says"]
    assert rows["mailbox"]["state"] == "warning"
    assert os.fspath(shell.home) in rows["mailbox"]["says"]
