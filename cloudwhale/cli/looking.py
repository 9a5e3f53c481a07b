"""The commands that only read: ps, nodes, explain, replay, doctor."""

import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cloudwhale.cli.attention import attention
from cloudwhale.cli.books import books_of
from cloudwhale.cli.exits import Exit, NotFound
from cloudwhale.cli.finding import WORK, one_job, work_is_left
from cloudwhale.cli.here import story_here
from cloudwhale.cli.holders import warn_of_nobody
from cloudwhale.cli.output import Paper, document_or, emit, say, stdout_paper
from cloudwhale.clock import SystemClock
from cloudwhale.control.store import database_url, open_store
from cloudwhale.model.job import ENDED, HOLDS_A_PLACE, LIVE, Job, JobState
from cloudwhale.reporting.receipt import job_keys, job_receipt
from cloudwhale.reporting.tables import counts_line, jobs_sheet
from cloudwhale.settings import Settings, load
from cloudwhale.spi.store import JobQuery, Store

if TYPE_CHECKING:
    from cloudwhale.control.desk import Desk
    from cloudwhale.control.store.sql import SqlStore

ENDED_SHOWN = 20
WAITING_SHOWN = 50
"""So many waiting jobs stand in the table of `ps`; the others are counted below it."""

LAST_ROUND = 2**63 - 1
"""A database has no greater number."""


def settings_here(*, starts: bool = False) -> Settings:
    """Return the settings that hold in the current folder, in the sandbox when that is asked for.

    `starts`: a sandbox that does not run is started; else the database alone is there.
    """
    settings = load(Path.cwd())
    if not settings.sandbox:
        return settings
    from cloudwhale.control.surrounding import entered

    return entered(settings, starts=starts, told=lambda says: say(says, sys.stderr))


def desk_here(*, starts: bool = False) -> "Desk":
    """Open the desk of the current folder's settings; use it in a `with`."""
    from cloudwhale.control.desk import open_desk

    return open_desk(settings_here(starts=starts))


