"""Agents that come by themselves, on this host: found, drained, removed, two of one name."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from shell import COMMAND, Shell, until

from cloudwhale.control.store import open_store, sqlite_url
from cloudwhale.mailbox.box import inbox_from
from cloudwhale.mailbox.documents import REPORTS, Left
from cloudwhale.mailbox.objects import open_objects

JOB = "name: {name}\ncommand: {command}\nwhere: {{labels: {{rack: a}}}}\nresources: {{cpu: 0.5}}\n"
ENDLESS = "while true; do echo on; sleep 0.2; done"


class Lab:
    """A shell, its controller, and agents with homes of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mailbox = folder / "shared"
        self.shell = Shell(folder / "user", {"CLOUDWHALE_MAILBOX": self.mailbox.as_uri()})
        self.shell.folder.mkdir()
        self.agents: list[subprocess.Popen[str]] = []

    def agent(self, *words: str, home: str = "a", node: str = "gpu") -> subprocess.Popen[str]:
        """Start an agent as a person does on another machine."""
        options = ["--mailbox", self.mailbox.as_uri(), "--node", node, "--label", "rack=a"]
        process = subprocess.Popen(
            [*COMMAND, "agent", *options, "--home", str(self.folder / home), *words],
            cwd=self.folder, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )  # fmt: skip
        self.agents.append(process)
        return process

    def state(self, node: str = "gpu") -> str:
        """Return the state of a node; empty when nobody knows it."""
        found: list[dict[str, Any]] = self.shell("nodes", "--json").document["nodes"]
        return next((one["state"] for one in found if one["id"] == node), "")

    def submit(self, name: str, command: str) -> None:
        """Queue a job for the agents that are not this host's own."""
        self.shell.write(f"{name}.yaml", JOB.format(name=name, command=command))
        assert self.shell("submit", f"{name}.yaml").code == 0

    def close(self) -> None:
        """End everything."""
        for process in self.agents:
            process.kill()
            process.wait()
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:  # its jobs may hold it: nobody waits for its end
                    pipe.close()
        self.shell.close()
        while left := [one for one in psutil.process_iter() if self._is_ours(one)]:
            for orphan in left:
                with suppress(psutil.NoSuchProcess):
                    orphan.kill()
            psutil.wait_procs(left, timeout=5)

    def _is_ours(self, process: psutil.Process) -> bool:
        """Say whether it is a shim, or a job, of one of the agents."""
        try:
            words = [*process.cmdline(), process.environ().get("CLOUDWHALE_CHECKPOINT_DIR", "")]
            living = process.status() != psutil.STATUS_ZOMBIE
            return living and any(str(self.folder) in word for word in words)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            return False


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path)
    try:
        yield made
    finally:
        made.close()


def test_an_agent_that_starts_anywhere_is_found_and_works(lab: Lab) -> None:
    lab.shell.start("controller")
    lab.agent()
    until("it is found", lambda: lab.state() == "ready")
    lab.submit("there", "echo I am in $PWD")
    lab.shell.until_state("there", "completed")
    assert str(lab.folder / "a" / "nodes" / "gpu") in lab.shell("logs", "there").out


def test_a_removed_nodes_agent_is_told_to_leave_and_may_come_again(lab: Lab) -> None:
    lab.shell.start("controller")
    first = lab.agent()
    until("it is found", lambda: lab.state() == "ready")
    removed = lab.shell("nodes", "remove", "gpu")
    assert removed.code == 0, removed.err
    assert lab.state() == ""
    assert first.wait(timeout=60) == 0
    lab.agent()
    until("it is a node again", lambda: lab.state() == "ready")


def test_an_agent_that_a_new_database_does_not_know_says_who_it_is(lab: Lab) -> None:
    lab.agent()
    inbox = inbox_from(open_objects(lab.mailbox.as_uri()), "gpu")
    until("it beats", lambda: inbox.newest() >= 2)
    inbox.forget(1, 1)  # as by age, when a controller has read far beyond it
    lab.shell.start("controller")
    until("it is a node", lambda: lab.state() == "ready")


def test_an_agent_that_is_told_to_go_saves_its_jobs_and_its_node_takes_no_more(lab: Lab) -> None:
    lab.shell.start("controller")
    agent = lab.agent()
    until("it is found", lambda: lab.state() == "ready")
    lab.submit("long", ENDLESS)
    lab.shell.until_state("long", "running")
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(timeout=60) == 0
    said = agent.stderr.read() if agent.stderr else ""
    assert "agent of node gpu" in said and "has left" in said
    until("its node is lost at once", lambda: lab.state() == "lost")
    lab.shell.until_state("long", "pending")
    inbox = inbox_from(open_objects(lab.mailbox.as_uri()), "gpu")
    assert isinstance(REPORTS.validate_json(inbox.read(inbox.newest()) or b""), Left)
    lab.agent()
    lab.shell.until_state("long", "running")


