"""What is left over at providers, as a table and as keys."""

from collections.abc import Mapping
from typing import Any

from cloudwhale.clock import iso
from cloudwhale.control.leaks import Leak, Leaks
from cloudwhale.model.units import Instant, usd
from cloudwhale.reporting.figures import NOTHING, moment
from cloudwhale.reporting.sheet import Cell, Column, Sheet


def leak_keys(leak: Leak) -> Mapping[str, Any]:
    """Return a leak as `--json` shows it; what is not known is null."""
    one = leak.leftover
    return {
        "what": one.what,
        "id": one.id,
        "provider": leak.provider,
        "region": one.region or None,
        "since": iso(one.since),
        "usd_h": None if one.usd_h is None else usd(one.usd_h),
        "project": one.project or None,
        "node": one.node,
        "ours": one.is_ours,
        "installation": one.installation or None,
        "removed": leak.is_removed,
        "says": leak.says or None,
    }


def leaks_sheet(found: Leaks, now: Instant) -> Sheet:
    """Show leaks, one a row."""
    columns = (
        Column("what"),
        Column("id"),
        Column("provider", optional=True),
        Column("region"),
        Column("since"),
        Column("USD/h", right=True),
        Column("project", optional=True),
        Column("whose"),
    )
    return Sheet(columns, tuple(_row(leak, now) for leak in found.found), notes=_notes(found))


def _row(leak: Leak, now: Instant) -> tuple[Cell, ...]:
    one = leak.leftover
    return (
        Cell(one.what),
        Cell(one.id, "strong"),
        Cell(leak.provider),
        Cell(one.region or NOTHING),
        Cell(moment(one.since, now)),
        Cell(NOTHING if one.usd_h is None else f"{one.usd_h / 1_000_000:.4f}"),
        Cell(one.project or NOTHING),
        _whose(leak),
    )


def _whose(leak: Leak) -> Cell:
    if not leak.leftover.is_ours:
        whose = leak.leftover.installation
        return Cell(f"another's: {whose}" if whose else "another's", "quiet")
    if leak.is_removed:
        return Cell("ours, removed", "good")
    return Cell(f"ours: {leak.says}" if leak.says else "ours", "bad" if leak.says else "warn")


def _notes(found: Leaks) -> tuple[str, ...]:
    notes = list(found.unanswered)
    if not found.asked:
        notes.append("Nothing to ask: no cloud is set up, or its sandbox does not run.")
        return tuple(notes)
    left = [one for one in found.found if one.is_left]
    others = sum(not one.leftover.is_ours for one in found.found)
    if left:
        costs = sum(one.leftover.usd_h or 0 for one in left)
        notes.append(
            f"{len(left)} of ours left, {costs / 1_000_000:.4f} USD an hour: "
            "`cloudwhale leaks --fix` removes them."
        )
    elif not found.unanswered:
        removed = sum(one.is_removed for one in found.found)
        done = f"Nothing of ours is left; {removed} removed" if removed else "Nothing of ours"
        notes.append(f"{done} ({', '.join(found.asked)}).")
    if others:
        notes.append(f"{others} of other installations: shown, never touched.")
    return tuple(notes)
