"""The stock of a round: worked out anew only where other things are offered."""

from collections.abc import Collection
from functools import lru_cache

from cloudwhale.model.offer import Offer
from cloudwhale.planning.durations import Durations
from cloudwhale.planning.stock import Stock


class _Same:
    """Offers that are equal where they are the same: lists are made anew when one changes."""

    __slots__ = ("offers",)

    def __init__(self, offers: Collection[Offer]) -> None:
        self.offers = offers

    def __hash__(self) -> int:
        return id(self.offers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.offers is other.offers


def stocked(offers: Collection[Offer], durations: Durations, market: str = "") -> Stock:
    """Return the stock of some offers, or of those of one market.

    While the offers are the same object, round after round, so is what they are worked out to.
    """
    return _stocked(_Same(offers), market).lasting(durations)


@lru_cache(maxsize=4)
def _stocked(same: _Same, market: str) -> Stock:
    found = (offer for offer in same.offers if not market or offer.market == market)
    return Stock(found, Durations({}))
