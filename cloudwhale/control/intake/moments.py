"""Points in time as a job file names them: a deadline, a night's window."""

import re
from datetime import datetime
from zoneinfo import ZoneInfo

from cloudwhale.control.intake.fields import Reading, one
from cloudwhale.control.intake.tree import Node, Scalar
from cloudwhale.control.intake.unfit import Unfit, shown
from cloudwhale.control.intake.units import some_time
from cloudwhale.model.units import Instant
from cloudwhale.spi.errors import DeadlineImpossible

_DAY_AND_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?)\s*(Z|[+-]\d\d:\d\d)?", re.A)
_LENGTH = re.compile(r"(?:\d+(?:\.\d+)?\s*[a-z]+)+", re.A)
_WINDOW = re.compile(r"([01]\d|2[0-3]):([0-5]\d)\s*\.\.\s*([01]\d|2[0-3]):([0-5]\d)", re.A)


def deadline(node: Node, reading: Reading) -> Instant:
    """Return a moment that has not passed; one without an offset is in this host's zone.

    A length of time, `5h`, counts from when its job is submitted; in a night, from its opening.
    """
    if isinstance(node, Scalar) and _LENGTH.fullmatch(node.text):
        begins = reading.now if reading.counts_from is None else reading.counts_from
        at, assumed = begins + one(some_time)(node, reading), ""
    else:
        at, assumed = one(moment)(node, reading)
    if at <= reading.now:
        raise Unfit("the deadline has passed", "Write a later one.", node, DeadlineImpossible)
    if assumed and assumed not in reading.notes:
        reading.notes.append(assumed)
    return at


def moment(text: str) -> tuple[Instant, str]:
    """Return a moment, and a sentence when its offset had to be assumed."""
    found = _DAY_AND_TIME.fullmatch(text)
    if found is None:
        raise Unfit(
            f"{shown(text)} is not a moment",
            "Write it with its offset, 2026-12-01T08:00+01:00, or as a time from now, 5h.",
        )
    day, clock, offset = found.groups()
    try:
        when = datetime.fromisoformat(f"{day}T{clock}{offset or ''}")
        local = when.astimezone() if when.tzinfo is None else when
        at = local.timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise Unfit(f"{shown(text)} is not a moment: {error}", "Look at the calendar.") from error
    if offset:
        return at, ""
    said = local.isoformat(timespec="minutes")
    return at, f"{text} has no offset and is read in this host's zone: {said}."


def window(node: Node, reading: Reading) -> dict[str, object]:
    """Return the hours of a night, in local time: `22:00..08:00`; an end before noon may be of the
    next day."""
    opens, closes = one(_hours)(node, reading)
    return {"opens_min": opens, "closes_min": closes, "line": node.line, "column": node.column}


def _hours(text: str) -> tuple[int, int]:
    found = _WINDOW.fullmatch(text)
    if found is None:
        raise Unfit(f"{shown(text)} is not a window of hours", "Write it like 22:00..08:00.")
    opens, closes = (60 * int(found[at]) + int(found[at + 1]) for at in (1, 3))
    if opens == closes:
        raise Unfit(f"{shown(text)} ends when it begins", "Write two times, like 22:00..08:00.")
    return opens, closes


def zone(text: str) -> str:
    """Return the name of a time zone that this host knows."""
    try:
        return ZoneInfo(text).key
    except (KeyError, ValueError, OSError) as error:
        raise Unfit(
            f"{shown(text)} is not a time zone that is known here",
            "Write its IANA name, like Europe/Berlin or UTC.",
        ) from error
