"""The commands that ask something of jobs: cancel, pause, resume."""

import sys
from collections.abc import Callable, Sequence

from cloudwhale.cli.exits import Exit, NotFound
from cloudwhale.cli.finding import Named, ended_words, named_jobs
from cloudwhale.cli.holders import say_who_works
from cloudwhale.cli.looking import desk_here
from cloudwhale.cli.output import emit, say
from cloudwhale.control.desk import Desk
from cloudwhale.model import event as e
from cloudwhale.model.job import Job, JobState
from cloudwhale.model.units import Instant

Asks = Callable[[Instant, str, str], e.Event]
"""Given the time, the job and who asks."""


def cancel(words: Sequence[str], as_json: bool) -> int:
    """Ask for jobs to be stopped and forgotten."""
    return _ask(words, as_json, "cancel", _cancel)


def pause(words: Sequence[str], as_json: bool) -> int:
    """Ask for jobs to save, stop, and wait for `resume`."""
    return _ask(words, as_json, "pause", _pause)


def resume(words: Sequence[str], as_json: bool) -> int:
    """Ask for paused or parked jobs to go on."""
    with desk_here() as desk:
        named = named_jobs(desk.store, words)
        idle = tuple(job for job in named.living if _can_resume(job))
        if not idle:
            first = named.living[0]
            raise NotFound(
                f"{first.id} is {first.state}: there is nothing to resume.",
                "Only paused and parked jobs can be resumed; `cloudwhale ps --state paused`.",
            )
        return _append(desk, Named(idle, named.ended), as_json, "go on", _resume)


def _can_resume(job: Job) -> bool:
    """Parked, paused, or about to be paused."""
    return job.state in (JobState.PAUSED, JobState.PARKED) or job.wish == "pause"


def _ask(words: Sequence[str], as_json: bool, what: str, asks: Asks) -> int:
    with desk_here() as desk:
        return _append(desk, named_jobs(desk.store, words), as_json, what, asks)


def _append(desk: Desk, named: Named, as_json: bool, what: str, asks: Asks) -> int:
    now = desk.clock.now()
    jobs = named.living
    desk.store.append([asks(now, job.id, desk.settings.user) for job in jobs])
    for job in named.ended:
        say(ended_words(job), sys.stderr)
    if as_json:
        emit({"asked": what, "jobs": [{"id": job.id, "state": job.state.value} for job in jobs]})
        return Exit.DONE
    for job in jobs:
        say(f"asked {job.id} to {what}; it was {job.state}")
    say_who_works(desk.settings)
    return Exit.DONE


def _cancel(at: Instant, job: str, by: str) -> e.Event:
    return e.CancelAsked(at=at, job=job, by=by)


def _pause(at: Instant, job: str, by: str) -> e.Event:
    return e.PauseAsked(at=at, job=job, by=by)


def _resume(at: Instant, job: str, by: str) -> e.Event:
    return e.ResumeAsked(at=at, job=job, by=by)
