"""Runs that are followed in a pipe: what is said, how they end, who takes over."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from shell import COMMAND, LIMIT_S, Shell, until

RECEIPT = [
    "run", "jobs", "spent_usd", "budget_usd", "lost_work_s", "interruptions", "reserved_usd",
    "released_usd", "saved_usd", "planned_usd", "one_each_usd", "machines", "providers",
    "running_usd", "wasted_usd", "parts", "otherwise",
]  # fmt: skip


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    typed = Shell(tmp_path)
    yield typed
    typed.close()


def a_file(shell: Shell, name: str, command: str, more: str = "") -> str:
    return shell.write(f"{name}.yaml", f"name: {name}\ncommand: '{command}'\n{more}")


def until_gate_opens(gate: Path) -> str:
    """A command that runs until a file appears; no sleep decides how long."""
    return f"echo begun; while [ ! -e {gate} ]; do sleep 0.1; done; echo ended"


def test_a_run_says_what_happens_and_ends_with_its_receipt(shell: Shell) -> None:
    said = shell("run", "-y", a_file(shell, "hello", "echo hello there"), "--budget", "50")
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    told = [" ".join(line.split()[2:]) for line in lines if line[2:3] == ":"]
    assert told == ["starting on host", "running on host", "completed"]
    assert "hello there" in lines
    assert lines[-1].startswith("1 of 1 job completed, spent 0.00 USD of 50.00 USD")


def test_a_run_as_json_is_one_receipt(shell: Shell) -> None:
    file = a_file(shell, "hello", "echo hello there", "project: greetings\n")
    said = shell("run", "-y", "--json", "--budget", "2.50", file)
    receipt = said.document
    assert list(receipt) == RECEIPT
    assert receipt["budget_usd"] == 2.5
    (job,) = receipt["jobs"]
    assert (job["name"], job["project"], job["state"]) == ("hello", "greetings", "completed")
    assert (job["node"], job["provider"], job["market"]) == ("host", "local", "local")
    assert "hello there" in said.err


def test_a_run_ends_with_the_code_of_its_job(shell: Shell) -> None:
    said = shell("run", "-y", a_file(shell, "bad", "echo oh no; exit 42"))
    assert said.code == 42
    assert "oh no" in said.out
    assert "exit code 42" in said.out


def test_words_after_the_dashes_and_variables_reach_the_job(shell: Shell) -> None:
    file = a_file(shell, "words", 'echo "$GREETING"')
    said = shell("run", "-y", file, "--env", "GREETING=good day", "--", "to", "you all")
    assert "good day to you all" in said.out.splitlines()


def test_lines_of_several_jobs_say_whose_they_are(shell: Shell) -> None:
    file = shell.write(
        "two.yaml",
        "jobs:\n- {name: one, command: echo from one}\n- {name: two, command: echo from two}\n",
    )
    said = shell("run", "-y", file)
    assert said.code == 0
    printed = {line.split("-")[0]: line for line in said.out.splitlines() if " | " in line}
    assert printed["one"].endswith(" | from one")
    assert printed["two"].endswith(" | from two")


def test_what_nothing_can_run_is_refused_with_its_line(shell: Shell) -> None:
    said = shell("run", "-y", a_file(shell, "big", "true", "resources: {cpu: 4000}\n"))
    assert said.code == 111
    assert "big.yaml:3:1" in said.err
    assert "4000" in said.err
    assert shell.jobs() == []


def test_a_cancelled_run_says_so(shell: Shell, tmp_path: Path) -> None:
    file = a_file(shell, "long", until_gate_opens(tmp_path / "gate"))
    follower = shell.start("run", "-y", file)
    shell.until_state("long", "running")
    assert shell("cancel", "long").code == 0
    out, _ = follower.communicate(timeout=60)
    assert follower.returncode == 116
    assert "cancelled" in out


def test_a_paused_job_goes_on_when_it_is_resumed(shell: Shell, tmp_path: Path) -> None:
    file = a_file(shell, "long", until_gate_opens(tmp_path / "gate"))
    follower = shell.start("run", "-y", file)
    shell.until_state("long", "running")
    assert shell("pause", "long").code == 0
    shell.until_state("long", "paused")
    assert shell("resume", "long").code == 0
    shell.until_state("long", "running")
    (tmp_path / "gate").touch()
    out, _ = follower.communicate(timeout=60)
    assert follower.returncode == 0, out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_follower_that_is_told_to_go_loses_nothing(
    shell: Shell, tmp_path: Path, number: signal.Signals
) -> None:
    file = a_file(shell, "long", until_gate_opens(tmp_path / "gate"))
    follower = shell.start("run", "-y", file)
    shell.until_state("long", "running")
    follower.send_signal(number)
    out, _ = follower.communicate(timeout=60)
    assert follower.returncode == 128 + number
    assert "cloudwhale attach run-" in out
    (tmp_path / "gate").touch()
    back = shell("attach", out.split("cloudwhale attach ")[1].split()[0])
    assert back.code == 0
    assert "1 of 1 job completed" in back.out
    until("all that was left behind to end by itself", lambda: shell.processes() == [])


INTERRUPTED_WHILE_QUEUEING = """\
import os, signal, sys
from cloudwhale.cli import main, watching
queue = watching.queue
def interrupted(desk, sheaf):
    os.kill(os.getpid(), signal.SIGINT)
    return queue(desk, sheaf)
