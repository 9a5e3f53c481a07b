"""Machines that stay for a while though nothing runs there, because a person wants to look."""

from cloudwhale.model.job import Job
from cloudwhale.model.rental import Rental, RentalState
from cloudwhale.model.units import Instant


def kept_for(rental: Rental, failed: Job, at: Instant) -> Rental:
    """Return a machine on which a job has failed for good; itself when nobody wants to look.

    It is kept no longer than what is set aside for it lasts: nothing more is for that.
    """
    keep_s = failed.spec.keep_on_failure_s
    if not keep_s or rental.state is not RentalState.READY:
        return rental
    until = min(at + keep_s, rental.lease.away_until)
    return (
        rental if until <= rental.kept_until else rental.but(kept_until=until, kept_for=failed.id)
    )


def let_go(rental: Rental, job: str) -> Rental:
    """Return a machine that nobody wants to look at any more; itself when another job keeps it."""
    return rental.but(kept_until=0.0, kept_for="") if rental.kept_for == job else rental


def still_kept(old: Rental, new: Rental) -> Rental:
    """Return a machine as it is now, kept as it was: who moves it on may not know of that."""
    return new.but(kept_until=old.kept_until, kept_for=old.kept_for)
