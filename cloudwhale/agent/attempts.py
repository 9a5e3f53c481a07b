"""An attempt's folder on this machine: what its files say, and what they mean after a restart."""

import fcntl
import json
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from cloudwhale import clock
from cloudwhale.agent.peaks import kept
from cloudwhale.agent.place import flush, locked, write_whole
from cloudwhale.agent.seen import ExitRecord, Found, Key, StopWish
from cloudwhale.mailbox.documents import AttemptEnded, StartOrder
from cloudwhale.model.job import Checkpoint
from cloudwhale.model.units import Instant

_T = TypeVar("_T")

SHIM_SAYS_BYTES = 2000  # of a shim's own errors, the newest


@dataclass(frozen=True, slots=True)
class Pids:
    """Who runs: process ids, which mean a process together with its start time and the boot."""

    shim: int
    shim_started: int | None
    job: int
    job_started: int | None
    boot: str
    began_at: Instant
    groups: tuple[str, ...]
    """Control groups that the shim made."""


@dataclass(frozen=True, slots=True)
class _Ledger:
    seq: int = 0
    checkpoints: tuple[Checkpoint, ...] = ()


class AttemptFolder:
    """The files of one attempt; every writing verb raises OSError."""

    def __init__(self, attempts: Path, key: Key) -> None:
        job, attempt = key
        self.key = key
        self.path = attempts / job / str(attempt)
        self.work = self.path / "work"
        self.log = self.path / "log"
        self.ledger = self.path / "published.json"
        """Which checkpoints of it lie in the store."""

    # -- written by the agent ----------------------------------------------------------------

    def accept(self, order: StartOrder) -> None:
        """Remember the order, before anything else is done for it."""
        self.path.mkdir(parents=True, exist_ok=True)
        os.chmod(self.path, 0o700)  # others may be on this machine; a job's own user is let in
        write_whole(self.path / "order.json", order.model_dump_json(), lasting=True)
        for folder in (self.path.parent, self.path.parent.parent):
            flush(folder)

    def keep_stop(self, wish: StopWish) -> None:
        """Remember that the attempt is to be stopped."""
        write_whole(self.path / "stop.json", json.dumps(asdict(wish)))

    def mark_ended(self, report: AttemptEnded) -> None:
        """Remember that the report was posted: nothing more happens to this attempt."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_whole(self.path / "ended", report.model_dump_json(), lasting=True)

    def keep_end(self, report: AttemptEnded) -> None:
        """Remember how an attempt without an exit record ends, before its end is posted."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_whole(self.path / "closing.json", report.model_dump_json(), lasting=True)

    def fence_out(self) -> bool:
        """Make sure that no shim can start the job any more; False when one has."""
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            os.close(os.open(self.path / "begun", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
        except FileExistsError:
            return False
        return True

    @contextmanager
    def fenced(self) -> Generator[bool, None, None]:
        """Keep shims from beginning meanwhile; False when one has begun. Raise OSError.

        One that is late gives up after a moment; then another can be started.
        """
        lock = os.open(self.path / "shim.lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            yield locked(lock) and not self.has_begun
        finally:
            os.close(lock)

    def tell_shim(self, line: str) -> bool:
        """Give the shim an order; False when no shim listens."""
        try:
            pipe = os.open(self.path / "control", os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return False
        try:
            os.write(pipe, f"{line}\n".encode())
        except OSError:
            return False
        finally:
            os.close(pipe)
        return True

    def keep_sign(self) -> None:
        """Remember that its shim lives now: the lock that it holds is dated anew."""
        os.utime(self.path / "shim.lock")

    # -- read --------------------------------------------------------------------------------

    def last_sign(self) -> Instant:
        """Return when its shim or its output last showed that it lives; raise OSError."""
        dated = [self.path / "shim.lock", *self.log.glob("*")]
        return clock.told(max(file.stat().st_mtime for file in dated))

    def checkpoints(self, order: StartOrder) -> Path:
        """Return the job's checkpoint folder; raise ValueError for one outside its workdir."""
        if order.checkpoint.path is None:
            return self.path / "checkpoints"
        parts = PurePosixPath(order.checkpoint.path)
        if parts.is_absolute() or ".." in parts.parts:
            raise ValueError(f"{order.checkpoint.path} is not inside the working directory")
        return self.work / parts

    def order(self) -> StartOrder | None:
        """Return the order that was accepted, or None."""
        try:
            return StartOrder.model_validate_json((self.path / "order.json").read_bytes())
        except (OSError, ValidationError):
            return None

    def stop(self) -> StopWish | None:
        """Return how the attempt is to be stopped, or None."""
        return _read(StopWish, self.path / "stop.json")

    def ended(self) -> AttemptEnded | None:
        """Return the report of its end, when that was posted."""
        return _report(self.path / "ended")

    def closing(self) -> AttemptEnded | None:
        """Return the report of its end that is still to be posted, if it has no exit record."""
        return None if self.has_ended else _report(self.path / "closing.json")

    @property
    def is_known(self) -> bool:
        """Say whether it was accepted, answered or begun; a folder alone is no memory of it.

        Neither is an order that a power cut left empty: it is obeyed when it is read again.
        """
        if self.has_begun or self.order() is not None:
            return True
        return self.has_ended or self.closing() is not None

    @property
    def has_ended(self) -> bool:
        """Say whether the report of its end was posted."""
        return self.ended() is not None

    @property
    def has_begun(self) -> bool:
        """Say whether a shim ever started the job (or the agent made sure that none can)."""
        return (self.path / "begun").exists()

    def shim_lives(self) -> bool:
        """Say whether a shim holds this attempt's lock."""
        try:
            lock = os.open(self.path / "shim.lock", os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(lock)
        return False

    def pids(self) -> Pids | None:
        """Return who runs, or None when the shim has not said so."""
        found = _read(Pids, self.path / "pids.json")
        return None if found is None else replace(found, began_at=clock.told(found.began_at))

    def exit(self) -> ExitRecord | None:
        """Return how the job's process ended, or None; shims count by the real clock."""
        found = _read(ExitRecord, self.path / "exit.json")
        if found is None:
            return None
        ended_at, ran_s = clock.told(found.ended_at), clock.lasted(found.ran_s)
        return replace(found, ended_at=ended_at, ran_s=ran_s)

    def unlogged_bytes(self) -> int:
        """Return how much output the disk did not take."""
        found = _json(self.path / "exit.json") or {}
        return int(found.get("log_unwritten_bytes", 0))

    def shim_says(self) -> str:
        """Return the last line of what the shim itself complained of; usually empty."""
        try:
            text = (self.path / "shim.err").read_bytes()[-SHIM_SAYS_BYTES:]
        except OSError:
            return ""
        lines = text.decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def published(self) -> tuple[int, tuple[Checkpoint, ...]]:
        """Return the highest checkpoint number used, and the checkpoints that lie in the store."""
        ledger = _read(_Ledger, self.ledger) or _Ledger()
        return ledger.seq, ledger.checkpoints


def _report(path: Path) -> AttemptEnded | None:
    try:
        return AttemptEnded.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def known(attempts: Path) -> dict[str, int]:
    """Return the newest attempt of every job that was accepted or answered here."""
    newest: dict[str, int] = {}
    for job, number in _keys(attempts):
        if AttemptFolder(attempts, (job, number)).is_known:
            newest[job] = max(number, newest.get(job, 0))
    return newest


def found(attempts: Path) -> tuple[Found, ...]:
    """Return the attempts that were accepted and whose end was not posted."""
    return tuple(_found(attempts))


def closing(attempts: Path) -> tuple[AttemptEnded, ...]:
    """Return the ends without an exit record, as far as they are still to be posted."""
    reports = (AttemptFolder(attempts, key).closing() for key in _keys(attempts))
    return tuple(report for report in reports if report is not None)


def broken(attempts: Path) -> tuple[Key, ...]:
    """Return the attempts that may have run, and of which nothing else can be read."""
    return tuple(
        key
        for key in _keys(attempts)
        if (folder := AttemptFolder(attempts, key)).has_begun
        and folder.order() is None
        and not (folder.has_ended or folder.closing())
    )


def strays(attempts: Path) -> tuple[Path, ...]:
    """Return what lies among the attempts and is none: it is left alone."""
    return tuple(path for path in sorted(attempts.iterdir()) if not path.is_dir())


def _found(attempts: Path) -> Iterator[Found]:
    for key in _keys(attempts):
        folder = AttemptFolder(attempts, key)
        order = None if folder.has_ended or folder.closing() else folder.order()
        if order is None:
            continue
        pids = folder.pids()
        began_at = pids.began_at if pids is not None else None
        if began_at is None and folder.has_begun:
            began_at = clock.told((folder.path / "begun").stat().st_mtime)
        seq, checkpoints = folder.published()
        stop = folder.stop()
        yield Found(order, began_at, seq, checkpoints, stop, peaks=kept(folder.path))


def ended_folders(attempts: Path) -> Iterator[tuple[Instant, Path]]:
    """Return the folders of attempts whose end was posted, each with when that was."""
    for key in _keys(attempts):
        folder = AttemptFolder(attempts, key).path
        try:
            yield clock.told((folder / "ended").stat().st_mtime), folder
        except OSError:
            continue


def _keys(attempts: Path) -> Iterator[Key]:
    for job in sorted(attempts.iterdir()) if attempts.is_dir() else ():
        if not job.is_dir():
            continue
        numbers = [int(path.name) for path in job.iterdir() if path.name.isdecimal()]
        for number in sorted(numbers):
            yield job.name, number


@cache
def _reader(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _read(kind: type[_T], path: Path) -> _T | None:
    """Return what a file says, or None when it does not say it; other fields are of a later day."""
    try:
        found: _T = _reader(cast(Any, kind)).validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
    return found


def _json(path: Path) -> dict[str, Any] | None:
    """Return what a file says, or None when it is not there or is no JSON object."""
    try:
        found: object = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return cast(dict[str, Any], found) if isinstance(found, dict) else None
