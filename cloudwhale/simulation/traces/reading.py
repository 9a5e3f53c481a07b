"""Reads a trace into arrivals: the first fault ends it, or bad rows are skipped and counted."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from cloudwhale.model.job import JobSpec
from cloudwhale.model.node import Device, Node
from cloudwhale.model.reason import Refusal
from cloudwhale.planning.fit import could_ever_fit
from cloudwhale.planning.inventory import free_capacity
from cloudwhale.simulation.playing import Arrival
from cloudwhale.simulation.traces.columns import Format, format_of
from cloudwhale.simulation.traces.rows import Lines, Row, TraceError, brief, header, opened, row

KNOWN_OF_A_TRACE = frozenset({"never ran"})
"""What public traces are known to hold, and nobody needs to be told to skip."""


@dataclass(frozen=True, slots=True)
class Trace:
    """What was read."""

    arrivals: tuple[Arrival, ...]
    """By time, then by name."""
    skipped: Mapping[str, int] = field(default_factory=dict[str, int])
    """Rows that were passed over, by what was wrong with them."""
    format: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """How a trace is read."""

    nodes: Sequence[Node] = ()
    """A job must fit on one of them when it is empty; none: nothing is said of that."""
    skip_bad: bool = False
    most: int | None = None
    """Only so many jobs, the first ones that are good."""


def read(file: Path, how: Reading | None = None) -> Trace:
    """Return the trace in a file; raise TraceError for the first thing that is wrong with it."""
    how = how or Reading()
    with closing(opened(file)) as lines:
        numbered = lines.numbered()
        columns = header(numbered, lines.name)
        kind = format_of(columns, lines.name)
        reader = _Reader(how, kind, _ever_fits(how.nodes))
        for number, line in numbered:
            if kind.in_order and how.most is not None and len(reader.found) >= how.most:
                break
            reader.take(lines, columns, number, line)
    found = sorted(reader.found, key=lambda one: (one.at, one.job))
    return Trace(tuple(found[: how.most]), dict(reader.skipped), kind.name)


@dataclass(slots=True)
class _Reader:
    """What has been read so far."""

    how: Reading
    kind: Format
    refusal: Callable[[JobSpec], Refusal | None]
    found: list[Arrival] = field(default_factory=list[Arrival])
    seen: dict[str, int] = field(default_factory=dict[str, int])
    skipped: Counter[str] = field(default_factory=Counter[str])

    def take(
        self, lines: Lines, columns: Sequence[str], number: int, line: str | TraceError
    ) -> None:
        """Take one line; raise TraceError when it is bad and bad ones are not skipped."""
        try:
            if isinstance(line, TraceError):
                raise line
            if line.strip():
                self._take(row(columns, line, lines.name, number))
        except TraceError as fault:
            if fault.kind is None:
                raise
            if not self.how.skip_bad and fault.kind not in KNOWN_OF_A_TRACE:
                raise _or_skipped(fault) from fault
            self.skipped[fault.kind] += 1

    def _take(self, one: Row) -> None:
        arrival = self.kind.arrival(one)
        column = self.kind.needed[0]
        earlier = self.seen.get(arrival.job)
        if earlier is not None:
            raise one.fault(
                "duplicate job", column, f"is {brief(arrival.job)!r}, as on line {earlier}",
                "give every job a name of its own",
            )  # fmt: skip
        if self.kind.in_order and self.found and arrival.at < self.found[-1].at:
            when = next(name for name in ("submit_s", "arrival_h") if name in one.values)
            raise one.fault(
                "out of order", when, f"is {one.values[when]}, before that of the row above",
                "sort the rows by it",
            )  # fmt: skip
        no = self.refusal(arrival.spec)
        if no is not None:
            raise one.fault(
                "fits nowhere", column, f"{brief(arrival.job)!r} {no.says}",
                no.change or "give the cluster a node that it fits on",
            )  # fmt: skip
        self.seen[arrival.job] = one.line
        self.found.append(arrival)


def _or_skipped(fault: TraceError) -> TraceError:
    """Return the fault with the other remedy, which only those who read a trace of jobs have."""
    rest = "use what is whole" if fault.kind == "cut short" else "pass over such rows"
    return fault.or_else(f"{rest} with --skip-bad")


def _ever_fits(nodes: Sequence[Node]) -> Callable[[JobSpec], Refusal | None]:
    """Return what says why a job can be on no node, or None; demands that are alike ask once."""
    kinds = {node.facts.but(devices=_nameless(node)).model_dump_json(): node for node in nodes}
    frees = tuple(free_capacity(kinds.values(), ()).values())
    known: dict[str, Refusal | None] = {}

    def refusal(spec: JobSpec) -> Refusal | None:
        demand = spec.demand
        if frees and demand not in known:
            known[demand] = _nearest(could_ever_fit(spec, free) for free in frees)
        return known.get(demand)

    return refusal


def _nameless(node: Node) -> tuple[Device, ...]:
    return tuple(device.but(id="") for device in node.facts.devices)


def _nearest(answers: Iterator[Refusal | None]) -> Refusal | None:
    refusals: list[Refusal] = []
    for answer in answers:
        if answer is None:
            return None
        refusals.append(answer)
    return min(refusals, key=lambda no: no.shortfall)
