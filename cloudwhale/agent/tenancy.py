"""A rented machine's lease on its disk, and the watchdog that is set to it."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cloudwhale.agent import tenure, watchdog
from cloudwhale.agent.place import Place, locked, write_whole
from cloudwhale.agent.seen import Tenure
from cloudwhale.agent.shim_processes import boot_id
from cloudwhale.clock import real
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.clock import Clock

WATCHDOG_AFTER_S: Seconds = 60.0  # so much later than the agent itself, which says goodbye first
LOOK_EVERY_S: Seconds = 30.0


@dataclass(frozen=True, slots=True)
class Terms:
    """What the agent of a rented machine is started with."""

    number: int
    away_s: Seconds
    """From the start of the first agent here, by the boot-time clock."""
    power_off: str = ""
    """Command that ends the machine; empty: it ends when the agent does."""


class Tenancy:
    """Keeps what a machine was last told of its lease, so that no restart makes it longer."""

    def __init__(self, terms: Terms, place: Place, clock: Clock) -> None:
        self._terms = terms
        self._folder = place.path
        self._clock = clock
        self._looked_at: Seconds | None = None

    def begin(self, now: Instant) -> Tenure:
        """Return the lease that holds, and see that a watchdog does; raises OSError.

        `now`: this moment, by the clock that the lease is told in.
        """
        told = tenure.begun(self._terms.number, self._terms.away_s, now)
        kept = self._kept(now)
        holds = kept if kept is not None and kept.number >= told.number else told
        self.keep(holds, now)
        return holds

    def keep(self, holds: Tenure, now: Instant) -> None:
        """Remember a lease, and set the watchdog to its end; raises OSError."""
        steady = self._clock.steady() - now
        wall = self._clock.now() - now
        record = {
            "number": holds.number,
            "boot": boot_id(),
            "steady": [holds.watched_until + steady, holds.away_until + steady],
            "wall": [holds.watched_until + wall, holds.away_until + wall],
        }
        write_whole(self._folder / "tenure.json", json.dumps(record), lasting=True)
        self._set_watchdog(holds.away_until + steady + WATCHDOG_AFTER_S)
        self.look()

    def look(self) -> None:
        """Start a watchdog where none lives; called each turn, looks now and then."""
        now = self._clock.steady()
        if self._looked_at is None or now - self._looked_at >= LOOK_EVERY_S:
            self._looked_at = now
            if not _lives(self._folder):
                _start(self._folder)

    def end_machine(self) -> None:
        """End the machine; where that fails or hangs, the watchdog tries again and again."""
        self._set_watchdog(self._clock.steady() + WATCHDOG_AFTER_S)
        if self._terms.power_off:
            subprocess.run(
                ["/bin/sh", "-c", self._terms.power_off], stdin=subprocess.DEVNULL, check=False
            )

    def _set_watchdog(self, steady_at: Seconds) -> None:
        told = {"at": real(steady_at), "words": self._terms.power_off}
        write_whole(self._folder / watchdog.TOLD, json.dumps(told), lasting=True)

    def _kept(self, now: Instant) -> Tenure | None:
        """Return what an earlier agent kept: by the boot-time clock, after a reboot by the wall's.

        What cannot be read is none: then the lease of the launch counts from now, and the cloud's
        own stop bounds it.
        """
        try:
            record: dict[str, Any] = json.loads((self._folder / "tenure.json").read_bytes())
            same_boot = record["boot"] == boot_id()
            watched, away = record["steady" if same_boot else "wall"]
            clock = self._clock.steady() if same_boot else self._clock.now()
            ahead = now - clock
            return Tenure(int(record["number"]), float(watched) + ahead, float(away) + ahead)
        except (OSError, ValueError, KeyError, TypeError):
            return None


def terms_from(lease: str, power_off: str) -> Terms:
    """Read NUMBER:SECONDS; raise ValueError for anything else."""
    number, colon, seconds = lease.partition(":")
    terms = Terms(int(number), float(seconds), power_off)
    if not colon or terms.number < 0 or not 0 <= terms.away_s < float("inf"):
        raise ValueError(lease)
    return terms


def _lives(folder: Path) -> bool:
    """Say whether a watchdog holds its lock."""
    lock = os.open(folder / watchdog.LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        return not locked(lock)
    finally:
        os.close(lock)


def _start(folder: Path) -> None:
    """Start a watchdog in our own session: who ends that in one go ends it, too."""
    errors = os.open(
        folder / "watchdog.err", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
    )
    words = [sys.executable, "-I", "-S", str(watchdog.__file__), str(folder)]
    try:
        os.posix_spawn(
            words[0],
            words,
            {"PATH": os.environ.get("PATH", os.defpath)},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_DUP2, errors, 2),
            ],
        )
    finally:
        os.close(errors)
