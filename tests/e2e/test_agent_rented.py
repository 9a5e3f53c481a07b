"""Real agents of rented machines: they end their machine in time, also when they are dead."""

import json
import os
import signal
from datetime import UTC, datetime
from pathlib import Path

from live_agent import CLOCK, NODE, LiveAgent, a_start, until

from cloudwhale.agent import watchdog
from cloudwhale.mailbox.documents import (
    AttemptStarted,
    CheckpointPublished,
    LeaseOrder,
    LeaveOrder,
    Left,
    Warned,
)
from cloudwhale.model.job import CheckpointRule
from cloudwhale_providers.sandbox.metadata import MetadataService

SAVES = "trap 'echo saved > $CLOUDWHALE_CHECKPOINT_DIR/last; exit 3' TERM; echo up; "
SAVES += "while true; do sleep 0.1; done"


def rented(agent: LiveAgent, away_s: float, *, power_off: bool = True) -> Path:
    """Make it the agent of a rented machine; return the file that its power-off writes to."""
    off = agent.home / "off"
    agent.program = "brief_agent"
    agent.options = ["--rented", f"--lease=1:{away_s}"]
    if power_off:
        agent.options.append(f"--power-off=echo off >> {off}")
    return off


def was_told_to_end(off: Path) -> bool:
    """Say whether the machine was told to end; the watchdog may have said so again since."""
    return set(off.read_text().split()) == {"off"}


def a_lease(number: int, watched_s: float, away_s: float) -> LeaseOrder:
    return LeaseOrder(
        at=0.0, fence=1, request_id=f"lease-{number}", number=number, watched_s=watched_s,
        away_s=away_s,
    )  # fmt: skip


def is_unwatched(agent: LiveAgent, lease: int) -> bool:
    """Say whether the agent keeps this lease, and the controller is no longer heard by it."""
    kept = json.loads((agent.home / "nodes" / NODE / "tenure.json").read_bytes())
    watched_until, _ = kept["steady"]
    return bool(kept["number"] == lease and CLOCK.steady() > watched_until)


def watchdogs(agent: LiveAgent) -> list[int]:
    """Return the living watchdogs of this home."""
    path = os.fsencode(str(watchdog.__file__))
    return [
        pid for pid in agent.processes() if path in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]  # fmt: skip


def disarm(agent: LiveAgent) -> None:
    """Let the watchdog go, as the end of the machine would."""
    (agent.home / "nodes" / NODE / watchdog.TOLD).unlink(missing_ok=True)
    until(lambda: not watchdogs(agent), "the watchdog is gone")


def test_jobs_have_saved_and_said_so_before_a_lease_ends_the_machine(agent: LiveAgent) -> None:
    off = rented(agent, away_s=10.0)
    agent.start()
    agent.post(a_start(command=SAVES, checkpoint=CheckpointRule(every_s=60.0, grace_s=1.0)))
    assert agent.process.wait(timeout=20) == 0
    end = agent.ended()
    assert (end.how, end.exit_code) == ("stopped", 3)
    assert end.says.startswith("this machine's lease ends in 2 s")
    assert agent.all_of(CheckpointPublished)[0].checkpoint.name == "last"
    goodbye = agent.hear()[-1]
    _, away_until = json.loads((agent.home / "nodes" / NODE / "tenure.json").read_bytes())["wall"]
    assert isinstance(goodbye, Left) and goodbye.at < away_until
    assert was_told_to_end(off)
    disarm(agent)


def test_without_a_controller_a_machine_finishes_its_job_and_ends_itself(agent: LiveAgent) -> None:
    off = rented(agent, away_s=60.0)
    agent.start()
    agent.post(a_lease(2, watched_s=1.0, away_s=60.0))
    agent.post(a_start(command="sleep 2; echo made > $CLOUDWHALE_CHECKPOINT_DIR/model"))
    assert agent.process.wait(timeout=20) == 0
    assert agent.ended().exit_code == 0
    assert agent.all_of(CheckpointPublished)[-1].checkpoint.name == "model"
    assert was_told_to_end(off)
    disarm(agent)


def test_a_machine_that_is_told_to_leave_ends_itself(agent: LiveAgent) -> None:
    off = rented(agent, away_s=60.0)
    agent.start()
    agent.post(LeaveOrder(at=0.0, fence=1, request_id="leave"))
    assert agent.process.wait(timeout=20) == 0
    assert was_told_to_end(off)
    disarm(agent)


def test_a_dead_agent_does_not_keep_its_machine(agent: LiveAgent) -> None:
    off = rented(agent, away_s=5.0)
    agent.start()
    agent.post(a_start(command="sleep 3", checkpoint=CheckpointRule(grace_s=0.5)))
    agent.wait_for(AttemptStarted)
    agent.kill()
    until(off.exists, "the watchdog has ended the machine")
    disarm(agent)


