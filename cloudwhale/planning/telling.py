"""When the agent of a rented machine is told anew how long its machine is paid for."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from cloudwhale.model import plan as p
from cloudwhale.model.rental import Lease, Rental, RentalState
from cloudwhale.model.terms import WATCHED_S
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.planning.queue import earliest

TELLS_BEFORE_S: Seconds = WATCHED_S / 2  # so an order that is late by half of it changes nothing
TOGETHER_S: Seconds = 120.0  # who is due so soon is told with the others: a round serves them all


@dataclass(frozen=True, slots=True)
class Telling:
    """Who is told now, and when the next one is due."""

    steps: tuple[p.TellLease, ...] = ()
    look_again_at: Instant | None = None


def telling(rentals: Mapping[str, Rental], now: Instant, returned: Collection[str] = ()) -> Telling:
    """Return which agents are to be told of their leases now.

    `returned`: ids of those that this round gives back.
    """
    due = {
        rental.id: _due_at(rental)
        for rental in _told(rentals.values())
        if rental.id not in returned
    }
    if min(due.values(), default=now + 1.0) > now:
        return Telling((), earliest(*due.values()))
    together = sorted(name for name, at in due.items() if at <= now + TOGETHER_S)
    later = [at for name, at in due.items() if name not in together]
    return Telling(tuple(_tell(rentals[name], now) for name in together), earliest(*later))


def _told(rentals: Iterable[Rental]) -> Iterable[Rental]:
    """Yield the machines whose agents hold to what they are told."""
    for rental in rentals:
        if rental.state is RentalState.READY and rental.ended_at is None:
            yield rental


def _due_at(rental: Rental) -> Instant:
    told, lease = rental.told, rental.lease
    if told is None or _term(told) != _term(lease):
        return float("-inf")
    return told.watched_until - TELLS_BEFORE_S


def _term(lease: Lease) -> tuple[int, Instant]:
    return (lease.number, lease.away_until)


def _tell(rental: Rental, now: Instant) -> p.TellLease:
    lease = rental.lease.but(watched_until=now + WATCHED_S)
    return p.TellLease(rental=rental.but(lease=lease))