def test_the_end_of_a_run_sends_no_agent_away_that_it_cannot_start(lab: Lab) -> None:
    agent = lab.agent()
    lab.shell.write("here.yaml", "name: here\ncommand: 'true'\n")
    for _ in range(2):
        assert lab.shell("run", "-y", "--new", "here.yaml").code == 0
    assert agent.poll() is None
    assert not (lab.mailbox / "orders" / "gpu").exists() or b"leave" not in b"".join(
        path.read_bytes() for path in (lab.mailbox / "orders" / "gpu").iterdir()
    )


def test_a_second_agent_of_one_name_is_refused_while_the_first_lives(lab: Lab) -> None:
    lab.agent()
    claims = lab.mailbox / "agents" / "gpu"
    until("the first has claimed", lambda: claims.exists() and any(claims.iterdir()))
    second = lab.agent(home="b")
    _, said = second.communicate(timeout=60)
    assert second.returncode == 2
    assert "the node gpu is taken" in said and "--node" in said


def test_a_second_agent_in_the_same_folder_says_so(lab: Lab) -> None:
    lab.agent()
    lock = lab.folder / "a" / "nodes" / "gpu" / "agent.lock"
    until("the first works", lambda: lock.exists() and lock.read_text().strip())
    second = lab.agent()
    _, said = second.communicate(timeout=60)
    assert second.returncode == 1
    assert "works in" in said and "already" in said


def test_who_loses_its_name_obeys_no_order_and_leaves(lab: Lab) -> None:
    lab.shell.start("controller")
    first = lab.agent()
    until("it is found", lambda: lab.state() == "ready")
    claim = lab.mailbox / "agents" / "gpu" / "000001.json"
    objects = open_objects(lab.mailbox.as_uri())
    assert objects.create("agents/gpu/000002.json", claim.read_bytes())
    lab.submit("there", "touch ran")
    _, said = first.communicate(timeout=60)
    assert first.returncode == 2 and "another agent has become gpu" in said
    assert not list((lab.folder / "a").rglob("ran"))


# -- mailboxes that cannot be used -----------------------------------------------------------


def refused(lab: Lab, *words: str) -> str:
    done = subprocess.run(
        [*COMMAND, "agent", *words, "--home", str(lab.folder / "a")], cwd=lab.folder,
        env={**os.environ, "CLOUDWHALE_MAILBOX": ""}, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode in (1, 2) and "Traceback" not in done.stderr
    return done.stderr


def test_an_agent_without_a_mailbox_is_refused(lab: Lab) -> None:
    assert "needs a mailbox" in refused(lab)


@pytest.mark.parametrize("url", ["ftp://host/x", "file://host/x", "s3://"])
def test_an_agent_with_a_mailbox_of_no_kind_is_refused(lab: Lab, url: str) -> None:
    assert "is no object store" in refused(lab, "--mailbox", url)


def test_an_agent_whose_mailbox_is_a_file_is_refused(lab: Lab) -> None:
    (lab.folder / "file").touch()
    assert "cannot open" in refused(lab, "--mailbox", str(lab.folder / "file"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Give a folder on a file system of 64 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=64k", "small", str(folder)]
    if os.geteuid() != 0 or subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("needs root, to mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.root
def test_a_mailbox_that_may_only_be_read_is_refused(lab: Lab, small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    said = refused(lab, "--mailbox", str(small_disk))
    assert "cannot write" in said and "writable, and not full" in said


@pytest.mark.root
def test_a_mailbox_that_is_full_is_refused_and_one_that_fills_up_is_waited_for(
    tmp_path: Path, small_disk: Path
) -> None:
    lab = Lab(tmp_path)
    lab.mailbox = small_disk
    lab.shell.settings = {"CLOUDWHALE_MAILBOX": small_disk.as_uri()}
    try:
        ballast = small_disk / "ballast"
        _fill(ballast)
        assert "not full" in refused(lab, "--mailbox", str(small_disk))
        ballast.unlink()
        agent = lab.agent()
        lab.shell.start("controller")
        until("it is found", lambda: lab.state() == "ready")
        _fill(ballast)
        lab.submit("waits", "true")
        until("its order cannot be posted", lambda: "No space left" in _events(lab))
        assert agent.poll() is None
        ballast.unlink()
        lab.shell.until_state("waits", "completed")
    finally:
        lab.close()


def _fill(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            return


def _events(lab: Lab) -> str:
    with closing(open_store(sqlite_url(lab.shell.home), may_migrate=False)) as store:
        return str(store.since(0))


def test_a_host_without_its_place_can_be_the_node_again(lab: Lab) -> None:
    first = lab.agent()
    claims = lab.mailbox / "agents" / "gpu"
    until("it has claimed", lambda: (claims / "000001.json").exists())
    first.kill()
    first.wait()
    shutil.rmtree(lab.folder / "a")
    again = lab.agent()
    until("it has claimed again", lambda: (claims / "000002.json").exists())
    assert again.poll() is None
