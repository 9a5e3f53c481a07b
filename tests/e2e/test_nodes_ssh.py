"""Other own servers, reached by a real ssh: added, used, drained, cut off, removed."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sshd
from shell import Done, Shell, until

from cloudwhale.control.store import open_store, sqlite_url

WHY_NOT = sshd.why_not()
pytestmark = [pytest.mark.sshd, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)]

JOB = """
name: {name}
command: {command}
where: {{labels: {{rack: a}}}}
resources: {{cpu: 0.5}}
checkpoint: {{every: 1s, grace: 5s}}
retry: {{max: 2, backoff: 1s}}
"""
COUNTS = (
    "i=0; [ $CLOUDWHALE_RESUME = 1 ] && i=$(cat $CLOUDWHALE_CHECKPOINT_DIR/*/i | tail -n 1);"
    " while true; do i=$((i+1)); mkdir -p w/$i; echo $i > w/$i/i;"
    " mv w/$i $CLOUDWHALE_CHECKPOINT_DIR/; echo at $i; sleep 0.3; done"
)


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sshd.Lab]:
    """Give two machines; what one test installs there, the next one finds, as people would."""
    with sshd.lab(tmp_path_factory.mktemp("lab") / "lab") as made:
        yield made


@pytest.fixture
def lab(machines: sshd.Lab) -> Iterator[sshd.Lab]:
    """Give the two machines without any node on them."""
    yield machines
    machines.forget()


@pytest.fixture
def client(tmp_path: Path, lab: sshd.Lab) -> sshd.Client:
    """Give a user's ssh that knows the machines."""
    return lab.client(tmp_path / "ssh")


@pytest.fixture
def shell(tmp_path: Path, lab: sshd.Lab, client: sshd.Client) -> Iterator[Shell]:
    """Give a shell whose mailbox is a folder that the machines share."""
    (tmp_path / "user").mkdir()
    mailbox = lab.shared / tmp_path.name
    made = Shell(
        tmp_path / "user", {**client.environment(), "CLOUDWHALE_MAILBOX": mailbox.as_uri()}
    )
    yield made
    made.close()


def add(shell: Shell, lab: sshd.Lab, letter: str = "a", *words: str) -> Done:
    """Add a machine as the node of its letter, in a rack of its letter."""
    mailbox = lab.machines[f"gpu-{letter}"].mounted / shell.folder.parent.name
    return shell(
        "nodes", "add", f"ssh://gpu-{letter}", "--mailbox-path", str(mailbox),
        "--node", f"n{letter}", "--label", f"rack={letter}", *words,
    )  # fmt: skip


def nodes(shell: Shell) -> dict[str, dict[str, Any]]:
    """Return the known nodes by name."""
    return {node["id"]: node for node in shell("nodes", "--json").document["nodes"]}


def state(shell: Shell, node: str) -> str:
    """Return a node's state; looked up without a command, as waiting asks for it all the time."""
    with closing(open_store(sqlite_url(shell.home), may_migrate=False)) as store:
        return next((each.state.value for each in store.nodes() if each.id == node), "unknown")


def saved(shell: Shell) -> int:
    """Return how far the only job's newest checkpoint is, 0 for none."""
    checkpoint = shell.jobs()[0].checkpoint
    return 0 if checkpoint is None else int(checkpoint.name)


def is_decided(shell: Shell, name: str) -> bool:
    """Say whether a job has a reason to be as it is."""
    return any(job.reason is not None for job in shell.jobs() if job.spec.name == name)


def job(shell: Shell, name: str, command: str) -> None:
    """Queue a job that only the first machine can run."""
    shell.write(f"{name}.yaml", JOB.format(name=name, command=command))
    done = shell("submit", f"{name}.yaml")
    assert done.code == 0, done.err


def test_a_server_is_added_used_and_drained(lab: sshd.Lab, shell: Shell) -> None:
    home = lab.machines["gpu-a"].folder / "new"
    would = add(shell, lab, "a", "--home", str(home), "--dry-run")
    assert would.code == 0 and "would install our packages" in would.out, would.err
    assert not home.exists(), "a dry run changes nothing"

    done = add(shell, lab, "a", "--home", str(home))
    assert done.code == 0, done.err
    assert "na has joined" in done.out
    assert nodes(shell)["na"]["state"] == "ready"

    shell.start("controller")
    job(shell, "where", "ip -o -4 addr show; pwd")
    shell.until_state("where", "completed")
    said = shell("logs", "where").out
    assert lab.machines["gpu-a"].address in said, "it ran behind the machine's own address"
    assert str(home / "nodes" / "na") in said

    assert shell("nodes", "drain", "na").code == 0
    job(shell, "waits", "true")
    assert nodes(shell)["na"]["state"] == "draining"
    until("it was decided", lambda: is_decided(shell, "waits"))
    assert "node-drains" in shell("explain", "waits").out
    assert shell.states()["waits"] == "pending"
    assert shell("nodes", "undrain", "na").code == 0
    shell.until_state("waits", "completed")


