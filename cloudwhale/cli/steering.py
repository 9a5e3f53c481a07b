"""The commands that ask something of jobs: cancel, pause, resume."""

import os
import sys
from collections.abc import Callable, Iterable, Sequence

from cloudwhale.cli.exits import Exit, NotFound
from cloudwhale.cli.finding import Named, all_named, ended_words, named_jobs
from cloudwhale.cli.holders import say_who_works
from cloudwhale.cli.looking import desk_here
from cloudwhale.cli.output import emit, say
from cloudwhale.control.desk import Desk
from cloudwhale.model import event as e
from cloudwhale.model.job import Job, JobState
from cloudwhale.model.reason import Code
from cloudwhale.model.units import Instant

Asks = Callable[[Instant, str, str], e.Event]
"""Given the time, the job and who asks."""


def cancel(words: Sequence[str], as_json: bool) -> int:
    """Ask for jobs to be stopped and forgotten; machines kept for failed ones to be given back."""
    with desk_here() as desk:
        kept = _kept_for(desk, words)
        if not kept:
            return _append(desk, named_jobs(desk.store, words), as_json, "cancel", _cancel)
        now = desk.clock.now()
        desk.store.append([_cancel(now, job, desk.settings.user) for job in kept])
        for job, machine in kept.items():
            say(f"asked for {machine} to be given back, which was kept for {job}", sys.stderr)
        others = [word for word in words if not _has_ended(desk, word)]
        if others:
            return _append(desk, named_jobs(desk.store, others), as_json, "cancel", _cancel)
        if as_json:
            emit({"asked": "cancel", "jobs": [{"id": job, "state": "failed"} for job in kept]})
        return Exit.DONE


def _kept_for(desk: Desk, words: Sequence[str]) -> dict[str, str]:
    """Return the failed jobs among those named that a machine is kept for, each with that."""
    machines = {rental.kept_for: rental.id for rental in desk.store.rentals() if rental.kept_for}
    if not machines:
        return {}
    named = [job.id for word in words for job in all_named(desk.store, word)]
    return {job: machines[job] for job in named if job in machines}


def _has_ended(desk: Desk, word: str) -> bool:
    found = all_named(desk.store, word)
    return bool(found) and all(job.ended for job in found)


def pause(words: Sequence[str], as_json: bool) -> int:
    """Ask for jobs to save, stop, and wait for `resume`."""
    return _ask(words, as_json, "pause", _pause)


def resume(words: Sequence[str], as_json: bool) -> int:
    """Ask for paused or parked jobs to go on; secrets that were lost are taken anew."""
    with desk_here() as desk:
        named = named_jobs(desk.store, words)
        idle = tuple(job for job in named.living if _can_resume(job))
        if not idle:
            first = named.living[0]
            raise NotFound(
                f"{first.id} is {first.state}: there is nothing to resume.",
                "Only paused and parked jobs can be resumed; `cloudwhale ps --state paused`.",
            )
        _seal_again(desk, idle)
        return _append(desk, Named(idle, named.ended), as_json, "go on", _resume)


def _seal_again(desk: Desk, jobs: Iterable[Job]) -> None:
    """Keep the secrets of jobs that wait for them, from this environment; raise NotThere."""
    waiting = [job for job in jobs if job.reason and job.reason.code is Code.SECRET_MISSING]
    if not waiting:
        return
    from cloudwhale.control.secrets import collected, seal

    names = dict.fromkeys(name for job in waiting for name in job.spec.secrets)
    values = collected(names, os.environ)
    for job in waiting:
        sealed = {name: seal(desk.key, values[name]) for name in job.spec.secrets}
        desk.store.seal(job.run, sealed)


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
