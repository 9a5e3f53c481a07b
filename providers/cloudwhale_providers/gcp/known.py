"""What is known of our machines beyond Compute Engine's list: facts, and those not listed yet."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from threading import Lock

from cloudwhale.model.node import Facts
from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.provider import LaunchRequest, Machine
from cloudwhale_providers.gcp.account import Account
from cloudwhale_providers.gcp.launching import Made
from cloudwhale_providers.gcp.listing import Seen

UNLISTED_S: Seconds = 300.0
"""So long a machine that was launched counts as there although it is not listed yet."""


@dataclass(frozen=True, slots=True)
class Recent:
    """A machine that this process has launched, for as long as it may not be listed."""

    machine: Machine
    zone: str
    since: Seconds
    """By the steady clock."""


class Known:
    """Remembers; safe for threads."""

    def __init__(self, account: Account, catalogue: Callable[[Instant], Sequence[Offer]]) -> None:
        self._account = account
        self._catalogue = catalogue
        self._facts: dict[str, Facts | None] = {}
        """By type; None: the catalogue does not have it."""
        self._recent: dict[str, Recent] = {}
        self._lock = Lock()

    def took(self, offer: Offer) -> None:
        """Remember what the machines of a type have."""
        with self._lock:
            self._facts[offer.type] = offer.facts

    def launched(self, machine: Machine, zone: str) -> None:
        """Remember a machine that may not be listed yet."""
        recent = Recent(machine, zone, self._account.clock.steady())
        with self._lock:
            self._recent[machine.id] = recent

    def ended(self, machine: str) -> None:
        """Remember no longer a machine that Compute Engine has been told to delete."""
        with self._lock:
            self._recent.pop(machine, None)

    def unlisted(self, found: Iterable[Seen]) -> list[Machine]:
        """Return the machines launched not long ago that are in no list yet."""
        seen, now = {one.id for one in found}, self._account.clock.steady()
        with self._lock:
            self._recent = {
                name: one
                for name, one in self._recent.items()
                if name not in seen and now - one.since < UNLISTED_S
            }
            return [one.machine for one in self._recent.values()]

    def zone_of(self, machine: str) -> str:
        """Return where a machine was launched that is not listed yet; empty for others."""
        with self._lock:
            recent = self._recent.get(machine)
        return "" if recent is None else recent.zone

    def machine(self, one: Seen) -> Machine:
        """Return a machine as the house wants it.

        Its bill counts from its creation: Compute Engine's begins some seconds later, when it
        runs. What an hour of spot costs stays as it was offered: it changes once a day at most.
        """
        return Machine(
            id=one.id,
            node=one.node,
            state=one.state,
            facts=self._facts_of(one.type),
            stop_at=one.stop_at,
            billed_from=one.launched_at,
            billed_to=None if one.ended_at is None else max(one.launched_at, one.ended_at),
            owned=False,
            zone=one.zone,
            says="" if one.is_alive else one.says,
        )

    def unseen(self, request: LaunchRequest, offer: Offer, made: Made) -> Machine:
        """Return a machine that was made, and could not be looked at since."""
        return Machine(
            id=made.id, node=request.node, state="starting", facts=offer.facts, owned=False,
            stop_at=request.stop_at, zone=offer.zone,
            billed_from=made.asked_at or self._account.clock.now(),
        )  # fmt: skip

    def never_seen(self, request: LaunchRequest, offer: Offer, made: Made) -> Machine:
        """Return a machine that was made, and has ended before anybody looked."""
        began_at = made.asked_at or self._account.clock.now()
        ended_at = began_at if made.ending is None else max(began_at, made.ending.at)
        return self.unseen(request, offer, made).but(
            state="gone", billed_from=began_at, billed_to=ended_at,
            says="" if made.ending is None else made.ending.says,
        )  # fmt: skip

    def _facts_of(self, type_name: str) -> Facts | None:
        with self._lock:
            if type_name in self._facts:
                return self._facts[type_name]
        offers = self._catalogue(self._account.clock.now())
        facts = {offer.type: offer.facts for offer in offers}
        with self._lock:
            self._facts = {type_name: None, **facts, **self._facts}
            return self._facts[type_name]
