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

    @property
    def data(self) -> Path:
        """The data folder of its user, in which an agent is installed."""
        return self.folder / "data" / "cloudwhale"

    def forget(self) -> None:
        """Be a machine on which nobody works, or ever did; what was installed stays there."""
        self.mend()
        sshd = None if self.sshd is None else self.sshd.pid
        until(partial(self._ended, sshd), f"nobody works on {self.name}")
        for folder in (self.data / "nodes", self.folder / "config"):
            shutil.rmtree(folder, ignore_errors=True)

    def _ended(self, but: int | None = None) -> bool:
        """Kill what lives in the namespace, ours alone; say whether nothing does."""
        pids = [pid for pid in self.pids() if pid != but]
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        return not pids

    def end(self) -> None:
        """Switch it off for good."""
        until(self._ended, f"nothing of {self.name} lives")
        if self.sshd is not None:
            self.sshd.wait()
        subprocess.run(["ip", "link", "del", self.link], check=False, capture_output=True)
        subprocess.run(["ip", "netns", "del", self.net], check=False, capture_output=True)

    def pids(self) -> list[int]:
        """Return the processes of the machine."""
        done = subprocess.run(
            ["ip", "netns", "pids", self.net], capture_output=True, text=True, check=False
        )
        return [int(word) for word in done.stdout.split()]


@dataclass(frozen=True)
class Client:
    """What one user's ssh knows: the machines' addresses and keys, and its own key."""

    folder: Path

    def environment(self) -> dict[str, str]:
        """Return what makes `ssh` this user's own."""
        return {"PATH": f"{self.folder}:{os.environ['PATH']}"}

    def forget_key_of(self, machine: Machine) -> None:
        """Make a machine's key unknown."""
        rows = self._known.read_text().splitlines(keepends=True)
        self._known.write_text("".join(row for row in rows if machine.address not in row))

    def mistake_key_of(self, machine: Machine, public_key: Path) -> None:
        """Know another key of a machine than it has."""
        self.forget_key_of(machine)
        with self._known.open("a") as known:
            known.write(_known_as(machine, public_key))

    def come_with(self, key: Path) -> None:
        """Use another key of one's own from now on."""
        config = self.folder / "config"
        rows = config.read_text().splitlines()
        rows = [row for row in rows if not row.strip().startswith("IdentityFile")]
        config.write_text("\n".join([*rows, f"  IdentityFile {key}", ""]))

    @property
    def _known(self) -> Path:
        return self.folder / "known_hosts"


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

    @property
    def key(self) -> Path:
        """The key that the machines let in."""
        return self.folder / "user"

    @property
    def stranger(self) -> Path:
        """A key that nobody knows."""
        return self.folder / "stranger"

    def forget(self) -> None:
        """Be as new, but for what is installed on the machines."""
        for machine in self.machines.values():
            machine.forget()
        self.close_store()

    def close_store(self) -> None:
        """End the object store."""
        if self.store is not None:
            self.store.kill()
            self.store.wait()
            self.store = None

    def bucket(self) -> dict[str, str]:
        """Start an object store that the machines reach by network; return its environment."""
        note = self.folder / "port"
        note.unlink(missing_ok=True)
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

    def client(self, folder: Path) -> Client:
        """Make a folder with a user's ssh in it, who knows all machines."""
        folder.mkdir()
        config, known = "", ""
        for name, machine in self.machines.items():
            config += f"Host {name}\n  HostName {machine.address}\n  Port {PORT}\n"
            known += _known_as(machine, machine.folder / "key.pub")
        config += (
            f"Host *\n  User root\n  IdentityFile {self.key}\n  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {folder / 'known_hosts'}\n  GlobalKnownHostsFile /dev/null\n"
        )
        (folder / "config").write_text(config)
        (folder / "known_hosts").write_text(known)
        ssh = folder / "ssh"
        ssh.write_text(f"#!/bin/sh\nexec {shutil.which('ssh')} -F '{folder / 'config'}' \"$@\"\n")
        ssh.chmod(ssh.stat().st_mode | stat.S_IXUSR)
        return Client(folder)


def _known_as(machine: Machine, public_key: Path) -> str:
    key = public_key.read_text().split()
    return f"[{machine.address}]:{PORT} {key[0]} {key[1]}\n"


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


def _take_down(made: Lab) -> None:
    for machine in made.machines.values():
        machine.end()
    made.close_store()
    subprocess.run(["ip", "link", "del", made.mark], check=False, capture_output=True)
