"""What another machine is, as far as an agent there depends on it."""

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from cloudwhale.control.reaching.ssh import Ssh
from cloudwhale.model.units import GiB, Instant
from cloudwhale.model.value import Wire
from cloudwhale.spi.errors import CloudwhaleError, Unreachable

LEAST_FREE_GIB: GiB = 1.0
_SCRIPT = Path(__file__).with_name("look.sh")


class Unfit(CloudwhaleError):
    """No agent can work there."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a machine."""

    home: str = ""
    """Folder of the agent's state; empty: the user's data folder."""
    node: str = ""
    """Name of the node; empty: the machine's own name."""
    token: str = ""
    """A file that we have put into our mailbox: whether it is the same folder there."""


class Look(Wire):
    """What was seen."""

    python: str
    """The interpreter to use; empty when none is new enough."""
    version: str
    """`3.11`, or what there is that is too old."""
    system: str = ""
    machine: str = ""
    libc: str = ""
    host: str = ""
    user: str = ""
    home: str = ""
    writable: bool = False
    disk_gib: GiB = 0.0
    now: Instant = 0.0
    gpus: tuple[str, ...] = ()
    docker: bool = False
    systemd: bool = False
    """A systemd of the user runs there."""
    venv: bool = False
    pip: bool = False
    installed: tuple[str, ...] = ()
    working: bool = False
    """An agent of the node works there now."""
    meets: bool = False
    """It sees the token."""


_LOOK: TypeAdapter[Look] = TypeAdapter(Look)


def look(ssh: Ssh, asked: Asked) -> Look:
    """Look at a machine; raise Unfit when no agent can work there."""
    told = {
        "WANTED": ".".join(map(str, sys.version_info[:2])),
        "HOME_DIR": asked.home,
        "NODE": asked.node,
        "TOKEN": asked.token,
    }
    head = "".join(f"{name}={shlex.quote(value)}\n" for name, value in told.items())
    said = ssh.script(head + _SCRIPT.read_text())
    try:
        # A login script may have said something first.
        seen = _LOOK.validate_json(said.strip().splitlines()[-1])
    except (ValidationError, IndexError) as error:
        raise Unreachable(
            f"{ssh.to} answers with something else than it was asked for: {said[:200]!r}",
            "Does its login script print, or start another shell?",
        ) from error
    _refuse_unfit(ssh, seen)
    return seen


def _refuse_unfit(ssh: Ssh, seen: Look) -> None:
    if not seen.python:
        raise Unfit(
            f"{ssh.to} has no Python 3.11 or newer (there is {seen.version})",
            "Install one there: python3.11 or newer, in its PATH.",
        )
    if seen.system != "Linux":
        raise Unfit(f"{ssh.to} runs {seen.system}; agents run on Linux")
    if not seen.venv:
        raise Unfit(f"the Python of {ssh.to} lacks its module venv", "Install python3-venv there.")
    if not seen.writable:
        raise Unfit(f"{seen.user} may not write {seen.home} on {ssh.to}", "Choose another --home.")
    if seen.disk_gib < LEAST_FREE_GIB:
        raise Unfit(
            f"{ssh.to} has {seen.disk_gib:.1f} GiB free for {seen.home}",
            f"Free {LEAST_FREE_GIB:g} GiB, or choose another --home.",
        )


def words_for(seen: Look) -> str:
    """Return in one line what was seen."""
    gpus = f"{len(seen.gpus)} GPUs ({seen.gpus[0]})" if seen.gpus else "no GPU"
    docker = "Docker" if seen.docker else "no Docker"
    return (
        f"{seen.host}: Python {seen.version}, {seen.machine}, {gpus}, {docker}, "
        f"{seen.disk_gib:.0f} GiB free in {seen.home}"
    )