def test_a_server_is_upgraded_under_its_jobs_and_removed(lab: sshd.Lab, shell: Shell) -> None:
    assert add(shell, lab).code == 0
    shell.start("controller")
    job(shell, "long", COUNTS)
    shell.until_state("long", "running")
    until("it has counted", lambda: saved(shell) >= 3)
    again = add(shell, lab)
    assert again.code == 0 and "restart the agent of na" in again.out, again.err
    until("it counts on", lambda: saved(shell) >= 12)
    assert shell.jobs()[0].attempt == 1, "the restart of its agent was no event for the job"

    refused = shell("nodes", "remove", "na")
    assert refused.code == 1 and "--force" in refused.err
    assert nodes(shell)["na"]["state"] == "ready", "refused, nothing has changed"
    forced = shell("nodes", "remove", "na", "--force")
    assert forced.code == 0, forced.err
    assert "na" not in nodes(shell)
    assert shell.states()["long"] == "pending"
    assert shell.jobs()[0].checkpoint is not None, "it was saved"
    machine = lab.machines["gpu-a"]
    place = str(machine.data)
    until(
        "its agent leaves",
        lambda: (
            not [
                pid for pid in machine.pids() if place in _command(pid) and "agent" in _command(pid)
            ]
        ),
    )
    assert add(shell, lab).code == 0
    shell.until_state("long", "running")
    assert shell.jobs()[0].attempt == 2


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def test_a_second_machine_is_refused_the_name_of_the_first(lab: sshd.Lab, shell: Shell) -> None:
    assert add(shell, lab).code == 0
    refused = add(shell, lab, "b", "--node", "na")
    assert refused.code == 1
    assert "the node na is taken" in refused.err
    assert add(shell, lab, "b").code == 0
    assert set(nodes(shell)) >= {"na", "nb"}


def test_a_machine_that_is_cut_off_is_lost_and_comes_back(
    lab: sshd.Lab, client: sshd.Client, tmp_path: Path
) -> None:
    (tmp_path / "user").mkdir()
    told = {
        **client.environment(), **lab.bucket(), "CLOUDWHALE_MAILBOX": "s3://lab/mail",
        "CLOUDWHALE_ATTEMPT_LEASE_S": "25", "CLOUDWHALE_CLOCK_SKEW_S": "5",
    }  # fmt: skip
    shell = Shell(tmp_path / "user", told)
    try:
        for letter in "ab":
            done = shell(
                "nodes", "add", f"ssh://gpu-{letter}", "--node", f"n{letter}", "--label", "rack=a"
            )
            assert done.code == 0, done.err
        shell.start("controller")
        job(shell, "long", COUNTS)
        shell.until_state("long", "running")
        until("it has saved", lambda: saved(shell))
        placement = shell.jobs()[0].placement
        assert placement is not None
        first = lab.machines[f"gpu-{placement.node[-1]}"]
        first.cut()
        until("it is lost", lambda: state(shell, placement.node) == "lost")
        until("it starts elsewhere", lambda: shell.jobs()[0].attempt == 2)
        assert not _counting(first), "the first attempt has ended before the second begins"
        shell.until_state("long", "running")
        first.mend()
        until("it is back", lambda: state(shell, placement.node) == "ready")
        assert shell.jobs()[0].attempt == 2
        assert "resume" in shell("explain", "long").out
    finally:
        shell.close()


def _counting(machine: sshd.Machine) -> list[int]:
    return [pid for pid in machine.pids() if "CLOUDWHALE_CHECKPOINT_DIR" in _command(pid)]


# -- what stands in the way ------------------------------------------------------------------


def test_what_stands_in_the_way_is_said_with_its_remedy(
    lab: sshd.Lab, client: sshd.Client, shell: Shell
) -> None:
    machine = lab.machines["gpu-a"]
    refused = shell("nodes", "add", f"ssh://{lab.address}:1")
    assert refused.code == 1 and "nobody listens at port 1" in refused.err

    elsewhere = shell("nodes", "add", "ssh://gpu-a", "--mailbox-path", "/proc")
    assert elsewhere.code == 1 and "is not seen in /proc on gpu-a" in elsewhere.err
    assert "--mailbox-path" in elsewhere.err

    client.forget_key_of(machine)
    unknown = add(shell, lab)
    assert unknown.code == 115 and "is not known here" in unknown.err

    client.mistake_key_of(machine, lab.stranger.with_suffix(".pub"))
    changed = add(shell, lab)
    assert changed.code == 115 and "is not the one that is known of it" in changed.err

    client.come_with(lab.stranger)
    denied = add(shell, lab, "b")
    assert denied.code == 115 and "ssh-copy-id" in denied.err


def test_a_private_mailbox_is_refused_with_the_remedy(client: sshd.Client, tmp_path: Path) -> None:
    (tmp_path / "user").mkdir()
    shell = Shell(tmp_path / "user", client.environment())
    refused = shell("nodes", "add", "ssh://gpu-a")
    assert refused.code == 2 and "a folder of this host alone" in refused.err
    assert "s3://" in refused.err
