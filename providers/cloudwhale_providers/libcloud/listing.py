"""Which machines of ours there are, by lists that may be old, partial, or empty without a reason.

A machine that was there and is in a list no more is asked for by its id where the driver can; else
it counts as there until several lists in a row, over some time, have lacked it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Literal

from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.clock import Clock
from cloudwhale.spi.errors import CloudwhaleError
from cloudwhale_providers.libcloud.driving import Driving
from cloudwhale_providers.libcloud.errors import is_gone
from cloudwhale_providers.libcloud.names import Named, said_by, short

MISSING_S: Seconds = 120.0
"""A machine without a look of its own is gone when it was in no list for so long,"""
MISSING_LISTS = 3  # and in none of so many.
SHOWN_S: Seconds = 3600.0
"""What has gone by itself is told of for so long, as other clouds do."""

State = Literal["starting", "running", "stopping", "gone"]
STATES: Mapping[str, State] = {
    "pending": "starting",
    "starting": "starting",
    "stopping": "stopping",
    "stopped": "stopping",  # it has switched itself off, and is there: it does not come back
    "suspended": "stopping",
    "paused": "stopping",
    "terminated": "gone",
    "error": "gone",  # it never came up; it is removed like what is left over
}
"""libcloud's `NodeState` in our words; what is not here runs, as far as anybody knows."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One machine as it was listed last."""

    id: str
    name: str
    called: Named
    """What its name says."""
    state: State
    said: str
    """As the driver says it; empty: no list has it any more."""
    size: str
    """What the driver says of its size, an id or a name; empty: nothing."""
    since: Instant | None
    """When it was made, where the driver says that."""
    thing: Any
    """The driver's own value, which it wants back to end the machine."""

    @property
    def runs(self) -> bool:
        """Say whether it runs, or is about to."""
        return self.state in ("starting", "running")

    @property
    def is_there(self) -> bool:
        """Say whether there is something to be ended."""
        return self.said not in ("terminated", "")


@dataclass(frozen=True, slots=True)
class _Missing:
    """Since when a machine that was there is in no list."""

    since: Seconds
    lists: int


