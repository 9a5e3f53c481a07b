"""Agents and shims are killed while jobs run: nothing is lost, run twice, or left behind."""

import json
import os
import signal
from pathlib import Path

import pytest
from live_agent import CLOCK, NODE, LiveAgent, a_start, a_stop, until

from cloudwhale.agent.place import Place
from cloudwhale.mailbox.documents import (
    AttemptEnded,
    AttemptStarted,
    Joined,
    LeaveOrder,
    Left,
)

NOBODY = 2**22 + 1
"""A process id above what the kernel gives out."""


def test_an_agent_that_was_killed_is_succeeded_by_one_that_goes_on(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(command="echo begun; while [ ! -e go ]; do sleep 0.02; done; echo over"))
    agent.wait_for(AttemptStarted)
    agent.kill()
    agent.start()
    assert agent.joined_again(2).attempts == (("job", 1),)
    (agent.folder().work / "go").touch()
    assert agent.ended().exit_code == 0
    assert agent.log() == b"begun\nover\n"
    assert agent.end() == 0
    assert len(agent.all_of(AttemptEnded)) == 1


def test_a_job_that_ended_while_no_agent_lived_is_reported_by_the_next(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(command="echo begun; sleep 0.2; echo over; exit 9"))
    agent.wait_for(AttemptStarted)
    agent.kill()
    until(lambda: agent.folder().exit(), "the shim writes the exit record by itself")
    assert agent.all_of(AttemptEnded) == []
    agent.start()
    end = agent.ended()
    assert (end.how, end.exit_code, agent.log()) == ("exited", 9, b"begun\nover\n")


def test_a_job_that_finished_before_its_stop_was_read_has_finished(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(command="while [ ! -e go ]; do sleep 0.02; done"))
    agent.wait_for(AttemptStarted)
    agent.kill()
    (agent.folder().work / "go").touch()
    until(lambda: agent.folder().exit(), "it finishes while no agent lives")
    agent.post(a_stop())
    agent.start()
    assert (agent.ended().how, agent.ended().exit_code) == ("exited", 0)


def test_an_agent_that_dies_again_and_again_reports_each_end_once_it_can(agent: LiveAgent) -> None:
    agent.start()
    for number in range(6):
        agent.post(a_start(f"job-{number}", command="echo ran >> ran; sleep 0.05"))
        agent.kill()
        agent.start()
    for number in range(6):
        assert agent.ended(f"job-{number}").exit_code == 0
        assert (agent.folder(f"job-{number}").work / "ran").read_text() == "ran\n"


def test_a_stop_that_was_read_is_not_lost_with_an_agent_that_was_busy(agent: LiveAgent) -> None:
    agent.program = "busy_agent"
    agent.start()
    agent.post(a_start(command="echo ran > ran"))
    agent.post(a_stop())
    until(lambda: _orders_read(agent) == 2, "both orders were read")
    agent.kill()
    agent.program = "cloudwhale.agent"
    agent.start()
    assert (agent.ended().how, agent.ended().exit_code) == ("stopped", None)
    assert not (agent.folder().work / "ran").exists()


def test_an_answer_is_not_lost_with_an_agent_that_was_busy(agent: LiveAgent) -> None:
    agent.program = "busy_agent"
    agent.start()
    agent.post(a_stop())
    until(lambda: _orders_read(agent) == 1, "the order was read")
    agent.kill()
    agent.program = "cloudwhale.agent"
    agent.start()
    assert agent.ended().says == "the attempt was never started here"


def test_what_must_not_start_does_not_start_under_the_next_agent(agent: LiveAgent) -> None:
    agent.program = "busy_agent"
    agent.start()
    agent.post(a_start(command="echo ran > ran", image="pytorch:2.9"))
    until(lambda: _orders_read(agent) == 1, "the order was read")
    assert agent.folder().order() is None, "nothing here says that it is to be started"
    agent.kill()
    agent.program = "cloudwhale.agent"
    agent.start()
    assert agent.ended().how == "start-failed"
    assert not agent.folder().work.exists()


def _orders_read(agent: LiveAgent) -> int:
    read_to = Place(agent.home, NODE).read_to()
    return 0 if read_to is None else read_to.number


