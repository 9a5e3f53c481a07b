"""Machines that were launched, and that no list of their cloud may have yet; what they have."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from threading import Lock

from cloudwhale.model.node import Facts
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.clock import Clock
from cloudwhale.spi.provider import Machine

UNLISTED_S: Seconds = 300.0
"""So long a machine that was launched counts as there although it is not listed yet."""


@dataclass(frozen=True, slots=True)
class _Recent:
    machine: Machine
    place: str
    since: Seconds
    """By the steady clock."""


class Recents:
    """Remembers; safe for threads."""

    def __init__(self, clock: Clock, catalogue: Callable[[Instant], Sequence[Offer]]) -> None:
        self._clock = clock
        self._catalogue = catalogue
        self._facts: dict[str, Facts | None] = {}
        """By type; None: the catalogue does not have it."""
        self._recent: dict[str, _Recent] = {}
        self._lock = Lock()

    def took(self, offer: Offer) -> None:
        """Remember what the machines of a type have."""
        with self._lock:
            self._facts[offer.type] = offer.facts

    def launched(self, machine: Machine, place: str) -> None:
        """Remember a machine that may not be listed yet; `place`: what its cloud lists by."""
        recent = _Recent(machine, place, self._clock.steady())
        with self._lock:
            self._recent[machine.id] = recent

    def ended(self, machine: str) -> None:
        """Remember no longer a machine that its cloud has been told to end."""
        with self._lock:
            self._recent.pop(machine, None)

    def unlisted(self, listed: Collection[str]) -> list[Machine]:
        """Return the machines launched not long ago that are in no list yet."""
        now = self._clock.steady()
        with self._lock:
            self._recent = {
                name: one
                for name, one in self._recent.items()
                if name not in listed and now - one.since < UNLISTED_S
            }
            return [one.machine for one in self._recent.values()]

    def place_of(self, machine: str) -> str:
        """Return where a machine was launched that is not listed yet; empty for others."""
        with self._lock:
            recent = self._recent.get(machine)
        return "" if recent is None else recent.place

    def facts_of(self, type_name: str) -> Facts | None:
        """Return what the machines of a type have; None where nobody says."""
        with self._lock:
            if type_name in self._facts:
                return self._facts[type_name]
        facts = {offer.type: offer.facts for offer in self._catalogue(self._clock.now())}
        with self._lock:
            self._facts = {type_name: None, **facts, **self._facts}
            return self._facts[type_name]
