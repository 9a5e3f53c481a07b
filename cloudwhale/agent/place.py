"""An agent's own folder on a machine: its lock, its key, how far it has read its orders."""

import errno
import fcntl
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from cloudwhale.clock import pause
from cloudwhale.mailbox.sealing import new_key_pair
from cloudwhale.model.units import Seconds

TRIES = 10
TRY_AGAIN_S: Seconds = 0.02


@dataclass(frozen=True, slots=True)
class ReadTo:
    """How far the orders were read, and the highest fence seen among them."""

    number: int = 0
    fence: int = 0
    missed_to: int = 0
    """Up to here orders were given to agents whose memory is gone: they must not be obeyed."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What this place remembers of its claims to its node."""

    place: str
    """Made up once: tells this folder from every other one."""
    number: int = 0
    """Of its newest claim."""
    since: int = 0
    """Of the first of the row that the newest belongs to; in between nobody else claimed."""


class Place:
    """`<home>/nodes/<node>`: one agent at a time works here."""

    def __init__(self, home: Path, node: str) -> None:
        self.path = home / "nodes" / node
        self.attempts = self.path / "attempts"
        self._lock: int | None = None

    def take(self) -> bool:
        """Become the agent of this place; False when another agent lives here."""
        self.attempts.mkdir(parents=True, exist_ok=True)
        lock = os.open(self.path / "agent.lock", os.O_RDWR | os.O_CREAT, 0o644)
        if not locked(lock):
            os.close(lock)
            return False
        os.truncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)  # for whoever wants to end us
        self._lock = lock
        return True

    def leave(self) -> None:
        """Let another agent work here."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def keys(self) -> tuple[str, str]:
        """Return this place's private and public key, base64; made at the first call.

        They stay: an order that was sealed to an agent can be opened by its successor.
        """
        path = self.path / "key.json"
        try:
            private, public = json.loads(path.read_text())
        except (OSError, ValueError):
            private, public = new_key_pair()
            write_whole(path, json.dumps([private, public]))
        return private, public

    def claimed(self) -> Kept:
        """Return what earlier agents of this place have claimed; raises OSError."""
        try:
            found = json.loads((self.path / "claim.json").read_text())
            return Kept(str(found["place"]), int(found["number"]), int(found["since"]))
        except (OSError, ValueError, KeyError, TypeError):
            kept = Kept(os.urandom(16).hex())
            self.keep_claimed(kept)  # first: a claim whose place is forgotten is a stranger's
            return kept

    def keep_claimed(self, kept: Kept) -> None:
        """Remember a claim; raises OSError."""
        write_whole(self.path / "claim.json", json.dumps(asdict(kept)))

    def read_to(self) -> ReadTo | None:
        """Return how far earlier agents have read; None when there were none, or all is lost."""
        try:
            found = json.loads((self.path / "read.json").read_text())
            return ReadTo(**{name: int(found[name]) for name in ("number", "fence", "missed_to")})
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def forget_read_to(self) -> None:
        """Forget it: orders since then were another agent's, and none of them is ours to obey."""
        (self.path / "read.json").unlink(missing_ok=True)
        flush(self.path)

    def keep_read_to(self, read_to: ReadTo) -> None:
        """Remember how far the orders were read; raises OSError."""
        write_whole(self.path / "read.json", json.dumps(asdict(read_to)), lasting=True)


def locked(lock: int) -> bool:
    """Lock an open file; False when somebody holds it for longer than it takes to ask."""
    for _ in range(TRIES):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            pause(TRY_AGAIN_S)  # somebody may only be asking whether it is held
    return False


def write_whole(path: Path, text: str, mode: int = 0o600, *, lasting: bool = False) -> None:
    """Write a file so that a reader sees all of it or what was there before; raises OSError.

    Others on this machine, jobs with a user of their own among them, have no need of it.

    `lasting`: what was written is there after a power cut, too.
    """
    draft = path.with_name(f"{path.name}.new")
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        view = memoryview(text.encode())
        while view:
            view = view[os.write(file, view) :]
        if lasting:
            os.fsync(file)
    finally:
        os.close(file)
    os.rename(draft, path)
    if lasting:
        flush(path.parent)


def flush(folder: Path) -> None:
    """Make the names in a folder outlast a power cut, where its file system can; raises OSError."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(opened)
