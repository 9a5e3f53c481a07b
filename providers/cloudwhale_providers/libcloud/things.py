"""Sizes, images and places by the names that the settings use, as a driver lists them."""

from collections.abc import Sequence
from threading import Lock
from typing import Any

from cloudwhale.model.units import Seconds
from cloudwhale.spi.clock import Clock
from cloudwhale.spi.errors import Denied, Unreachable
from cloudwhale_providers.libcloud.driving import Driving

HOLDS_S: Seconds = 3600.0
"""Lists of images may be long, and what they hold changes by the week."""


class Things:
    """Finds them; safe for threads."""

    def __init__(self, driving: Driving, clock: Clock) -> None:
        self._driving = driving
        self._clock = clock
        self._lists: dict[str, tuple[Seconds, Sequence[Any]]] = {}
        self._lock = Lock()

    def named(self, kind: str, name: str) -> Any:
        """Return one of the driver's `sizes`, `images` or `locations`, by its id or its name.

        Raise Denied where there is none, or several; Unreachable where the driver lists nothing.
        """
        listed = self.listed(kind)
        if not listed:
            raise Unreachable(f"the driver lists no {kind}", "It is asked again.")
        by_id = [one for one in listed if str(one.id) == name]
        found = by_id or [one for one in listed if one.name == name]
        if len(found) == 1:
            return found[0]
        some = ", ".join(sorted(str(one.name) for one in listed)[:12])
        if not found:
            raise Denied(f"among the driver's {len(listed)} {kind} is no {name!r}", f"Say: {some}.")
        ids = ", ".join(str(one.id) for one in found)
        raise Denied(f"{len(found)} {kind} are called {name!r}", f"Say which by its id: {ids}.")

    def listed(self, kind: str) -> Sequence[Any]:
        """Return all of a kind; an empty list is not remembered."""
        now = self._clock.steady()
        with self._lock:
            since, known = self._lists.get(kind, (float("-inf"), ()))
        if now - since < HOLDS_S:
            return known
        found: Sequence[Any] = self._driving.ask(f"list_{kind}")
        if found:
            with self._lock:
                self._lists[kind] = (now, found)
        return found
