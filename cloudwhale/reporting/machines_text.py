"""Nodes as bars for a terminal, as rows for a pipe."""

from collections.abc import Iterator, Sequence

from cloudwhale.model.job import Job
from cloudwhale.model.node import NodeState
from cloudwhale.model.units import Instant
from cloudwhale.reporting.bars import EMPTY, bar, stacked, taken
from cloudwhale.reporting.booting import phase_words
from cloudwhale.reporting.figures import NOTHING, counted, percent, plain, span
from cloudwhale.reporting.machines import Gauge, Occupied, Part, Shelf, gauges, shelves
from cloudwhale.reporting.sheet import Cell, Column, Line, Sheet, Tone, cells
from cloudwhale.reporting.tables import TONES as JOB_TONES

TONES: dict[NodeState, Tone] = {
    NodeState.EXPECTED: "quiet",
    NodeState.READY: "good",
    NodeState.DRAINING: "warn",
    NodeState.LOST: "bad",
    NodeState.REMOVED: "quiet",
}

SAYS: dict[NodeState, str] = {
    NodeState.EXPECTED: "its agent was not heard yet",
    NodeState.DRAINING: "takes no new jobs",
    NodeState.LOST: "its agent is silent",
}

BAR_WIDTH = 20
LABEL = 9
"""Columns of what stands before a bar."""
WIDE = 120
"""From so many columns on, a device's two bars stand beside each other."""
ALMOST_FULL = 0.9
JOBS_NAMED = 4
"""So many of the jobs without a device are named, the others counted."""

FILLS: tuple[tuple[str, Tone], ...] = (("█", "busy"), ("▓", "good"), ("▒", "warn"), ("░", "plain"))
"""How the jobs of a device are told apart: by shade and by colour, in turn."""


def node_lines(places: Sequence[Occupied], now: Instant, width: int) -> list[Line]:
    """Show nodes as bars, the devices of each below it, for a terminal of `width` columns."""
    lines: list[Line] = []
    for place in places:
        lines += [(), _heading(place, now)] if lines else [_heading(place, now)]
        lines += [_gauge_line(gauge) for gauge in gauges(place)]
        for shelf in shelves(place):
            lines += _shelf_lines(shelf, width)
        lines += _other_jobs(place)
    return lines


def _heading(place: Occupied, now: Instant) -> Line:
    node = place.node
    labels = "".join(f"  {key}={value}" for key, value in sorted(node.facts.labels.items()))
    owner = "owned" if node.owned else "rented"
    state, says = node.state.value, f": {SAYS[node.state]}" if node.state in SAYS else ""
    phase = "" if place.rental is None else phase_words(place.rental, now)
    if phase and node.state is NodeState.EXPECTED:
        state, says = "booting", f": {phase}"
    seen = f"  measured {span(now - place.look.at)} ago" if place.look is not None else ""
    return (
        Cell(node.id, "strong"),
        Cell(f"  {state}{says}", "busy" if phase else TONES[node.state]),
        Cell(f"  {owner}, {node.provider}{labels}{seen}", "quiet"),
    )


def _gauge_line(gauge: Gauge) -> Line:
    share = taken(gauge.taken, gauge.whole)
    used = f", {plain(gauge.used)} used" if gauge.used is not None else ""
    return (
        Cell(f"  {gauge.what:<{LABEL}}", "quiet"),
        Cell(bar(share, BAR_WIDTH), _tone(share)),
        Cell(f" {percent(share):>5}  {plain(gauge.taken)} of {plain(gauge.whole)} {gauge.unit}"),
        Cell(used, "quiet"),
    )


def _tone(share: float) -> Tone:
    return "busy" if share < ALMOST_FULL else "warn"


# -- devices ---------------------------------------------------------------------------------