def test_a_stop_goes_on_after_the_agent_was_killed_in_the_middle(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(command="trap 'echo asked' TERM; echo ready; while :; do sleep 0.05; done"))
    agent.wait_for_output(b"ready")
    agent.post(a_stop(grace_s=1.0))
    agent.wait_for_output(b"asked")
    agent.kill()
    until(lambda: agent.folder().exit(), "the shim kills it after the grace without an agent")
    agent.start()
    end = agent.ended()
    assert (end.how, end.exit_code) == ("stopped", 128 + signal.SIGKILL)
    assert agent.log().count(b"asked") == 1


def test_a_shim_that_is_killed_takes_its_job_with_it(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(command="(setsid sleep 300 &); sleep 300 & echo ready; wait"))
    agent.wait_for_output(b"ready")
    os.kill(agent.pids().shim, signal.SIGKILL)
    end = agent.ended()
    assert (end.how, end.exit_code) == ("shim-lost", None)
    assert "the shim that watched the job died" in end.says
    assert agent.job_processes() == []
    assert agent.log() == b"ready\n"


def test_a_shim_that_died_while_no_agent_lived_is_found_out(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(command="echo ready; sleep 300"))
    agent.wait_for(AttemptStarted)
    agent.kill()
    os.kill(agent.pids().shim, signal.SIGKILL)
    agent.start()
    assert agent.ended().how == "shim-lost"


def test_the_hours_for_which_a_machine_was_off_are_no_work_that_was_lost(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(command="echo ready; sleep 300"))
    agent.wait_for_output(b"ready")
    agent.wait_for(AttemptStarted)
    agent.kill()
    os.kill(agent.pids().shim, signal.SIGKILL)
    until(lambda: not agent.job_processes(), "its job dies with it")
    an_hour_ago, off_since = CLOCK.now() - 3600, CLOCK.now() - 3000
    told = agent.folder().path / "pids.json"
    told.write_text(json.dumps({**json.loads(told.read_text()), "began_at": an_hour_ago}))
    for file in (agent.folder().path / "shim.lock", *agent.folder().log.iterdir()):
        os.utime(file, (off_since, off_since))
    agent.start()
    end = agent.ended()
    assert end.how == "shim-lost"
    assert end.ran_s == end.unsaved_s == pytest.approx(600, abs=1)


def test_a_living_shim_is_dated(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(command="sleep 300"))
    agent.wait_for(AttemptStarted)
    lock = agent.folder().path / "shim.lock"
    os.utime(lock, (0, 0))
    until(lambda: CLOCK.now() - lock.stat().st_mtime < 60, "its agent has seen it", 60.0)


def test_a_shim_that_is_stopped_cannot_hold_a_job_for_ever(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(command="echo ready; sleep 300"))
    agent.wait_for_output(b"ready")
    os.kill(agent.pids().shim, signal.SIGSTOP)
    agent.post(a_stop(grace_s=0.2))
    assert agent.ended().how == "stopped"


def test_orders_given_to_an_agent_whose_memory_is_gone_are_not_obeyed_again(
    agent: LiveAgent, tmp_path: Path
) -> None:
    agent.start()
    agent.post(a_start(command="echo ran"))
    agent.ended()
    agent.end()
    (agent.home / "nodes").rename(tmp_path / "forgotten")
    agent.start()
    agent.joined_again(2)
    until(lambda: len(agent.all_of(AttemptEnded)) == 2, "the order was answered again")
    assert (agent.all_of(AttemptEnded)[1].how, len(agent.all_of(AttemptStarted))) == (
        "start-failed",
        1,
    )
    agent.post(a_start("next"))
    assert agent.ended("next").exit_code == 0


def test_a_job_whose_folder_was_taken_away_is_over_before_that_is_said(
    agent: LiveAgent, tmp_path: Path
) -> None:
    agent.start()
    agent.post(a_start(command="echo ready; (setsid sleep 300 &); sleep 300"))
    agent.wait_for_output(b"ready")
    agent.kill()
    (agent.home / "nodes").rename(tmp_path / "forgotten")
    agent.start()
    assert agent.ended().how == "start-failed"
    assert agent.job_processes() == []


