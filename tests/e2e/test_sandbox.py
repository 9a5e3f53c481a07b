"""A whole cloud on this host: rented, run, returned, billed twice, and nothing left running."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from shell import COMMAND, Shell, until

from cloudwhale.control.store import open_store, sqlite_url
from cloudwhale.model import event as e
from cloudwhale.model.units import MicroUsd
from cloudwhale_providers.sandbox import Sandbox
from cloudwhale_providers.sandbox.processes import of_folder
from cloudwhale_providers.sandbox.record import Lock

READABLE = all(path.stat().st_mode & 0o005 for path in Path(sys.executable).resolve().parents)
JOB = 'name: {name}\ncommand: {command}\nresources: {{gpu: "A10G:1", cpu: 1}}\nduration: {length}\n'
SAVES = """
for n in $(seq 32); do
    echo $n > $CLOUDWHALE_CHECKPOINT_DIR/step.tmp
    mv $CLOUDWHALE_CHECKPOINT_DIR/step.tmp $CLOUDWHALE_CHECKPOINT_DIR/step
    sleep 1
done
"""
"""Half a minute of work that is saved each second."""
RESUMES = """
n=$(cat $CLOUDWHALE_CHECKPOINT_DIR/step || echo 0)
echo from $n
while [ $n -lt 40 ]; do
    n=$((n + 1))
    echo $n > $CLOUDWHALE_CHECKPOINT_DIR/step.tmp
    mv $CLOUDWHALE_CHECKPOINT_DIR/step.tmp $CLOUDWHALE_CHECKPOINT_DIR/step
    sleep 0.4
