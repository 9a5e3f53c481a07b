"""What a job on a rented machine tries in vain: as a process, as root in a container, as a gang's.

A machine is a network namespace here, with a stand-in for the metadata service beside it, and a
Docker of its own with its usual network.
"""

import fcntl
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from dockerd import IMAGE, PREFIX, CannotStart, Dockerd, _not_here, cleaned, lacks
from live_agent import LiveAgent, a_start, a_stop, until
from lone_machine import BRIDGE_SIX, CREDENTIALS, FOUR, SIX, LoneMachine, asking, lone_machine

from cloudwhale.agent.users import FIRST_ID, IDS, user_of
from cloudwhale.mailbox.documents import StartOrder

pytestmark = [pytest.mark.root, pytest.mark.docker]

SPELLINGS = (FOUR, SIX, "2852039166", "::ffff:169.254.169.254")
"""The last two are other ways to write the first."""
NAMED = "echo '169.254.169.254 alias' >>/etc/hosts; "
KINDS: dict[str, dict[str, Any]] = {
    "process": {},
    "container": {"image": IMAGE},
    "gang": {"image": IMAGE, "host_network": True},
}


@dataclass(frozen=True)
class Rented:
    """A rented machine: its network, its Docker, its agent."""

    network: LoneMachine
    docker: Dockerd
    agent: LiveAgent

    def asks(self, round_: str) -> dict[str, str]:
        """Return what a job of each kind hears of the metadata service."""
        for kind, fields in KINDS.items():
            self.agent.post(a_start(f"{kind}-{round_}", _asks(kind), **fields))
        said: dict[str, str] = {}
        for kind in KINDS:
            end = self.agent.ended(f"{kind}-{round_}")
            assert (end.how, end.exit_code) == ("exited", 0), (kind, end)
            said[kind] = self.agent.log(f"{kind}-{round_}").decode()
        return said

    def without_rules(self) -> None:
        """Take away whatever keeps jobs from the service."""
        self.network.run(
            "sh", "-c", "! command -v nft >/dev/null || nft delete table inet cloudwhale || true"
        )
        for program in ("iptables", "ip6tables"):
            for rule in self.network.run(program, "-S").splitlines():
                if rule.endswith(("icmp-port-unreachable", "icmp6-port-unreachable")):
                    self.network.run(program, "-D", *rule.split()[1:])

    def blocked(self, *, without_nft: bool) -> str:
        """Block the service as the agent does; return what it says."""
        lines = [
            "import shutil", "from cloudwhale.agent import metadata as m",
            f"m._program = lambda name: None if name == 'nft' and {without_nft}"
            " else shutil.which(name)",
            f"print(m.block_metadata({FIRST_ID}, {FIRST_ID + IDS - 1}))",
        ]  # fmt: skip
        return self.network.run(sys.executable, "-c", "\n".join(lines)).strip()


def _asks(kind: str) -> str:
    """Return what a job does to be answered by the metadata service, however it is written."""
    if kind == "process":
        return "; ".join(f"{asking(one)}; echo tried" for one in SPELLINGS)
    ask = "printf 'GET /credentials HTTP/1.0\\r\\n\\r\\n' | nc -w 3 {} 80; echo tried"
    tries = [ask.format(one) for one in SPELLINGS]
    if kind == "container":
        tries.append(NAMED + ask.format("alias"))
    return "id -u; " + "; ".join(tries)


