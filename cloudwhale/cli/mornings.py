"""The report of a night: gathered, shown, written beside as a page."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from shlex import quote

from cloudwhale.cli.books import books_of
from cloudwhale.cli.exits import Exit, NotFound, WrongUsage
from cloudwhale.cli.finding import one_run
from cloudwhale.cli.here import morning_here
from cloudwhale.cli.looking import desk_here
from cloudwhale.cli.output import Paper, emit, say, stdout_paper
from cloudwhale.control.desk import Desk
from cloudwhale.model import event as e
from cloudwhale.model.job import Job, JobState
from cloudwhale.model.morning import Morning
from cloudwhale.model.night import Unfinished
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.run import Run
from cloudwhale.reporting.morning import Told, morning
from cloudwhale.reporting.morning_page import morning_page
from cloudwhale.reporting.morning_text import morning_sheets
from cloudwhale.reporting.tail import Lines, Tail
from cloudwhale.spi.errors import CloudwhaleError
from cloudwhale.spi.store import JobQuery, Store

LOGS_MOST = 20
"""So many logs of failed jobs are read for their last line."""

LINE_MOST = 200

REASONS_MOST = 200
"""Of so many jobs that are left over it is read why."""


def report_of(desk: Desk, run: Run) -> Morning:
    """Return the report of a night as it stands now."""
    jobs = list(reversed(desk.store.jobs(JobQuery(run=run.id))))
    unfinished = _unfinished(desk.store, run)
    told = Told(unfinished, _reasons(desk.store, unfinished), _last_lines(desk, jobs))
    now = desk.clock.now()
    return morning_here(morning(run, jobs, now, books_of(desk.store, jobs, run.id, now), told))


def show(paper: Paper, told: Morning) -> None:
    """Print a report, part by part."""
    for number, sheet in enumerate(morning_sheets(told)):
        if number:
            paper.say("")
        paper.sheet(sheet)


def write_page(told: Morning, path: Path) -> None:
    """Write a report as a page; a reader never sees half of one."""
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(morning_page(told), encoding="utf-8")
    beside.replace(path)


def again(word: str | None, html: bool, output: Path | None, as_json: bool) -> int:
    """Show the report of a night that was; without a word that of the newest."""
    if html and output is None and word is not None and word.endswith((".html", ".htm")):
        raise WrongUsage(
            f"{word} is no night: a file is named with -o.",
            f"Write `cloudwhale morning --html -o {quote(word)}`.",
        )
    with desk_here(starts=True) as desk:
        told = report_of(desk, night_named(desk.store, word))
    if output is not None:
        write_page(told, output)
        say(f"Written: {output}", sys.stderr)
    elif html:
        print(morning_page(told), end="")
    if as_json:
        emit(told.model_dump(mode="python"))
    elif not html:
        show(stdout_paper(), told)
    return Exit.DONE


def night_named(store: Store, word: str | None) -> Run:
    """Return the newest night, or the newest with this name, date, run or job.

    Raise NotFound where there is none.
    """
    nights = store.nights()
    if word is None and nights:
        return nights[0]
    for run in nights:
        if run.night is not None and word in (run.id, run.night.name, run.night.date):
            return run
    if word is None:
        raise NotFound("There was no night yet.", "`cloudwhale night FILE` starts one.")
    run = one_run(store, word)
    if run.night is None:
        raise NotFound(
            f"{run.id} is a run, and no night.", f"`cloudwhale receipt {run.id}` shows its money."
        )
    return run


def _unfinished(store: Store, run: Run) -> Mapping[str, Unfinished]:
    """Return what became of each job that the night has left over; nothing while it is open."""
    found: dict[str, Unfinished] = {}
    for told in store.events(run.id):
        if isinstance(told.event, e.NightClosed):
            found |= told.event.unfinished
    return found


def _reasons(store: Store, jobs: Iterable[str]) -> Mapping[str, Reason]:
    """Return why each was not done: the last that it was told, but for the night's own end."""
    found: dict[str, Reason] = {}
    for job in sorted(jobs)[:REASONS_MOST]:
        for told in store.events(job):
            if isinstance(told.event, e.Waits) and told.event.reason.code is not Code.LEFT_OVER:
                found[job] = told.event.reason
    return found


def _last_lines(desk: Desk, jobs: Sequence[Job]) -> Mapping[str, str]:
    """Return the last that each failed job has printed; what cannot be read is left out."""
    failed = [job for job in jobs if job.state is JobState.FAILED and job.attempt]
    found = {job.id: _last_line(desk, job) for job in failed[:LOGS_MOST]}
    return {job: line for job, line in found.items() if line}


def _last_line(desk: Desk, job: Job) -> str:
    try:
        data = Tail(desk.objects_of(job.id, job.attempt), job.id, job.attempt).rest()
    except CloudwhaleError:  # its log went with its store: the report is told without it
        return ""
    lines = Lines()
    said = [line.strip() for line in (*lines.feed(data), *lines.end()) if line.strip()]
    return said[-1][:LINE_MOST] if said else ""
