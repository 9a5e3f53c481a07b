"""Runs the machines of the box: each is a folder and the processes that an agent starts in it."""

import os
import shutil
import signal
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from cloudwhale.model.units import Instant, Seconds
from cloudwhale_providers.sandbox import containers, processes
from cloudwhale_providers.sandbox.dialects import EC2, Dialect
from cloudwhale_providers.sandbox.endpoint import Weather
from cloudwhale_providers.sandbox.fittings import Fittings
from cloudwhale_providers.sandbox.metadata import FINE, MetadataService, Trouble
from cloudwhale_providers.sandbox.names import LEASE, NODE, ROLE
from cloudwhale_providers.sandbox.told import LOOPBACK, Identity, Keys

CONSOLE = "console.log"
KEPT = 50
"""So many folders of machines that are gone are kept, with what they said at last."""
PASSED_ON = ("PATH", "LANG", "LD_LIBRARY_PATH")
"""Of this process' environment; nothing else of its user's reaches a machine."""
NO_DOCKER = "unix:///nonexistent/cloudwhale-sandbox/docker.sock"

Notices = Callable[[], Mapping[str, str]]


def _no_keys() -> Keys | None:
    """Have none."""
    return None


@dataclass(frozen=True, slots=True)
class Guest:
    """A machine that is to run."""

    who: Identity
    launched_at: Instant
    mailbox: str
    """URL of the store that its agent joins."""
    fittings: Fittings
    """What its jobs can have."""
    notices: Notices = dict[str, str]
    """What it is told of its going now."""
    keys: Callable[[], Keys | None] = _no_keys
    """Of its role, now."""
    dialect: Dialect = EC2
    """How its cloud speaks to it."""
    environment: Mapping[str, str] | None = None
    """Endpoints and clock, in place of those that all machines share; None: those."""

    @property
    def node(self) -> str:
        """Return the name that its agent reports under; empty: it was not launched for one."""
        return self.who.tags.get(NODE, "")

    @property
    def door(self) -> str:
        """Return who it is to its mailbox's store, as it reads that itself; empty: nobody."""
        role = self.who.tags.get(ROLE, "")
        return f"{role}:{self.who.id}" if role else ""


@dataclass(frozen=True, slots=True)
class House:
    """What all machines of a box share."""

    folder: Path
    environment: Mapping[str, str]
    """Endpoint, credentials of the machines' role, and clock."""
    has_containers: bool
    """Whether jobs may run in containers of this host's Docker: only root's."""
    now: Callable[[], Instant]
    attempt_lease_s: Seconds = 600.0
    weather: Weather = Weather()


@dataclass(slots=True)
class _Running:
    guest: Guest
    home: Path
    pid: int | None = field(default=None)


class Machines(Protocol):
    """Starts and ends machines; used by one thread."""

    def __len__(self) -> int:
        """Return how many run."""
        ...

    def start(self, guest: Guest) -> None:
        """Boot a machine; one that runs already is left alone. Raise OSError, ValueError."""
        ...

    @property
    def agents(self) -> Collection[int]:
        """Return the processes that are waited for here."""
        ...

    def exited(self) -> Sequence[str]:
        """Return, once, the machines that have shut down."""
        ...

    def last_words(self, machine: str) -> str:
        """Return the last line that a machine's console has shown."""
        ...

    def soft_off(self, machine: str) -> None:
        """Tell a machine to shut down, as a power button does; one that does not run is fine."""
        ...

    def end(self, machines: Iterable[str]) -> Sequence[int]:
        """End machines with all that runs there; return the processes that could not be ended."""
        ...

    def tidy(self) -> None:
        """End what an earlier box of the folder has left, and forget its oldest machines."""
        ...

    def close(self) -> Sequence[int]:
        """End every machine."""
        ...


