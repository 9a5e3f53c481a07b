"""Runs machines of the box that really boot: namespaces, a Debian of their own, cloud-init."""

import contextlib
import hashlib
import os
import shlex
import shutil
import signal
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event

from cloudwhale.model.units import Seconds
from cloudwhale_providers.sandbox import cgroups, gpus, layer, processes
from cloudwhale_providers.sandbox.fittings import shape_of
from cloudwhale_providers.sandbox.hypervisor import (
    CONSOLE,
    Guest,
    House,
    clear,
    last_line,
    trouble_of,
)
from cloudwhale_providers.sandbox.metadata import MetadataService
from cloudwhale_providers.sandbox.network import GATEWAY, Network, Wire, forget_uplink, nameservers

MACHINE = Path(__file__).parent / "machine"
NETWORK_FILE = 3
DISK, LAYER, IMAGES = "disk", "layer", "images"
KEPT = 50
FAKE_TIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LOOK_AGAIN_S: Seconds = 0.01
LOOKS = 1000
"""Ten seconds: what still lives then cannot be killed, as it waits for a device or a disk."""
UNFIT = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_EC2_METADATA_DISABLED",
         "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE")  # fmt: skip
"""Of what this host's processes are told: a machine asks its metadata service for its keys."""


@dataclass(slots=True)
class _Running:
    guest: Guest
    home: Path
    wire: Wire
    pid: int | None = field(default=None)


class Boots:
    """Starts and ends machines; used by one thread, the main one: they end with it."""

    def __init__(self, house: House, metadata: MetadataService, image: Path) -> None:
        """Take what all machines share; raise OSError where no network can be made."""
        self._house, self._metadata, self._image = house, metadata, image
        self._running: dict[str, _Running] = {}
        self._instances = house.folder / "instances"
        self._instances.mkdir(parents=True, exist_ok=True)
        self._layer = house.folder / LAYER
        self._mark = mark(house.folder)
        self._forget_earlier()
        layer.write(self._layer)
        self.network = Network(self._mark)
        self._names = nameservers() if self.network.open_to_the_world() else ()

    def __len__(self) -> int:
        return len(self._running)

    def start(self, guest: Guest) -> None:
        """Boot a machine, which runs its user data; one that runs already is left alone.

        Raise OSError when it cannot be made.
        """
        if guest.who.id in self._running:
            return
        home = self.home(guest.who.id)
        wire = self.network.wire()
        machine = _Running(guest, home, wire)
        self._running[guest.who.id] = machine

        self._metadata.serve(
            guest.who.id,
            guest.dialect.talk(guest, wire.address, self._house.now),
            wire.metadata,
            lambda: trouble_of(guest, self._house),
        )
        self._furnish(machine)
        machine.pid = self._started(machine)

    @property
    def names(self) -> Collection[str]:
        """Return the machines that run, by id."""
        return tuple(self._running)

    def first_process(self, machine: str) -> int:
        """Return the first process of a machine, by this host's number; raise LookupError: none."""
        pid = self._running[machine].pid
        return (_children(pid) if pid is not None else [])[0]

    @property
    def agents(self) -> Collection[int]:
        """Return the processes that are waited for here."""
        return [one.pid for one in self._running.values() if one.pid is not None]

    def home(self, machine: str) -> Path:
        """Return the folder that a machine has, and had once it is gone."""
        return self._instances / machine

    def exited(self) -> Sequence[str]:
        """Return, once, the machines that have powered off."""
        found: list[str] = []
        for name, one in self._running.items():
            if one.pid is not None and os.waitpid(one.pid, os.WNOHANG)[0]:
                one.pid = None
                found.append(name)
        return found

    def last_words(self, machine: str) -> str:
        """Return the last line that a machine's console has shown."""
        return last_line(self.home(machine))

    def soft_off(self, machine: str) -> None:
        """Tell a machine's first process to shut down; one that has no process is fine."""
        pid = self._running[machine].pid if machine in self._running else None
        for child in _children(pid) if pid is not None else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGPWR)

    def end(self, machines: Iterable[str]) -> Sequence[int]:
        """End machines with all that runs there; return the processes that could not be ended."""
        ending = [self._running.pop(name) for name in list(machines) if name in self._running]
        left = [pid for one in ending if (pid := _ended(one)) is not None]
        for one in ending:
            self._metadata.remove(one.guest.who.id)
            self.network.cut(one.wire)
            cgroups.remove(self._group(one.guest.who.id))
            clear(one.home)
        return left

    def tidy(self) -> None:
        """Do nothing: what an earlier box has left had to go before there was a network."""

    def close(self) -> Sequence[int]:
        """End every machine, and their network."""
        left = self.end(list(self._running))
        self.network.close()
        return left

    def _forget_earlier(self) -> None:
        """End what an earlier box of the folder has left, and forget its oldest machines."""
        processes.killed([self._instances])
        cgroups.remove(self._group(""))
        forget_uplink(self._mark)
        homes = sorted(self._instances.iterdir(), key=lambda home: home.stat().st_mtime)
        for home in homes:
            clear(home)
        for home in homes[:-KEPT]:
            shutil.rmtree(home, ignore_errors=True)

    # -- one machine -------------------------------------------------------------------------

    def _group(self, machine: str) -> str:
        return f"cloudwhale-{self._mark}-{machine}"

    def _furnish(self, machine: _Running) -> None:
        """Make a machine's disk, with what differs from the image."""
        for name in ("upper", "work", "root", "docker"):
            (machine.home / DISK / name).mkdir(parents=True, exist_ok=True)
        os.symlink(self._layer, machine.home / DISK / "layer")
        os.symlink(self._image, machine.home / DISK / "image")
        os.symlink(self._house.folder / IMAGES, machine.home / DISK / "images")
        name = _host_name(machine.wire)
        dialect = machine.guest.dialect
        known = {"localhost": "127.0.0.1", name: machine.wire.address, **dialect.names}
        written = {
            **dialect.files,
            "etc/hostname": f"{name}\n",
            "etc/hosts": "".join(f"{address} {host}\n" for host, address in known.items()),
        }
        shape = shape_of(machine.guest.who.type)
        if shape is not None:
            written |= gpus.files(gpus.stand_ins(machine.guest.who.id, shape))
        for path, text in written.items():
            layer.put(machine.home / DISK / "upper", path, text)

    def _started(self, machine: _Running) -> int:
        groups = cgroups.make(self._group(machine.guest.who.id))
        words = [
            "/bin/sh", str(MACHINE / "enter.sh"), str(MACHINE / "boot.sh"),
            str(machine.home / DISK), _host_name(machine.wire), *map(str, groups),
        ]  # fmt: skip
        return os.posix_spawn(
            words[0],
            words,
            self._environment(machine),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(machine.home / CONSOLE),
                 os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
                (os.POSIX_SPAWN_DUP2, 1, 2),
                (os.POSIX_SPAWN_DUP2, machine.wire.network, NETWORK_FILE),
            ],
            setsid=True,
        )  # fmt: skip

    def _environment(self, machine: _Running) -> dict[str, str]:
        guest = machine.guest
        shared = self._house.environment if guest.environment is None else guest.environment
        found = {key: text for key, text in shared.items() if key not in UNFIT}
        told = replace(guest.fittings, device="").words
        shape = shape_of(guest.who.type)
        if shape is not None:
            told = [*told, *gpus.words(gpus.stand_ins(guest.who.id, shape), shape)]
        own = {
            "PATH": PATH,
            "HOME": str(machine.home),
            "LANG": "C.UTF-8",
            "CLOUDWHALE_BOX_NAMESERVERS": " ".join(self._names),
            "CLOUDWHALE_AGENT_WORDS": shlex.join(told),
        }
        return found | own | _clock(self._house.weather.clock_ahead_s)


