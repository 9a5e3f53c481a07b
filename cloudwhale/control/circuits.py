"""Circuit breakers of boots: where machines do not come up, none is launched for a while."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cloudwhale.model import event as e
from cloudwhale.model.offer import Offer
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Rental
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.planning import boots
from cloudwhale.planning.boots import Scope, scope_of
from cloudwhale.spi.store import Told

TRIPS_AFTER = 3  # boots in a row: one is bad luck, two are a coincidence
OPEN_S: Seconds = 600.0  # as long as a person needs to look at a console
OPEN_MOST_S: Seconds = 4 * 3600.0  # each time doubles the one before, up to this


@dataclass(slots=True)
class _Circuit:
    """What is known of boots somewhere."""

    failed: int = 0
    """In a row."""
    times: int = 0
    """That it was opened since a machine came up."""
    until: Instant = float("-inf")

    def fail(self, at: Instant) -> bool:
        """Count a boot that failed; say whether that opens it.

        Those that were launched before it opened make it no longer.
        """
        self.failed += 1
        if self.failed < TRIPS_AFTER or at < self.until:
            return False
        self.times += 1
        self.until = at + min(OPEN_MOST_S, OPEN_S * 2 ** min(self.times - 1, 10))
        return True


class Circuits:
    """One for each type family in a region of a provider, and one for each provider whole.

    Three boots in a row that fail open it: nothing is launched there for 10 min, then twice as
    long each time that the next one fails too, up to 4 h. A machine that comes up closes it.
    """

    def __init__(self) -> None:
        self._circuits: dict[Scope, _Circuit] = {}

    def remember(self, told: Iterable[Told]) -> None:
        """Fold what was noted of boots before we began."""
        for one in told:
            if isinstance(one.event, e.Noted):
                self._fold(one.event)

    def failed(self, note: e.Noted) -> tuple[e.Noted, ...]:
        """Count a boot that failed, as it was noted; return what it opens."""
        return tuple(self._opened(scope, note.at) for scope in self._fold(note))

    def came_up(self, rental: Rental, at: Instant) -> e.Noted | None:
        """Close what a machine shows to be well; return the note, None where nothing was ill."""
        if rental.taken is None or not self._known(scope_of(rental.taken)):
            return None
        note = boots.noted(rental, Code.BOOTED, f"{rental.id} has booted", at)
        if note is not None:
            self._fold(note)
        return note

    def closed(self, now: Instant) -> frozenset[Scope]:
        """Return where nothing may be launched now."""
        return frozenset(scope for scope, one in self._circuits.items() if now < one.until)

    def until(self, offer: Offer) -> Instant:
        """Return until when an offer may not be launched; before now where it may be."""
        scope = scope_of(offer)
        found = (self._circuits.get(one) for one in (scope, scope.whole))
        return max((one.until for one in found if one is not None), default=float("-inf"))

    def next_at(self, now: Instant) -> Instant | None:
        """Return when something may be launched again somewhere."""
        return min((one.until for one in self._circuits.values() if now < one.until), default=None)

    def _known(self, scope: Scope) -> bool:
        return scope in self._circuits or scope.whole in self._circuits

    def _fold(self, note: e.Noted) -> list[Scope]:
        """Work a note in; return what it opens."""
        scope = boots.scope_in(note)
        if scope is None:
            return []
        if note.reason.code is Code.BOOTED:
            self._circuits.pop(scope, None)
            self._circuits.pop(scope.whole, None)
        if note.reason.code is not Code.BOOT_FAILED:
            return []
        both = (scope, scope.whole)
        return [one for one in both if self._circuits.setdefault(one, _Circuit()).fail(note.at)]

    def _opened(self, scope: Scope, at: Instant) -> e.Noted:
        circuit = self._circuits[scope]
        reason = Reason(
            code=Code.CIRCUIT_OPEN,
            says=(
                f"{scope.words}: {circuit.failed} machines in a row did not come up, so none is "
                f"launched there for {circuit.until - at:.0f} s"
            ),
            change="look at a machine's console; one that comes up there closes it",
        )
        return e.Noted(at=at, subject=boots.SUBJECT, reason=reason)


def barred(offer: Offer, closed: frozenset[Scope]) -> bool:
    """Say whether an offer is of what is not launched now."""
    if not closed:
        return False
    scope = scope_of(offer)
    return scope in closed or scope.whole in closed


def told_to(rental: Rental, opened: Iterable[e.Noted], waiting: Iterable[str]) -> Iterator[e.Waits]:
    """Yield to those who waited for a machine that did not boot what that has opened."""
    for note in opened:
        for job in waiting:
            if job in rental.jobs:
                yield e.Waits(at=note.at, job=job, reason=note.reason)