class Hypervisor:
    """Starts and ends machines; used by one thread."""

    def __init__(self, house: House, metadata: MetadataService) -> None:
        self._house = house
        self._metadata = metadata
        self._running: dict[str, _Running] = {}
        self._instances = house.folder / "instances"
        self._instances.mkdir(parents=True, exist_ok=True)

    def __len__(self) -> int:
        return len(self._running)

    def start(self, guest: Guest) -> None:
        """Boot a machine: its agent joins the mailbox; one that runs already is left alone.

        A machine that was not launched for a node runs nothing. Raises OSError, and ValueError for
        one without a lease or a mailbox.
        """
        if guest.who.id in self._running:
            return
        if guest.node and not guest.mailbox:
            raise ValueError("its user data names no mailbox")
        home = self.home(guest.who.id)
        home.mkdir(parents=True, exist_ok=True)
        machine = _Running(guest, home)
        self._running[guest.who.id] = machine
        url = self._metadata.serve(
            guest.who.id,
            guest.dialect.talk(guest, LOOPBACK, self._house.now),
            trouble=lambda: trouble_of(guest, self._house),
        )
        if guest.node:
            machine.pid = self._started(machine, url)

    @property
    def agents(self) -> Collection[int]:
        """Return the processes that are waited for here."""
        return [one.pid for one in self._running.values() if one.pid is not None]

    def home(self, machine: str) -> Path:
        """Return the folder that a machine has, and had once it is gone."""
        return self._instances / machine

    def exited(self) -> Sequence[str]:
        """Return, once, the machines whose agent has ended: they have shut down."""
        return [name for name, one in self._running.items() if _collected(one)]

    def last_words(self, machine: str) -> str:
        """Return the last line that a machine's console has shown."""
        return last_line(self.home(machine)) or "its agent has left"

    def soft_off(self, machine: str) -> None:
        """Tell a machine's agent to leave, as its system would; one that has left is fine."""
        found = self._running.get(machine)
        if found is not None and found.pid is not None:
            os.kill(found.pid, signal.SIGTERM)

    def end(self, machines: Iterable[str]) -> Sequence[int]:
        """End machines with all that runs there; return the processes that could not be ended.

        Of their folders the words that they said at last are left.
        """
        ending = [self._running.pop(name) for name in list(machines) if name in self._running]
        for one in ending:
            self._metadata.remove(one.guest.who.id)
        roots = [one.pid for one in ending if one.pid is not None]
        left: Collection[int] = ()
        if ending:
            left = processes.killed([one.home for one in ending], roots)
        for one in ending:
            if one.pid is not None:
                os.waitpid(one.pid, 0) if one.pid not in left else None
            self._clear(one.home)
        return sorted(left)

    def tidy(self) -> None:
        """End what an earlier box of the folder has left, and forget its oldest machines."""
        if not self._running:
            processes.killed([self._instances])
            homes = sorted(self._instances.iterdir(), key=lambda home: home.stat().st_mtime)
            for home in homes:
                self._clear(home)
            for home in homes[:-KEPT]:
                shutil.rmtree(home, ignore_errors=True)

    def close(self) -> Sequence[int]:
        """End every machine."""
        return self.end(list(self._running))

    # -- one machine -------------------------------------------------------------------------

    def _clear(self, home: Path) -> None:
        if self._house.has_containers:
            containers.remove(home)
        containers.remove_groups(home)
        clear(home)

    def _started(self, machine: _Running, metadata: str) -> int:
        return os.posix_spawn(
            sys.executable,
            self._words(machine),
            self._environment(machine, metadata),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(machine.home / CONSOLE),
                 os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )  # fmt: skip

    def _words(self, machine: _Running) -> list[str]:
        guest = machine.guest
        words = [
            sys.executable,
            "-P",
            "-m",
            "cloudwhale.agent",
            f"--mailbox={guest.mailbox}",
            f"--home={machine.home}",
            f"--node={guest.node}",
            f"--door={guest.door}",
            f"--lease-s={self._house.attempt_lease_s}",
            *guest.fittings.words,
        ]
        lease = lease_left(guest, self._house.now())
        return [*words, "--rented", f"--lease={lease}", f"--notices={guest.dialect.notices}"]

    def _environment(self, machine: _Running, metadata: str) -> dict[str, str]:
        found = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        own = machine.guest.environment
        found |= self._house.environment if own is None else own
        found |= {"HOME": str(machine.home), **machine.guest.dialect.environment(metadata)}
        if not self._house.has_containers:
            found["DOCKER_HOST"] = NO_DOCKER
        elif "DOCKER_HOST" in os.environ:
            found["DOCKER_HOST"] = os.environ["DOCKER_HOST"]
        return found


def lease_left(guest: Guest, now: Instant) -> str:
    """Return `NUMBER:SECONDS` of a machine's lease, counted from now; raise ValueError: none."""
    number, colon, away_s = guest.who.tags.get(LEASE, "").partition(":")
    if not colon or not number.isdecimal():
        raise ValueError(f"its tag {LEASE} is not NUMBER:SECONDS: nobody would end its agent")
    left_s = float(away_s) - (now - guest.launched_at)
    return f"{number}:{max(0.0, left_s):.3f}"


def _collected(machine: _Running) -> bool:
    """Say whether a machine's agent has ended; it is collected then."""
    if machine.pid is None:
        return False
    pid, _ = os.waitpid(machine.pid, os.WNOHANG)
    if pid:
        machine.pid = None
    return bool(pid)


def trouble_of(guest: Guest, house: House) -> Trouble:
    """Return what is wrong with a machine's metadata service now: the first that holds."""
    age_s = house.now() - guest.launched_at
    for one in house.weather.metadata_faults:
        if one.since_s <= age_s and (one.until_s is None or age_s < one.until_s):
            return Trouble(one.delay_s, one.code)
    return FINE


def clear(home: Path) -> None:
    """Delete a machine's disk; what its console showed stays."""
    for path in home.iterdir():
        if path.name == CONSOLE:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def last_line(home: Path) -> str:
    """Return the last line that a machine's console has shown; empty: it has shown none."""
    try:
        lines = (home / CONSOLE).read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1] if lines else ""
