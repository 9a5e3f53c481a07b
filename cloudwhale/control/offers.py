"""What can be rented now, as providers say it: asked for now and then, minus what is not allowed.

Left out is what was refused not long ago, what a quota does not hold, what the settings forbid, and
what another offer beats in every respect.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cloudwhale.control.circuits import Circuits, barred
from cloudwhale.control.effects import Effect, Key
from cloudwhale.model.offer import Offer
from cloudwhale.model.reason import Code, Refusal
from cloudwhale.model.rental import Rental, RentalState
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.planning.allowing import Limits, allowed
from cloudwhale.planning.boots import Scope
from cloudwhale.planning.gravity import moves
from cloudwhale.planning.hazards import NOTHING_LEARNED, Hazards
from cloudwhale.planning.shortlist import shortlist
from cloudwhale.spi.provider import Provider

ASK_EVERY_S: Seconds = 60.0  # spot prices move by the minute at most, and a list costs a request
BLOCKED_S: Seconds = 300.0  # what had no capacity is not asked for again so soon
BLOCKED_MOST_S: Seconds = 3600.0  # each refusal doubles the time, up to this
OTHERS_FIRST_S: Seconds = 60.0  # a round or two, in which what did not fail is tried
FORGIVEN_S: Seconds = 7200.0  # who was not refused for so long begins anew
LEARNED_S: Seconds = 3600.0  # a quota may have been raised since it refused us


@dataclass(frozen=True, slots=True)
class Offered:
    """What one provider offers."""

    provider: str
    offers: tuple[Offer, ...]


@dataclass(frozen=True, slots=True)
class _Block:
    """An offer that was refused."""

    until: Instant
    for_s: Seconds


@dataclass(frozen=True, slots=True)
class _Quota:
    """What a quota group was found to hold, as it refused one more."""

    most: float
    until: Instant
    """Until when that is believed."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A list of offers as a store keeps it."""

    digest: str
    """SHA-256 of the text; empty for an empty list."""
    text: str
    """As JSON; empty for an empty list."""


