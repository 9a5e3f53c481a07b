"""Events that are written together, and what a writing transaction knows of itself."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from cloudwhale.control.store.reading import Heads
from cloudwhale.model.event import Event


@dataclass(frozen=True, slots=True)
class Batch:
    """Events of one writer, stored all or none."""

    events: tuple[Event, ...]
    epoch: int | None
    first: int = 0
    """The number of the first event; 0 while nobody has numbered them."""

    def without(self, stored: "Batch") -> Sequence[Event]:
        """Return the events that are left to store when another batch is: it began with that one.

        All of them when it did not.
        """
        count = len(stored.events)
        begins = self.epoch == stored.epoch and self.events[:count] == stored.events
        return self.events[count:] if begins else self.events


@dataclass(slots=True)
class Write:
    """A writing transaction under way."""

    connection: Connection
    heads: Heads
    batch: Batch | None = None
    """What is in doubt when the commit gets no answer."""
    committing: bool = False
