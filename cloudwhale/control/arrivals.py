"""Finds agents that have come by themselves: a new folder below `inbox/` in which one is heard.

Folders behind doors are none of these: they are of machines that were rented, which are known by
then, and whatever a machine writes behind its own door, it cannot come as somebody else.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from cloudwhale.control.effects import Effect, Key
from cloudwhale.mailbox.box import inbox_from
from cloudwhale.mailbox.documents import REPORTS, Left
from cloudwhale.mailbox.objects import Objects
from cloudwhale.model.units import Instant, Seconds

LOOK_EVERY_S: Seconds = 5.0  # how soon a new agent is found; one LIST each, 0.004 USD an hour on S3
FRESH_S: Seconds = 90.0  # a living agent says something every ten seconds; clocks differ by thirty
NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,62}")


@dataclass(frozen=True, slots=True)
class Found:
    """What lies below `inbox/` that nobody has followed yet."""

    heard: tuple[str, ...]
    """Names whose agents say something now."""
    silent: dict[str, int]
    """Names with the number of their newest document: agents that are gone."""
    at: Instant
    """When it was looked for."""


class Arrivals:
    """Remembers whose inboxes are followed although their nodes are not known."""

    def __init__(self, objects: Objects, every_s: Seconds = LOOK_EVERY_S) -> None:
        self._objects = objects
        self._every_s = every_s
        self._followed: dict[str, Instant] = {}
        """Since when, by name."""
        self._silent: dict[str, int] = {}
        self._looked_at: Instant | None = None

    @property
    def followed(self) -> list[str]:
        """Return the names to read that are no known nodes."""
        return sorted(self._followed)

    def let_go(self, known: Collection[str], heard_at: Mapping[str, Instant], now: Instant) -> None:
        """Follow no longer what became a node, or whose agent was heard and has fallen silent.

        An agent that says something again is found again.
        """
        self._followed = {
            name: since
            for name, since in self._followed.items()
            if name not in known and now - max(since, heard_at.get(name, since)) <= FRESH_S
        }

    def look(self, known: Iterable[str], now: Instant) -> Effect | None:
        """Return the look for new agents when one is due; `known` need none."""
        if self._looked_at is not None and now - self._looked_at < self._every_s:
            return None
        self._looked_at = now
        skip, silent = {*known, *self._followed}, dict(self._silent)

        def look() -> Found:
            names = [name for name in self._objects.folders("inbox") if NAME.fullmatch(name)]
            return self._found([name for name in names if name not in skip], silent, now)

        return Effect(Key("discover", "mailbox"), look)

    def came(self, found: Found) -> None:
        """Follow those that are heard, until their nodes are known."""
        self._followed |= dict.fromkeys(found.heard, found.at)
        self._silent |= found.silent
        for name in found.heard:
            self._silent.pop(name, None)

    def _found(self, names: list[str], silent: dict[str, int], now: Instant) -> Found:
        heard: list[str] = []
        quiet: dict[str, int] = {}
        for name in names:
            box = inbox_from(self._objects, name)
            number = silent.get(name, 0)
            if number and box.read(number + 1) is None:
                continue  # as silent as before; a list would cost twelve times as much
            number = box.newest()
            if _is_fresh(box.read(number) if number else None, now):
                heard.append(name)
            else:
                quiet[name] = number
        return Found(tuple(heard), quiet, now)


def _is_fresh(body: bytes | None, now: Instant) -> bool:
    """Say whether a document is of an agent that is still there."""
    try:
        report = REPORTS.validate_json(body or b"")
    except ValidationError:
        return False
    return not isinstance(report, Left) and abs(now - report.at) <= FRESH_S
