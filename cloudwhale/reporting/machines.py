"""What the nodes have, what is taken of it and by whom."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cloudwhale.model.job import HOLDS_A_PLACE, Job
from cloudwhale.model.node import Node, NodeState
from cloudwhale.model.world import World
from cloudwhale.planning.inventory import Free, free_capacity
from cloudwhale.reporting.bars import bar, taken
from cloudwhale.reporting.figures import NOTHING, counted, percent, plain
from cloudwhale.reporting.sheet import Cell, Column, Line, Sheet, Tone, cells

TONES: dict[NodeState, Tone] = {
    NodeState.EXPECTED: "quiet",
    NodeState.READY: "good",
    NodeState.DRAINING: "warn",
    NodeState.LOST: "bad",
}

BAR_WIDTH = 20
LABEL_MOST = 12
ALMOST_FULL = 0.9
JOBS_NAMED = 4
"""So many of a node's jobs are named, the others counted."""


@dataclass(frozen=True, slots=True)
class Occupied:
    """A node, what is free on it, and the jobs that hold a place there."""

    free: Free
    jobs: tuple[Job, ...]

    @property
    def node(self) -> Node:
        """The node itself."""
        return self.free.node


@dataclass(frozen=True, slots=True)
class Gauge:
    """One thing of a node that can be taken."""

    what: str
    taken: float
    whole: float
    unit: str
    detail: str = ""
    """Of a device: its model."""
    compute: float = 0.0
    """Of a device: the share of its compute that is taken."""
    jobs: tuple[str, ...] = ()


def occupied(world: World) -> tuple[Occupied, ...]:
    """Return every node with what is on it, by name."""
    free = free_capacity(world.nodes.values(), world.jobs.values())
    holding = sorted(
        (job for job in world.jobs.values() if job.state in HOLDS_A_PLACE and job.placement),
        key=lambda job: job.id,
    )
    return tuple(
        Occupied(
            free[name],
            tuple(job for job in holding if job.placement and job.placement.node == name),
        )
        for name in sorted(world.nodes)
    )


def gauges(place: Occupied) -> Iterator[Gauge]:
    """Yield a node's CPU, memory and disk, then its devices."""
    free, facts = place.free, place.node.facts
    yield Gauge("cpu", facts.cpu - free.cpu, facts.cpu, "CPUs")
    yield Gauge("memory", facts.memory_gib - free.memory_gib, facts.memory_gib, "GiB")
    yield Gauge("disk", facts.disk_gib - free.disk_gib, facts.disk_gib, "GiB")
    for device in free.devices:
        own = device.device
        yield Gauge(
            own.id,
            own.memory_gib - device.memory_gib,
            own.memory_gib,
            "GiB",
            f"{own.model}{' (declared)' if own.declared else ''}",
            1.0 - device.share,
            tuple(
                job.id for job in place.jobs if job.placement and own.id in job.placement.devices
            ),
        )


def node_lines(places: Sequence[Occupied]) -> list[Line]:
    """Show nodes as bars, the devices of each below it, for a terminal."""
    lines: list[Line] = []
    for place in places:
        shown = list(gauges(place))
        label = min(LABEL_MOST, max(len(gauge.what) for gauge in shown))
        lines += [(), _heading(place)] if lines else [_heading(place)]
        lines += [_gauge_line(gauge, label) for gauge in shown]
        lines.append((Cell(f"  {'jobs':<{label}}  ", "quiet"), Cell(_names(place))))
    return lines


def _heading(place: Occupied) -> Line:
    node = place.node
    labels = "".join(f"  {key}={value}" for key, value in sorted(node.facts.labels.items()))
    owner = "owned" if node.owned else "rented"
    return (
        Cell(node.id, "strong"),
        Cell(f"  {node.state.value}", TONES[node.state]),
        Cell(f"  {owner}, {node.provider}{labels}", "quiet"),
    )


def _gauge_line(gauge: Gauge, label: int) -> Line:
    memory = taken(gauge.taken, gauge.whole)
    share = max(memory, gauge.compute)  # a device is as full as what it has least left of
    tone: Tone = "busy" if share < ALMOST_FULL else "warn"
    amounts = f"{plain(gauge.taken)} of {plain(gauge.whole)} {gauge.unit}"
    compute = f", compute {percent(gauge.compute)}" if abs(gauge.compute - memory) > 0.005 else ""
    return (
        Cell(f"  {gauge.what[:label]:<{label}}  ", "quiet"),
        Cell(bar(share, BAR_WIDTH), tone),
        Cell(f" {percent(share):>5}  {amounts:<15}"),
        Cell(f" {gauge.detail}{compute if gauge.detail else ''}", "quiet"),
    )


def _names(place: Occupied) -> str:
    named = [
        f"{job.id} ({', '.join(job.placement.devices)})"
        if job.placement and job.placement.devices
        else job.id
        for job in place.jobs[:JOBS_NAMED]
    ]
    more = len(place.jobs) - JOBS_NAMED
    return (", ".join(named) or "none") + (f" and {more} more" if more > 0 else "")


def nodes_sheet(places: Sequence[Occupied]) -> Sheet:
    """Show the same as a table, one thing a row, for pipes."""
    columns = (
        Column("node"),
        Column("state"),
        Column("what"),
        Column("taken", right=True),
        Column("whole", right=True),
        Column("unit"),
        Column("jobs", right=True),
        Column("detail"),
    )
    rows = [
        cells(
            place.node.id,
            place.node.state.value,
            gauge.what,
            plain(gauge.taken),
            plain(gauge.whole),
            gauge.unit,
            str(len(gauge.jobs) if gauge.detail else len(place.jobs)),
            f"{gauge.detail}, compute {percent(gauge.compute)}" if gauge.detail else NOTHING,
        )
        for place in places
        for gauge in gauges(place)
    ]
    return Sheet(columns, tuple(rows), notes=(_totals(places),) if places else ())


def _totals(places: Sequence[Occupied]) -> str:
    devices = sum(len(place.node.facts.devices) for place in places)
    jobs = sum(len(place.jobs) for place in places)
    machines = f"{counted(len(places), 'node')}, {counted(devices, 'GPU')}"
    return f"{machines}, {counted(jobs, 'job')} on them."


def node_keys(place: Occupied) -> dict[str, Any]:
    """Return a node as the document that `nodes --json` prints; sizes in GiB."""
    node, free = place.node, place.free
    return {
        "id": node.id,
        "state": node.state.value,
        "owned": node.owned,
        "provider": node.provider,
        "cpu": node.facts.cpu,
        "free_cpu": round(free.cpu, 6),
        "memory_gib": node.facts.memory_gib,
        "free_memory_gib": round(free.memory_gib, 6),
        "disk_gib": node.facts.disk_gib,
        "free_disk_gib": round(free.disk_gib, 6),
        "labels": node.facts.labels,
        "runtimes": node.facts.runtimes,
        "devices": [
            {
                "id": device.device.id,
                "model": device.device.model,
                "declared": device.device.declared,
                "memory_gib": device.device.memory_gib,
                "free_gib": round(device.memory_gib, 6),
                "free_share": round(device.share, 6),
            }
            for device in free.devices
        ],
        "jobs": [job.id for job in place.jobs],
    }