def store_here() -> "closing[SqlStore]":
    """Open the store alone, which costs less than the whole desk; use it in a `with`."""
    return closing(open_store(database_url(settings_here()), may_migrate=False))


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which jobs `ps` was asked for."""

    project: str | None
    state: str | None
    all: bool
    as_json: bool


def ps(wanted: Wanted) -> int:
    """Show what lives and the newest of what has ended."""
    with store_here() as store:
        jobs = _jobs(store, wanted)
        now = SystemClock().now()
        if wanted.as_json:
            books = books_of(store, jobs)
            emit({"jobs": [job_keys(job_receipt(job, now, books)) for job in jobs]})
            return Exit.DONE
        notes = [*_ps_notes(store, wanted, jobs), *attention(store, now)]
        sheet = jobs_sheet(jobs, now, notes, books_of(store, jobs).rentals)
        work = work_is_left(store)
    paper = Paper(sys.stdout, plain=True) if wanted.all else stdout_paper()
    paper.sheet(sheet)
    if work:
        warn_of_nobody(settings_here())
    return Exit.DONE


def _jobs(store: Store, wanted: Wanted) -> Sequence[Job]:
    """Return what moves first, then what waits, then what ended, each newest first."""
    if wanted.all or wanted.state is not None:
        states = (JobState(wanted.state),) if wanted.state is not None else ()
        return store.jobs(JobQuery(project=wanted.project, states=states))
    waits = tuple(state for state in LIVE if state not in HOLDS_A_PLACE)
    limit = None if wanted.as_json else WAITING_SHOWN
    return [
        *store.jobs(JobQuery(project=wanted.project, states=tuple(HOLDS_A_PLACE))),
        *store.jobs(JobQuery(project=wanted.project, states=waits, limit=limit)),
        *store.jobs(JobQuery(project=wanted.project, states=tuple(ENDED), limit=ENDED_SHOWN)),
    ]


def _ps_notes(store: Store, wanted: Wanted, jobs: Sequence[Job]) -> list[str]:
    if wanted.project is not None or wanted.state is not None:
        of = f" of project {wanted.project}" if wanted.project else ""
        state = f" {wanted.state}" if wanted.state else ""
        return [] if jobs else [f"There are no{state} jobs{of}; `cloudwhale ps --all` shows all."]
    counts = store.counts()
    total = sum(counts.values())
    if not total:
        return ["No jobs yet: `cloudwhale run FILE` starts the first one."]
    hidden = total - len(jobs)
    more = f"; {hidden:,} not shown, `cloudwhale ps --all` shows all" if hidden > 0 else ""
    return [f"{counts_line(counts)}{more}"]


def nodes(as_json: bool) -> int:
    """Show what the machines have, what is taken and by whom."""
    from cloudwhale.cli.measures import looks
    from cloudwhale.reporting.machines import node_keys, occupied
    from cloudwhale.reporting.machines_text import node_lines, nodes_sheet

    with desk_here() as desk:
        now = desk.clock.now()
        world = desk.store.world(now)
        measured = looks(desk.mailboxes, world.nodes.values(), now, world.rentals.values())
        places = occupied(world, measured)
        needs_attention = attention(desk.store, now)

    def drawn(paper: Paper) -> None:
        if not places:
            paper.say("No node is known yet: `cloudwhale run FILE` starts this host's agent.")
        elif paper.console is not None:
            paper.lines(node_lines(places, now, paper.width))
        else:
            paper.sheet(nodes_sheet(places))
        for says in needs_attention:
            paper.say(says)

    document_or(
        as_json,
        lambda: {
            "nodes": [node_keys(one, now) for one in places],
            "needs_attention": needs_attention,
        },
        drawn,
    )
    return Exit.DONE


def explain(word: str, as_json: bool) -> int:
    """Tell the story of a job."""
    from cloudwhale.cli.weights import weights_of
    from cloudwhale.reporting.explain import story
    from cloudwhale.reporting.story_text import story_keys, story_lines

    with desk_here() as desk:
        job = one_job(desk.store, word)
        told = story(
            job, desk.store.events(job.id), desk.store.rounds(job.id), weights_of,
            desk.store.rentals(job.run),
        )  # fmt: skip
        now = desk.clock.now()
        document_or(
            as_json,
            lambda: {
                "job": job_keys(job_receipt(job, now, books_of(desk.store, [job]))),
                "story": story_keys(told),
            },
            lambda paper: paper.lines(story_lines(story_here(told), now, paper.width)),
        )
        if job.state in WORK and not as_json:
            warn_of_nobody(desk.settings)
    return Exit.DONE


def replay(number: int, resolve: bool, as_json: bool) -> int:
    """Make the plan of a stored round again and compare; `resolve`: solve again what was rented."""
    from cloudwhale.cli.replay_view import replay_keys
    from cloudwhale.control.replay import replay as replayed

    with desk_here() as desk:
        if number > LAST_ROUND or desk.store.round(number) is None:
            raise NotFound(f"There is no round {number}.", "`cloudwhale explain JOB` names rounds.")
        result = replayed(desk, number, resolve=resolve)

    def drawn(paper: Paper) -> None:
        differs = "the plan differs from the one that was stored."
        same = "the same world gives the same plan."
        paper.say(f"Round {number}: {same if result.agrees else differs}")
        for line in (*result.notes, *(one.says for one in result.solved), *result.differences):
            paper.say(f"  {line}")

    document_or(as_json, lambda: replay_keys(result), drawn)
    return Exit.DONE if result.agrees else Exit.TROUBLE


def doctor(provider: str, as_json: bool) -> int:
    """Look at everything that jobs need, or at one provider; say how to mend what is not well."""
    from cloudwhale.control.checks import checks
    from cloudwhale.reporting.tables import checks_sheet

    settings = settings_here(starts=True)
    rows = checks(settings, provider, lambda says: say(says, sys.stderr))
    document_or(
        as_json,
        lambda: {"checks": [row.model_dump() for row in rows]},
        lambda paper: paper.sheet(checks_sheet(rows)),
    )
    return Exit.TROUBLE if any(row.state == "failed" for row in rows) else Exit.DONE
