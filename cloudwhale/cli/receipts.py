"""The receipt of a run or a job, also of one that is over: where each dollar went."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from cloudwhale.cli.books import books_of
from cloudwhale.cli.exits import Exit, NotFound
from cloudwhale.cli.finding import one_job
from cloudwhale.cli.looking import desk_here
from cloudwhale.cli.output import Paper, document_or
from cloudwhale.clock import iso
from cloudwhale.control.counterfactuals import counterfactuals
from cloudwhale.control.desk import Desk
from cloudwhale.model import event as e
from cloudwhale.model.job import Job
from cloudwhale.model.receipt import JobReceipt, LineReceipt, Otherwise, RunReceipt, TollReceipt
from cloudwhale.model.rental import Rental
from cloudwhale.model.run import Run
from cloudwhale.model.units import usd
from cloudwhale.reporting.receipt import Story, job_keys, run_keys, run_receipt
from cloudwhale.reporting.receipt_text import job_sheets, run_sheets
from cloudwhale.reporting.sheet import Sheet
from cloudwhale.reporting.tables import receipt_sheet
from cloudwhale.reporting.tolls import tolls
from cloudwhale.spi.store import JobQuery, Store, Told

STORIES_MOST = 1000
"""Of so many jobs that had more than one attempt it is read what each interruption cost."""


def receipt(word: str | None, what_if: bool, as_json: bool) -> int:
    """Show a receipt; without a word that of the newest run. `what_if`: and what else it costs."""
    with desk_here() as desk:
        run, job = _meant(desk.store, word)
        made = whole_receipt(desk, run)
        if what_if:
            made = made.but(otherwise=otherwise(desk, run))
    if job is None:
        document_or(as_json, lambda: run_keys(made), lambda paper: show(paper, made))
        return Exit.DONE
    mine = next(one for one in made.jobs if one.id == job.id)
    lines = [line for one in made.machines for line in one.lines if line.job == job.id]
    document_or(
        as_json,
        lambda: _job_document(mine, lines),
        lambda paper: _draw(paper, job_sheets(mine, lines)),
    )
    return Exit.DONE


def whole_receipt(desk: Desk, run: Run) -> RunReceipt:
    """Return a run's receipt as it stands now, with what each interruption has cost."""
    store, now = desk.store, desk.clock.now()
    jobs = list(reversed(store.jobs(JobQuery(run=run.id))))
    books = books_of(store, jobs, run.id, now)
    rentals = [bill.rental for bill in books.bills]
    return run_receipt(run, jobs, now, replace(books, stories=_stories(store, jobs, rentals)))


def otherwise(desk: Desk, run: Run) -> tuple[Otherwise, ...]:
    """Return what the run would have cost otherwise; seconds for large runs."""
    jobs = desk.store.jobs(JobQuery(run=run.id))
    return counterfactuals(desk.store, run.id, jobs)


def show(paper: Paper, made: RunReceipt) -> None:
    """Print a run's receipt, part by part."""
    paper.sheet(receipt_sheet(made))
    _draw(paper, run_sheets(made), begun=True)


def _draw(paper: Paper, sheets: Iterable[Sheet], *, begun: bool = False) -> None:
    for sheet in sheets:
        if begun:
            paper.say("")
        begun = True
        paper.sheet(sheet)


def _job_document(job: JobReceipt, lines: Sequence[LineReceipt]) -> Mapping[str, object]:
    return {**job_keys(job), "lines": [line.model_dump() for line in lines]}


def _meant(store: Store, word: str | None) -> tuple[Run, Job | None]:
    """Return the run that is meant, and the job of it where that is; raise NotFound."""
    if word is None:
        newest = store.jobs(JobQuery(limit=1))
        if not newest:
            raise NotFound("There was no run yet.", "`cloudwhale run FILE` starts one.")
        word = newest[0].run
    run = store.run(word)
    if run is not None:
        return run, None
    job = one_job(store, word)
    run = store.run(job.run)
    if run is None:
        raise NotFound(f"The run of {job.id} is not known.", "`cloudwhale ps --all` shows jobs.")
    return run, job


# -- interruptions ---------------------------------------------------------------------------


def _stories(store: Store, jobs: Iterable[Job], rentals: Sequence[Rental]) -> Mapping[str, Story]:
    again = [job for job in jobs if job.attempt > 1 or job.interruptions]
    return {job.id: _story(store.events(job.id), job, rentals) for job in again[:STORIES_MOST]}


def _story(told: Sequence[Told], job: Job, rentals: Sequence[Rental]) -> Story:
    costs = tolls(job.id, told, rentals)
    by_seq = {item.seq: item.event for item in told}
    return Story(
        restores=sum(
            isinstance(item.event, e.Started) and item.event.resumed_from is not None
            for item in told
        ),
        tolls=tuple(
            TollReceipt(
                at=iso(by_seq[seq].at) or "",
                why=_why(by_seq[seq], told, seq),
                lost_work_s=round(one.lost_s, 3),
                wasted_usd=None if one.wasted is None else usd(one.wasted),
                away_s=None if one.away_s is None else round(one.away_s, 3),
            )
            for seq, one in sorted(costs.items())
        ),
    )


def _why(event: object, told: Sequence[Told], seq: int) -> str:
    """Return what an interruption is told with: of a machine that went, what was said of it."""
    if isinstance(event, e.Retried | e.GaveWay):
        return event.reason.says
    lost = [one.event for one in told if one.seq < seq and isinstance(one.event, e.AttemptLost)]
    return lost[-1].reason.says if lost else "its machine went away"
