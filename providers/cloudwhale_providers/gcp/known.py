"""What is known of our machines beyond Compute Engine's list: facts, and those not listed yet."""

from collections.abc import Callable, Sequence

from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant
from cloudwhale.spi.provider import LaunchRequest, Machine
from cloudwhale_providers.gcp.account import Account
from cloudwhale_providers.gcp.launching import Made
from cloudwhale_providers.gcp.listing import Seen
from cloudwhale_providers.recent import Recents


class Known(Recents):
    """Remembers; safe for threads."""

    def __init__(self, account: Account, catalogue: Callable[[Instant], Sequence[Offer]]) -> None:
        super().__init__(account.clock, catalogue)
        self._account = account

    def machine(self, one: Seen) -> Machine:
        """Return a machine as the house wants it.

        Its bill counts from its creation: Compute Engine's begins some seconds later, when it
        runs. What an hour of spot costs stays as it was offered: it changes once a day at most.
        """
        return Machine(
            id=one.id,
            node=one.node,
            state=one.state,
            facts=self.facts_of(one.type),
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
