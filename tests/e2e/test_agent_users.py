"""On a rented machine each job is a user of its own: it sees no other job, and no credentials."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_agent import LiveAgent, a_start, until

from cloudwhale.agent.users import FIRST_ID, METADATA
from cloudwhale.mailbox.documents import Noticed

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: jobs become other users"),
]


@pytest.fixture
def agent() -> Iterator[LiveAgent]:
    """Give an agent whose home others can enter, as on a machine of its own."""
    folder = Path(tempfile.mkdtemp(prefix="cloudwhale-users-"))
    folder.chmod(0o755)
    live = LiveAgent(folder)
    # Without iptables: a test changes no rule of this host.
    live.env |= {"PATH": "/usr/bin:/bin", "AWS_SECRET_ACCESS_KEY": "ours", "HOME": "/root"}
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


def test_without_the_means_it_is_said_that_jobs_share_a_user(agent: LiveAgent) -> None:
    agent.home.chmod(0o700)
    agent.start()
    agent.post(a_start(command="id -u"))
    agent.ended()
    assert agent.log() == b"0\n"
    (noticed,) = agent.all_of(Noticed)
    assert noticed.says.startswith("all jobs run as the agent's own user: ")


@pytest.mark.skipif(
    shutil.which("iptables") is None or shutil.which("unshare") is None,
    reason="needs iptables and unshare",
)
def test_jobs_are_kept_from_the_metadata_service() -> None:
    asks = "from cloudwhale.agent.users import block_metadata as b; print(repr(b() or b()))"
    words = f"{sys.executable} -c '{asks}' && iptables -S OUTPUT"
    done = subprocess.run(
        ["unshare", "-n", "sh", "-c", words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"iptables does not work in a network namespace here: {done.stderr[-200:]}")
    first, *rules = done.stdout.splitlines()
    assert first == "''"
    (rule,) = [one for one in rules if METADATA in one]
    assert "--uid-owner 200000-299999" in rule and "REJECT" in rule
