"""From job files to queued jobs, and the command that does no more."""

import base64
import getpass
import os
import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from cloudwhale.cli.exits import Exit
from cloudwhale.cli.holders import say_who_works
from cloudwhale.cli.looking import desk_here, settings_here
from cloudwhale.cli.notifying import warn_of_nobody_told
from cloudwhale.cli.output import emit, say
from cloudwhale.cli.plan_money import money_notes
from cloudwhale.cli.planning import Sheaf, dry_run, read, specs_of
from cloudwhale.cli.refusing import refuse_impossible
from cloudwhale.cli.spots import in_its_place
from cloudwhale.cli.wishes import Wishes
from cloudwhale.clock import SystemClock
from cloudwhale.control.abroad import must_reach
from cloudwhale.control.desk import Desk
from cloudwhale.control.nights import digest_of
from cloudwhale.control.previewed import Preview
from cloudwhale.control.submission import Origin
from cloudwhale.control.submission import submit as submit_jobs
from cloudwhale.model.job import JobSpec
from cloudwhale.model.run import Run
from cloudwhale.reporting.figures import counted
from cloudwhale.spi.errors import NotThere
from cloudwhale.spi.store import JobQuery

if TYPE_CHECKING:
    from cloudwhale.cli.nights import Tonight

ID_LENGTH = 6
ID_BYTES = 4  # 32 bits hold six characters of five bits each


def queue(desk: Desk, sheaf: Sheaf) -> Run:
    """Submit a file's jobs as one run; raise SpecError for what the file asks and nobody has."""
    return _submitted(desk, sheaf, _origin(desk, sheaf), specs_of(desk, sheaf))


def queue_night(desk: Desk, found: "Tonight") -> Run:
    """Submit what is to be done in a night as one run; raise SpecError as `queue` does."""
    digest = digest_of(found.sheaf.file.digest, found.night)
    origin = replace(
        _origin(desk, found.sheaf),
        files=(str(found.path),), digest=digest, night=found.night, carried=tuple(found.carried),
    )  # fmt: skip
    return _submitted(desk, found.sheaf, origin, found.specs)


def _origin(desk: Desk, sheaf: Sheaf) -> Origin:
    file, settings = sheaf.file, desk.settings
    needs_key = any(spec.secrets for spec in file.specs)
    return Origin(
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


def _submitted(desk: Desk, sheaf: Sheaf, origin: Origin, specs: Sequence[JobSpec]) -> Run:
    try:
        run = submit_jobs(desk.store, desk.objects, origin, specs, new_id)
    except NotThere as error:
        raise in_its_place(error, sheaf.path) from error
    warn_of_nobody_told(desk.settings, specs)
    return run


def new_id() -> str:
    """Return six characters of base32: a thousand million, and easy to read out."""
    return base64.b32encode(secrets.token_bytes(ID_BYTES)).decode("ascii")[:ID_LENGTH].lower()


def submit(paths: Sequence[Path], wishes: Wishes, as_json: bool) -> int:
    """Queue the jobs of some files; all files are read before the first job is queued."""
    sheaves = [read(path, wishes, SystemClock().now()) for path in paths]
    full = [sheaf for sheaf in sheaves if sheaf.file.specs]
    must_reach(settings_here(starts=True))
    with desk_here() as desk:
        plans = [dry_run(desk, sheaf) for sheaf in full]
        for made, sheaf in zip(plans, full, strict=True):
            refuse_impossible(made, sheaf)
        runs = [(queue(desk, sheaf), sheaf) for sheaf in full]
        if as_json:
            emit({"runs": [_run_keys(desk, run) for run, _ in runs]})
            return Exit.DONE
        for sheaf in sheaves:
            if not sheaf.file.specs:
                say(f"{sheaf.path}: nothing to do, every task in it is done.")
        for (run, sheaf), made in zip(runs, plans, strict=True):
            say(queued_words(run, sheaf, made))
            if sheaf.file.window is not None:
                say(at_once_words(sheaf))
        if runs:
            say_who_works(desk.settings)
            also = " --sandbox" if desk.settings.sandbox else ""
            say(
                f"Follow with `cloudwhale attach {runs[-1][0].id}{also}`; `cloudwhale ps{also}` "
                f"shows all."
            )
    return Exit.DONE


def queued_words(run: Run, sheaf: Sheaf, made: Preview) -> str:
    """Say what was queued, and what will be rented for it."""
    jobs = counted(len(sheaf.file.specs), "job")
    rents = f"; {money_notes(made)[0]}" if made.machines else ""
    return f"{run.id}: queued {jobs} of {sheaf.path}{rents}"


def at_once_words(sheaf: Sheaf) -> str:
    """Say that the jobs of a night begin by day when they are not begun as one."""
    command = f"cloudwhale night {quote(str(sheaf.path))}"
    return f"These jobs begin at once: `{command}` keeps to its window."


def _run_keys(desk: Desk, run: Run) -> dict[str, object]:
    jobs = desk.store.jobs(JobQuery(run=run.id))
    return {
        "run": run.id,
        "files": list(run.files),
        "jobs": [{"id": job.id, "name": job.spec.name} for job in reversed(jobs)],
    }