done
"""
USERS = {
    "AWS_PROFILE": "work", "AWS_SESSION_TOKEN": "dummy", "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9",
    "AWS_ACCESS_KEY_ID": "dummy", "AWS_SECRET_ACCESS_KEY": "dummy", "HTTP_PROXY": "http://127.0.0.1:9",
}  # fmt: skip
"""What a user with an account may have set; with any of it nothing in the box would be reached."""


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    found = Shell(tmp_path, settings=USERS)
    yield found
    found("sandbox", "stop")
    assert of_folder(box(found)) == frozenset(), "machines end with their box"
    found.close()


def box(shell: Shell) -> Path:
    return shell.home / "sandbox" / "cloud"


def a_job(shell: Shell, command: str, name: str = "train", length: str = "5m") -> str:
    text = JOB.format(name=name, command=json.dumps(command), length=length)
    return shell.write(f"{name}.yaml", text)


def spent(shell: Shell) -> MicroUsd:
    """Return what the ledger says that all runs have cost."""
    with closing(open_store(sqlite_url(shell.home / "sandbox"), may_migrate=False)) as store:
        accounts = store.accounts()
    return MicroUsd(sum(one.spent for one in accounts if one.needs_limit))


def saved(shell: Shell) -> int:
    """Return how often checkpoints were published."""
    with closing(open_store(sqlite_url(shell.home / "sandbox"), may_migrate=False)) as store:
        told = store.since(0, 100_000)
    return sum(isinstance(one.event, e.CheckpointSaved) for one in told)


def metered(shell: Shell) -> list[Any]:
    return list(Sandbox().meter(box(shell)))


def test_a_job_is_rented_for_and_the_meter_says_what_the_ledger_says(shell: Shell) -> None:
    file = a_job(shell, "echo hello from the box; env")
    done = shell("run", file, "--budget", "5", "--sandbox", "-y")
    assert done.code == 0, done.err
    assert "hello from the box" in done.out
    assert "dummy" not in done.out, "nothing of the user's environment is on the machine"
    [machine] = metered(shell)
    assert machine.until is not None
    assert machine.cost == spent(shell) > 0
    assert not (shell.home / "cloudwhale.db").exists(), "it has a ledger of its own"
    assert shell("ps", "--sandbox", "--json").document["jobs"][0]["state"] == "completed"
    assert shell("leaks", "--sandbox", "--json").document["leaks"] == []
    told = shell("sandbox", "meter", "--json").document
    assert round(told["total_usd"] * 1e6) == machine.cost
    assert "Sandbox" not in shell("ps").out


def test_what_was_said_and_stored_is_there_after_the_box_has_ended(shell: Shell) -> None:
    file = a_job(shell, "echo to be kept")
    assert shell("run", file, "--budget", "5", "--sandbox", "-y").code == 0
    assert shell("sandbox", "stop").out == "The sandbox has ended.\n"
    assert shell("sandbox", "stop").out == "The sandbox does not run.\n"
    assert not shell("sandbox", "status", "--json").document["runs"]
    assert shell("ps", "--sandbox", "--json").document["jobs"][0]["state"] == "completed"
    assert not Lock(box(shell)).is_held(), "who only reads starts none"
    assert "to be kept" in shell("logs", "train", "--sandbox").out


def test_over_an_hour_that_takes_half_a_minute_ledger_and_meter_are_equal(shell: Shell) -> None:
    shell.write("fast.yaml", "speed: 120\nowned: none\nboot: 60s\n")
    for name in ("a", "b"):
        file = a_job(shell, SAVES, name=name, length="65m")
        shell.write(file, (shell.folder / file).read_text() + "checkpoint: {every: 4m}\n")
    words = ("--budget", "20", "--sandbox", "--sandbox-script", "fast.yaml")
    assert shell("submit", "a.yaml", "b.yaml", *words).code == 0
    controller = shell.start("controller", "--until-empty", "--sandbox")
    said, _ = controller.communicate(timeout=200)
    assert controller.returncode == 0, said
    machines = metered(shell)
    assert sum(one.until - one.since for one in machines) >= 3600
    assert sum(one.cost for one in machines) == spent(shell)
    jobs = shell("ps", "--sandbox", "--all", "--json").document["jobs"]
    assert {job["state"] for job in jobs} == {"completed"}
    assert not {job["node"] for job in jobs} & {"host"}, "this host takes none"
    assert saved(shell) >= 4, "intervals of checkpoints go as fast"


def test_a_machine_that_is_taken_back_saves_and_its_job_goes_on_elsewhere(shell: Shell) -> None:
    shell.write("w.yaml", "owned: none\ninterrupt: {after: 8s, machine: 1, notice: 8s}\n")
    file = a_job(shell, RESUMES)
    words = ("--budget", "9", "--sandbox", "--sandbox-script", "w.yaml", "-y")
    follower = shell.start("run", file, *words)
    said, _ = follower.communicate(timeout=120)
    assert follower.returncode == 0, said
    assert "taken-away" in said
    begun = [int(line.split()[1]) for line in said.splitlines() if line.startswith("from ")]
    assert begun[0] == 0 and begun[-1] > 0, said
    first, second = metered(shell)
    assert first.until is not None and first.until - first.since <= 17
    assert first.cost + second.cost == spent(shell)


def test_what_is_wrong_in_a_script_is_said_before_anything_starts(shell: Shell) -> None:
    file = a_job(shell, "true")
    shell.write("w.yaml", "boot: soon\n")
    done = shell("run", file, "--sandbox", "--sandbox-script", "w.yaml", "-y")
    assert done.code == 110
    assert "w.yaml:1:7: boot: 'soon' is no length of time" in done.err
    assert not box(shell).exists() or not Lock(box(shell)).is_held()


def test_another_script_than_that_of_the_box_that_runs_is_refused(shell: Shell) -> None:
    file = a_job(shell, "true", name="t")
    shell.write("one.yaml", "boot: 1s\n")
    shell.write("two.yaml", "boot: 2s\n")
    words = ("submit", file, "--budget", "5", "--sandbox", "--sandbox-script")
    assert shell(*words, "one.yaml").code == 0
    assert shell(*words, "one.yaml").code == 0, "the same again is no other"
    refused = shell(*words, "two.yaml")
    assert refused.code == 2
    assert "sandbox stop" in refused.err


def test_two_commands_at_one_moment_start_one_box(shell: Shell) -> None:
    file = a_job(shell, "true")
    both = [shell.start("submit", file, "--budget", "5", "--sandbox") for _ in range(2)]
    assert [each.wait(60) for each in both] == [0, 0]
    serving = [one for one in shell.processes() if "serve" in one.cmdline()]
    assert len(serving) == 1


def test_machines_of_a_box_that_was_killed_are_ended_by_the_next(shell: Shell) -> None:
    file = a_job(shell, "sleep 600")
    follower = shell.start("run", file, "--budget", "5", "--sandbox", "-y")
    instances = box(shell) / "instances"
    until("the job runs", lambda: len(of_folder(instances)) >= 4)
    follower.kill()
    follower.wait()
    for process in shell.processes():
        if "controller" in process.cmdline():
            process.kill()
    pid = shell("sandbox", "status", "--json").document["pid"]
    os.kill(pid, signal.SIGKILL)
    until("the box is gone", lambda: not Lock(box(shell)).is_held())
    left = of_folder(instances)
    assert left, "its machines run on without it"
    serving = shell.start("sandbox", "serve")
    until("the next answers", lambda: Sandbox().standing(box(shell)) is not None)
    assert not of_folder(instances) & left
    serving.terminate()
    assert serving.wait(30) == 0


SHORT = """
import sys
from pathlib import Path
from cloudwhale.clock import SystemClock
from cloudwhale_providers.sandbox.serving import serve
sys.exit(serve(Path(sys.argv[1]), None, SystemClock(), "processes", 0.2))
"""


def test_a_box_that_nobody_asks_anything_ends_by_itself(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SHORT, str(tmp_path / "box")],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "nobody is inside" in done.stderr
    assert Sandbox().surroundings(tmp_path / "box") is None


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.skipif(not READABLE, reason="another user cannot run this Python: it lies in a home")
def test_without_root_machines_have_no_containers_and_it_is_said() -> None:
    folder = Path(tempfile.mkdtemp(prefix="cloudwhale-box-"))
    nobody = 65534
    os.chown(folder, nobody, nobody)
    (folder / "job.yaml").write_text(JOB.format(name="t", command="id -u", length="5m"))
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "CLOUDWHALE_HOME": str(folder / "home"),
        "CLOUDWHALE_NODE": "host", "USER": "nobody",
    }  # fmt: skip

    def command(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*COMMAND, *words], cwd=folder, env=environment, user=nobody, group=nobody,
            extra_groups=[], capture_output=True, text=True, timeout=90, check=False,
        )  # fmt: skip

    try:
        done = command("run", "job.yaml", "--budget", "5", "--sandbox", "-y")
        assert done.returncode == 0, done.stderr + done.stdout
        assert "no containers" in done.stderr
        assert "65534" in done.stdout
    finally:
        command("sandbox", "stop")
        assert of_folder(folder / "home" / "sandbox" / "cloud") == frozenset()
        Shell(folder).close()
        shutil.rmtree(folder)
