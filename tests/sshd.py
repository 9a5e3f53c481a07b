"""Two machines on this one: network namespaces with an sshd each, and nothing left of them."""

import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
import small_s3
from live_agent import until

PORT = 2022
LETTERS = "ab"
PROGRAMS = ("sshd", "ssh", "ssh-keygen", "ip", "unshare", "mount")


def why_not() -> str:
    """Say why there can be no such machines here; empty when there can."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    lacks = [program for program in PROGRAMS if shutil.which(program) is None]
    if lacks:
        return f"needs {', '.join(lacks)}"
    if os.geteuid() != 0:
        return "needs root, to make network namespaces"
    return ""


def run(*words: str) -> str:
    """Run a program to its end; fail with what it said."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
    return done.stdout


@dataclass
class Machine:
    """One machine: a namespace, a link, an sshd, folders of its own."""

    letter: str
    folder: Path
    net: str
    address: str
    sshd: subprocess.Popen[bytes] | None = None

    @property
    def name(self) -> str:
        """What ssh's configuration calls it."""
        return f"gpu-{self.letter}"

    @property
    def link(self) -> str:
        """Our end of its cable."""
        return f"{self.net}v"

    @property
    def mounted(self) -> Path:
        """Where it sees the shared folder; nobody else sees it there."""
        return self.folder / "shared"

    def cut(self) -> None:
        """Pull the cable."""
        run("ip", "link", "set", self.link, "down")

    def mend(self) -> None:
        """Plug it in again."""
        run("ip", "link", "set", self.link, "up")

    def pids(self) -> list[int]:
        """Return the processes of the machine."""
        done = subprocess.run(
            ["ip", "netns", "pids", self.net], capture_output=True, text=True, check=False
        )
        return [int(word) for word in done.stdout.split()]


@dataclass
class Lab:
    """The machines, the switch between them and us, and what we need to reach them."""

    folder: Path
    mark: str
    net: str
    shared: Path
    machines: dict[str, Machine] = field(default_factory=dict[str, Machine])
    store: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Our own address, as the machines see it."""
        return f"{self.net}.1"

    def environment(self) -> dict[str, str]:
        """Return what makes `ssh` the user's own, with the configuration of this lab."""
        return {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}

    def bucket(self) -> dict[str, str]:
        """Start an object store that the machines reach by network; return its environment."""
        note = self.folder / "port"
        self.store = subprocess.Popen(
            [sys.executable, str(Path(small_s3.__file__)), self.address, str(note)]
        )
        until(note.exists, "the object store listens")
        told = small_s3.environment(self.address, int(note.read_text()))
        for machine in self.machines.values():
            file = machine.folder / "config" / "cloudwhale" / "agent.env"
            file.parent.mkdir(parents=True)
            file.write_text("".join(f"{name}={value}\n" for name, value in told.items()))
        return told

    def forget_key_of(self, name: str) -> None:
        """Make a machine's key unknown."""
        known = self.folder / "known_hosts"
        rows = known.read_text().splitlines(keepends=True)
        address = self.machines[name].address
        known.write_text("".join(row for row in rows if address not in row))


@contextmanager
def lab(folder: Path) -> Iterator[Lab]:
    """Build it, and take it down whatever happens."""
    number = os.getpid() % 250 + 1
    made = Lab(
        folder=folder,
        mark=f"cw{os.getpid() % 100_000}",
        net=f"198.18.{number}",  # RFC 2544: for benches, routed nowhere
        shared=folder / "mailbox",
    )
    made.shared.mkdir(parents=True)
    try:
        _switch(made)
        _keys(made)
        for number, letter in enumerate(LETTERS, 2):
            _machine(made, letter, f"{made.net}.{number}")
        _client(made)
        yield made
    finally:
        _take_down(made)


