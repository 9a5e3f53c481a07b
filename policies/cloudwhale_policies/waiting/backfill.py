"""Backfilling as it is published: who may start without delaying whom, renting left aside."""

from collections.abc import Mapping
from math import inf

from cloudwhale.model.units import Seconds
from cloudwhale.spi.waiting import Verdict, Wait, Waiting, Waits
from cloudwhale_policies.waiting.expecting import ends_s, expecting
from cloudwhale_policies.waiting.timetable import Slot, Timetable
from cloudwhale_policies.waiting.whale import timetables


class Easy:
    """EASY (Lifka, JSSPP 1995): nobody delays the first job that does not fit.

    The others start where they fit, if they end before its start or leave it enough.
    """

    needs_quotes = False

    def verdicts(self, waits: Waits) -> Mapping[str, Verdict]:
        """Return `start` for those that may, and when the first that may not is to start."""
        table = _table(waits)
        found: dict[str, Verdict] = {}
        head = ""
        for one in waits.waiting:
            slot = _opening(one, table)
            if slot is not None:
                table.reserve(slot, one.devices, _length_s(one))
                found[one.job.id] = _starts("delays nobody", slot)
            elif head:
                found[one.job.id] = Verdict("wait", f"may not delay {head}")
            else:
                head = one.job.id
                found[head] = _kept(one, table, waits)
        return found


class Conservative:
    """Conservative backfilling: each job has the first slot that delays no job before it."""

    needs_quotes = False

    def verdicts(self, waits: Waits) -> Mapping[str, Verdict]:
        """Return for each job its slot: now, or when it is to start."""
        table = _table(waits)
        found: dict[str, Verdict] = {}
        for one in waits.waiting:
            slot = _opening(one, table)
            if slot is None:
                found[one.job.id] = _kept(one, table, waits)
            else:
                table.reserve(slot, one.devices, _length_s(one))
                found[one.job.id] = _starts("delays nobody before it", slot)
        return found


def _table(waits: Waits) -> Timetable:
    expected = expecting(waits, spread=1.0, futures=1)
    (table,) = timetables(waits, ends_s(waits, expected), 1)
    return table


def _opening(one: Waiting, table: Timetable) -> Slot | None:
    """Return the place where a job may start now; called for all that wait."""
    return table.opening(one.devices, _length_s(one), one.fits_now)


def _kept(one: Waiting, table: Timetable, waits: Waits) -> Verdict:
    """Keep the first slot of a job that may not start now."""
    slot = table.earliest(one.devices, _length_s(one), one.nodes, elsewhere_than=one.fits_now)
    if slot is None:
        return Verdict("wait", "nobody knows when there will be enough room")
    table.reserve(slot, one.devices, _length_s(one))
    at = waits.now + slot.start_s
    return Verdict("wait", "room is kept for it", node=slot.node, at=at)


def _starts(says: str, slot: Slot) -> Verdict:
    """Return that a job starts where it was planned, for room elsewhere may be kept."""
    return Verdict("start", says, node=slot.node, fixed=True)


def _length_s(one: Waiting) -> Seconds:
    """Return how long a job runs; one that nobody knows anything of may never end."""
    return inf if one.length_s is None else one.length_s


_: tuple[Wait, ...] = (Easy(), Conservative())
