"""What a word on the command line means: a job's id, the beginning of one, a name, a run."""

from collections.abc import Sequence
from dataclasses import dataclass

from cloudwhale.cli.exits import NotFound
from cloudwhale.model.job import LIVE, Job, JobState
from cloudwhale.model.reason import Code
from cloudwhale.model.run import Run
from cloudwhale.spi.store import JobQuery, Store

WORK = (JobState.PENDING, JobState.STARTING, JobState.RUNNING, JobState.RECOVERING)
"""States that a controller can do something for; the other live ones wait for a person."""

SUGGESTED = 5
"""So many of the newest jobs are named when nothing was found."""


def one_job(store: Store, word: str) -> Job:
    """Return the newest job that a word means; raise NotFound."""
    found = store.jobs(JobQuery(names_or_ids=(word,), limit=1))
    if not found:
        raise _no_job(store, word)
    return found[0]


@dataclass(frozen=True, slots=True)
class Named:
    """The jobs that some words mean."""

    living: tuple[Job, ...]
    ended: tuple[Job, ...]
    """One for each word that means only jobs that have ended: the newest of them."""


def named_jobs(store: Store, words: Sequence[str]) -> Named:
    """Return the jobs that words mean; raise NotFound when one means nothing, or none lives.

    A word that names a run means all its jobs.
    """
    living: dict[str, Job] = {}
    ended: dict[str, Job] = {}
    for word in words:
        found = all_named(store, word)
        if not found:
            raise _no_job(store, word)
        live = [job for job in found if not job.ended]
        if not live:
            ended[found[0].id] = found[0]
        living |= {job.id: job for job in live}
    if not living:
        says = ", ".join(ended_words(job) for job in ended.values())
        raise NotFound(f"{says}.", "`cloudwhale ps` shows what lives.")
    return Named(tuple(living.values()), tuple(ended.values()))


def ended_words(job: Job) -> str:
    """Say that a job has ended, and how."""
    return f"{job.id} has ended already: it was {job.state}"


def all_named(store: Store, word: str) -> Sequence[Job]:
    """Return every job that a word means, newest first; of a run all its jobs."""
    found = store.jobs(JobQuery(names_or_ids=(word,)))
    return found or store.jobs(JobQuery(run=word))


def one_run(store: Store, word: str | None) -> Run:
    """Return the run that a word means (of a job: its run); without one the newest live run.

    Raise NotFound.
    """
    if word is None:
        word = _newest_live_run(store)
    run = store.run(word)
    if run is None:
        job = one_job(store, word)
        run = store.run(job.run)
    if run is None:
        raise _no_job(store, word)
    return run


def _newest_live_run(store: Store) -> str:
    live = store.jobs(JobQuery(states=LIVE, limit=1))
    if live:
        return live[0].run
    newest = store.jobs(JobQuery(limit=1))
    raise NotFound(
        "Nothing runs or waits that could be followed.",
        f"`cloudwhale attach {newest[0].run}` prints the receipt of the newest run."
        if newest
        else "`cloudwhale run FILE` starts something.",
    )


def _no_job(store: Store, word: str) -> NotFound:
    newest = store.jobs(JobQuery(limit=SUGGESTED))
    if not newest:
        return NotFound(
            f"There is no job {word!r}: nothing was ever submitted here.",
            "`cloudwhale run FILE` submits a job; CLOUDWHALE_HOME says where jobs are kept.",
        )
    return NotFound(
        f"There is no job {word!r}.",
        f"The newest are {', '.join(job.id for job in newest)}; `cloudwhale ps --all` shows all.",
    )


def work_is_left(store: Store) -> bool:
    """Say whether a controller has anything to do: jobs, and machines that are not back yet.

    What a night has left over for the next one waits for that to be begun.
    """
    counts = store.counts()
    states = [state for state in WORK if counts.get(state)]
    if states == [JobState.PENDING]:
        waiting = store.jobs(JobQuery(states=(JobState.PENDING,)))
        return bool(store.rentals()) or not all(_is_carried_over(store, one) for one in waiting)
    return bool(states) or bool(store.rentals())


def _is_carried_over(store: Store, job: Job) -> bool:
    if job.reason is None or job.reason.code is not Code.LEFT_OVER:
        return False
    run = store.run(job.run)
    return run is not None and run.night is not None and run.night.unfinished == "carry-over"
