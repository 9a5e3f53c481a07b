"""What a sandbox writes of itself into its folder: how it is reached, and that it lives."""

import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cloudwhale.model.units import Instant
from cloudwhale_providers import locks

RECORD, LOCK, LAST, METER, LOG, PROGRESS = (
    "sandbox.json", "sandbox.lock", "clock.json", "meter.json", "sandbox.log", "progress"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Record:
    """How a sandbox is reached; written when it can be, removed when it ends."""

    pid: int
    url: str
    """Of its API, the object store too: of the first cloud, if there are several."""
    clock: str
    """As $CLOUDWHALE_CLOCK has it; empty: real time."""
    speed: float
    script: str
    """File of its weather; empty: none."""
    digest: str
    """Of what stood in that file."""
    owned: bool
    notes: tuple[str, ...] = ()
    boots: bool = False
    """Whether its machines do, and so need the agent's archive."""
    urls: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of all its clouds and stores, by name."""


class Lock:
    """Held while a sandbox of a folder lives; gone with its process, however that ends."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK
        self._file: int | None = None

    def take(self) -> bool:
        """Become the sandbox of the folder; False when another process is it."""
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return False
        self._file = file
        return True

    def leave(self) -> None:
        """Let another process be it."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def is_held(self) -> bool:
        """Say whether some process holds it; a folder without one has none."""
        return locks.is_held(self._path)


def found(folder: Path) -> Record | None:
    """Return how the sandbox of a folder is reached; None when none lives, or not yet."""
    try:
        told: dict[str, Any] = json.loads((folder / RECORD).read_text())
        told["notes"] = tuple(told["notes"])
        record = Record(**told)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return record if Lock(folder).is_held() else None


def keep(folder: Path, record: Record) -> None:
    """Write how a sandbox is reached, whole or not at all; raise OSError."""
    write(folder / RECORD, json.dumps(asdict(record), indent=2))


def forget(folder: Path) -> None:
    """Say no more that a sandbox is reached."""
    (folder / RECORD).unlink(missing_ok=True)


def keep_progress(folder: Path, says: str) -> None:
    """Write how far a sandbox is that cannot be reached yet; empty: nothing keeps it."""
    if says:
        write(folder / PROGRESS, says)
    else:
        (folder / PROGRESS).unlink(missing_ok=True)


def progress_of(folder: Path) -> str:
    """Return how far the sandbox of a folder is that begins; empty: nothing keeps it."""
    try:
        says = (folder / PROGRESS).read_text().strip()
    except OSError:
        return ""
    return says if Lock(folder).is_held() else ""


@dataclass(frozen=True, slots=True)
class Last:
    """What the next box of a folder goes on from."""

    at: Instant = 0.0
    """What time it was there last: it never goes back, whatever the speed was."""
    ports: Mapping[str, int] = field(default_factory=dict[str, int])
    """Where its clouds and stores listened, by name: agents and controllers that outlive it find
    the next ones there."""


def last_of(folder: Path) -> Last:
    """Return how the folder's earlier boxes were left; zeros when there were none."""
    try:
        told = json.loads((folder / LAST).read_text())
        ports = {str(name): int(port) for name, port in told.get("ports", {}).items()}
        return Last(float(told["at"]), ports)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return Last()


def keep_last(folder: Path, last: Last) -> None:
    """Remember how a box is; raise OSError."""
    write(folder / LAST, json.dumps(asdict(last)))


def write(path: Path, text: str) -> None:
    """Write a file so that a reader sees all of it or what was there before; raise OSError."""
    draft = path.with_name(f"{path.name}.new")
    draft.write_text(f"{text}\n", encoding="utf-8")
    os.rename(draft, path)
