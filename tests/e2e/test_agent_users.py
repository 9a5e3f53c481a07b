"""On a rented machine each job is a user of its own: it sees no other job, and no credentials."""

import json
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_agent import LiveAgent, a_start, until

from cloudwhale.agent.users import FIRST_ID
from cloudwhale.mailbox.box import boot_of

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: jobs become other users"),
    pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare"),
]
WITHOUT_A_FILTER = ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin"]


@pytest.fixture
def agent() -> Iterator[LiveAgent]:
    """Give an agent whose home others can enter, as on a machine of its own."""
    folder = Path(tempfile.mkdtemp(prefix="cloudwhale-users-"))
    folder.chmod(0o755)
    live = LiveAgent(folder)
    live.before = ["unshare", "--net"]  # a test changes no rule of this host
    live.env |= {"AWS_SECRET_ACCESS_KEY": "ours", "HOME": "/root"}
    live.options = ["--rented", "--lease=1:600", "--own-users"]
    try:
        yield live
        live.end()
        until(lambda: not live.processes(), "nothing is left")
    finally:
        if live._process is not None and live.process.poll() is None:
            live.kill()
        shutil.rmtree(folder)


def test_each_job_is_another_user_with_a_home_and_a_folder_of_its_own(agent: LiveAgent) -> None:
    agent.start()
    says = "id -u; id -g; id -G; echo $HOME; pwd; touch $HOME/a b $CLOUDWHALE_CHECKPOINT_DIR/c"
    agent.post(a_start("one", says))
    agent.post(a_start("two", says))
    uids: set[int] = set()
    for job in ("one", "two"):
        assert agent.ended(job).exit_code == 0, agent.log(job)
        uid, gid, groups, home, cwd = agent.log(job).decode().split()
        assert uid == gid == groups and int(uid) >= FIRST_ID
        assert (home, cwd) == (str(agent.folder(job).path / "home"), str(agent.folder(job).work))
        assert agent.folder(job).work.stat().st_uid == int(uid)
        uids.add(int(uid))
    assert len(uids) == 2


def test_a_job_reads_neither_another_job_nor_the_agent(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start("one", "echo mine > secret; sleep 30"))
    agent.wait_for_output(b"", "one")
    until((agent.folder("one").work / "secret").exists, "the first job's file")
    other, node = agent.folder("one"), agent.attempts.parent
    agent_pid = agent.process.pid
    tries = [
        f"cat {other.work}/secret", f"cat {other.path}/order.json", f"ls {other.path}",
        f"touch {other.path}/control", f"cat {node}/key.json", f"touch {node}/read.json",
        f"cat /proc/{agent_pid}/environ", f"kill {agent_pid}", f"kill {agent.pids('one').job}",
        f"touch {agent.folder('two').path}/x",
    ]  # fmt: skip
    agent.post(
        a_start("two", "; ".join(f"{one} && echo done: '{one}'" for one in tries) + "; true")
    )
    assert agent.ended("two").exit_code == 0
    said = agent.log("two").decode()
    assert "done" not in said and said.count("denied") + said.count("not permitted") == len(tries)


def test_credentials_of_the_agent_are_not_in_a_jobs_environment(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(command="env; cat /proc/$PPID/environ | tr '\\0' '\\n'; true"))
    agent.ended()
    assert "AWS_" not in agent.log().decode() and "ours" not in agent.log().decode()


def test_a_job_and_all_that_it_started_end_when_their_shim_is_killed(agent: LiveAgent) -> None:
    agent.start()
    agent.post(a_start(command="setsid sleep 300 & sleep 300"))
    pids = agent.pids()
    os.kill(pids.shim, 9)
    assert agent.ended().how == "shim-lost"
    until(lambda: not agent.job_processes() or None, "the job's processes are gone")


def test_no_program_makes_a_job_another_user_and_others_read_nothing_of_it(
    agent: LiveAgent,
) -> None:
    agent.start()
    agent.post(
        a_start(command="grep NoNewPrivs /proc/self/status; umask; grep Cap /proc/self/status")
    )
    assert agent.ended().exit_code == 0
    lines = agent.log().decode().split("\n")
    assert lines[0].split() == ["NoNewPrivs:", "1"] and lines[1] == "0077"
    caps = dict(line.split() for line in lines[2:] if line)
    assert all(int(caps[f"Cap{kind}:"], 16) == 0 for kind in ("Prm", "Eff", "Amb"))


def boot_told(agent: LiveAgent) -> dict[str, str]:
    """Wait for the end of an agent; return what it has told of a boot that failed."""
    assert agent.process.wait(timeout=60) == 1
    for pid in agent.processes():
        os.kill(pid, signal.SIGKILL)  # the watchdog, which would end the machine
    body = boot_of(agent.objects, "host").read(1)
    told: dict[str, str] = json.loads(body or b"{}")
    return told


def test_a_rented_machine_whose_jobs_would_share_a_user_fails_its_boot(agent: LiveAgent) -> None:
    agent.home.chmod(0o700)
    agent.options.append(f"--power-off=touch {agent.home}/off")
    agent.start()
    told = boot_told(agent)
    assert (agent.home / "off").exists()
    assert (told["phase"], told["state"]) == ("agent", "failed")
    assert told["says"] == f"all jobs run as the agent's own user: {agent.home} is closed to others"
    assert agent.hear() == []


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")
def test_a_rented_machine_that_cannot_keep_jobs_from_its_credentials_fails_its_boot(
    agent: LiveAgent,
) -> None:
    agent.before += WITHOUT_A_FILTER
    agent.start()
    assert boot_told(agent)["says"].startswith("jobs can reach the metadata service: ")
    assert "jobs can reach the metadata service" in agent.story()
