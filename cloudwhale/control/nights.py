"""What was night before: the same night begun already, what earlier ones have left over."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from cloudwhale.model.job import Job, JobSpec, JobState
from cloudwhale.model.night import Night, Window
from cloudwhale.model.run import Run
from cloudwhale.model.units import Instant
from cloudwhale.planning.night_hours import Hours
from cloudwhale.spi.store import JobQuery, Store

CARRIED = "carry-over"


def night_of(path: Path, window: Window, hours: Hours, deadline: Instant | None) -> Night:
    """Return what makes a run the night of a file in some hours."""
    return Night(
        name=path.stem,
        date=hours.date,
        zone=hours.zone,
        opens_at=hours.opens_at,
        closes_at=hours.closes_at,
        deadline=deadline,
        unfinished=window.unfinished,
        opens_min=window.opens_min,
        closes_min=window.closes_min,
        days=window.days,
    )


def digest_of(digest: str, night: Night) -> str:
    """Return a digest that a run of the same file at any time does not have."""
    return hashlib.sha256(f"{digest} {night.name} {night.date}".encode()).hexdigest()


def of_file(store: Store, path: Path) -> Sequence[Run]:
    """Return the nights of a file, the newest first."""
    return [run for run in store.nights() if run.files == (str(path),)]


def begun(store: Store, path: Path, date: str) -> Run | None:
    """Return the night of a file that opens on a day, if it was begun before."""
    found = (run for run in of_file(store, path) if run.night and run.night.date == date)
    return next(found, None)


def left_over(store: Store, path: Path, now: Instant) -> Sequence[Job]:
    """Return the jobs that wait for the next night of a file, the oldest first."""
    found: list[Job] = []
    for run in reversed(of_file(store, path)):
        night = run.night
        if night is None or night.unfinished != CARRIED:
            continue
        if night.closed_at is not None or night.closes_at <= now:
            waiting = JobQuery(run=run.id, states=(JobState.PENDING,))
            found += reversed(store.jobs(waiting))
    return found


def still_to_do(specs: Sequence[JobSpec], carried: Sequence[Job]) -> Sequence[JobSpec]:
    """Return the jobs of a file without those that are left over: these stand for themselves."""
    there = {_same(job.spec) for job in carried}
    return [spec for spec in specs if _same(spec) not in there]


def _same(spec: JobSpec) -> object:
    return (spec.project, spec.name, tuple(sorted(spec.array.items())))
