"""What the spot machines that we had have taught about hazards; read once, then followed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from cloudwhale.model.rental import Rental
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.planning.hazards import (
    FORGOTTEN_S,
    NOTHING_LEARNED,
    Hazards,
    Life,
    learned,
    life_of,
)

ANEW_EVERY_S: Seconds = 300.0
"""So often what was seen is faded anew, though nothing has happened."""

Signature = tuple[tuple[str, Instant | None, Instant | None], ...]


class Lives:
    """Remembers the lives of spot machines, also of those that the world has let go of."""

    def __init__(self, past: Callable[[], Sequence[Rental]]) -> None:
        self._past = past
        """Those that were back when this controller began; asked for once, when first needed."""
        self._lives: dict[str, Life] | None = None
        self._open: frozenset[str] = frozenset()
        self._of: Mapping[str, Rental] | None = None
        """Those that it was asked of last."""
        self._signature: Signature | None = None
        self._learned = NOTHING_LEARNED
        self._anew_at: Instant = float("inf")

    def hazards(self, rentals: Mapping[str, Rental], now: Instant) -> Hazards:
        """Return what all lives teach; the same object while nothing new is to be told."""
        if rentals is self._of and now < self._anew_at:
            return self._learned  # no rental has changed: at most ticks
        self._of = rentals
        signature = _signature(rentals.values())
        if self._lives is not None and signature == self._signature and now < self._anew_at:
            return self._learned
        lives = self._known(now)
        for gone in sorted(self._open - rentals.keys()):
            # It was given back and paid for in one breath, so its end was never seen here.
            last = lives.get(gone)  # none: it was taken so long ago that it is forgotten
            if last is not None and last.until is None:
                lives[gone] = replace(last, until=now)
        found = {name: life_of(one) for name, one in rentals.items()}
        here = {name: life for name, life in found.items() if life is not None}
        lives |= here
        self._open, self._signature = frozenset(here), signature
        self._learned = learned(lives.values(), now) if lives else NOTHING_LEARNED
        self._anew_at = now + ANEW_EVERY_S if lives else float("inf")
        return self._learned

    def _known(self, now: Instant) -> dict[str, Life]:
        if self._lives is None:
            pairs = ((one.id, life_of(one)) for one in self._past())
            self._lives = {name: life for name, life in pairs if life is not None}
        oldest = now - FORGOTTEN_S
        self._lives = {
            name: life
            for name, life in self._lives.items()
            if life.until is None or life.until >= oldest
        }
        return self._lives


def _signature(rentals: Iterable[Rental]) -> Signature:
    return tuple(
        (one.id, one.interrupted_at, one.ended_at)
        for one in rentals
        if one.requested_at is not None and one.taken is not None and one.taken.market == "spot"
    )