def _switch(made: Lab) -> None:
    done = subprocess.run(
        ["ip", "link", "add", made.mark, "address", "02:00:00:00:00:01", "type", "bridge"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"this host lets nobody make a bridge: {done.stderr.strip()}")
    run("ip", "addr", "add", f"{made.address}/24", "dev", made.mark)
    run("ip", "link", "set", made.mark, "up")


def _keys(made: Lab) -> None:
    for name in ("user", "stranger"):
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(made.folder / name))


def _machine(made: Lab, letter: str, address: str) -> None:
    folder = made.folder / letter
    machine = Machine(letter, folder, f"{made.mark}{letter}", address)
    made.machines[machine.name] = machine
    machine.mounted.mkdir(parents=True)
    net, link, inner = machine.net, machine.link, f"{machine.net}i"
    run("ip", "netns", "add", net)
    run("ip", "link", "add", link, "type", "veth", "peer", "name", inner)
    run("ip", "link", "set", inner, "netns", net)
    run("ip", "link", "set", link, "master", made.mark)
    run("ip", "link", "set", link, "up")
    run("ip", "-n", net, "addr", "add", f"{address}/24", "dev", inner)
    run("ip", "-n", net, "link", "set", inner, "up")
    run("ip", "-n", net, "link", "set", "lo", "up")
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key"))
    Path("/run/sshd").mkdir(exist_ok=True)
    (folder / "sshd_config").write_text(
        f"ListenAddress {address}\nPort {PORT}\nHostKey {folder / 'key'}\n"
        f"AuthorizedKeysFile {made.folder / 'user.pub'}\nPidFile none\n"
        "UsePAM no\nStrictModes no\nPasswordAuthentication no\nPermitRootLogin yes\n"
        f"SetEnv XDG_CONFIG_HOME={folder / 'config'} XDG_DATA_HOME={folder / 'data'} "
        f"XDG_RUNTIME_DIR={folder / 'run'} PATH={os.environ['PATH']}\n"
    )
    start = (
        f"mount --make-rprivate / && mount --bind '{made.shared}' '{machine.mounted}' && "
        f"exec {shutil.which('sshd')} -D -e -f '{folder / 'sshd_config'}'"
    )
    with (folder / "sshd.log").open("ab") as log:
        machine.sshd = subprocess.Popen(
            ["ip", "netns", "exec", net, "unshare", "-m", "sh", "-c", start],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    until(lambda: "listening" in (folder / "sshd.log").read_text(), f"sshd of {machine.name}")


def _client(made: Lab) -> None:
    folder = made.folder
    config, known = "", ""
    for name, machine in made.machines.items():
        config += f"Host {name}\n  HostName {machine.address}\n  Port {PORT}\n"
        key = (machine.folder / "key.pub").read_text().split()
        known += f"[{machine.address}]:{PORT} {key[0]} {key[1]}\n"
    config += (
        f"Host *\n  User root\n  IdentityFile {folder / 'user'}\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {folder / 'known_hosts'}\n  GlobalKnownHostsFile /dev/null\n"
    )
    (folder / "ssh_config").write_text(config)
    (folder / "known_hosts").write_text(known)
    ssh = folder / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(f"#!/bin/sh\nexec {shutil.which('ssh')} -F '{folder / 'ssh_config'}' \"$@\"\n")
    ssh.chmod(ssh.stat().st_mode | stat.S_IXUSR)


def _take_down(made: Lab) -> None:
    for machine in made.machines.values():
        until(partial(_killed, machine), f"nothing of {machine.name} lives")
        if machine.sshd is not None:
            machine.sshd.wait()
        subprocess.run(["ip", "link", "del", machine.link], check=False, capture_output=True)
        subprocess.run(["ip", "netns", "del", machine.net], check=False, capture_output=True)
    if made.store is not None:
        made.store.kill()
        made.store.wait()
    subprocess.run(["ip", "link", "del", made.mark], check=False, capture_output=True)


def _killed(machine: Machine) -> bool:
    """Kill what lives in a machine's namespace, ours alone; say whether nothing does."""
    pids = machine.pids()
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    if machine.sshd is not None:
        machine.sshd.poll()
    return not pids
