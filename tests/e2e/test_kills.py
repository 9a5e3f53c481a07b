"""Real kills of real processes: the same command again, and nothing is lost or run twice."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from shell import Shell, until

from cloudwhale.model.job import JobState

MORTAL = Path(__file__).with_name("mortal.py")
POINTS = [(n, when) for n in (1, 3, 5, 7, 9) for when in ("before", "after")]
POINTS_OF_COMMITS = [*POINTS, (2, "within"), (4, "within")]


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    typed = Shell(tmp_path, {"CLOUDWHALE_CPU": "2"})
    yield typed
    typed.close()


@pytest.fixture
def team_shell(tmp_path: Path, postgres_url: str) -> Iterator[Shell]:
    """Give a shell whose database is PostgreSQL."""
    typed = Shell(tmp_path, {"CLOUDWHALE_CPU": "2", "CLOUDWHALE_DATABASE": postgres_url})
    yield typed
    typed.close()


def three_jobs(shell: Shell) -> str:
    """Three jobs that each write down that they began and ended, outside of everything."""
    book = shell.folder / "book"
    command = f"echo begin $0 >> {book}; sleep 0.2; echo end $0 >> {book}"
    jobs = [{"name": name, "command": command.replace("$0", name)} for name in ("a", "b", "c")]
    return shell.write("three.yaml", json.dumps({"jobs": jobs}))


@pytest.mark.parametrize(("point", "when"), POINTS)
def test_a_controller_killed_for_real_is_followed_by_one_that_finishes_its_work(
    shell: Shell, point: int, when: str
) -> None:
    killed_and_followed(shell, point, when)


@pytest.mark.postgres
@pytest.mark.parametrize(("point", "when"), POINTS_OF_COMMITS)
def test_the_same_holds_where_the_database_is_a_servers(
    team_shell: Shell, point: int, when: str
) -> None:
    killed_and_followed(team_shell, point, when)
    assert not list(team_shell.home.glob("*.db")), "nothing is kept in a file"


def killed_and_followed(shell: Shell, point: int, when: str) -> None:
    """Kill a run there; the same command again must end it as if nothing had been."""
    file = three_jobs(shell)
    first = subprocess.run(
        [sys.executable, str(MORTAL), str(point), when, "run", "-y", file],
        cwd=shell.folder, env=shell.environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert first.returncode == -signal.SIGKILL, first.stdout + first.stderr
    again = shell("run", "-y", "--json", file)
    assert again.code == 0, again.err
    receipt = again.document
    assert len(receipt["jobs"]) == 3
    assert {job["state"] for job in receipt["jobs"]} == {"completed"}
    assert {job["attempt"] for job in receipt["jobs"]} == {1}
    assert receipt["lost_work_s"] == 0
    book = (shell.folder / "book").read_text().splitlines()
    assert sorted(book) == sorted(f"{verb} {name}" for verb in ("begin", "end") for name in "abc")
    assert len(shell.jobs()) == 3, "the second command adopts what the first has submitted"


def pids(shell: Shell, part: str) -> list[int]:
    return [p.pid for p in shell.processes() if any(part in word for word in p.cmdline())]


def the_only(shell: Shell, part: str) -> int:
    """Return the one process of some words; what it has just forked carries them for a moment."""
    found: list[int] = []

    def is_alone() -> bool:
        found[:] = pids(shell, part)
        return len(found) == 1

    until(f"one {part}", is_alone)
    return found[0]


def test_an_agent_killed_for_real_is_replaced_by_one_that_adopts_its_jobs(shell: Shell) -> None:
    gate = shell.folder / "gate"
    command = f"echo begun >> {shell.folder}/book; while [ ! -e {gate} ]; do sleep 0.05; done"
    file = shell.write("one.yaml", json.dumps({"name": "one", "command": command}))
    run = shell.start("run", "-y", file)
    shell.until_state("one", "running")
    agent = the_only(shell, "cloudwhale.agent")
    os.kill(agent, signal.SIGKILL)
    until("another agent", lambda: [pid for pid in pids(shell, "cloudwhale.agent") if pid != agent])
    gate.touch()
    out, _ = run.communicate(timeout=60)
    assert run.returncode == 0, out
    (job,) = shell.jobs()
    assert (job.state, job.attempt) == (JobState.COMPLETED, 1)
    assert (shell.folder / "book").read_text() == "begun\n"


def test_a_shim_killed_for_real_takes_its_job_with_it_and_the_job_is_tried_again(
    shell: Shell,
) -> None:
    gate = shell.folder / "gate"
    command = (
        f"echo begun $CLOUDWHALE_ATTEMPT >> {shell.folder}/book; "
        f"while [ ! -e {gate} ]; do sleep 0.05; done"
    )
    job = {
        "name": "one",
        "command": command,
        "retry": {"max": 2, "on": ["node-loss"], "backoff": "1s"},
    }
    run = shell.start("run", "-y", shell.write("one.yaml", json.dumps(job)))
    shell.until_state("one", "running")
    shim = the_only(shell, "shim.py")
    os.kill(shim, signal.SIGKILL)
    until("the second attempt", lambda: (shell.folder / "book").read_text().count("begun") == 2)
    gate.touch()
    out, _ = run.communicate(timeout=60)
    assert run.returncode == 0, out
    assert (shell.folder / "book").read_text() == "begun 1\nbegun 2\n"
    assert "shim" in out


def test_nothing_is_left_running_after_a_run(shell: Shell) -> None:
    said = shell("run", "-y", three_jobs(shell))
    assert said.code == 0, said.out + said.err
    assert [job.state for job in shell.jobs()] == [JobState.COMPLETED] * 3
    until("the agent to leave", lambda: not shell.processes(), limit_s=60)
