"""The command `results`: what a job has left, brought to this host."""

from pathlib import Path

from cloudwhale.cli.bringing import RESULTS, brought_words, folders_of
from cloudwhale.cli.exits import Exit, NotFound
from cloudwhale.cli.finding import one_job
from cloudwhale.cli.looking import desk_here
from cloudwhale.cli.output import emit, say
from cloudwhale.cli.thinking import Thinking
from cloudwhale.control.desk import Desk
from cloudwhale.control.results import Brought, bring
from cloudwhale.model.job import Job
from cloudwhale.spi.store import JobQuery


def results(word: str, attempt: int | None, into: Path | None, as_json: bool) -> int:
    """Fetch what a job's attempt has left; without a number the newest that has left something."""
    with desk_here(starts=True) as desk:
        job = one_job(desk.store, word)
        folder = (into or _usual(desk, job)).absolute()
        with Thinking(f"fetching the results of {job.id}"):
            brought = bring(desk.objects_of, job, folder, attempt)
        if brought is None:
            raise _nothing(job, attempt)
    if as_json:
        emit(_keys(brought))
    else:
        say(brought_words(brought))
    return Exit.DONE


def _usual(desk: Desk, job: Job) -> Path:
    """Return the folder that `run` would have brought them to."""
    jobs = desk.store.jobs(JobQuery(run=job.run))
    return folders_of(jobs, Path.cwd() / RESULTS)[job.id]


def _nothing(job: Job, attempt: int | None) -> NotFound:
    which = f"attempt {attempt} of {job.id}" if attempt else job.id
    if not job.spec.outputs:
        return NotFound(f"{job.id} names no outputs.", "Write `outputs: [results/]` into its file.")
    if not job.ended:
        return NotFound(
            f"{which} has left nothing yet: it is {job.state}.",
            f"`cloudwhale attach {job.run}` fetches it at the end.",
        )
    return NotFound(
        f"{which} has left nothing at {', '.join(job.spec.outputs)}.",
        f"`cloudwhale logs {job.id}` shows what it did.",
    )


def _keys(brought: Brought) -> dict[str, object]:
    return {
        "id": brought.job,
        "attempt": brought.attempt,
        "folder": str(brought.folder),
        "files": brought.files,
        "size_bytes": brought.size_bytes,
        "was_there": brought.was_there,
        "moved": None if brought.moved is None else str(brought.moved),
    }