@pytest.fixture(scope="module")
def rented(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rented]:
    """Give a rented machine; its agent has blocked what it must."""
    if lacks():
        _not_here(lacks())
    if shutil.which("ip") is None or shutil.which("iptables") is None:
        _not_here("needs ip and iptables")
    home = Path(tempfile.mkdtemp(prefix="cloudwhale-rented-"))
    home.chmod(0o755)
    docks = Path(tempfile.mkdtemp(prefix=PREFIX))
    with lone_machine(tmp_path_factory.mktemp("cloud")) as network:
        docker = Dockerd(docks, network.inside)
        with (docks / "users").open("w") as users:
            fcntl.flock(users, fcntl.LOCK_SH)
            try:
                docker.start("--ipv6", f"--fixed-cidr-v6={BRIDGE_SIX}", quiet=False)
            except CannotStart as trouble:
                _not_here(f"it is installed and cannot start: {str(trouble)[-300:]}")
            docker.add_image()
            agent = LiveAgent(home)
            agent.before = list(network.inside)
            agent.options = ["--rented", "--lease=1:3600", "--own-users"]
            agent.env |= {"DOCKER_HOST": docker.host, "AWS_SECRET_ACCESS_KEY": "ours"}
            try:
                agent.start()
                agent.joined_again(1)
                yield Rented(network, docker, agent)
                agent.end()
            finally:
                for pid in agent.processes():
                    os.kill(pid, signal.SIGKILL)
                if docker.answers():
                    docker.end()
                cleaned(docks)
                shutil.rmtree(home)


def tried_in_vain(said: dict[str, str]) -> bool:
    """Say whether every job has tried all it knows, and heard nothing."""
    return all(
        text.count("tried") == len(SPELLINGS) + (kind == "container") and CREDENTIALS not in text
        for kind, text in said.items()
    )


def test_the_agent_itself_is_answered_and_no_job_is(rented: Rented) -> None:
    assert rented.network.reaches(FOUR) and rented.network.reaches(SIX)
    said = rented.asks("blocked")
    assert tried_in_vain(said), said
    assert said["container"].split()[0] == "0", "it was root in its container"
    assert int(said["gang"].split()[0]) >= FIRST_ID


def test_whatever_blocks_it_is_what_keeps_jobs_from_it(rented: Rented) -> None:
    rented.without_rules()
    said = rented.asks("open")
    heard = {kind: text.count(CREDENTIALS) for kind, text in said.items()}
    assert heard == {"process": 4, "container": 5, "gang": 4}, said
    assert rented.blocked(without_nft=True) == ""
    assert rented.blocked(without_nft=True) == "", "done again, it changes nothing"
    rules = rented.network.run("iptables", "-S", "DOCKER-USER").splitlines()
    assert [one for one in rules if FOUR in one] == rules[1:2], "once, and first"
    assert tried_in_vain(rented.asks("iptables"))


def test_docker_may_start_again_without_opening_the_way(rented: Rented) -> None:
    rented.without_rules()
    assert rented.blocked(without_nft=True) == ""
    rented.docker.end()
    rented.docker.start("--ipv6", f"--fixed-cidr-v6={BRIDGE_SIX}", quiet=False)
    assert tried_in_vain(rented.asks("restarted"))


@pytest.mark.skipif(shutil.which("nft") is None, reason="needs nft")
def test_nftables_alone_is_enough_whatever_becomes_of_dockers_rules(rented: Rented) -> None:
    rented.without_rules()
    assert rented.blocked(without_nft=False) == ""
    rented.docker.end()
    rented.docker.start("--ipv6", f"--fixed-cidr-v6={BRIDGE_SIX}", quiet=False)
    assert FOUR not in rented.network.run("iptables", "-S")
    assert tried_in_vain(rented.asks("nft"))


@pytest.mark.skipif(shutil.which("nft") is None, reason="needs nft")
def test_no_container_reaches_a_port_of_another(rented: Rented) -> None:
    agent = rented.agent
    serves = "hostname -i; while :; do echo 'a word' | nc -l -p 4000; done"
    agent.post(a_start("serves", serves, image=IMAGE))
    agent.wait_for_output(b".", "serves")
    address = agent.output("serves").decode().split()[0]
    asks = f"nc -w 2 {address} 4000 </dev/null; echo asked"
    rented.network.run("nft", "delete table bridge cloudwhale")
    agent.post(a_start("open", asks, image=IMAGE))
    agent.ended("open")
    assert agent.log("open") == b"a word\nasked\n"
    told = rented.network.run(
        sys.executable,
        "-c",
        "from cloudwhale.agent.metadata import part_containers as p; print(p())",
    )
    assert told.strip() == ""
    agent.post(a_start("parted", asks, image=IMAGE))
    agent.ended("parted")
    assert b"a word" not in agent.log("parted") and agent.log("parted").endswith(b"asked\n")
    agent.post(a_stop("serves", grace_s=0.1))
    agent.ended("serves")


