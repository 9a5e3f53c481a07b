"""The machines that a dry run would rent: a table for a pipe, a chart in time for a terminal."""

from collections.abc import Iterator, Sequence

from cloudwhale.cli.plan_view import names
from cloudwhale.control.preview_machines import called
from cloudwhale.control.previewed import PlannedJob, Preview, PreviewMachine
from cloudwhale.model.units import Instant, MicroUsd
from cloudwhale.reporting.bars import bar, taken
from cloudwhale.reporting.figures import cents, counted, hour, moment
from cloudwhale.reporting.sheet import Cell, Column, Line, Sheet, cells

MACHINES_MOST = 12
"""So many machines are shown one by one; more are summed up by what they are."""

KINDS_MOST = 20
"""So many kinds of machines are shown then."""

SEATS_MOST = 8
"""So many jobs of a machine are drawn."""

NAME_WIDTH = 18
TIME_WIDTH = 14


def are_many(preview: Preview) -> bool:
    """Say whether there are too many machines to look at one by one."""
    return len(preview.machines) > MACHINES_MOST


def machines_sheet(preview: Preview) -> Sheet:
    """Return the machines as a table, one a row; of many, one row for each kind."""
    if are_many(preview):
        return _kinds_sheet(preview)
    columns = (
        Column("machine"), Column("offer"), Column("market"), Column("usd/h", right=True),
        Column("from"), Column("to"), Column("usd", right=True), Column("at worst", right=True),
        Column("jobs"),
    )  # fmt: skip
    now = preview.made_at
    rows = tuple(
        cells(
            machine.name,
            machine.offer,
            machine.market,
            cents(machine.price_usd_h),
            moment(machine.launched_at, now),
            moment(machine.ends_at, now),
            cents(machine.cost),
            cents(machine.worst),
            names([job.name for job in machine.jobs]),
        )
        for machine in preview.machines
    )
    return Sheet(columns, rows)


def _kinds_sheet(preview: Preview) -> Sheet:
    """Return a row for each kind of machine, those that cost most first."""
    kinds: dict[str, list[PreviewMachine]] = {}
    for machine in preview.machines:
        kinds.setdefault(called(machine), []).append(machine)
    ranked = sorted(kinds.items(), key=lambda kind: (-_cost(kind[1]), kind[0]))
    columns = (
        Column("machines", right=True), Column("kind"), Column("gpus", optional=True),
        Column("usd/h", right=True), Column("jobs", right=True), Column("last ends"),
        Column("usd", right=True), Column("", on="terminal", optional=True),
    )  # fmt: skip
    most = _cost(ranked[0][1])
    now = preview.made_at
    rows = tuple(
        cells(
            f"{len(some):,}",
            kind,
            _gpus(some[0]).removeprefix(", "),
            cents(some[0].price_usd_h),
            f"{sum(len(machine.jobs) for machine in some):,}",
            hour(max(machine.ends_at for machine in some), now),
            cents(_cost(some)),
            Cell(bar(taken(_cost(some), most), 16), "busy"),
        )
        for kind, some in ranked[:KINDS_MOST]
    )
    rest = [machine for _, some in ranked[KINDS_MOST:] for machine in some]
    return Sheet(columns, rows, notes=(_rest(rest),) if rest else ())


def machine_lines(preview: Preview, width: int) -> list[Line]:
    """Return the machines drawn on one axis of time, for a terminal of so many columns."""
    machines = preview.machines
    if not machines:
        return []
    axis = _Axis(
        min(machine.launched_at for machine in machines),
        max(machine.ends_at for machine in machines),
        max(10, min(70, width - NAME_WIDTH - TIME_WIDTH - 6)),
    )
    lines: list[Line] = []
    for machine in machines:
        lines += _head(machine, width)
        lines += _seated(machine, axis, preview.made_at)
    return lines


class _Axis:
    """Where times stand on a bar."""

    def __init__(self, begins_at: Instant, ends_at: Instant, width: int) -> None:
        self.begins_at, self.width = begins_at, width
        self._length_s = max(1.0, ends_at - begins_at)

    def at(self, time: Instant) -> int:
        """Return the column of a time."""
        part = (time - self.begins_at) / self._length_s
        return max(0, min(self.width, round(part * self.width)))


def _head(machine: PreviewMachine, width: int) -> Iterator[Line]:
    """Yield what a machine is and costs, on two lines where one is too narrow."""
    what = f"{called(machine)}{_gpus(machine)}"
    money = (
        f"{cents(machine.price_usd_h)} USD/h, {cents(machine.cost)} USD, "
        f"{cents(machine.worst)} at worst"
    )
    name = Cell(f"{machine.name:<4}", "strong")
    if len(what) + len(money) + 6 <= width:
        yield (name, Cell(f"{what}  ", "strong"), Cell(money, "quiet"))
    else:
        yield (name, Cell(what, "strong"))
        yield (Cell(f"    {money}", "quiet"),)
    if machine.moved:
        says = f"    of it {cents(machine.moved)} USD of egress: its data come from "
        yield (Cell(f"{says}{names(machine.moved_from)}", "quiet"),)


def _seated(machine: PreviewMachine, axis: _Axis, now: Instant) -> Iterator[Line]:
    for job in machine.jobs[:SEATS_MOST]:
        yield _seat(job, machine, axis, now)
    more = len(machine.jobs) - SEATS_MOST
    if more > 0:
        yield (Cell(f"    and {counted(more, 'job')} more", "quiet"),)


def _gpus(machine: PreviewMachine) -> str:
    if not machine.devices:
        return f", {machine.cpu:g} CPUs"
    return f", {len(machine.devices)}x {machine.devices[0]}"


def _seat(job: PlannedJob, machine: PreviewMachine, axis: _Axis, now: Instant) -> Line:
    launch, start = axis.at(machine.launched_at), axis.at(job.starts_at)
    ready, end = min(axis.at(machine.ready_at), start), max(start + 1, axis.at(job.ends_at))
    end = min(end, axis.width)
    name = job.name if len(job.name) <= NAME_WIDTH else f"{job.name[: NAME_WIDTH - 1]}…"
    return (
        Cell(f"  {name:<{NAME_WIDTH}} "),
        Cell(" " * launch),
        Cell("░" * (ready - launch), "quiet"),
        Cell("·" * (start - ready), "quiet"),
        Cell("█" * (end - start), "busy"),
        Cell(" " * (axis.width - end)),
        Cell(f" {_times(job, now)}", "quiet"),
    )


def _times(job: PlannedJob, now: Instant) -> str:
    return f"{hour(job.starts_at, now)} to {hour(job.ends_at, now)}"


def _rest(machines: Sequence[PreviewMachine]) -> str:
    jobs = counted(sum(len(machine.jobs) for machine in machines), "job")
    cost = cents(_cost(machines))
    return f"and {counted(len(machines), 'machine')} more with {jobs}, for {cost} USD"


def _cost(machines: Sequence[PreviewMachine]) -> MicroUsd:
    return MicroUsd(sum(machine.cost for machine in machines))
