"""Brings what jobs leave to `./results` while somebody follows them, one job after another."""

import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue

from cloudwhale.control.results import Brought, Stores, bring, draft_of
from cloudwhale.model.job import Job, JobState
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.reporting.figures import counted, size
from cloudwhale.spi.errors import CloudwhaleError

RESULTS = "results"
QUIET_S: Seconds = 2.0  # what is faster than that is told when it is there
TELL_EVERY_S: Seconds = 5.0


def folders_of(jobs: Iterable[Job], into: Path) -> dict[str, Path]:
    """Return where each job's results go: its name, or its id where another has the same name."""
    jobs = list(jobs)
    names = Counter(job.spec.name for job in jobs)
    return {job.id: into / (job.spec.name if names[job.spec.name] == 1 else job.id) for job in jobs}


@dataclass(slots=True)
class _Coming:
    """Results on their way."""

    job: Job
    folder: Path
    of: int = 0
    """Bytes in all; 0 until that is known."""
    since: Instant | None = None
    """When it was first looked at."""
    told_at: Instant | None = None
    is_done: threading.Event = field(default_factory=threading.Event)
    brought: Brought | None = None
    error: CloudwhaleError | None = None

    def fetch(self, stores: Stores) -> None:
        """Fetch them; what becomes of it is kept."""
        try:
            self.brought = bring(stores, self.job, self.folder, told=self._told)
        except CloudwhaleError as error:
            self.error = error
        finally:
            self.is_done.set()

    def _told(self, of: int) -> None:
        self.of = of


class Bringing:
    """What is fetched for the jobs of a run, in a thread that nobody waits for who goes."""

    def __init__(self, stores: Stores, folders: dict[str, Path], also: str = "") -> None:
        self._also = also
        self._stores = stores
        self._folders = folders
        self._line: SimpleQueue[_Coming] = SimpleQueue()
        self._coming: list[_Coming] = []
        self._thread: threading.Thread | None = None

    def ended(self, job: Job) -> None:
        """Begin to fetch what a job has left; nothing where it names no outputs or never ran."""
        if not job.spec.outputs or not job.attempt or not job.ended:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="results", daemon=True)
            self._thread.start()
        one = _Coming(job, self._folders[job.id])
        self._coming.append(one)
        self._line.put(one)

    def _work(self) -> None:
        while True:
            self._line.get().fetch(self._stores)

    @property
    def is_busy(self) -> bool:
        """Say whether something is still on its way, or has not been told."""
        return bool(self._coming)

    def news(self, now: Instant) -> list[str]:
        """Return what has come, and how far that is which takes long; the first in line first."""
        said: list[str] = []
        while self._coming:
            first = self._coming[0]
            if not first.is_done.is_set():
                return said + _underway(first, now)
            self._coming.pop(0)
            said += _outcome(first, self._also)
        return said


def _underway(one: _Coming, now: Instant) -> list[str]:
    if one.since is None:
        one.since = now
    took_s = now - one.since
    due_at = one.since + QUIET_S if one.told_at is None else one.told_at + TELL_EVERY_S
    if now < due_at:
        return []
    one.told_at = now
    came = _bytes_in(draft_of(one.folder))
    rate = f", {size(int(came / took_s))}/s" if came else ""
    of = f" of {size(one.of)}" if one.of else ""
    return [f"fetching the results of {one.job.id}: {size(came)}{of}{rate}"]


def _bytes_in(folder: Path) -> int:
    """Return how much lies in a folder that another thread fills, and may move away."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue
    return total


def _outcome(one: _Coming, also: str) -> list[str]:
    if one.error is not None:
        return [
            f"the results of {one.job.id} did not come: {one.error.says}. "
            f"`cloudwhale results {one.job.id}{also}` tries again."
        ]
    if one.brought is not None:
        return [brought_words(one.brought)]
    if one.job.state is JobState.COMPLETED:
        return [f"{one.job.id} has left nothing at {', '.join(one.job.spec.outputs)}"]
    return []


def brought_words(brought: Brought) -> str:
    """Say where results lie, and what became of those that lay there."""
    what = f"{counted(brought.files, 'file')}, {size(brought.size_bytes)}"
    where = _near(brought.folder)
    if brought.was_there:
        return f"the results of {brought.job} are in {where} already ({what})"
    old = f"; what lay there is in {_near(brought.moved)} now" if brought.moved else ""
    links = f"; {counted(brought.links, 'link')} left out" if brought.links else ""
    return f"results of {brought.job}: {where} ({what}){links}{old}"


def _near(folder: Path) -> str:
    """Return a folder as it is called from here."""
    here = Path.cwd()
    return f"./{folder.relative_to(here)}" if folder.is_relative_to(here) else str(folder)