class Listing:
    """Lists our machines and others'; safe for threads."""

    def __init__(self, driving: Driving, installation: str, clock: Clock) -> None:
        self._driving = driving
        self._installation = short(installation)
        self._clock = clock
        self._known: dict[str, Seen] = {}
        """Ours that are there, by id, in the order in which they were seen first."""
        self._missing: dict[str, _Missing] = {}
        self._vanished: dict[str, tuple[Seen, Seconds]] = {}
        self._answered: set[str] = set()
        """Ids of the machines that launches were answered with."""
        self._others: set[str] = set()
        """Ids of machines of other installations."""
        self._ended: set[str] = set()
        """Ids of what we have ended: nobody wonders that they are gone."""
        self._empty_since: Seconds | None = None
        """Since when lists hold nothing of ours."""
        self._lock = Lock()

    def read(self) -> Sequence[Seen]:
        """Return what the driver lists of cloudwhale's, others' installations too."""
        nodes = self._driving.ask("list_nodes")
        return [one for one in map(seen, nodes) if one is not None]

    def all(self) -> Sequence[Seen]:
        """Return our machines, newest first, those too that a list has lacked only now."""
        found, now = self.read(), self._clock.steady()
        listed = [one for one in found if self.is_ours(one)]
        with self._lock:
            self._others = {one.id for one in found if not self.is_ours(one)}
            lacked = self._took(listed, now)
        for one in lacked:
            self._look_for(one, now)
        return self.now()

    def now(self) -> Sequence[Seen]:
        """Return our machines as they were listed last, newest first."""
        with self._lock:
            there = [*self._known.values(), *(one for one, _ in self._vanished.values())]
        return list(reversed(by_age(there)))

    def launched(self, name: str) -> Sequence[Seen]:
        """Return what there is of a launch, the machine that stays first: the one that runs."""
        named = (one for one in self.all() if one.name == name)
        return self._that_stays_first(one for one in named if one.is_there)

    def twins(self) -> Sequence[Seen]:
        """Return machines that a launch has made once too often, by what was listed last."""
        by_name: dict[str, list[Seen]] = {}
        with self._lock:
            known = list(self._known.values())
        for one in known:
            if one.runs:
                by_name.setdefault(one.name, []).append(one)
        return [one for some in by_name.values() for one in self._that_stays_first(some)[1:]]

    def _that_stays_first(self, some: Iterable[Seen]) -> list[Seen]:
        """Sort machines of one launch: what runs, what was answered with, the oldest."""
        return sorted(by_age(some), key=lambda one: (not one.runs, one.id not in self._answered))

    def took(self, one: Seen) -> None:
        """Remember a machine that a launch is answered with: it may not be listed yet."""
        with self._lock:
            self._known.setdefault(one.id, one)
            self._answered.add(one.id)

    def ended(self, machine: str) -> None:
        """Remember that a machine was ended by us."""
        with self._lock:
            self._ended.add(machine)
            self._known.pop(machine, None)
            self._missing.pop(machine, None)

    def is_ours(self, one: Seen) -> bool:
        """Say whether a machine is of this installation."""
        return one.called.installation == self._installation

    def is_anothers(self, machine: str) -> bool:
        """Say whether a machine is of another installation, by what was listed last."""
        with self._lock:
            return machine in self._others

    def known(self, machine: str) -> Seen | None:
        """Return a machine as it was listed last; None: it was not, or has ended."""
        with self._lock:
            return self._known.get(machine)

    def was_ended(self, machine: str) -> bool:
        """Say whether we have ended a machine, or it was seen to be gone."""
        with self._lock:
            return machine in self._ended or machine in self._vanished

    def is_empty_anew(self) -> bool:
        """Say whether lists hold nothing of ours, and that is not certain yet."""
        with self._lock:
            since = self._empty_since
        return since is not None and self._clock.steady() - since < MISSING_S

    def _took(self, listed: Sequence[Seen], now: Seconds) -> list[Seen]:
        """Take a list; return what was there before and is not in it."""
        there = {one.id: one for one in listed}
        gone = [one for name, one in self._known.items() if name not in there]
        lacked = [one for one in gone if one.id not in self._ended]
        self._known = {**{one.id: one for one in lacked}, **there}
        self._missing = {name: one for name, one in self._missing.items() if name not in there}
        self._vanished = {
            name: (one, at)
            for name, (one, at) in self._vanished.items()
            if name not in there and now - at < SHOWN_S
        }
        if listed:
            self._empty_since = None
        elif self._empty_since is None:
            self._empty_since = now
        return lacked

    def _look_for(self, one: Seen, now: Seconds) -> None:
        """Find out whether a machine that a list has lacked is there."""
        is_there = self.has(one.id)
        with self._lock:
            known = self._missing.get(one.id, _Missing(now, 0))
            missing = replace(known, lists=known.lists + 1)
            if is_there is None:
                is_there = missing.lists < MISSING_LISTS or now - missing.since < MISSING_S
            if is_there:
                self._missing[one.id] = missing
                return
            self._missing.pop(one.id, None)
            if self._known.pop(one.id, None) is not None:
                self._vanished[one.id] = (replace(one, state="gone", said=""), now)

    def has(self, machine: str) -> bool | None:
        """Return whether the driver has a machine of this id; None: it cannot say."""
        verb = self._driving.getter()
        if not verb:
            return None
        try:
            found = self._driving.ask(verb, machine)
        except CloudwhaleError as error:
            return False if is_gone(error) else None
        return found is not None and str(found.state).lower() != "terminated"


def seen(node: Any, name: str = "") -> Seen | None:
    """Return a driver's node in our words; None: it is none of cloudwhale's.

    `name`: what it was asked for under, for drivers whose first answer has none.
    """
    name = str(node.name or name)
    called = said_by(name)
    if called is None:
        return None
    said = str(node.state or "unknown").lower()
    made, size = getattr(node, "created_at", None), getattr(node, "size", None)
    return Seen(
        id=str(node.id),
        name=name,
        called=called,
        state=STATES.get(said, "running"),
        said=said,
        size="" if size is None else str(size.id),
        since=None if made is None else made.timestamp(),
        thing=node,
    )


def by_age(some: Iterable[Seen]) -> list[Seen]:
    """Return machines, the oldest first; where the driver does not say that, by their ids."""
    return sorted(some, key=lambda one: (one.since or 0.0, len(one.id), one.id))
