"""Real agents run jobs in real containers: what a plain process is promised holds there too."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dockerd import IMAGE, Dockerd
from live_agent import LiveAgent, a_start, a_stop, until

from cloudwhale.agent.attempts import AttemptFolder
from cloudwhale.agent.containers.client import docker_client
from cloudwhale.agent.containers.settings import name_of
from cloudwhale.agent.launching import CONTAINERS, NORMAL, description, launch
from cloudwhale.mailbox.documents import (
    AttemptEnded,
    AttemptStarted,
    Joined,
    StartOrder,
)
from cloudwhale.mailbox.sealing import seal
from cloudwhale.model.job import CheckpointRule
from cloudwhale.model.node import Device

pytestmark = pytest.mark.docker

A100 = Device(id="GPU-aaaa", model="A100-80GB", memory_gib=80.0)
L4 = Device(id="GPU-cccc", model="L4", memory_gib=24.0)
DECLARED = Device(id="declared-0", model="L4", memory_gib=24.0, declared=True)
STAYS = "echo ready; while :; do sleep 0.05; done"
SAVES_LATE = "trap 'sleep 0.5; echo saved; exit 0' TERM; echo ready; while :; do sleep 0.05; done"


def contained(job: str = "job", command: str = "true", **fields: Any) -> StartOrder:
    """Order a job in a container."""
    return a_start(job, command, **{"image": IMAGE, **fields})


@pytest.fixture
def docked(
    agent: LiveAgent, dockerd: Dockerd, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LiveAgent]:
    """Give a started agent beside Docker; afterwards no container of it may be left."""
    monkeypatch.setenv("DOCKER_HOST", dockerd.host)
    agent.start()
    yield agent
    if agent.process.poll() is None:
        agent.end()
    mine = {name_of(path) for path in agent.attempts.glob("*/*")}
    until(lambda: not mine & set(dockerd.names()), f"no container of {agent.home} is left")


def test_a_container_gets_what_a_process_gets_and_its_end_is_told(docked: LiveAgent) -> None:
    assert docked.joined_again(1).facts.runtimes == ("process", "container")
    assert IMAGE in docked.joined_again(1).facts.images
    command = (
        'echo "$WORD $CLOUDWHALE_JOB_ID $(cat made) $(id -u):$(id -g) $PWD"; echo err >&2\n'
        'echo "$NVIDIA_VISIBLE_DEVICES $TINI_KILL_PROCESS_GROUP."\n'
        'touch "$CLOUDWHALE_CHECKPOINT_DIR/here"; exit 3'
    )
    docked.post(contained(setup="echo made > made", command=command, env={"WORD": "wave"}))
    end = docked.ended()
    assert (end.how, end.exit_code) == ("exited", 3)
    assert end.says == "its process ended with 3; it said last: void ."
    folder = docked.folder()
    user = f"{os.getuid()}:{os.getgid()}"
    assert docked.log().decode() == f"wave job made {user} {folder.work}\nerr\nvoid .\n"
    assert (folder.path / "checkpoints" / "here").stat().st_uid == os.getuid()
    assert [type(one) for one in docked.hear()] == [Joined, AttemptStarted, AttemptEnded]


def test_a_failure_is_told_by_its_cause(docked: LiveAgent) -> None:
    cases: dict[str, tuple[dict[str, Any], tuple[str, int, str]]] = {
        "oom": ({"command": "tail /dev/zero; exit 5", "memory_gib": 0.03}, ("oom", 5, "0.03 GiB")),
        "absent": ({"command": "no-such-program"}, ("not-found", 127, "no-such-program: not f")),
        "setup": ({"setup": "exit 4"}, ("setup-failed", 4, "ended with 4")),
        "signal": ({"command": "kill -SEGV $$"}, ("exited", 139, "ended with 139")),
        "gpu": (
            {"command": "echo 'CUDA out of memory. Tried to allocate 2 GiB'; exit 1"},
            ("gpu-oom", 1, "Tried to allocate 2 GiB"),
        ),
    }
    for job, (order, _) in cases.items():
        docked.post(contained(job, **order))
    for job, (_, (how, code, says)) in cases.items():
        end = docked.ended(job)
        assert (job, end.how, end.exit_code) == (job, how, code)
        assert says in end.says


def test_a_stop_reaches_the_job_and_one_that_ignores_it_is_killed(docked: LiveAgent) -> None:
    # The shell around it dies of the signal at once; the job's own process may save.
    docked.post(contained("saves", f'sh -c "{SAVES_LATE}"; echo never'))
    docked.post(contained("ignores", f"trap '' TERM; {STAYS}"))
    for job in ("saves", "ignores"):
        docked.wait_for_output(b"ready", job)
    docked.post(a_stop("saves"))
    docked.post(a_stop("ignores", grace_s=0.7))
    saved, killed = docked.ended("saves"), docked.ended("ignores")
    assert (saved.how, killed.how, killed.exit_code) == ("stopped", "stopped", 137)
    assert docked.log("saves").endswith(b"saved\n")
    assert b"never" not in docked.log("saves")


def test_a_container_has_exactly_its_gpus_or_does_not_run(docked: LiveAgent) -> None:
    command = "ls /dev/nvidia* 2>/dev/null | xargs | grep . || echo none"
    docked.post(contained("two", command, devices=(L4, A100)))
    docked.post(contained("declared", command, devices=(DECLARED,)))
    for lie in ("ignore", "all"):
        docked.post(contained(lie, command, devices=(L4,), env={"FAKE_NVIDIA": lie}))
    for job, sees in (("two", b"/dev/nvidia0 /dev/nvidia2\n"), ("declared", b"none\n")):
        assert (docked.ended(job).how, docked.ended(job).exit_code) == ("exited", 0)
        assert docked.log(job) == sees
    for job, seen in (("ignore", 0), ("all", 3)):
        end = docked.ended(job)
        assert (end.how, end.exit_code) == ("no-gpus", None)
        assert f"saw {seen} GPUs and was to see 1" in end.says


def test_an_agent_that_is_killed_leaves_containers_to_the_next(docked: LiveAgent) -> None:
    docked.post(contained(command=f"{SAVES_LATE}"))
    docked.wait_for_output(b"ready")
    docked.kill()
    docked.start()
    docked.joined_again(2)
    docked.post(a_stop())
    end = docked.ended()
    assert (end.how, end.exit_code) == ("stopped", 0)
    assert docked.log().startswith(b"ready\n") and docked.log().endswith(b"saved\n")
    assert len(docked.all_of(AttemptEnded)) == 1


def test_a_container_ends_with_its_shim(docked: LiveAgent, dockerd: Dockerd) -> None:
    docked.post(contained(command=STAYS))
    docked.wait_for_output(b"ready")
    assert name_of(docked.folder().path) in dockerd.names()
    os.kill(docked.pids().shim, signal.SIGKILL)
    assert docked.ended().how == "shim-lost"
    assert name_of(docked.folder().path) not in dockerd.names()


def test_what_agent_and_shim_leave_when_both_are_killed_the_next_agent_removes(
    docked: LiveAgent, dockerd: Dockerd
) -> None:
    docked.post(contained(command=f"trap '' PIPE; {STAYS}"))
    docked.wait_for_output(b"ready")
    docked.kill()
    os.kill(docked.pids().shim, signal.SIGKILL)
    docked.start()
    assert docked.ended().how == "shim-lost"
    assert name_of(docked.folder().path) not in dockerd.names()


def test_a_container_begins_once_however_many_shims_are_started(
    dockerd: Dockerd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", dockerd.host)
    folder = AttemptFolder(tmp_path / "attempts", ("job", 1))
    folder.work.mkdir(parents=True)
    (folder.path / "checkpoints").mkdir()
    told = description(contained(command="echo ran >> times; sleep 0.2"), folder, {}, None, NORMAL)
    shims = [launch(CONTAINERS, folder, told) for _ in range(3)]
    for shim in shims:
        os.waitpid(shim, 0)
    assert (folder.work / "times").read_text() == "ran\n"
    end = folder.exit()
    assert end is not None
    assert (end.how, end.code, end.by_itself) == ("exited", 0, True)
    assert name_of(folder.path) not in dockerd.names()


@pytest.mark.parametrize("point", [6, 9, 12, 16, 20])
def test_whatever_an_agent_was_doing_when_it_died_a_container_runs_once(
    docked: LiveAgent, tmp_path: Path, point: int
) -> None:
    docked.end()
    mark = tmp_path / "mark"
    mark.mkdir()
    docked.program = "mortal_agent"
    docked.env |= {"MORTAL_AT": str(point), "MORTAL_AFTER": "" if point % 2 else "yes"}
    command = "echo x >> /mark/times; echo word; sleep 0.3; echo s > $CLOUDWHALE_CHECKPOINT_DIR/s"
    docked.post(contained(command=f"{command}; exit 3", mounts={str(mark): "/mark"}))
    docked.start()
    until(lambda: docked.process.poll() is not None, "it died")
    docked.program = "cloudwhale.agent"
    docked.start()
    assert (docked.ended().how, docked.ended().exit_code) == ("exited", 3)
    assert (mark / "times").read_text() == "x\n"
    assert docked.log() == b"word\n"


def test_a_checkpoint_is_resumed_in_a_container(docked: LiveAgent) -> None:
    rule = CheckpointRule(every_s=60.0, grace_s=5.0, path="saved")
    steps = (
        "step=$(cat $CLOUDWHALE_CHECKPOINT_DIR/step 2>/dev/null || echo 0)\n"
        "echo resumes $CLOUDWHALE_RESUME at $step\n"
        "trap 'echo $((step + 41)) > new; mv new $CLOUDWHALE_CHECKPOINT_DIR/step; exit 0' TERM\n"
        f"{STAYS}"
    )
    docked.post(contained(command=steps, checkpoint=rule))
    docked.wait_for_output(b"ready")
    docked.post(a_stop())
    assert docked.ended().how == "stopped"
    saved = docked.published().checkpoint
    docked.post(contained(command=steps, checkpoint=rule, attempt=2, restore=saved))
    docked.wait_for_output(b"resumes 1 at 41", attempt=2)
    docked.post(a_stop(attempt=2))
    docked.ended(attempt=2)


def test_a_secret_reaches_the_job_and_neither_the_log_nor_docker(docked: LiveAgent) -> None:
    value = "deep 'blue'\n$(sea)"
    sealed = seal(value, docked.joined_again(1).public_key)
    docked.post(
        contained(
            command='echo "<$TOKEN>"; sleep 0.2; echo ready; sleep 100', secrets={"TOKEN": sealed}
        )
    )
    docked.wait_for_output(b"ready")
    with docker_client() as client:
        known = json.dumps(client.inspect_container(name_of(docked.folder().path)))
    assert "deep" not in known and "sea" not in known
    docked.post(a_stop(grace_s=0.1))
    docked.ended()
    assert docked.log().startswith(b"<***>\nready\n")


def test_a_mount_is_read_only_where_the_order_says_so(docked: LiveAgent, tmp_path: Path) -> None:
    for name in ("data", "out"):
        (tmp_path / name).mkdir()
    (tmp_path / "data" / "word").write_text("corpus\n")
    mounts = {str(tmp_path / "data"): "/data:ro", str(tmp_path / "out"): "/out"}
    docked.post(contained(command="cp /data/word /out && ! touch /data/new", mounts=mounts))
    assert docked.ended().exit_code == 0
    assert (tmp_path / "out" / "word").read_text() == "corpus\n"
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["word"]


def test_all_of_a_long_output_is_kept(docked: LiveAgent) -> None:
    docked.post(contained(command="seq 1 300000; echo last"))
    docked.ended()
    lines = docked.log().split()
    assert (len(lines), lines[-1]) == (300_001, b"last")


def test_what_outlives_the_command_is_asked_to_end(docked: LiveAgent) -> None:
    left = "(trap 'echo bye; exit' TERM; while :; do sleep 0.02; done) & sleep 0.2"
    docked.post(contained(command=left))
    assert docked.ended().exit_code == 0
    assert docked.log().endswith(b"bye\n")