class Offers:
    """Remembers what every provider offers, what was refused not long ago, and what quotas hold."""

    def __init__(self, providers: Mapping[str, Provider], every_s: Seconds = ASK_EVERY_S) -> None:
        self._providers = providers
        self._every_s = every_s
        self._by_provider: dict[str, tuple[Offer, ...]] = {}
        self._blocked: dict[str, _Block] = {}
        """By the offer's id."""
        self._quotas: dict[str, _Quota] = {}
        """By group: of the others nobody knows where they end, and they are tried."""
        self._limits = Limits()
        self._accepts_no_stop = False
        self._told_of: set[str] = set()
        """Providers of which was told why nothing, or nothing with GPUs, is rented there."""
        self._learned = NOTHING_LEARNED
        self._hazards: dict[str, float | None] = {}
        """By the offer's id, where what was learned differs from what its provider says."""
        self.circuits = Circuits()
        self._asked_at: Instant | None = None
        self._seen_at: Instant = float("-inf")
        """When it was last asked what is open."""
        self._made_of: object = None
        """What the open offers were made of: while it is the same, they are."""
        self._open: tuple[Offer, ...] = ()
        self._kept: Kept | None = None
        """The open offers as a store keeps them, made when they are asked for."""

    def limit_to(self, limits: Limits, *, accept_no_stop: bool = False) -> None:
        """Offer from now on what a user's settings allow, and nothing else.

        `accept_no_stop`: also machines that neither their cloud nor they themselves end in time.
        """
        self._limits = limits
        self._accepts_no_stop = accept_no_stop
        self._made_of = None

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

    def came(self, offered: Offered) -> Refusal | None:
        """Take what a provider offers in place of what it offered before.

        Return why nothing of it is taken, once; None when it is, or when that was said.
        """
        name, provider = offered.provider, self._providers.get(offered.provider)
        has_stop = self._accepts_no_stop or provider is None or bool(provider.stops)
        self._by_provider[name] = offered.offers if has_stop else ()
        self._made_of = None
        self._hazards = self._where_learned()
        if not has_stop and offered.offers:
            return self._once(no_stop(name), name)
        if _holds_no_gpu(offered.offers):
            return self._once(no_quota(name), name)
        self._told_of.discard(name)
        return None

    def _once(self, refusal: Refusal, name: str) -> Refusal | None:
        is_news = name not in self._told_of
        self._told_of.add(name)
        return refusal if is_news else None

    def learn(self, hazards: Hazards) -> None:
        """Offer from now on with the hazards that our own machines have taught."""
        if hazards is self._learned:
            return
        self._learned = hazards
        found = self._where_learned()
        if found != self._hazards:
            self._hazards = found
            self._made_of = None

    def _where_learned(self) -> dict[str, float | None]:
        learned = self._learned
        if not learned.pools:
            return {}
        every = (offer for offers in self._by_provider.values() for offer in offers)
        found = ((offer, learned.per_h(offer)) for offer in every if offer.market == "spot")
        return {offer.id: per_h for offer, per_h in found if per_h != offer.hazard_per_h}

    def ask_soon(self) -> None:
        """Ask at the next chance: a price is said to have moved."""
        self._asked_at = None

    def moved(self, offer: str) -> None:
        """Leave an offer out until its price is known again, and ask for that at once."""
        for provider, offers in self._by_provider.items():
            self._by_provider[provider] = tuple(one for one in offers if one.id != offer)
        self._made_of = None
        self.ask_soon()

    def block(self, offer: str, now: Instant) -> None:
        """Leave an offer out for a while, the longer the oftener it was refused."""
        before = self._blocked.get(offer)
        for_s = BLOCKED_S
        if before is not None and now < before.until + FORGIVEN_S:
            for_s = min(BLOCKED_MOST_S, 2 * before.for_s)
        self._blocked[offer] = _Block(now + for_s, for_s)

    def deny(self, offer: str, now: Instant) -> None:
        """Leave an offer out that we may not have, and for as long at least those like it.

        What forbids one, a policy, a role or a setting that is wrong, forbids its neighbours as a
        rule: a cloud is not asked for each of them to hear the same.
        """
        self.block(offer, now)
        every = (one for some in self._by_provider.values() for one in some)
        denied = next((one for one in every if one.id == offer), None)
        if denied is None:
            return
        until = now + BLOCKED_S
        for one in self._by_provider.get(denied.provider, ()):
            before = self._blocked.get(one.id)
            if _alike(one) == _alike(denied) and (before is None or before.until < until):
                self._blocked[one.id] = _Block(
                    until, BLOCKED_S / 2 if before is None else before.for_s
                )

    def try_last(self, now: Instant) -> None:
        """Let those that were refused not long ago wait on where a circuit opens again.

        Else what failed would be tried first then, as the cheapest, and open it anew.
        """
        for offers in self._by_provider.values():
            for offer in offers:
                before, opens_at = self._blocked.get(offer.id), self.circuits.until(offer)
                if before is not None and before.until > now and opens_at > now:
                    until = max(before.until, opens_at + OTHERS_FIRST_S)
                    self._blocked[offer.id] = _Block(until, before.for_s)

    def exhaust(self, offer: str, now: Instant, rentals: Iterable[Rental]) -> None:
        """Learn from a refusal that its group holds no more than what we have of it now.

        One that counts against nothing that is known is left out like any that was refused.
        """
        found = next(
            (o for some in self._by_provider.values() for o in some if o.id == offer), None
        )
        if found is None or not found.quota:
            self.block(offer, now)
            return
        used = _used(rentals).get(found.quota, 0.0)
        self._quotas[found.quota] = _Quota(used, now + LEARNED_S)

    def open(
        self,
        now: Instant,
        rentals: Iterable[Rental] = (),
        data_in: Sequence[str] = (),
        saved_in: Sequence[str] = (),
    ) -> tuple[Offer, ...]:
        """Return what could be taken now, by id; the same object while nothing has changed.

        Of offers that differ in nothing that matters only the first, see `planning/shortlist`:
        when that is refused, the next stands in its place. `data_in`: the regions in which lies
        what jobs read; `saved_in`: what they have saved, which matters where clouds are several.
        """
        if sum(map(bool, self._by_provider.values())) > 1:
            data_in = sorted({*data_in, *saved_in})
        self._seen_at = now
        blocked = frozenset(name for name, block in self._blocked.items() if block.until > now)
        left = self._left(now, rentals)
        closed = self.circuits.closed(now)
        made_of = (blocked, closed, tuple(left.items()), tuple(data_in))
        if made_of == self._made_of:
            return self._open
        self._made_of = made_of
        some = list(self._allowed(blocked, closed, left))
        found = shortlist(some, moves(some, data_in))
        if len(found) != len(self._open) or any(
            a is not b and a != b for a, b in zip(found, self._open, strict=True)
        ):
            self._open = found
            self._kept = None
        return self._open

    def _left(self, now: Instant, rentals: Iterable[Rental]) -> Mapping[str, float]:
        """Return what is left of each quota group that has refused us."""
        self._quotas = {name: one for name, one in self._quotas.items() if one.until > now}
        if not self._quotas:
            return {}
        used = _used(rentals)
        return {
            name: max(0.0, one.most - used.get(name, 0.0)) for name, one in self._quotas.items()
        }

    def _allowed(
        self, blocked: Collection[str], closed: frozenset[Scope], left: Mapping[str, float]
    ) -> Iterator[Offer]:
        for offers in self._by_provider.values():
            for offer in allowed(offers, self._limits).offers:
                units = left.get(offer.quota, offer.quota_left)
                if offer.id in blocked or barred(offer, closed):
                    continue
                if units is not None and offer.quota_units > units:
                    continue
                if offer.id in self._hazards:
                    offer = offer.but(hazard_per_h=self._hazards[offer.id])
                yield offer if units == offer.quota_left else offer.but(quota_left=units)

    @property
    def kept(self) -> Kept:
        """Return what could be taken when it was asked last, as a store keeps it."""
        if self._kept is None:
            self._kept = kept(self._open)
        return self._kept

    def next_look_at(self) -> Instant | None:
        """Return when a question is due, or what was blocked is open again."""
        asks_at = None if self._asked_at is None else self._asked_at + self._every_s
        learned = [one.until for one in self._quotas.values()]
        blocked = [one.until for one in self._blocked.values() if one.until > self._seen_at]
        closes = self.circuits.next_at(self._seen_at)
        others = [at for at in (asks_at, closes) if at is not None]
        return min([*blocked, *learned, *others], default=None)


