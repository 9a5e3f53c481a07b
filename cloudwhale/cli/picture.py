"""How running jobs look on a terminal: rows, a bar of what is done, the money."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cloudwhale.cli.fleet import Fleet
from cloudwhale.model.job import HOLDS_A_PLACE, Job, JobState
from cloudwhale.model.rental import Rental, RentalState
from cloudwhale.model.run import Run
from cloudwhale.model.units import Instant
from cloudwhale.reporting.bars import bar, taken
from cloudwhale.reporting.drawn import NARROW, STYLES
from cloudwhale.reporting.figures import cents, counted, money, watch
from cloudwhale.reporting.rented import cost_so_far, machine_words, small
from cloudwhale.reporting.sentences import array_words, where
from cloudwhale.reporting.sheet import Tone, clean
from cloudwhale.reporting.tables import MARKS, TONES, counts_line, why

ROWS_MOST = 20
LINES_BESIDE_ROWS = 7  # two blank lines, the jobs left out, the bar, the foot, the cursor, a spare
MACHINES_MOST = 6
BAR_WIDTH = 20
NAME_WIDTH = 44


@dataclass(frozen=True, slots=True)
class Seen:
    """What one picture shows."""

    run: Run
    jobs: Mapping[str, Job]
    last_lines: Mapping[str, str]
    """The newest line of each job's output, as plain text."""
    fleet: Fleet
    now: Instant


def picture(seen: Seen, width: int, height: int) -> RenderableType:
    """Draw a run; never taller or wider than the terminal."""
    if len(seen.jobs) == 1:
        return _one(seen)
    machines = machine_rows(seen)
    room = max(1, min(ROWS_MOST, height - LINES_BESIDE_ROWS - len(machines)))
    shown = rows_shown(list(seen.jobs.values()), room)
    parts: list[RenderableType] = [Text(""), _rows(shown, seen, arrays=width >= NARROW)]
    left_out = len(seen.jobs) - len(shown)
    if left_out:
        parts.append(Text(f"  and {counted(left_out, 'job')} more", "dim"))
    if machines and len(shown) + len(machines) + LINES_BESIDE_ROWS <= height:
        parts += machines
    parts += [_progress(seen), _foot(seen)]
    return Group(*parts)


def machine_rows(seen: Seen) -> list[Text]:
    """Return a blank line and one for each rented machine that is not back; empty without any."""
    there = sorted(seen.fleet.there.values(), key=lambda rental: rental.id)
    if not there:
        return []
    rows = [_machine(rental, seen.now) for rental in there[:MACHINES_MOST]]
    more = there[MACHINES_MOST:]
    if more:
        rows.append(Text(f"  and {counted(len(more), 'machine')} more", "dim"))
    return [Text(""), *rows]


def _machine(rental: Rental, now: Instant) -> Text:
    tone = _MACHINE_TONES.get(rental.state, "plain")
    return Text.assemble(
        (f"{_MACHINE_MARKS.get(rental.state, '◌')} ", STYLES[tone]),
        (rental.id, "bold"), "  ", (rental.state.value, STYLES[tone]), "  ",
        (f"{small(cost_so_far(rental, now))}  ", ""),
        (machine_words(rental, now), "dim"),
        no_wrap=True, overflow="ellipsis",
    )  # fmt: skip


_MACHINE_TONES: Mapping[RentalState, Tone] = {
    RentalState.READY: "good",
    RentalState.BOOTING: "busy",
    RentalState.REQUESTED: "busy",
    RentalState.RESERVED: "busy",
    RentalState.DRAINING: "warn",
    RentalState.LOST: "bad",
    RentalState.NEEDS_ATTENTION: "bad",
}

_MACHINE_MARKS: Mapping[RentalState, str] = {
    RentalState.READY: "▣",
    RentalState.DRAINING: "↩",
    RentalState.LOST: "✗",
    RentalState.NEEDS_ATTENTION: "■",
}


