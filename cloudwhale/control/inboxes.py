"""Which inboxes to read when nothing rings: in a store over HTTP each look is a request.

Where an answer is awaited (a machine boots or is taken away, a job is about to start), often; else
so that all of them together stay within a rate. A miss costs 0.4 USD a million on S3.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from cloudwhale.model.job import JobState
from cloudwhale.model.rental import RentalState
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.model.world import World


@dataclass(frozen=True, slots=True)
class Cadence:
    """How often inboxes are read."""

    every_s: Seconds
    """Each, at the most often."""
    apart_s: Seconds = 0.0
    """Time between two reads on the whole: with many nodes each is read less often."""
    awaited_every_s: Seconds | None = None
    """Those where an answer is awaited; None: like the others."""


OVER_HTTP = Cadence(every_s=0.5, apart_s=0.05, awaited_every_s=0.25)
"""Ten nodes are read twice a second, so that a notice is known at once; 100 every 5 s.

That is 20 a second at most. One that is awaited is read four times a second.
"""

BOOTS_OVER_HTTP = Cadence(every_s=2.0, apart_s=0.05)
"""What machines tell of their boots: 40 are asked every 2 s, more so that it is 20 a second."""


def at_speed(cadence: Cadence, speed: float) -> Cadence:
    """Return a cadence for a time that goes faster: what asks and answers does not."""
    soon_s = cadence.awaited_every_s
    return Cadence(
        max(cadence.every_s, 0.25 * speed),
        cadence.apart_s * speed,
        None if soon_s is None else max(soon_s, 0.1 * speed),
    )


class Inboxes:
    """Remembers when inboxes were read last."""

    def __init__(self, cadence: Cadence) -> None:
        self._cadence = cadence
        self._all_at: Instant | None = None
        self._awaited_at: Instant | None = None
        self._every_s = cadence.every_s
        self._awaited: Collection[str] = ()

    def read_soon(self) -> None:
        """Read all of them at the next chance."""
        self._all_at = None

    def begin(self, names: Sequence[str], awaited: Collection[str], now: Instant) -> bool:
        """Say whether all are due now; they count as read then."""
        self._every_s = max(self._cadence.every_s, self._cadence.apart_s * len(names))
        self._awaited = awaited if self._cadence.awaited_every_s is not None else ()
        if self._all_at is not None and now - self._all_at < self._every_s:
            return False
        self.all_read(now)
        return True

    def all_read(self, now: Instant) -> None:
        """Note that all are being read."""
        self._all_at = self._awaited_at = now

    def due(self, now: Instant) -> Sequence[str]:
        """Return the awaited ones that are due now; they count as read then."""
        every_s, at = self._cadence.awaited_every_s, self._awaited_at
        if every_s is None or (at is not None and now - at < every_s):
            return ()
        self._awaited_at = now
        return sorted(self._awaited)

    def next_at(self) -> Instant | None:
        """Return when the next are due; None when that is now."""
        every_s = self._cadence.awaited_every_s
        if self._all_at is None or self._awaited_at is None:
            return None
        at = self._all_at + self._every_s
        if every_s is None or not self._awaited:
            return at
        return min(at, self._awaited_at + every_s)


def awaited(world: World) -> frozenset[str]:
    """Return the nodes that will say something soon: they boot, start a job, or are taken away."""
    booting = (RentalState.REQUESTED, RentalState.BOOTING)
    nodes = {one.id for one in world.rentals.values() if one.state in booting}
    going = {one.node for one in world.rentals.values() if one.interrupted_at is not None}
    for job in world.jobs.values():
        place = job.placement
        if place is None:
            continue
        lands = job.state is JobState.RECOVERING and not going.isdisjoint(place.nodes)
        if lands or job.state is JobState.STARTING:
            nodes.update(place.nodes)
    return frozenset(nodes)
