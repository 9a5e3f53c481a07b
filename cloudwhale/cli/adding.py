"""The command `nodes add`: another own server becomes a node."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cloudwhale.cli.exits import Exit, WrongUsage
from cloudwhale.cli.joining import label, node_named
from cloudwhale.cli.looking import desk_here
from cloudwhale.cli.output import is_terminal, say
from cloudwhale.control.desk import Desk
from cloudwhale.control.reaching import installing
from cloudwhale.control.reaching.installing import Agent
from cloudwhale.control.reaching.look import Asked, Look, Unfit, look, words_for
from cloudwhale.control.reaching.ssh import Progress, Ssh, target
from cloudwhale.control.reports import joined_node
from cloudwhale.host import HostOptions, as_arguments, declared
from cloudwhale.mailbox.claims import SKEW_S
from cloudwhale.mailbox.documents import Joined
from cloudwhale.model import event as e
from cloudwhale.model.units import Seconds
from cloudwhale.spi.errors import Unreachable

SERVICE = "cloudwhale-agent.service"
HELLO = "hello"
"""Folder of the mailbox in which another machine is shown that it is the same one."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line says."""

    address: str
    node: str | None
    mailbox_path: str | None
    home: str | None
    devices: tuple[str, ...]
    labels: tuple[str, ...]
    dry_run: bool


def add(wanted: Wanted) -> int:
    """Look, install, start, wait; say each step."""
    ssh = Ssh(target(wanted.address))
    declared(wanted.devices)
    options = HostOptions(devices=wanted.devices, labels=dict(map(label, wanted.labels)))
    with desk_here() as desk:
        mailbox = _mailbox_there(desk, wanted)
        seen = _look(desk, ssh, wanted, mailbox)
        say(words_for(seen))
        agent = Agent(
            node=node_named(wanted.node or seen.host),
            mailbox=mailbox,
            lease_s=desk.settings.attempt_lease_s,
            options=tuple(as_arguments(options)),
        )
        package = installing.package_for(seen)
        for step in installing.steps(seen, package, agent):
            say(f"would {step}" if wanted.dry_run else step)
        if wanted.dry_run:
            return Exit.DONE
        if not installing.is_installed(seen, package):
            installing.install(ssh, seen, package, _progress())
        after = installing.newest_report(desk.objects, agent.node)
        note = installing.start(ssh, seen, package, agent)
        _tell(desk, _joined(desk, ssh, seen, agent, after), agent.node)
        if note:
            say(note)
    return Exit.DONE


# -- where they meet -------------------------------------------------------------------------


def _mailbox_there(desk: Desk, wanted: Wanted) -> str:
    """Return the URL of our mailbox as it is called there; raise WrongUsage for a private one."""
    folder, set_to = desk.objects.folder, desk.settings.mailbox
    if folder is None:
        if wanted.mailbox_path is not None:
            raise WrongUsage(
                f"--mailbox-path is for a shared folder, and the mailbox is {set_to}.",
                "Leave it out.",
            )
        return set_to
    if not set_to and wanted.mailbox_path is None:
        raise WrongUsage(
            f"The mailbox is {folder}, a folder of this host alone.",
            "Set `mailbox` in cloudwhale.toml (or CLOUDWHALE_MAILBOX) to a folder that both "
            "machines share, file:///shared/mailbox, or to a bucket, s3://bucket/folder. When the "
            "other machine mounts this very folder, say where with --mailbox-path.",
        )
    there = Path(wanted.mailbox_path or folder)
    if not there.is_absolute():
        raise WrongUsage(f"--mailbox-path {there} is not an absolute path.", "Write all of it.")
    return there.as_uri()


def _look(desk: Desk, ssh: Ssh, wanted: Wanted, mailbox: str) -> Look:
    with _token(desk) as key:
        token = ""
        if desk.objects.folder is not None:
            token = str(Path(wanted.mailbox_path or desk.objects.folder) / key)
        before = desk.clock.now()
        seen = look(ssh, Asked(home=wanted.home or "", node=wanted.node or "", token=token))
        after = desk.clock.now()
    if token and not seen.meets:
        raise Unfit(
            f"what was written into {desk.objects.folder} here is not seen in "
            f"{Path(token).parents[1]} on {ssh.to}",
            "Mount the shared folder there; when it has another path, say so with --mailbox-path.",
        )
    _refuse_wrong_clock(ssh, max(before - seen.now, seen.now - after))
    return seen


def _refuse_wrong_clock(ssh: Ssh, off_s: Seconds) -> None:
    if off_s > SKEW_S:  # its agent would refuse to work
        raise Unfit(
            f"the clock of {ssh.to} differs from this host's by {off_s:.0f} s",
            "Let both be set: `timedatectl set-ntp true`.",
        )


@contextmanager
def _token(desk: Desk) -> Generator[str, None, None]:
    """Put a file into our mailbox for a moment."""
    key = f"{HELLO}/{os.urandom(8).hex()}"
    if desk.objects.folder is None:
        yield ""
        return
    desk.objects.create(key, b"hello")
    try:
        yield key
    finally:
        desk.objects.delete([key])


# -- that it came ----------------------------------------------------------------------------


def _joined(desk: Desk, ssh: Ssh, seen: Look, agent: Agent, after: int) -> Joined:
    try:
        return installing.joined(
            desk.objects, agent, after, desk.clock, lambda: installing.lives(ssh, seen, agent)
        )
    except Unreachable as error:
        said = installing.last_words(ssh, seen, agent)
        log = f"{seen.home}/nodes/{agent.node}/agent.log"
        remedy = f"Look there: journalctl --user -u {SERVICE}" if seen.systemd else f"See {log}."
        last = f"; it said last: {said}" if said else ""
        raise Unreachable(f"{error.says}{last}", error.remedy or remedy) from error


def _tell(desk: Desk, report: Joined, name: str) -> None:
    """Make it a node at once: whoever looks now sees it, whether a controller runs or not."""
    now = desk.clock.now()
    node = joined_node(desk.store.world(now).nodes.get(name), name, report, now)
    desk.store.append([e.NodeJoined(at=now, node=node)])
    facts = node.facts
    models = [device.model for device in facts.devices]
    gpus = ", ".join(f"{models.count(model)}x {model}" for model in sorted({*models}))
    say(
        f"{name} has joined: {facts.cpu:g} CPUs, {facts.memory_gib:.0f} GiB, "
        f"{gpus or 'no GPU'}, {facts.disk_gib:.0f} GiB of disk"
    )


def _progress() -> Progress:
    """Return what shows how much was sent: to a person at a terminal alone."""
    if not is_terminal(sys.stderr):
        return lambda sent, whole: None

    def show(sent: int, whole: int) -> None:
        end = "\n" if sent >= whole else ""
        text = f"\rsent {sent / 2**20:.1f} of {whole / 2**20:.1f} MiB"
        print(text, end=end, file=sys.stderr, flush=True)

    return show
