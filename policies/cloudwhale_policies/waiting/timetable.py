"""When how many devices of each node are free: where a job fits soonest, and room kept for it."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from math import inf

from cloudwhale.model.units import Seconds

EPSILON = 1e-9
"""Shares of devices are floats: less than this is nothing."""


Row = tuple[list[Seconds], list[float]]
"""When the steps of a node begin, and how many devices are free from then on."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in time."""

    node: str
    start_s: Seconds
    """From now."""
    spare: float
    """Least number of devices that stay free beside it while it runs."""


class Timetable:
    """Steps of free devices for each node; times are seconds from now, from 0 to the end of days.

    Plain lists: a round asks for a few slots among a dozen steps, thousands of times.
    """

    __slots__ = ("_rows",)

    def __init__(self, free: Mapping[str, float]) -> None:
        self._rows: dict[str, Row] = {node: ([0.0], [devices]) for node, devices in free.items()}

    def copy(self) -> "Timetable":
        """Return the same timetable, to be changed without changing this one."""
        other = Timetable({})
        other._rows = {node: (at[:], free[:]) for node, (at, free) in self._rows.items()}
        return other

    def free_at(self, node: str, at_s: Seconds) -> float:
        """Return how many devices of a node are free at a time."""
        at, free = self._rows[node]
        return free[bisect_right(at, at_s) - 1]

    def release(self, node: str, at_s: Seconds, devices: float) -> None:
        """Add devices that become free at a time and stay so."""
        at, free = self._rows[node]
        for step in range(_step(at, free, max(0.0, at_s)), len(free)):
            free[step] += devices

    def reserve(self, slot: Slot, devices: float, length_s: Seconds) -> None:
        """Take devices of a node from the start of a slot for a time; `inf` takes them for good."""
        at, free = self._rows[slot.node]
        first = _step(at, free, slot.start_s)
        last = len(free) if length_s == inf else _step(at, free, slot.start_s + length_s)
        for step in range(first, last):
            free[step] -= devices

    def opening(self, devices: float, length_s: Seconds, nodes: Iterable[str]) -> Slot | None:
        """Return the slot on some nodes that begins now; None: there is none."""
        open_now = [node for node in nodes if self._has_now(node, devices)]
        slot = self.earliest(devices, length_s, open_now) if open_now else None
        return slot if slot is not None and slot.start_s <= 0.0 else None

    def earliest(
        self,
        devices: float,
        length_s: Seconds,
        nodes: Iterable[str],
        elsewhere_than: Collection[str] | None = None,
    ) -> Slot | None:
        """Return the first slot on some nodes; None: no node ever has so many devices.

        Of equal starts the one that keeps its node busy least longer than it is anyway, so that
        whole nodes become free; then the one that leaves least beside it, then the first node.
        `elsewhere_than`: where it could start now; on the others something but devices is short
        until somebody leaves. None: it could everywhere.
        """
        best: Slot | None = None
        best_is = (inf, inf, inf)
        for node in nodes:
            row = self._rows.get(node)
            if row is None:
                continue
            first = int(elsewhere_than is not None and node not in elsewhere_than)
            found = _first_slot(node, row, devices, length_s, first)
            if found is None:
                continue
            longer_s = max(0.0, found.start_s + length_s - row[0][-1])
            rank = (found.start_s, longer_s, found.spare)
            if rank < best_is:
                best, best_is = found, rank
        return best

    def _has_now(self, node: str, devices: float) -> bool:
        row = self._rows.get(node)
        return row is not None and row[1][0] >= devices - EPSILON


def _first_slot(node: str, row: Row, devices: float, length_s: Seconds, step: int) -> Slot | None:
    """Return the first slot of a node that begins at a step or later."""
    at, free = row
    needs, last = devices - EPSILON, len(at) - 1
    while step <= last:
        while free[step] < needs:
            if step == last:
                return None
            step += 1
        end_s = at[step] + length_s - EPSILON
        least, inner = free[step], step
        while inner < last and at[inner + 1] < end_s:
            inner += 1
            if free[inner] < needs:
                break
            least = min(least, free[inner])
        else:
            return Slot(node, at[step], least - devices)
        step = inner
    return None


def _step(at: list[Seconds], free: list[float], when_s: Seconds) -> int:
    """Return the number of the step that begins at a time; it is made when there is none."""
    step = bisect_left(at, when_s)
    if step < len(at) and at[step] == when_s:
        return step
    at.insert(step, when_s)
    free.insert(step, free[step - 1])
    return step
