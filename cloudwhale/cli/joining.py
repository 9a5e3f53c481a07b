"""The command `agent`: this machine works for a controller elsewhere, in the foreground."""

import socket
import sys
from dataclasses import dataclass
from pathlib import Path

from cloudwhale.cli.exits import Exit, WrongUsage
from cloudwhale.cli.output import say
from cloudwhale.control.desk import host_options, node_name
from cloudwhale.host import HostOptions, as_arguments
from cloudwhale.settings import Settings, load
from cloudwhale.spi.errors import SettingsError


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line says; None and empty: as the settings have it."""

    mailbox: str | None
    node: str | None
    home: Path | None
    devices: tuple[str, ...]
    labels: tuple[str, ...]
    cpu: float | None
    memory_gib: float | None


def agent(wanted: Wanted) -> int:
    """Be the agent until told to go; raise a sentence when it cannot be one."""
    if not sys.platform.startswith("linux"):
        raise WrongUsage(f"agents do not run on {sys.platform}.", "Use a Linux machine.")
    from cloudwhale.agent.__main__ import arguments, serve

    words = _words(wanted, load(Path.cwd()))
    told = arguments(words)
    host = socket.gethostname()
    say(f"agent of node {told.node} on {host}, mailbox {told.mailbox}", sys.stderr)
    say(f"jobs are kept in {told.home}/nodes/{told.node}; Ctrl-C saves them and leaves", sys.stderr)
    code = serve(told)
    say(f"agent of node {told.node} has left", sys.stderr)
    return code or Exit.DONE


def _words(wanted: Wanted, settings: Settings) -> list[str]:
    mailbox = wanted.mailbox or settings.mailbox
    if not mailbox:
        raise WrongUsage(
            "An agent needs a mailbox that its controller reaches too.",
            "Give --mailbox s3://bucket/folder, or file:///folder of a shared file system.",
        )
    node = node_named(wanted.node or node_name(settings))
    home = (wanted.home or settings.home).expanduser().absolute()
    options = host_options(settings)
    options = HostOptions(
        devices=wanted.devices or options.devices,
        cpu=options.cpu if wanted.cpu is None else wanted.cpu,
        memory_gib=options.memory_gib if wanted.memory_gib is None else wanted.memory_gib,
        labels=dict(map(label, wanted.labels)) or options.labels,
    )
    return [
        f"--mailbox={as_url(mailbox)}",
        f"--node={node}",
        f"--home={home}",
        f"--lease-s={settings.attempt_lease_s}",
        *as_arguments(options),
    ]


def as_url(mailbox: str) -> str:
    """Return the URL of a mailbox that may have been typed as a folder."""
    return Path(mailbox).as_uri() if mailbox.startswith("/") else mailbox


def node_named(node: str) -> str:
    """Return a name that can be a node's; raise WrongUsage for another."""
    try:
        return Settings.model_validate({"home": Path("/"), "node": node}).node
    except ValueError as error:
        raise WrongUsage(
            f"{node!r} cannot be the name of a node.",
            "Up to 63 letters, digits, `-`, `_` and `.`, not beginning with `.`.",
        ) from error


def label(text: str) -> tuple[str, str]:
    """Return what KEY=VALUE means; raise SettingsError for what means nothing."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise SettingsError(f"the label {text!r} has no value", "Write KEY=VALUE.")
    return key, value
