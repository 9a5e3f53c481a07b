"""When each node was heard last, and what was seen of it; asked at every tick."""

from collections.abc import Collection, Mapping

from cloudwhale.model.node import Measured, Node
from cloudwhale.model.units import Instant
from cloudwhale.model.world import Sighting


class Heard:
    """Remembers what was heard and seen of nodes, in this controller's life."""

    def __init__(self) -> None:
        self._at: dict[str, Instant] = {}
        self._listened_at: dict[str, Instant] = {}
        """When each inbox was last read to its end."""
        self._alive: dict[str, bool] = {}
        self._measured: dict[str, Measured] = {}
        self._sighted: dict[str, Sighting] = {}
        self._sighted_of: tuple[Mapping[str, Node], Instant] | None = None
        """The nodes and the time of those; None: something was heard since."""

    @property
    def at(self) -> Mapping[str, Instant]:
        """Return when each node was heard last, by its name."""
        return self._at

    @property
    def owned(self) -> Collection[str]:
        """Return the nodes of which somebody has said whether their agents run."""
        return self._alive

    def forgive(self, now: Instant) -> None:
        """Count every silence from now."""
        self._at = dict.fromkeys(self._at, now)
        self._sighted_of = None

    def listened(self, node: str, now: Instant) -> None:
        """Note that an inbox was read to its end."""
        self._listened_at[node] = now
        self._sighted_of = None

    def said(self, node: str, now: Instant) -> None:
        """Note that a node has said something."""
        self._at[node] = now
        self._sighted_of = None

    def measured(self, node: str, measured: Measured) -> None:
        """Note what is used of a node."""
        self._measured[node] = measured
        self._sighted_of = None

    def alive(self, node: str, *, is_it: bool) -> None:
        """Note whether a node's agent runs, as its provider says."""
        self._alive[node] = is_it
        self._sighted_of = None

    def sightings(self, nodes: Mapping[str, Node], now: Instant) -> Mapping[str, Sighting]:
        """Return what was seen of every one of some nodes; the same while nothing was heard.

        Silence grows only while we listen: an inbox that cannot be read proves nothing. So the
        time since it was last read to its end does not count.
        """
        of = self._sighted_of
        if of is None or of[0] is not nodes or of[1] != now:
            self._sighted = {name: self._sighting(name, now) for name in nodes}
            self._sighted_of = (nodes, now)
        return self._sighted

    def _sighting(self, name: str, now: Instant) -> Sighting:
        """Return what was seen of a node; the same object while that is the same."""
        at = self._at.setdefault(name, now)
        listened_at = max(self._listened_at.get(name, 0.0), at)
        heard_at = min(now, at + max(0.0, now - listened_at))
        alive, measured = self._alive.get(name), self._measured.get(name)
        old = self._sighted.get(name)
        if old is not None and old.heard_at == heard_at and old.agent_alive == alive:
            if old.measured is measured:
                return old
        # Without validation: with many machines these are most of what a tick makes.
        return Sighting.known(node=name, heard_at=heard_at, agent_alive=alive, measured=measured)
