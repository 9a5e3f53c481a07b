"""Real agents run real processes: they start, end as they should and leave nothing behind."""

import os
import signal
from pathlib import Path

from live_agent import LiveAgent, a_start, a_stop, until

from cloudwhale.mailbox.documents import (
    AttemptEnded,
    AttemptStarted,
    Joined,
    LeaveOrder,
    Left,
    OrderRefused,
)
from cloudwhale.model.job import CheckpointRule
from cloudwhale.model.node import Device
from cloudwhale.model.reason import Code


def test_a_job_starts_ends_and_its_log_is_kept(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(command="echo one; echo two >&2"))
    end = agent.ended()
    assert (end.how, end.exit_code) == ("exited", 0)
    assert agent.log() == b"one\ntwo\n"
    assert [type(report) for report in agent.hear()] == [Joined, AttemptStarted, AttemptEnded]


def test_a_failing_job_says_its_code_and_its_last_words(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(command="echo fine; echo 'no such corpus' >&2; exit 3"))
    end = agent.ended()
    assert (end.how, end.exit_code) == ("exited", 3)
    assert end.says == "its process ended with 3; it said last: no such corpus"


def test_a_killed_job_ends_as_a_shell_would_say(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(command="kill -SEGV $$"))
    assert agent.ended().exit_code == 128 + signal.SIGSEGV


def test_a_command_that_does_not_exist_is_called_that(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(command="cloudwhale-no-such-program --fast"))
    end = agent.ended()
    assert (end.how, end.exit_code) == ("not-found", 127)
    assert "cloudwhale-no-such-program: command not found" in end.says


def test_a_setup_that_fails_keeps_the_command_from_running(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(setup="echo installing; exit 4", command="echo running"))
    end = agent.ended()
    assert (end.how, end.exit_code) == ("setup-failed", 4)
    assert agent.log() == b"installing\n"


def test_a_setup_runs_before_the_command_in_the_same_folder(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(setup="echo made > here", command="cat here"))
    assert agent.ended().exit_code == 0
    assert agent.log() == b"made\n"


def test_a_job_sees_its_environment_and_nothing_else_of_ours(agent: LiveAgent) -> None:
    agent.env = {"CLOUDWHALE_HOME": "/elsewhere", "AWS_SECRET_ACCESS_KEY": "ours"}
    agent.start()
    device = Device(id="declared-1", model="RTX4090", memory_gib=24.0, declared=True)
    agent.post(a_start(command="env", env={"WANDB_MODE": "offline"}, devices=(device,), attempt=2))
    agent.ended(attempt=2)
    lines = agent.log(attempt=2).decode().splitlines()
    found = dict(line.split("=", 1) for line in lines)
    folder = agent.folder(attempt=2)
    ours = {name for name in ("PATH", "HOME", "LANG", "USER") if name in os.environ}
    by_the_shell = {"PWD", "SHLVL", "_"}
    assert found["CUDA_VISIBLE_DEVICES"] == "declared-1"
    assert found["WANDB_MODE"] == "offline"
    assert (found["CLOUDWHALE_JOB_ID"], found["CLOUDWHALE_ATTEMPT"]) == ("job", "2")
    assert (found["CLOUDWHALE_NODE_RANK"], found["CLOUDWHALE_NUM_NODES"]) == ("0", "1")
    assert (found["CLOUDWHALE_RESUME"], found["CLOUDWHALE_RESTART_COUNT"]) == ("0", "1")
    assert found["CLOUDWHALE_GRACE_SECONDS"] == "5"
    assert Path(found["CLOUDWHALE_CHECKPOINT_DIR"]) == folder.path / "checkpoints"
    assert (found["MASTER_ADDR"], found["MASTER_PORT"].isdecimal()) == ("127.0.0.1", True)
    named = {"CUDA_VISIBLE_DEVICES", "WANDB_MODE", "MASTER_ADDR", "MASTER_PORT"}
    cloudwhale = {name for name in found if name.startswith("CLOUDWHALE_")}
    assert set(found) - by_the_shell - ours == named | cloudwhale
    assert "CLOUDWHALE_HOME" not in found


def test_a_pipe_in_a_job_ends_by_its_signal(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(command="set -o pipefail; yes | head -1; echo code $?"))
    agent.ended()
    assert agent.log() == b"y\ncode 141\n"


def test_a_stop_lets_a_job_save_what_it_has(agent: LiveAgent) -> None:
    agent.start()
    agent.post(
        a_start(command="trap 'echo saving; sleep 0.3; echo saved; exit 7' TERM\n"
                        "echo ready; while true; do sleep 0.05; done")
    )  # fmt: skip
    agent.wait_for_output(b"ready")
    agent.post(a_stop())
    end = agent.ended()
    assert (end.how, end.exit_code) == ("stopped", 7)
    assert agent.log().endswith(b"saving\nsaved\n")