def _alike(offer: Offer) -> tuple[str, str, bool]:
    """Return what offers of a provider share that are forbidden together: images are by GPU."""
    return offer.region, offer.market, bool(offer.facts.devices)


def _used(rentals: Iterable[Rental]) -> Mapping[str, float]:
    """Return what our machines take of each quota group; those that were only asked for do not."""
    used: dict[str, float] = {}
    for rental in rentals:
        offer = rental.taken
        if offer is None or rental.state is RentalState.RESERVED or rental.ended_at is not None:
            continue
        used[offer.quota] = used.get(offer.quota, 0.0) + offer.quota_units
    return used


def kept(offers: Sequence[Offer]) -> Kept:
    """Return a list of offers as a store keeps it; lists of the same offers are the same."""
    if not offers:
        return Kept("", "")
    text = as_json(offers)
    return Kept(hashlib.sha256(text.encode()).hexdigest(), text)


def as_json(offers: Sequence[Offer]) -> str:
    """Return offers as JSON."""
    rows = [offer.model_dump(mode="json") for offer in offers]
    return json.dumps(rows, separators=(",", ":"), sort_keys=True)


def read_json(text: str) -> tuple[Offer, ...]:
    """Return offers from their JSON."""
    return tuple(Offer.model_validate(row) for row in json.loads(text))


def _holds_no_gpu(offers: Sequence[Offer]) -> bool:
    """Say whether there are machines with GPUs, and quotas, all of them known, hold none."""
    left = [(one.quota_left, one.quota_units) for one in offers if one.facts.devices]
    return bool(left) and all(units is not None and units < wanted for units, wanted in left)


def no_quota(provider: str) -> Refusal:
    """Return why nothing with GPUs is rented where quotas are too small for every such machine."""
    return Refusal(
        code=Code.QUOTA,
        says=f"nothing with GPUs is rented from {provider}: its quotas hold no such machine",
        can_wait=True,
        change=f"`cloudwhale doctor {provider}` says which, and how to ask for more",
    )


def no_stop(provider: str) -> Refusal:
    """Return why nothing is rented where nobody ends a machine by itself."""
    return Refusal(
        code=Code.NO_STOP,
        says=f"nothing is rented from {provider}: neither it nor its machines end them in time "
        "when nobody is there who could",
        can_wait=False,
        change="accept_no_stop = true in cloudwhale.toml rents there all the same",
    )