# -- files and processes ---------------------------------------------------------------------


def other_job(rented: Rented, name: str, **fields: Any) -> StartOrder:
    """Start a job with something to hide, and wait until it is hidden."""
    told = "echo 'mine and nobody elses' >work-file; echo ready; sleep 60"
    order = a_start(name, told, **fields)
    rented.agent.post(order)
    rented.agent.wait_for_output(b"ready", name)
    return order


def tries_of(rented: Rented, *, inside: bool) -> list[str]:
    """Return what a job tries: each must fail."""
    agent, node = rented.agent, rented.agent.attempts.parent
    pid, tenure = agent.process.pid, ("key", "tenure", "watchdog", "read", "claim")
    tries = [f"cat {node}/{name}.json" for name in tenure]
    for job in ("victim", "boxed-victim"):
        path = agent.folder(job).path
        tries += [f"cat {path}/{one}" for one in ("order.json", "work/work-file", "log/000001")]
        tries += [f"ls {path}/work", f"touch {path}/control"]
    tries += [f"ls {rented.docker.folder / 'root' / 'containers'}", "mknod mine b 8 0"]
    tries += ["chroot / true", "mount -t tmpfs none /mnt", "ping -c 1 -W 1 127.0.0.1"]
    if not inside:
        tries += [f"ls {node}", f"ls {agent.attempts}", f"touch {node}/x"]
        victim = agent.pids("victim").job
        tries += [f"cat /proc/{pid}/environ", f"kill {pid}", f"cat /proc/{victim}/environ"]
        tries += [f"kill {victim}", f"ls /proc/{victim}/cwd/", f"ls /proc/{pid}/root/"]
        sock = rented.docker.folder / "docker.sock"
        tries += [f"(exec 3<>{sock})", f"test -w {sock}"]
    else:
        tries += [f"ls {agent.attempts} | grep -v thief", f"ls {node} | grep -v attempts"]
        tries += [f"test -e {rented.docker.folder}", "test -e /var/run/docker.sock"]
        tries += [f"test -e /proc/{pid}/environ && grep -q cloudwhale /proc/{pid}/cmdline"]
    return tries


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_job_gets_at_nothing_of_the_agent_or_of_others(rented: Rented, kind: str) -> None:
    others = {"victim": {}, "boxed-victim": {"image": IMAGE}}
    for name, fields in others.items():
        if not rented.agent.folder(name).is_known:
            other_job(rented, name, **fields)
    tries = tries_of(rented, inside=kind != "process")
    if kind == "container":  # root may change its own root
        tries = [one for one in tries if not one.startswith("chroot")]
    if kind == "process":
        tries = [one for one in tries if not one.startswith("ping")]  # a program of this host
    told = "\n".join(f"if {one}; then echo 'got: {one}'; fi" for one in tries)
    rented.agent.post(a_start(f"thief-{kind}", f"{told}\necho all tried", **KINDS[kind]))
    assert rented.agent.ended(f"thief-{kind}").exit_code == 0
    said = rented.agent.log(f"thief-{kind}").decode()
    assert "all tried" in said
    assert "got: " not in said, said
    assert "nobody elses" not in said


def test_credentials_of_the_agent_are_in_no_jobs_environment(rented: Rented) -> None:
    for kind, fields in KINDS.items():
        rented.agent.post(a_start(f"env-{kind}", "env; echo over", **fields))
    for kind in KINDS:
        assert rented.agent.ended(f"env-{kind}").exit_code == 0
        said = rented.agent.log(f"env-{kind}").decode()
        assert "over" in said and "AWS_" not in said and "ours" not in said.split("=")


