"""What is known of our machines beyond EC2's list: facts, the price at launch, the first end."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant, MicroUsd, Seconds
from cloudwhale.spi.errors import CloudwhaleError
from cloudwhale.spi.provider import Machine
from cloudwhale.spi.spelling import hourly
from cloudwhale_providers.aws.account import Account
from cloudwhale_providers.aws.asking import listed
from cloudwhale_providers.aws.listing import Seen
from cloudwhale_providers.recent import Recents

ASK_AGAIN_S: Seconds = 60.0
"""After so long a price is asked for again that nobody has said."""


class Known(Recents):
    """Remembers; safe for threads."""

    def __init__(self, account: Account, catalogue: Callable[[Instant], Sequence[Offer]]) -> None:
        super().__init__(account.clock, catalogue)
        self._account = account
        self._prices: dict[str, MicroUsd] = {}
        """Of spot machines, by id: what an hour cost when they were launched."""
        self._asked_at: dict[str, Seconds] = {}
        """When a price was asked for in vain, by id."""
        self._gone_at: dict[str, Instant] = {}

    def machine(self, one: Seen) -> Machine:
        """Return a machine as the house wants it."""
        return Machine(
            id=one.id,
            node=one.node,
            state=one.state,
            facts=self.facts_of(one.type),
            stop_at=one.stop_at,
            billed_from=one.launched_at,
            billed_to=self._billed_to(one),
            owned=False,
            price_usd_h=self._price(one) if one.is_spot else None,
            zone=one.zone,
            says="" if one.is_alive else _says(one),
            door=one.door,
        )

    def _billed_to(self, one: Seen) -> Instant | None:
        """Return when EC2 says that it was ended; else when it was first seen so."""
        if one.is_alive:
            return None
        if one.ended_at is not None:
            return max(one.launched_at, one.ended_at)
        with self._lock:
            return self._gone_at.setdefault(one.id, self._account.clock.now())

    def _price(self, one: Seen) -> MicroUsd | None:
        """Return what an hour cost in its zone when it was launched; None: nobody has said."""
        now = self._account.clock.steady()
        with self._lock:
            known = self._prices.get(one.id)
            if known is not None or now - self._asked_at.get(one.id, -ASK_AGAIN_S) < ASK_AGAIN_S:
                return known
        # Two may ask at a time, of a launch and of a list: who waits for no answer would let the
        # machine be paid for at the price that it was offered at.
        found: MicroUsd | None = None
        try:
            found = price_at_launch(self._account, one)
        except CloudwhaleError:
            pass  # nobody has said: it is asked again
        with self._lock:
            if found is None:
                self._asked_at[one.id] = now
                return self._prices.get(one.id)
            self._prices[one.id] = found
        return found


def price_at_launch(account: Account, one: Seen) -> MicroUsd | None:
    """Return the spot price at a machine's launch; raise Denied or Unreachable.

    Asked for one moment, EC2 answers with the price that held then, dated when it began to.
    """
    at = datetime.fromtimestamp(one.launched_at, UTC)
    rows = listed(
        account.calls, one.region, "ec2", "describe_spot_price_history", "SpotPriceHistory",
        InstanceTypes=[one.type], ProductDescriptions=["Linux/UNIX"], AvailabilityZone=one.zone,
        StartTime=at, EndTime=at,
    )  # fmt: skip
    dated = sorted(
        ((row["Timestamp"], str(row["SpotPrice"])) for row in rows), key=lambda row: row[0]
    )
    held = [price for since, price in dated if since <= at] or [price for _, price in dated[:1]]
    try:
        return hourly(held[-1]) if held else None
    except ValueError:
        return None


def _says(one: Seen) -> str:
    """Return EC2's words for an end; its messages begin with the code themselves, as a rule."""
    return one.says if one.reason in one.says else f"{one.says} ({one.reason})"
