"""Puts an agent onto another machine and starts it there."""

import hashlib
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cloudwhale.clock import wait
from cloudwhale.control.reaching import bundle, unit, wheel
from cloudwhale.control.reaching.bundle import Package
from cloudwhale.control.reaching.look import Look, Unfit
from cloudwhale.control.reaching.ssh import Progress, Ssh
from cloudwhale.mailbox.box import inbox_from
from cloudwhale.mailbox.documents import REPORTS, Joined
from cloudwhale.mailbox.objects import Objects
from cloudwhale.model.units import Seconds
from cloudwhale.spi.clock import Clock
from cloudwhale.spi.errors import Unreachable

JOINS_WITHIN_S: Seconds = 60.0  # it takes two; a busy machine or a slow store takes longer
LOOK_EVERY_S: Seconds = 0.2
ASK_EVERY_S: Seconds = 4.0
_HERE = Path(__file__).parent
_PATH = re.compile(r"/[A-Za-z0-9_./@%+=:,-]*")


@dataclass(frozen=True, slots=True)
class Agent:
    """The agent that is wanted there."""

    node: str
    mailbox: str
    """URL of the mailbox as it is called there."""
    lease_s: Seconds
    options: tuple[str, ...] = ()
    """What is said of the host, as words of its command line."""


def package_for(seen: Look) -> Package:
    """Return what to send; raise Unfit when nothing would do."""
    if bundle.fits(seen):
        return bundle.bundle()
    if not seen.pip:
        raise Unfit(
            f"{seen.host} runs Python {seen.version} on {seen.machine} and cannot use our "
            "packages; a virtual environment with pip cannot be made there",
            "Install python3-venv there.",
        )
    return wheel.wheel()


def folder_of(seen: Look, package: Package) -> str:
    """Return where a package is installed; raise Unfit for a home that no script may name."""
    if not _PATH.fullmatch(seen.home):
        raise Unfit(
            f"{seen.home!r} has letters that are not safe in a script",
            "Choose another --home: letters, digits and _ . / @ % + = : , - are.",
        )
    return f"{seen.home}/agents/{package.folder}"


def is_installed(seen: Look, package: Package) -> bool:
    """Say whether it lies there already."""
    return package.folder in seen.installed


def install(ssh: Ssh, seen: Look, package: Package, progress: Progress) -> None:
    """Send a package and install it; raise a sentence when that fails."""
    folder = folder_of(seen, package)
    file = f"{seen.home}/agents/{package.name}"
    ssh.script(f"set -e; umask 077; mkdir -p {seen.home}/agents\n")
    ssh.upload(package.body, file, progress)
    told = {
        "PYTHON": seen.python,
        "KIND": package.kind,
        "SHA": hashlib.sha256(package.body).hexdigest(),
        "FILE": file,
        "DIR": folder,
    }
    ssh.script(_with(told, "install.sh"))


def start(ssh: Ssh, seen: Look, package: Package, agent: Agent) -> str:
    """Start the agent in place of an earlier one; return what a person should know of it."""
    folder = folder_of(seen, package)
    words = [
        f"--mailbox={agent.mailbox}",
        f"--home={seen.home}",
        f"--node={agent.node}",
        f"--lease-s={agent.lease_s}",
        *agent.options,
    ]
    whole = [f"{folder}/bin/python", "-P", "-m", "cloudwhale.agent", *words]
    told = {
        **_place(seen, agent),
        "DIR": folder,
        "UNIT": unit.unit(agent.node, whole),
    }
    said = ssh.script(f"set -- {shlex.join(words)}\n" + _with(told, "start.sh"))
    if not seen.systemd:
        return "no systemd of the user runs there: it will not start again after a reboot"
    if "no-linger" in said:
        return f"it ends when {seen.user} logs out: `loginctl enable-linger {seen.user}` there"
    return ""


def newest_report(objects: Objects, node: str) -> int:
    """Return the number of the newest report in a node's inbox, 0 for none; lists."""
    return inbox_from(objects, node).newest()


def joined(
    objects: Objects, agent: Agent, after: int, clock: Clock, lives: Callable[[], bool]
) -> Joined:
    """Wait until an agent has joined that was started after a report; raise Unreachable.

    `lives`: whether it still tries; asked every few seconds.
    """
    box, number = inbox_from(objects, agent.node), after
    begun = asked_at = clock.steady()
    while (now := clock.steady()) < begun + JOINS_WITHIN_S:
        while (body := box.read(number + 1)) is not None:
            number += 1
            report = REPORTS.validate_json(body)
            if isinstance(report, Joined):
                return report
        if now >= asked_at + ASK_EVERY_S:
            asked_at = now
            if not lives():
                raise Unreachable(f"{agent.node} has not joined: its agent has ended")
        wait(LOOK_EVERY_S)
    raise Unreachable(f"{agent.node} has not joined within {JOINS_WITHIN_S:g} s")


def lives(ssh: Ssh, seen: Look, agent: Agent) -> bool:
    """Say whether the agent there works, or is started again and again."""
    return "lives" in ssh.script(_with(_place(seen, agent), "lives.sh"))


def last_words(ssh: Ssh, seen: Look, agent: Agent) -> str:
    """Return what the agent there has printed last."""
    log = f"{seen.home}/nodes/{agent.node}/agent.log"
    journal = "journalctl --user -u cloudwhale-agent.service -n 3 -o cat"
    command = journal if seen.systemd else f"tail -n 2 {shlex.quote(log)}"
    return " ".join(ssh.script(f"{command} 2>/dev/null || true\n").split())


def _place(seen: Look, agent: Agent) -> dict[str, str]:
    systemd = "yes" if seen.systemd else "no"
    return {"HOME_DIR": seen.home, "NODE": agent.node, "SYSTEMD": systemd}


def _with(told: dict[str, str], script: str) -> str:
    head = "".join(f"{name}={shlex.quote(value)}\n" for name, value in told.items())
    return head + (_HERE / script).read_text()


def steps(seen: Look, package: Package, agent: Agent) -> Sequence[str]:
    """Return what will be done there, in sentences."""
    what = "our packages as they are here" if package.kind == "bundle" else "our wheel, by pip"
    folder = folder_of(seen, package)
    if is_installed(seen, package):
        install_it = f"use what lies in {folder} already"
    else:
        install_it = f"install {what} ({len(package.body) / 2**20:.0f} MiB) in {folder}"
    service = "as a service of the user's systemd" if seen.systemd else "in the background"
    return (
        install_it,
        f"{'restart' if seen.working else 'start'} the agent of {agent.node} {service}",
    )