def rows_shown(jobs: Sequence[Job], room: int) -> list[Job]:
    """Choose the rows: all in their order when there is room, else what moves and what broke."""
    if len(jobs) <= room:
        return list(jobs)
    chosen = sorted(range(len(jobs)), key=lambda index: (_weight(jobs[index]), index))[:room]
    return [jobs[index] for index in sorted(chosen)]


def _weight(job: Job) -> int:
    """Say how much a row matters; the smallest matters most."""
    if job.state in HOLDS_A_PLACE:
        return 0
    if job.state in (JobState.PARKED, JobState.PAUSED):
        return 1
    if job.state is JobState.PENDING:
        return 2
    return 3 if job.state is JobState.FAILED else 4


def _one(seen: Seen) -> RenderableType:
    job = next(iter(seen.jobs.values()))
    parts: list[RenderableType] = []
    partial = seen.last_lines.get(job.id, "")
    if partial:
        parts.append(Text(partial, no_wrap=True, overflow="ellipsis"))
    parts += [Text(""), _headline(job, seen.now)]
    said = clean(why(job, seen.now))
    if said:
        parts.append(Text(f"  {said}", "dim", no_wrap=True, overflow="ellipsis"))
    parts += [*machine_rows(seen), _foot(seen)]
    return Group(*parts)


def _headline(job: Job, now: Instant) -> Text:
    style = STYLES[TONES[job.state]]
    on = f" on {where(job.placement)}" if job.placement else ""
    return Text.assemble(
        (f"{MARKS[job.state]} ", style), (job.id, "bold"), " ", (job.state.value, style),
        f"{on}  ", (watch(job.ran_s(now)), "bold"),
        no_wrap=True, overflow="ellipsis",
    )  # fmt: skip


def _rows(jobs: Sequence[Job], seen: Seen, *, arrays: bool) -> Table:
    # Expanded, so that the last column takes what the others leave and is cut, not they.
    table = Table.grid(padding=(0, 2), expand=True)
    for widest in (1, NAME_WIDTH, None):
        table.add_column(no_wrap=True, overflow="ellipsis", max_width=widest)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    for job in jobs:
        style = STYLES[TONES[job.state]]
        ran = job.ran_s(seen.now)
        on = where(job.placement) if job.placement and not job.ended else ""
        table.add_row(
            Text(MARKS[job.state], style),
            Text.assemble(job.id, (clean(f"  {array_words(job.spec)}") if arrays else "", "dim")),
            Text(job.state.value, style),
            Text(watch(ran) if job.attempt else ""),
            Text.assemble((f"{on}  " if on else "", "cyan"), (_says(job, seen), "dim")),
        )
    return table


def _says(job: Job, seen: Seen) -> str:
    if job.state is JobState.RUNNING and seen.last_lines.get(job.id):
        return seen.last_lines[job.id]
    return clean(why(job, seen.now))


def _progress(seen: Seen) -> Text:
    ended = sum(job.ended for job in seen.jobs.values())
    counts = Counter(job.state for job in seen.jobs.values())
    del counts[JobState.COMPLETED]  # the bar says it
    return Text.assemble(
        f"\n{ended} of {counted(len(seen.jobs), 'job')} ended ",
        (bar(taken(ended, len(seen.jobs)), BAR_WIDTH), "cyan"),
        (f"  {counts_line(counts)}" if counts else "", "dim"),
        no_wrap=True, overflow="ellipsis",
    )  # fmt: skip


def _foot(seen: Seen) -> Text:
    bound = f" of {money(seen.run.budget)}" if seen.run.budget is not None else ""
    spent, reserved = small(seen.fleet.spent(seen.now)), seen.fleet.reserved
    aside = f", {cents(reserved)} reserved" if reserved else ""
    return Text(
        f"{seen.run.id}  spent {spent}{bound}{aside}  Ctrl-C: detach or stop",
        "dim", no_wrap=True, overflow="ellipsis",
    )  # fmt: skip