def test_what_an_agent_cannot_read_of_its_predecessors_is_ended_and_said(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(command="echo ready; sleep 300"))
    agent.wait_for_output(b"ready")
    agent.kill()
    (agent.folder().path / "order.json").write_bytes(b"")
    (agent.attempts / "stray").touch()
    agent.start()
    end = agent.ended()
    assert (end.how, end.exit_code) == ("shim-lost", None)
    assert agent.job_processes() == []
    agent.post(a_start("next"))
    assert agent.ended("next").exit_code == 0
    assert "attempts/stray is not ours" in agent.story()


def test_a_newer_attempt_waits_for_nobody_and_is_refused_while_the_older_runs(
    agent: LiveAgent,
) -> None:
    agent.start()
    agent.post(a_start(command="echo ready; sleep 300"))
    agent.wait_for_output(b"ready")
    agent.post(a_start(command="echo twice", attempt=2))
    end = agent.ended(attempt=2)
    assert (end.how, end.says) == ("start-failed", "attempt 1 of the job still runs here")
    agent.post(a_stop())
    assert agent.ended().how == "stopped"


def test_an_agent_whose_starter_is_gone_stays_while_it_has_work_and_then_goes(
    agent: LiveAgent,
) -> None:
    agent.program = "impatient_agent"
    agent.options = [f"--parent={NOBODY}"]
    agent.post(a_start(command="sleep 1.5"))
    agent.start()
    assert (agent.ended().how, agent.ended().exit_code) == ("exited", 0)
    assert agent.process.wait(timeout=20.0) == 0
    assert len(agent.all_of(Left)) == 1


def test_an_order_to_leave_is_taken_back_by_the_next_order_to_start(agent: LiveAgent) -> None:
    agent.start()
    agent.wait_for(Joined)
    agent.process.send_signal(signal.SIGSTOP)  # so that it reads all three at once
    agent.post(LeaveOrder(at=0.0, fence=1, request_id="leave"))
    agent.post(a_start())
    agent.process.send_signal(signal.SIGCONT)
    assert agent.ended().exit_code == 0


def test_a_job_outlives_an_agent_that_was_away_for_longer_than_the_lease(
    agent: LiveAgent,
) -> None:
    agent.options = ["--lease-s=60"]  # its shim waits for the next agent for as long as it may
    agent.start()
    agent.post(a_start(command="while [ ! -e go ]; do sleep 0.05; done"))
    agent.wait_for(AttemptStarted)
    agent.kill()
    long_ago = CLOCK.now() - 1000.0
    os.utime(agent.home / "nodes" / NODE / "heard", (long_ago, long_ago))
    agent.start()
    agent.joined_again(2)
    agent.post(a_start("next"))
    assert agent.ended("next").exit_code == 0
    (agent.folder().work / "go").touch()
    assert (agent.ended().how, agent.ended().exit_code) == ("exited", 0)


def test_when_the_store_is_silent_for_the_lease_jobs_stop_before_it_ends(
    agent: LiveAgent, tmp_path: Path
) -> None:
    agent.options = ["--lease-s=4"]
    agent.start()
    agent.post(a_start(command="trap 'date +%s.%N > stopped; exit 0' TERM\n"
                               "echo ready; while true; do sleep 0.05; done"))  # fmt: skip
    agent.wait_for_output(b"ready")
    agent.wait_for(AttemptStarted)
    mailbox = tmp_path / "mailbox"
    (mailbox / "inbox").rename(tmp_path / "away")
    (mailbox / "inbox").write_text("not a folder: every write fails")
    until(lambda: agent.folder().exit(), "the job was stopped")
    (mailbox / "inbox").unlink()
    (tmp_path / "away").rename(mailbox / "inbox")
    end = agent.ended()
    assert end.how == "stopped"
    assert "the store was silent for" in end.says


def test_a_job_whose_agent_never_comes_back_ends_with_its_lease(agent: LiveAgent) -> None:
    agent.options = ["--lease-s=16"]
    agent.start()
    agent.post(a_start(command="trap 'echo saved; exit 0' TERM; while true; do sleep 0.05; done"))
    agent.wait_for(AttemptStarted)
    agent.kill()
    begun = CLOCK.steady()
    exit = until(lambda: agent.folder().exit(), "its shim has stopped it", 2 * 16.0)
    assert CLOCK.steady() - begun < 16.0 and not exit.by_itself
    agent.start()
    end = agent.ended()
    assert end.how == "stopped" and "its agent was silent for" in end.says