def _shelf_lines(shelf: Shelf, width: int) -> Iterator[Line]:
    device = shelf.free.device
    declared = ", declared: no real GPU" if device.declared else ""
    yield (Cell(f"  {device.id}", "strong"), Cell(f"  {device.model}{declared}", "quiet"))
    share, memory = _share_cells(shelf), _memory_cells(shelf)
    if width >= WIDE:
        gap = " " * max(2, WIDE // 2 - sum(len(cell.text) for cell in share))
        yield (*share, Cell(gap), *memory)
    else:
        yield share
        yield memory
    for number, part in enumerate(shelf.parts):
        yield _part_line(part, number)


def _share_cells(shelf: Shelf) -> Line:
    sm = shelf.use.sm if shelf.use is not None else None
    used = f"  busy {percent(sm)} of the time" if sm is not None else ""
    return (
        Cell(f"    {'share':<{LABEL - 2}}", "quiet"),
        *_stack([part.share for part in shelf.parts]),
        Cell(f" {percent(shelf.share):>5}"),
        Cell(used, "quiet"),
    )


def _memory_cells(shelf: Shelf) -> Line:
    whole = shelf.whole_gib
    promised = whole - shelf.free.memory_gib
    used = ""
    if shelf.use is not None:
        foreign = shelf.use.foreign_gib
        others = f" ({plain(foreign)} by others)" if foreign >= 0.05 else ""
        used = f", {plain(shelf.use.used_gib)} used{others}"
    return (
        Cell(f"    {'memory':<{LABEL - 2}}", "quiet"),
        *_stack([taken(part.memory_gib, whole) for part in shelf.parts]),
        Cell(f" {percent(taken(promised, whole)):>5}  {plain(promised)} of {plain(whole)} GiB"),
        Cell(used, "quiet"),
    )


def _stack(shares: Sequence[float]) -> Iterator[Cell]:
    sizes, empty = stacked(shares, BAR_WIDTH)
    for number, size in enumerate(sizes):
        shade, tone = FILLS[number % len(FILLS)]
        yield Cell(shade * size, tone)
    yield Cell(EMPTY * empty, "quiet")


def _part_line(part: Part, number: int) -> Line:
    shade, tone = FILLS[number % len(FILLS)]
    used = f", {plain(part.used_gib)} used" if part.used_gib is not None else ""
    return (
        Cell(f"    {shade} ", tone),
        Cell(part.job.id),
        Cell(f"  {part.job.state.value}", JOB_TONES[part.job.state]),
        Cell(f"  {percent(part.share)}, {plain(part.memory_gib)} GiB{used}", "quiet"),
    )


def _other_jobs(place: Occupied) -> Iterator[Line]:
    """Name the jobs that have no device."""
    jobs = [job for job in place.jobs if not _devices(job)]
    if not jobs and not place.jobs:
        yield (Cell(f"  {'jobs':<{LABEL}}", "quiet"), Cell("none", "quiet"))
    if jobs:
        more = len(jobs) - JOBS_NAMED
        named = ", ".join(job.id for job in jobs[:JOBS_NAMED])
        without = "without GPU: " if place.node.facts.devices else ""
        said = f"{without}{named}{f' and {more} more' if more > 0 else ''}"
        yield (Cell(f"  {'jobs':<{LABEL}}", "quiet"), Cell(said))


def _devices(job: Job) -> tuple[str, ...]:
    return job.placement.devices if job.placement is not None else ()


# -- rows ------------------------------------------------------------------------------------


def nodes_sheet(places: Sequence[Occupied]) -> Sheet:
    """Show the same as a table, one thing a row, for pipes; `used` is what was measured."""
    columns = (
        Column("node"),
        Column("state"),
        Column("what"),
        Column("taken", right=True),
        Column("whole", right=True),
        Column("unit"),
        Column("share", right=True),
        Column("used", right=True),
        Column("detail"),
        Column("jobs"),
    )
    rows = [row for place in places for row in _rows(place)]
    return Sheet(columns, tuple(rows), notes=(_totals(places),) if places else ())


def _rows(place: Occupied) -> Iterator[tuple[Cell, ...]]:
    head = (place.node.id, _state(place))
    others = ",".join(job.id for job in place.jobs if not _devices(job))
    for gauge in gauges(place):
        amounts = (plain(gauge.taken), plain(gauge.whole), gauge.unit)
        used = NOTHING if gauge.used is None else plain(gauge.used)
        jobs = others if gauge.what == "cpu" else ""
        yield cells(*head, gauge.what, *amounts, NOTHING, used, NOTHING, jobs or NOTHING)
    for shelf in shelves(place):
        device, whole = shelf.free.device, shelf.whole_gib
        yield cells(
            *head,
            device.id,
            plain(whole - shelf.free.memory_gib),
            plain(whole),
            "GiB",
            percent(shelf.share).replace(" ", ""),
            NOTHING if shelf.use is None else plain(shelf.use.used_gib),
            f"{device.model}{' (declared)' if device.declared else ''}",
            ",".join(part.job.id for part in shelf.parts) or NOTHING,
        )


def _state(place: Occupied) -> str:
    node, rental = place.node, place.rental
    phase = "" if rental is None or node.state is not NodeState.EXPECTED else rental.boot.under_way
    return f"booting: {phase}" if phase else node.state.value


def _totals(places: Sequence[Occupied]) -> str:
    devices = sum(len(place.node.facts.devices) for place in places)
    jobs = len({job.id for place in places for job in place.jobs})  # a gang's is on several
    machines = f"{counted(len(places), 'node')}, {counted(devices, 'GPU')}"
    return f"{machines}, {counted(jobs, 'job')} on them."
