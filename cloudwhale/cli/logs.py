"""What a job printed: all of it, or on and on while it runs."""

import sys

from cloudwhale.cli.exits import Exit, NotFound
from cloudwhale.cli.finding import one_job
from cloudwhale.cli.interrupts import Interrupts
from cloudwhale.cli.looking import desk_here
from cloudwhale.cli.output import emit, say
from cloudwhale.control.desk import Desk
from cloudwhale.model.job import Job
from cloudwhale.model.units import Seconds
from cloudwhale.reporting.tail import Tail, look_every_s
from cloudwhale.spi.store import JobQuery

TURN_S: Seconds = 0.2


def logs(word: str, attempt: int | None, follow: bool, as_json: bool) -> int:
    """Print the output of a job's attempt; without a number the newest one's."""
    with desk_here(starts=True) as desk:
        job = one_job(desk.store, word)
        number = _attempt(job, attempt, follow)
        if as_json:
            data = _tail(desk, job, number).rest()
            lines = data.decode("utf-8", "replace").splitlines()
            emit({"id": job.id, "name": job.spec.name, "attempt": number, "lines": lines})
            return Exit.DONE
        if follow:
            return _follow(desk, job, number, attempt is None)
        _write(_tail(desk, job, number).rest())
    return Exit.DONE


def _attempt(job: Job, wanted: int | None, follow: bool) -> int:
    if wanted is not None and not 1 <= wanted <= job.attempt:
        has = f"it has had {job.attempt}" if job.attempt else "it has not started yet"
        raise NotFound(f"{job.id} has no attempt {wanted}: {has}.", f"`cloudwhale logs {job.id}`.")
    if job.attempt == 0 and not follow:
        why = f": {job.reason.says}" if job.reason else ""
        raise NotFound(
            f"{job.id} is {job.state} and has printed nothing, it never started{why}.",
            f"`cloudwhale explain {job.id}` says why; `cloudwhale logs -f {job.id}` waits for it.",
        )
    return wanted or job.attempt


def _follow(desk: Desk, job: Job, number: int, on_to_the_next: bool) -> int:
    """Print until the job has ended; with `on_to_the_next` through all attempts to come."""
    turn_s = look_every_s(desk.objects_of(job.id, number), TURN_S)
    tail = _tail(desk, job, number)
    with Interrupts() as interrupts:
        while (signal := interrupts.pending) is None:
            job = _now(desk, job)
            if job.ended or job.attempt > number:
                _write(tail.rest())
                if job.ended or not on_to_the_next:
                    return Exit.DONE
                if number:
                    say(f"-- attempt {number} ended; attempt {job.attempt} --", sys.stderr)
                number = job.attempt
                turn_s = look_every_s(desk.objects_of(job.id, number), TURN_S)
                tail = _tail(desk, job, number)
            _write(tail.more())
            interrupts.wait(turn_s)
    return Exit.SIGNAL + signal


def _tail(desk: Desk, job: Job, attempt: int) -> Tail:
    return Tail(desk.objects_of(job.id, attempt), job.id, attempt)


def _now(desk: Desk, job: Job) -> Job:
    return desk.store.jobs(JobQuery(names_or_ids=(job.id,), limit=1))[0]


def _write(data: bytes) -> None:
    if data:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