def test_a_shell_that_dies_of_the_signal_leaves_its_child_time_to_save(agent: LiveAgent) -> None:
    # It may be told to stop while it still writes "ready", where print is not to be called again.
    child = "import os,signal,sys,time\\nNL=os.linesep.encode()\\n" + (
        "def save(*_):\\n time.sleep(1.5); os.write(1, b'saved'+NL); sys.exit(0)\\n"
        "signal.signal(signal.SIGTERM, save)\\nos.write(1, b'ready'+NL)\\ntime.sleep(60)\\n"
    )
    agent.start()
    agent.post(a_start(command=f'printf "{child}" > child.py; python3 child.py; echo never'))
    agent.wait_for_output(b"ready")
    agent.post(a_stop())
    assert agent.ended().how == "stopped"
    assert agent.log() == b"ready\nsaved\n"


def test_a_job_that_ignores_the_signal_is_killed_after_its_grace(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(command="trap '' TERM; echo ready; sleep 60 & while true; do wait; done"))
    agent.wait_for_output(b"ready")
    agent.post(a_stop(grace_s=0.5))
    end = agent.ended()
    assert (end.how, end.exit_code) == ("stopped", 128 + signal.SIGKILL)


def test_the_signal_is_the_one_that_was_asked_for(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(command="trap 'exit 5' USR1; echo ready; while true; do sleep 0.05; done"))
    agent.wait_for_output(b"ready")
    agent.post(a_stop(signal="SIGUSR1"))
    assert agent.ended().exit_code == 5


def test_a_job_that_forks_and_exits_leaves_nothing_behind(agent: LiveAgent) -> None:
    agent.start()
    daemons = "(setsid sleep 300 &) ; setsid bash -c 'trap \"\" TERM; sleep 300; sleep 300' & "
    agent.post(a_start(command=daemons + "env -i sleep 300 & exit 0"))
    end = agent.ended()
    assert (end.how, end.exit_code) == ("exited", 0)
    assert agent.job_processes() == []


def test_a_stop_of_an_attempt_that_nobody_knows_says_it_is_over(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_stop(job="unknown", attempt=3))
    end = agent.ended("unknown", 3)
    assert (end.how, end.exit_code) == ("stopped", None)
    agent.has_noted_the_end("unknown", 3)
    agent.post(a_start(job="unknown", attempt=3))
    until(lambda: len(agent.all_of(AttemptEnded)) == 2, "its end is said again")
    assert agent.all_of(AttemptStarted) == []


def test_an_order_of_an_older_controller_is_refused(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start("first", fence=5))
    agent.post(a_start("second", fence=4))
    refusal = agent.wait_for(OrderRefused, "second")
    assert refusal.code is Code.STALE_FENCE
    agent.ended("first")
    assert not agent.folder("second").path.exists()


def test_an_older_attempt_is_refused(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(attempt=3))
    agent.ended(attempt=3)
    agent.post(a_start(attempt=2))
    assert agent.wait_for(OrderRefused, attempt=2).code is Code.STALE_ATTEMPT
    assert not agent.folder(attempt=2).path.exists()


def test_the_same_order_twice_runs_once(agent: LiveAgent) -> None:
    agent.start()
    order = a_start(command="echo ran >> $CLOUDWHALE_CHECKPOINT_DIR/times; sleep 0.2")
    agent.post(order)
    agent.post(order)
    agent.ended()
    agent.has_noted_the_end()
    agent.post(order)
    until(lambda: len(agent.all_of(AttemptEnded)) == 2, "its end is said again")
    assert (agent.folder().path / "checkpoints" / "times").read_text() == "ran\n"


def test_an_agent_that_is_told_to_go_lands_its_jobs_first(agent: LiveAgent) -> None:
    agent.start()
    rule = CheckpointRule(every_s=60.0, grace_s=5.0)
    agent.post(
        a_start(command="trap 'echo 41 > $CLOUDWHALE_CHECKPOINT_DIR/step; exit 0' TERM\n"
                        "echo ready; while true; do sleep 0.05; done", checkpoint=rule)
    )  # fmt: skip
    agent.wait_for_output(b"ready")
    assert agent.end() == 0
    assert agent.published().checkpoint.name == "step"
    assert agent.ended().how == "stopped"
    assert isinstance(agent.hear()[-1], Left)


def test_an_agent_leaves_as_ordered_once_nothing_runs(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(command="sleep 0.5"))
    agent.post(LeaveOrder(at=0.0, fence=1, request_id="leave"))
    assert agent.process.wait(timeout=20) == 0
    assert [type(report) for report in agent.hear()][-2:] == [AttemptEnded, Left]


def test_a_second_agent_of_a_node_goes_at_once(agent: LiveAgent) -> None:
    agent.start()
    agent.wait_for(Joined)
    first = agent.process
    agent.start()
    assert agent.process.wait(timeout=20) == 0
    assert first.poll() is None
    agent._process = first
    assert len(agent.all_of(Joined)) == 1