def test_an_agent_that_hangs_is_killed_where_the_machine_ends_with_it(agent: LiveAgent) -> None:
    rented(agent, away_s=6.0, power_off=False)
    agent.start()
    until(lambda: bool(watchdogs(agent)), "a watchdog")
    until(lambda: bool(agent.hear()), "it has joined")
    agent.process.send_signal(signal.SIGSTOP)
    assert agent.process.wait(timeout=20) == -signal.SIGKILL
    until(lambda: not watchdogs(agent), "the watchdog went with the machine")


def test_a_restarted_agent_holds_to_the_lease_and_adopts_the_watchdog(agent: LiveAgent) -> None:
    off = rented(agent, away_s=60.0)
    agent.start()
    agent.post(a_lease(2, watched_s=8.0, away_s=8.0))
    until(lambda: _kept(agent).get("number") == 2, "the lease was kept")
    until(lambda: bool(watchdogs(agent)), "a watchdog")
    (before,) = watchdogs(agent)
    agent.kill()
    agent.start()  # with the words of the launch again
    agent.joined_again(2)
    assert watchdogs(agent) == [before]
    assert agent.process.wait(timeout=20) == 0
    assert was_told_to_end(off)
    disarm(agent)


def test_the_end_of_the_session_ends_agent_and_watchdog(agent: LiveAgent) -> None:
    rented(agent, away_s=60.0)
    agent.start()
    until(lambda: bool(watchdogs(agent)), "a watchdog")
    os.killpg(agent.process.pid, signal.SIGKILL)
    assert agent.process.wait() == -signal.SIGKILL
    until(lambda: not agent.processes(), "nothing is left")
    assert watchdogs(agent) == []


def test_an_agent_that_is_only_restarted_leaves_the_machine_guarded(agent: LiveAgent) -> None:
    off = rented(agent, away_s=60.0)
    agent.start()
    until(lambda: bool(watchdogs(agent)), "a watchdog")
    assert agent.end() == 0
    assert watchdogs(agent) and not off.exists()
    disarm(agent)


def test_a_notice_is_told_and_what_runs_has_saved_before_the_machine_goes(agent: LiveAgent) -> None:
    rented(agent, away_s=600.0, power_off=False)
    agent.options.append("--notices=aws")
    says: dict[str, str] = {}
    service = MetadataService(CLOCK.now)
    agent.env |= {"AWS_EC2_METADATA_SERVICE_ENDPOINT": service.add("i-1", lambda: says)}
    try:
        agent.start()
        agent.post(a_start(command=SAVES, checkpoint=CheckpointRule(every_s=600.0, grace_s=10.0)))
        agent.wait_for_output(b"up")
        says["meta-data/spot/instance-action"] = json.dumps(
            {
                "action": "terminate",
                "time": datetime.fromtimestamp(CLOCK.now() + 120, UTC).isoformat(),
            }
        )
        end = agent.ended()
        (warned,) = agent.all_of(Warned)
        assert warned.goes_at is not None and warned.says in end.says
        assert (end.how, end.exit_code) == ("stopped", 3)
        assert agent.all_of(CheckpointPublished)[-1].checkpoint.name == "last"
        agent.post(a_start("late"))
        assert agent.ended("late").says == "the provider takes this machine away"
        assert agent.process.poll() is None  # AWS ends it, and asks no money for it
    finally:
        service.close()


def test_with_the_lid_shut_what_runs_is_finished_stored_and_the_machine_ended(
    agent: LiveAgent,
) -> None:
    off = rented(agent, away_s=60.0)
    agent.start()
    begins = CLOCK.steady()
    agent.post(a_lease(2, watched_s=2.0, away_s=60.0))
    saves = "mkdir results; sleep 6; echo made > results/model; "
    saves += "echo last > $CLOUDWHALE_CHECKPOINT_DIR/last"
    agent.post(a_start(command=saves, outputs=("results/",)))
    agent.wait_for(AttemptStarted)
    until(lambda: is_unwatched(agent, 2), "the controller's time is over")
    agent.post(a_start("late"))
    late = agent.ended("late")
    assert late.says == "this machine's lease was not renewed in time: it takes no new orders"
    assert agent.process.wait(timeout=30) == 0
    assert CLOCK.steady() - begins < 45.0  # of the sixty that are paid for
    assert agent.ended().exit_code == 0
    assert agent.all_of(CheckpointPublished)[-1].checkpoint.name == "last"
    assert agent.objects.get("outputs/job/1/000001") == b"made\n"
    assert isinstance(agent.hear()[-1], Left)
    assert was_told_to_end(off)
    disarm(agent)


def test_a_lease_that_cannot_be_read_is_refused(agent: LiveAgent) -> None:
    agent.options = ["--rented", "--lease=soon"]
    agent.start()
    assert agent.process.wait(timeout=20) == 2
    assert "--rented needs --lease NUMBER:SECONDS, like 1:5400" in agent.story()


def _kept(agent: LiveAgent) -> dict[str, object]:
    path = agent.home / "nodes" / NODE / "tenure.json"
    return dict(json.loads(path.read_text())) if path.exists() else {}
