"""What can be rented now, as providers say it: asked for now and then, minus what was refused."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cloudwhale.control.effects import Effect, Key
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.provider import Provider

ASK_EVERY_S: Seconds = 60.0  # spot prices move by the minute at most, and a list costs a request
BLOCKED_S: Seconds = 300.0  # what had no capacity is not asked for again so soon


@dataclass(frozen=True, slots=True)
class Offered:
    """What one provider offers."""

    provider: str
    offers: tuple[Offer, ...]


class Offers:
    """Remembers what every provider offers, and which offers were refused not long ago."""

    def __init__(self, providers: Mapping[str, Provider], every_s: Seconds = ASK_EVERY_S) -> None:
        self._providers = providers
        self._every_s = every_s
        self._by_provider: dict[str, tuple[Offer, ...]] = {}
        self._blocked: dict[str, Instant] = {}
        """Until when an offer is not taken, by its id."""
        self._asked_at: Instant | None = None
        self._open: tuple[Offer, ...] = ()
        self._text = "[]"

    def looks(self, now: Instant) -> list[Effect]:
        """Return the questions that are due."""
        if self._asked_at is not None and now - self._asked_at < self._every_s:
            return []
        self._asked_at = now
        return [self._ask(name, now) for name in self._providers]

    def _ask(self, name: str, now: Instant) -> Effect:
        def ask() -> Offered:
            return Offered(name, tuple(self._providers[name].offers(now)))

        return Effect(Key("offers", name), ask)

    def came(self, offered: Offered) -> None:
        """Take what a provider offers in place of what it offered before."""
        self._by_provider[offered.provider] = offered.offers

    def ask_soon(self) -> None:
        """Ask at the next chance: a price is said to have moved."""
        self._asked_at = None

    def moved(self, offer: str) -> None:
        """Leave an offer out until its price is known again, and ask for that at once."""
        for provider, offers in self._by_provider.items():
            self._by_provider[provider] = tuple(one for one in offers if one.id != offer)
        self.ask_soon()

    def block(self, offer: str, now: Instant) -> None:
        """Leave an offer out for a while."""
        self._blocked[offer] = now + BLOCKED_S

    def open(self, now: Instant) -> tuple[Offer, ...]:
        """Return what could be taken now, by id; the same object while nothing has changed."""
        self._blocked = {name: until for name, until in self._blocked.items() if until > now}
        found = [
            offer
            for offers in self._by_provider.values()
            for offer in offers
            if offer.id not in self._blocked
        ]
        found.sort(key=lambda offer: (offer.id, offer.provider))
        if len(found) != len(self._open) or any(
            a is not b and a != b for a, b in zip(found, self._open, strict=True)
        ):
            self._open = tuple(found)
            self._text = as_json(found)
        return self._open

    @property
    def text(self) -> str:
        """Return what could be taken when it was asked last, as JSON."""
        return self._text

    def next_look_at(self) -> Instant | None:
        """Return when a question is due, or what was blocked is open again."""
        asks_at = None if self._asked_at is None else self._asked_at + self._every_s
        times = [*self._blocked.values(), *([] if asks_at is None else [asks_at])]
        return min(times, default=None)


def as_json(offers: Sequence[Offer]) -> str:
    """Return offers as JSON."""
    rows = [offer.model_dump(mode="json") for offer in offers]
    return json.dumps(rows, separators=(",", ":"), sort_keys=True)


def read_json(text: str) -> tuple[Offer, ...]:
    """Return offers from their JSON."""
    return tuple(Offer.model_validate(row) for row in json.loads(text))
