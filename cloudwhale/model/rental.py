"""A rented machine from reservation to return, and the lease that bounds it."""

from enum import StrEnum

from cloudwhale.model.units import Instant, MicroUsd
from cloudwhale.model.value import Value


class RentalState(StrEnum):
    """Where a rental is in its life; edges stand in `planning/lifecycle`."""

    RESERVED = "reserved"
    REQUESTED = "requested"
    BOOTING = "booting"
    READY = "ready"
    DRAINING = "draining"
    RETURNED = "returned"
    LOST = "lost"
    NEEDS_ATTENTION = "needs-attention"


class Lease(Value):
    """The times to which a machine's money is reserved."""

    number: int
    watched_until: Instant
    """Holds while the controller is heard."""
    away_until: Instant
    """Planned end of the machine's orders plus landing; its money is reserved in full."""
    stop_at: Instant
    """The earliest stop that the provider itself enforces."""


class Rental(Value):
    """A machine that somebody else owns and we pay for."""

    id: str
    payer: str
    offer: str
    state: RentalState = RentalState.RESERVED
    lease: Lease
    reserved: MicroUsd
    spent: MicroUsd = MicroUsd(0)
    node: str | None = None
    requested_at: Instant | None = None
    ended_at: Instant | None = None
