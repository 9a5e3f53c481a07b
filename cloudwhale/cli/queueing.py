"""From job files to queued jobs: read, dry run, submit; and the commands that do no more."""

import base64
import getpass
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cloudwhale.cli.exits import Exit
from cloudwhale.cli.holders import say_who_works
from cloudwhale.cli.looking import desk_here
from cloudwhale.cli.output import Paper, emit, say, stdout_paper
from cloudwhale.cli.plan_view import plan_keys, plan_sheet
from cloudwhale.cli.spots import in_its_place, spot_of_job
from cloudwhale.cli.wishes import Wishes
from cloudwhale.clock import SystemClock
from cloudwhale.control.desk import Desk
from cloudwhale.control.intake import JobFile, read_jobs
from cloudwhale.control.preview import Preview, preview
from cloudwhale.control.submission import Origin
from cloudwhale.control.submission import submit as submit_jobs
from cloudwhale.model.run import Run
from cloudwhale.model.units import Instant
from cloudwhale.reporting.figures import counted
from cloudwhale.spi.errors import NothingCanRunIt, NotThere
from cloudwhale.spi.store import JobQuery

ID_LENGTH = 6
ID_BYTES = 4  # 32 bits hold six characters of five bits each


@dataclass(frozen=True, slots=True)
class Sheaf:
    """A job file that was read, and where it lies."""

    path: Path
    file: JobFile


def read(path: Path, wishes: Wishes, now: Instant) -> Sheaf:
    """Read a job file; raise SpecError with its line."""
    return Sheaf(path, read_jobs(path, now=now, overrides=wishes.overrides()))


def dry_run(desk: Desk, sheaf: Sheaf) -> Preview:
    """Return where a file's jobs would go now."""
    made = preview(desk, sheaf.file.specs, desk.clock.now())
    return made.but(budget_usd=sheaf.file.budget)


def refuse_impossible(made: Preview, sheaf: Sheaf) -> None:
    """Raise NothingCanRunIt when a job could never run on what there is."""
    for job in made.jobs:
        if job.state == "impossible":
            spot = spot_of_job(sheaf.path, job.name)
            change = job.reason.change
            raise NothingCanRunIt(
                f"{job.name} can run nowhere: {job.reason.says}",
                f"What would change it: {change}" if change else "See `cloudwhale nodes`.",
                file=str(sheaf.path),
                line=spot.line if spot else None,
                column=spot.column if spot else None,
            )


def queue(desk: Desk, sheaf: Sheaf) -> Run:
    """Submit a file's jobs as one run; raise SpecError for what the file asks and nobody has."""
    file, settings = sheaf.file, desk.settings
    needs_key = any(spec.secrets for spec in file.specs)
    origin = Origin(
        at=desk.clock.now(),
        folder=Path.cwd(),
        files=(str(sheaf.path),),
        digest=file.digest,
        budget=file.budget,
        soft_share=settings.budget_soft_share,
        user=settings.user or getpass.getuser(),
        environment=os.environ,
        key=desk.key if needs_key else b"",
        leave_out=(settings.home,),
    )
    try:
        return submit_jobs(desk.store, desk.objects, origin, file.specs, new_id)
    except NotThere as error:
        raise in_its_place(error, sheaf.path) from error


def new_id() -> str:
    """Return six characters of base32: a thousand million, and easy to read out."""
    return base64.b32encode(secrets.token_bytes(ID_BYTES)).decode("ascii")[:ID_LENGTH].lower()


def submit(paths: Sequence[Path], wishes: Wishes, as_json: bool) -> int:
    """Queue the jobs of some files; all files are read before the first job is queued."""
    sheaves = [read(path, wishes, SystemClock().now()) for path in paths]
    full = [sheaf for sheaf in sheaves if sheaf.file.specs]
    with desk_here() as desk:
        for sheaf in full:
            refuse_impossible(dry_run(desk, sheaf), sheaf)
        runs = [(queue(desk, sheaf), sheaf) for sheaf in full]
        if as_json:
            emit({"runs": [_run_keys(desk, run) for run, _ in runs]})
            return Exit.DONE
        for sheaf in sheaves:
            if not sheaf.file.specs:
                say(f"{sheaf.path}: nothing to do, every task in it is done.")
        for run, sheaf in runs:
            say(f"{run.id}: queued {counted(len(sheaf.file.specs), 'job')} of {sheaf.path}")
        if runs:
            say_who_works(desk.settings)
            say(f"Follow with `cloudwhale attach {runs[-1][0].id}`; `cloudwhale ps` shows all.")
    return Exit.DONE


def _run_keys(desk: Desk, run: Run) -> dict[str, object]:
    jobs = desk.store.jobs(JobQuery(run=run.id))
    return {
        "run": run.id,
        "files": list(run.files),
        "jobs": [{"id": job.id, "name": job.spec.name} for job in reversed(jobs)],
    }


def plan(paths: Sequence[Path], wishes: Wishes, as_json: bool) -> int:
    """Show where the jobs of some files would go, planned together."""
    now = SystemClock().now()
    sheaves = [read(path, wishes, now) for path in paths]
    specs = [spec for sheaf in sheaves for spec in sheaf.file.specs]
    with desk_here() as desk:
        made = preview(desk, specs, now)
    bounds = [sheaf.file.budget for sheaf in sheaves if sheaf.file.budget is not None]
    made = made.but(budget_usd=sum(bounds) if bounds else None)
    if as_json:
        emit(plan_keys(made))
    else:
        show_plan(stdout_paper(), made, sheaves)
    impossible = any(job.state == "impossible" for job in made.jobs)
    return Exit.NOTHING_CAN_RUN_IT if impossible else Exit.DONE


def show_plan(paper: Paper, made: Preview, sheaves: Sequence[Sheaf]) -> None:
    """Show a plan with what has to be said of the files."""
    specs = [spec for sheaf in sheaves for spec in sheaf.file.specs]
    said = [note for sheaf in sheaves for note in (*sheaf.file.notes, *sheaf.file.later)]
    paper.sheet(plan_sheet(made, specs, tuple(dict.fromkeys(said))))