watching.queue = interrupted
sys.argv = ["cloudwhale", "run", "-y", "a.yaml"]
main()
"""


def test_who_interrupts_the_queueing_is_told_how_to_come_back(shell: Shell) -> None:
    shell.write("a.yaml", 'name: a\ncommand: "true"\n')
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_WHILE_QUEUEING], cwd=shell.folder,
        env=shell.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 130, done.stderr
    assert "Come back: cloudwhale attach run-" in done.stdout
    shell.until_state("a", "completed")


def test_the_same_command_takes_up_an_unfinished_run(shell: Shell, tmp_path: Path) -> None:
    file = a_file(shell, "long", until_gate_opens(tmp_path / "gate"))
    follower = shell.start("run", "-y", file)
    shell.until_state("long", "running")
    follower.kill()
    follower.communicate(timeout=60)
    second = shell.start("run", "-y", file)
    until("the second to hold the lock", lambda: _holder(shell) == second.pid)
    (tmp_path / "gate").touch()
    out, _ = second.communicate(timeout=60)
    assert second.returncode == 0
    assert "taking up run-" in out
    assert len(shell.jobs()) == 1
    assert shell("run", "-y", file, "--json").document["jobs"][0]["state"] == "completed"
    assert len(shell.jobs()) == 2


def test_equal_commands_at_the_same_time_are_one_run(shell: Shell, tmp_path: Path) -> None:
    file = a_file(shell, "long", until_gate_opens(tmp_path / "gate"))
    followers = [shell.start("run", "-y", file) for _ in range(3)]
    for follower in followers:
        assert follower.stdout is not None
        assert any("begun" in line for line in follower.stdout)  # it follows a job that runs
    (tmp_path / "gate").touch()
    said = [follower.communicate(timeout=60)[0] for follower in followers]
    assert [follower.returncode for follower in followers] == [0, 0, 0], said
    assert len(shell.jobs()) == 1


def _holder(shell: Shell) -> int:
    said = (shell.home / "cloudwhale.db.lock").read_text().split()
    return int(said[1]) if said else 0


def test_a_second_follower_takes_over_when_the_first_is_killed(
    shell: Shell, tmp_path: Path
) -> None:
    file = a_file(shell, "long", until_gate_opens(tmp_path / "gate"))
    first = shell.start("run", "-y", file)
    shell.until_state("long", "running")
    second = shell.start("attach")
    first.kill()
    first.communicate(timeout=60)
    until("the second to take the lock", lambda: _holder(shell) == second.pid)
    (tmp_path / "gate").touch()
    out, _ = second.communicate(timeout=60)
    assert second.returncode == 0, out
    assert shell.jobs()[0].attempt == 1


def test_what_was_submitted_is_worked_off_until_nothing_is_left(shell: Shell) -> None:
    shell("submit", a_file(shell, "a", "true"), a_file(shell, "b", "exit 3"))
    assert shell("controller", "--until-empty").code == 0
    assert shell.states() == {"a": "completed", "b": "failed"}
    until("the agent to go", lambda: shell.processes() == [])


def test_a_controller_whose_log_cannot_be_written_works_on(shell: Shell) -> None:
    shell.write("a.yaml", 'name: a\ncommand: "true"\n')
    shell("submit", "a.yaml")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "controller", "--until-empty"], cwd=shell.folder, env=shell.environment,
            stdin=subprocess.DEVNULL, stdout=full, stderr=full, timeout=LIMIT_S, check=False,
        )  # fmt: skip
    assert shell.states() == {"a": "completed"}
    assert done.returncode == 0


def test_logs_are_kept_and_can_be_followed(shell: Shell, tmp_path: Path) -> None:
    file = a_file(shell, "long", until_gate_opens(tmp_path / "gate"))
    run = shell.start("run", "-y", file)
    shell.until_state("long", "running")
    logs = shell.start("logs", "-f", "long")
    (tmp_path / "gate").touch()
    out, _ = logs.communicate(timeout=60)
    assert (logs.returncode, out) == (0, "begun\nended\n")
    run.communicate(timeout=60)
    assert shell("logs", "long").out == "begun\nended\n"
    assert shell("logs", "long", "--json").document["lines"] == ["begun", "ended"]
    refused = shell("logs", "long", "--attempt", "7")
    assert refused.code == 2
    assert "it has had 1" in refused.err


def test_a_waiting_job_says_why_and_starts_when_that_is_changed(
    shell: Shell, tmp_path: Path
) -> None:
    full = "resources: {gpu: 1}\n"
    shell.settings = {"CLOUDWHALE_DEVICES": "1x RTX4090 24GB"}
    file = a_file(shell, "first", until_gate_opens(tmp_path / "gate"), full)
    first = shell.start("run", "-y", file)
    shell.until_state("first", "running")
    second = shell.start("run", "-y", a_file(shell, "second", "true", full))
    until(
        "the reason to be told",
        lambda: [job.reason for job in shell.jobs() if job.spec.name == "second" and job.reason],
    )
    story = shell("explain", "second").out
    assert "[no-room-now]" in story
    assert "why not there: 1 node refused" in story
    assert "nearest miss: host: " in story
    assert "what would change it: " in story
    (tmp_path / "gate").touch()
    for follower in (first, second):
        out, _ = follower.communicate(timeout=60)
        assert follower.returncode == 0, out
    told = shell("explain", "second", "--json").document["story"]
    rounds = [row["round"] for row in told if row["round"]]
    assert rounds
    for number in rounds:
        assert shell("replay", str(number), "--json").document["agrees"] is True
    again = shell("replay", str(rounds[-1]), "--resolve", "--json").document
    assert (again["agrees"], again["solved"]) == (True, []), "nothing was rented"


def test_nodes_show_what_is_taken(shell: Shell, tmp_path: Path) -> None:
    shell.settings = {"CLOUDWHALE_DEVICES": "2x RTX4090 24GB"}
    file = a_file(shell, "a", until_gate_opens(tmp_path / "gate"), "resources: {gpu: 1}\n")
    run = shell.start("run", "-y", file)
    shell.until_state("a", "running")
    (node,) = shell("nodes", "--json").document["nodes"]
    assert [device["free_share"] for device in node["devices"]] == [0.0, 1.0]
    assert all(device["declared"] for device in node["devices"])
    assert "declared" in shell("nodes").out
    (tmp_path / "gate").touch()
    run.communicate(timeout=60)


def test_doctor_finds_this_host_well(shell: Shell) -> None:
    said = shell("doctor", "--json")
    found = {check["name"]: check for check in said.document["checks"]}
    assert {found[name]["state"] for name in ("python", "database", "mailbox", "policies")} == {
        "ok"
    }
    assert [check for check in found.values() if check["state"] == "failed"] == []
    assert said.code == 0
    assert all(check["remedy"] for check in found.values() if check["state"] == "warning")


def test_doctor_names_what_is_broken_and_how_to_mend_it(shell: Shell) -> None:
    shell.home.mkdir()
    (shell.home / "cloudwhale.db").write_text("this is no database")
    shell.settings = {"CLOUDWHALE_SCORE": "no-such-policy", "CLOUDWHALE_MAILBOX": "nonsense"}
    said = shell("doctor", "--json")
    failed = {
        check["name"]: check for check in said.document["checks"] if check["state"] == "failed"
    }
    assert failed.keys() == {"database", "mailbox", "policies"}
    assert all(check["remedy"] for check in failed.values())
    assert said.code == 1