def _clock(ahead_s: Seconds) -> dict[str, str]:
    """Return what lets a machine's programs see another time; what they measure stays."""
    if not ahead_s:
        return {}
    return {
        "LD_PRELOAD": FAKE_TIME,
        "FAKETIME": f"{ahead_s:+.3f}",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
    }


def mark(folder: Path) -> str:
    """Return the word that all things of a box's machines carry in their names."""
    return hashlib.sha256(os.fsencode(folder)).hexdigest()[:10]


def _host_name(wire: Wire) -> str:
    return f"ip-{wire.address.replace('.', '-')}"


def _ended(machine: _Running) -> int | None:
    """Kill a machine's first process, and with it all others; return one that does not end."""
    pid, tick = machine.pid, Event()
    if pid is None:
        return None
    for _ in range(LOOKS):
        children = _children(pid)
        for child in children or [pid]:
            with contextlib.suppress(ProcessLookupError):  # it has just powered off by itself
                os.kill(child, signal.SIGKILL)
        if os.waitpid(pid, os.WNOHANG)[0]:
            return None
        tick.wait(LOOK_AGAIN_S)
    return pid


def _children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]


def from_inside(url: str) -> str:
    """Return the URL at which a machine reaches what listens at one of this host."""
    return f"http://{GATEWAY}:{url.rpartition(':')[2]}"


def environment(told: Mapping[str, str]) -> dict[str, str]:
    """Return what machines are told, who reach the box at the gateway's address."""
    near = f"{GATEWAY},169.254.169.254,metadata.google.internal,127.0.0.1,localhost"
    return {**told, "NO_PROXY": near}