def test_no_container_can_gain_rights_or_forge_packets(rented: Rented) -> None:
    asks = "grep -e NoNewPrivs -e CapBnd -e CapEff /proc/self/status; ls /sys/class/net"
    for kind in ("container", "gang"):
        rented.agent.post(a_start(f"rights-{kind}", asks, **KINDS[kind]))
    for kind in ("container", "gang"):
        rented.agent.ended(f"rights-{kind}")
        said = rented.agent.log(f"rights-{kind}").decode()
        found = dict(line.split() for line in said.splitlines() if ":" in line)
        assert found["NoNewPrivs:"] == "1"
        bounding = int(found["CapBnd:"], 16)
        for number in (12, 13, 19, 21, 27):  # NET_ADMIN, NET_RAW, SYS_PTRACE, SYS_ADMIN, MKNOD
            assert not bounding & 1 << number
        if kind == "gang":
            assert int(found["CapEff:"], 16) == 0
        wire = f"cwn{rented.network.name[-6:]}"
        assert (wire in said) is (kind == "gang"), "who is in the host's network sees its wire"


def test_a_gangs_container_saves_what_the_agent_publishes(rented: Rented) -> None:
    told = "echo $HOME; touch $HOME/x; echo step >$CLOUDWHALE_CHECKPOINT_DIR/step; echo $TOKEN"
    rented.agent.post(a_start("saver", told, **KINDS["gang"]))
    assert rented.agent.ended("saver").exit_code == 0
    folder = rented.agent.folder("saver")
    assert rented.agent.log("saver").split()[0].decode() == str(folder.path / "home")
    assert (folder.path / "checkpoints" / "step").stat().st_uid == user_of(folder)
    assert rented.agent.published().checkpoint.name == "step"


@pytest.mark.parametrize(
    "host",
    ["/", "/var/run", "/etc", "/proc", "/tmp", "/var/lib", "/root", "HOME", "LINK", "SOCKET"],
)
def test_the_machines_own_folders_are_given_to_no_container(rented: Rented, host: str) -> None:
    link = rented.agent.home.parent / "link"
    if not link.is_symlink():
        link.symlink_to("/etc")
    paths = {
        "HOME": rented.agent.home,
        "LINK": link,
        "SOCKET": rented.docker.folder / "docker.sock",
    }
    path = str(paths.get(host, host))
    job = f"mounts-{host.strip('/').replace('/', '-') or 'all'}"
    rented.agent.post(a_start(job, "ls /given", image=IMAGE, mounts={path: "/given"}))
    end = rented.agent.ended(job)
    assert end.how == "start-failed"
    assert ("is the machine's own" in end.says) or ("is a socket" in end.says), end.says


def test_inputs_are_read_and_not_written_by_every_kind_of_job(
    rented: Rented, tmp_path_factory: pytest.TempPathFactory
) -> None:
    source = tmp_path_factory.mktemp("source")
    (source / "corpus").write_text("words\n")
    told = (
        "cat $CLOUDWHALE_INPUT_DIR/*/corpus || cat $CLOUDWHALE_INPUT_DIR/corpus\n"
        "for one in $(find -L $CLOUDWHALE_INPUT_DIR); do\n"
        "  if ( echo x >>$one ) 2>/dev/null || touch $one/new 2>/dev/null; then\n"
        "    echo wrote $one\n"
        "  fi\n"
        "done; echo over"
    )
    for kind, fields in KINDS.items():
        inputs = (source.as_uri(),)
        rented.agent.post(a_start(f"reads-{kind}", told, inputs=inputs, **fields))
    for kind in KINDS:
        end = rented.agent.ended(f"reads-{kind}")
        said = rented.agent.log(f"reads-{kind}").decode()
        assert end.exit_code == 0, (end, said)
        assert said.startswith("words") and said.endswith("over\n") and "wrote" not in said, said


def test_nothing_is_left_of_all_these_jobs_when_the_agent_has_gone(rented: Rented) -> None:
    rented.agent.end()
    until(lambda: not rented.agent.job_processes() or None, "no process of a job is left")
    until(lambda: not rented.docker.names() or None, "no container is left")
    rented.agent.start()
    rented.agent.joined_again(2)
