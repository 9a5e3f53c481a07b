"""Dry runs: where the jobs of files would go, shown by `plan` and before `run` asks."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cloudwhale.cli.exits import Exit
from cloudwhale.cli.looking import desk_here, settings_here
from cloudwhale.cli.output import Paper, emit, stdout_paper
from cloudwhale.cli.plan_view import plan_sheet
from cloudwhale.cli.thinking import Thinking
from cloudwhale.cli.wishes import Wishes
from cloudwhale.clock import SystemClock
from cloudwhale.control.abroad import must_reach
from cloudwhale.control.desk import Desk
from cloudwhale.control.intake import JobFile, read_jobs
from cloudwhale.control.preview import preview
from cloudwhale.control.previewed import Preview
from cloudwhale.control.trying import Part
from cloudwhale.model.job import JobSpec
from cloudwhale.model.units import Instant
from cloudwhale.reporting.figures import counted

if TYPE_CHECKING:
    from cloudwhale.cli.nights import Tonight
    from cloudwhale.control.supply import Supply


@dataclass(frozen=True, slots=True)
class Sheaf:
    """A job file that was read, and where it lies."""

    path: Path
    file: JobFile


def read(path: Path, wishes: Wishes, now: Instant, counts_from: Instant | None = None) -> Sheaf:
    """Read a job file; raise SpecError with its line.

    `counts_from`: from when deadlines count that are lengths of time; None: from now.
    """
    asked = wishes.overrides()
    return Sheaf(path, read_jobs(path, now=now, overrides=asked, counts_from=counts_from))


def dry_run(desk: Desk, sheaf: Sheaf) -> Preview:
    """Return where a file's jobs would go now.

    What could be rented is looked at only where it can matter: for jobs that nothing here runs, and
    where a cloud and a budget allow it, for those that do not start here at once.
    """
    return _planned(desk, [sheaf], always=False)


def night_run(desk: Desk, found: "Tonight") -> Preview:
    """Return where the jobs of a night would go when it opens, with the prices of now.

    What is left over of earlier nights is planned as if it began anew.
    """
    file = found.sheaf.file
    specs = (*located_of(desk, found.specs), *(job.spec for job in found.carried))
    part = Part(specs, file.budget, "the night", found.night)
    now = max(desk.clock.now(), found.night.opens_at)
    with Thinking(f"planning {counted(len(specs), 'job')}"):
        if file.budget is None or not desk.settings.clouds:
            return preview(desk, [part], now)
        return preview(desk, [part], now, _supply(desk, desk.clock.now(), [part]))


def specs_of(desk: Desk, sheaf: Sheaf) -> Sequence[JobSpec]:
    """Return the jobs of a file; where machines can be rented, with where their data lie."""
    return located_of(desk, sheaf.file.specs)


def located_of(desk: Desk, specs: Sequence[JobSpec]) -> Sequence[JobSpec]:
    """Return jobs; where machines can be rented, with where their data lie."""
    if not desk.settings.clouds or not any(spec.inputs for spec in specs):
        return specs
    from cloudwhale.control.located import located

    return located(specs)


def _planned(desk: Desk, sheaves: Sequence[Sheaf], *, always: bool) -> Preview:
    parts, now = _parts(desk, sheaves), desk.clock.now()
    jobs = sum(len(part.specs) for part in parts)
    with Thinking(f"planning {counted(jobs, 'job')}"):
        if not always:
            made = preview(desk, parts, now)
            if not _may_rent(desk, parts, made):
                return made
        return preview(desk, parts, now, _supply(desk, now, parts))


def _may_rent(desk: Desk, parts: Sequence[Part], made: Preview) -> bool:
    """Say whether a plan without offers leaves open what would be rented, or would be needed.

    Nobody is asked to agree to "nothing is rented" when a round would rent for who waits.
    """
    pays = bool(desk.settings.clouds) and any(part.budget is not None for part in parts)
    return any(job.state in CODES or (pays and job.state != "runs-now") for job in made.jobs)


def _supply(desk: Desk, now: Instant, parts: Sequence[Part]) -> "Supply":
    from cloudwhale.control.lives import Lives
    from cloudwhale.control.supply import supply
    from cloudwhale.planning.gravity import regions_of

    data_in = regions_of(spec for part in parts for spec in part.specs)
    here = {rental.id: rental for rental in desk.store.rentals()}
    hazards = Lives(desk.store.past_rentals).hazards(here, now)
    return supply(desk.settings, now, data_in, hazards)


def _parts(desk: Desk, sheaves: Sequence[Sheaf]) -> list[Part]:
    """Return what each file's budget pays for; each is called what its user calls it."""
    if len(sheaves) == 1:
        return [Part(specs_of(desk, sheaves[0]), sheaves[0].file.budget)]
    names: dict[str, int] = {}
    parts: list[Part] = []
    for sheaf in sheaves:
        name = f"the run of {sheaf.path}"
        names[name] = names.get(name, 0) + 1
        again = f" ({names[name]})" if names[name] > 1 else ""
        parts.append(Part(specs_of(desk, sheaf), sheaf.file.budget, f"{name}{again}"))
    return parts


def plan(paths: Sequence[Path], wishes: Wishes, as_json: bool) -> int:
    """Show where the jobs of some files would go, planned together."""
    now = SystemClock().now()
    sheaves = [read(path, wishes, now) for path in paths]
    has_money = any(sheaf.file.budget is not None for sheaf in sheaves)
    must_reach(settings_here(starts=True))
    with desk_here() as desk:
        made = _planned(desk, sheaves, always=has_money)
    if as_json:
        from cloudwhale.cli.plan_keys import plan_keys

        emit(plan_keys(made))
    else:
        show_plan(stdout_paper(), made, sheaves)
    return exit_of(made)


def exit_of(made: Preview) -> Exit:
    """Return the code for the first job, in the order of the files, that could not be run."""
    return next((CODES[job.state] for job in made.jobs if job.state in CODES), Exit.DONE)


CODES = {
    "impossible": Exit.NOTHING_CAN_RUN_IT,
    "over-budget": Exit.OVER_BUDGET,
    "too-late": Exit.DEADLINE,
}
"""What it means for a script that a job would not run."""


def show_plan(paper: Paper, made: Preview, sheaves: Sequence[Sheaf]) -> None:
    """Show a plan with what has to be said of the files."""
    specs = [spec for sheaf in sheaves for spec in sheaf.file.specs]
    said = [note for sheaf in sheaves for note in sheaf.file.notes]
    if made.machines:
        from cloudwhale.cli.plan_machines import are_many, machine_lines, machines_sheet

        if paper.console is not None and not are_many(made):
            paper.lines([*machine_lines(made, paper.width), ()])
        else:
            paper.sheet(machines_sheet(made))
    paper.sheet(plan_sheet(made, specs, tuple(dict.fromkeys(said))))
