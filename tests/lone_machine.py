"""A machine of a cloud, as far as its network goes: a namespace, and a metadata service beside it.

The service is a stand-in behind a veth pair, in a namespace of its own: nothing outside of the two
can reach it, and what a container on the machine sends there is forwarded, as on a real one.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from live_agent import until

FOUR, SIX = "169.254.169.254", "fd00:ec2::254"
CREDENTIALS = "role-credentials-of-the-machine"
BRIDGE_SIX = "fd00:beef::/64"
"""What its containers have of IPv6."""


@dataclass(frozen=True)
class LoneMachine:
    """A network namespace in which the metadata service can be reached."""

    name: str

    @property
    def inside(self) -> tuple[str, ...]:
        """Words before a command that is to run there; its files and processes stay ours."""
        return ("nsenter", f"--net=/run/netns/{self.name}")

    def run(self, *words: str) -> str:
        """Run a command there and return what it says."""
        done = subprocess.run([*self.inside, *words], capture_output=True, text=True, check=True)
        return done.stdout

    def reaches(self, address: str) -> bool:
        """Say whether root, in no container, gets the credentials."""
        done = subprocess.run(
            [*self.inside, "/bin/bash", "-c", asking(address)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return CREDENTIALS in done.stdout


def asking(address: str) -> str:
    """Return bash that prints what the service at an address or name answers; fails without one."""
    return (
        f"(exec 3<>/dev/tcp/{address}/80 && printf 'GET /credentials HTTP/1.0\\r\\n\\r\\n' >&3"
        " && timeout 3 cat <&3)"
    )


@contextmanager
def lone_machine(folder: Path) -> Iterator[LoneMachine]:
    """Make one, and take it away afterwards; skip where no namespace can be made."""
    mark = os.urandom(3).hex()
    name, cloud = f"cwlone-{mark}", f"cwcloud-{mark}"
    (folder / "credentials").write_text(CREDENTIALS)
    machine = LoneMachine(name)
    served: subprocess.Popen[bytes] | None = None
    try:
        _joined(name, cloud)
        served = subprocess.Popen(
            ["nsenter", f"--net=/run/netns/{cloud}", sys.executable, "-m", "http.server", "80",
             "--bind", "::", "--directory", str(folder)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        until(lambda: machine.reaches(FOUR) and machine.reaches(SIX), "the stand-in answers")
        yield machine
    finally:
        if served is not None:
            served.kill()
            served.wait()
        for one in (name, cloud):
            subprocess.run(["ip", "netns", "del", one], capture_output=True, check=False)


def _joined(name: str, cloud: str) -> None:
    """Make two namespaces with a wire between them, and the ways there and back."""
    mark = name[-6:]
    near, far = f"cwn{mark}", f"cwf{mark}"
    for words in (
        f"netns add {name}", f"netns add {cloud}",
        f"link add {near} type veth peer name {far}",
        f"link set {near} netns {name}", f"link set {far} netns {cloud}",
        f"-n {name} link set lo up", f"-n {cloud} link set lo up",
        f"-n {name} link set {near} up", f"-n {cloud} link set {far} up",
        f"-n {name} addr add 10.11.12.2/24 dev {near}",
        f"-n {cloud} addr add 10.11.12.1/24 dev {far}",
        f"-n {name} addr add fd00:cafe::2/64 dev {near} nodad",
        f"-n {cloud} addr add fd00:cafe::1/64 dev {far} nodad",
        f"-n {cloud} addr add {FOUR}/32 dev {far}",
        f"-n {cloud} addr add {SIX}/128 dev {far} nodad",
        f"-n {name} route add default via 10.11.12.1",
        f"-n {name} -6 route add default via fd00:cafe::1",
        f"-n {cloud} -6 route add {BRIDGE_SIX} via fd00:cafe::2",
    ):  # fmt: skip
        done = subprocess.run(["ip", *words.split()], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"no network namespace here: ip {words}: {done.stderr.strip()}")
