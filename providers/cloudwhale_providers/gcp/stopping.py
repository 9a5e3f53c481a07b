"""Machines and their ends: the stop that each was made with, and the end that we ask for.

Compute Engine deletes a machine when its maxRunDuration is over, whoever is dead by then. It can
not be changed while the machine runs, so it says what it will be before anybody relies on it.
"""

from collections.abc import Sequence
from threading import Lock

from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.errors import CloudwhaleError, Denied, TryAnother, Unreachable
from cloudwhale.spi.provider import LaunchRequest, Machine
from cloudwhale_providers.gcp import names
from cloudwhale_providers.gcp.account import Account
from cloudwhale_providers.gcp.asking import says_that_it_is_gone
from cloudwhale_providers.gcp.known import Known
from cloudwhale_providers.gcp.launching import Made
from cloudwhale_providers.gcp.listing import Listing, Seen
from cloudwhale_providers.gcp.operations import Pause

LOOKS_S: tuple[Seconds, ...] = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Waits before looks at the stop of a machine that was just made, which shows once it runs."""
LATE_S: Seconds = 60.0
"""So much later than it was asked for a stop may be: as late as clouds are at best anyway."""
SHOWN_S: Seconds = 120.0
"""A machine that runs for so long, and does not say when it is deleted, never will be."""


class Stopping:
    """Holds stops against what was asked for, and ends machines; safe for threads."""

    def __init__(self, account: Account, listing: Listing, known: Known, pause: Pause) -> None:
        self._account = account
        self._listing = listing
        self._known = known
        self._pause = pause
        self._deleted: set[str] = set()
        """Machines that have shut down, or had no stop, and were deleted for that."""
        self._lock = Lock()

    def armed(self, request: LaunchRequest, offer: Offer, made: Made) -> Machine:
        """Return a machine whose end the cloud sees to, also where the machine was there before.

        One that Compute Engine would not delete in time is deleted at once: raise TryAnother,
        saying so, or Unreachable when that fails too.
        """
        self._known.took(offer)
        stop_at = request.stop_at or self._account.clock.now()
        if made.is_gone and made.ending is not None:
            return self._known.never_seen(request, offer, made)
        one = self._with_stop(offer.zone, made)
        if one is None and made.is_gone:
            return self._known.never_seen(request, offer, made)
        if one is None:
            machine = self._known.unseen(request, offer, made)
        elif not one.is_alive:
            self.tidy([one])
            return self._known.machine(one)
        else:
            self._must_end(one, stop_at)
            machine = self._known.machine(one)
        machine = machine.but(stop_at=min(stop_at, machine.stop_at or stop_at))
        self._known.launched(machine, offer.zone)
        return machine

    def terminate(self, machine: str, one: Seen | None) -> None:
        """Delete a machine; raise Unreachable when it may still run, Denied when we may not."""
        zone = self._known.place_of(machine) if one is None else one.zone
        if not zone:
            if not self._listing.is_whole and names.NAME.fullmatch(machine):
                raise Unreachable(f"{machine} is not listed, and not every zone has answered")
            return  # nothing of ours is called so: it is gone
        if one is not None and one.state == "gone" and not one.is_there:
            return
        try:
            self._delete(zone, machine)
        except CloudwhaleError as error:
            if not says_that_it_is_gone(error):
                raise
            if one is None:  # made a moment ago, and Compute Engine does not know it yet
                raise Unreachable(error.says, "It is asked again by itself.") from error
        self._known.ended(machine)
        self._listing.changed()

    def tidy(self, found: Sequence[Seen]) -> None:
        """Delete what has shut down, whose disk costs on, and what nobody would ever delete.

        What fails is tried again with the next list.
        """
        now = self._account.clock.now()
        for one in found:
            if (one.state == "gone" and one.is_there) or _never_ends(one, now):
                self._delete_quietly(one)

    def _with_stop(self, zone: str, made: Made) -> Seen | None:
        """Look at a machine until it says when it is deleted, which it does once it runs."""
        one = made.seen
        for wait_s in LOOKS_S:
            if one is not None and (not one.is_alive or one.stop_at is not None):
                return one
            if wait_s:
                self._pause(wait_s)
            try:
                one = self._listing.one(zone, made.id) or one
            except CloudwhaleError:
                continue  # it was made, whatever a look says
        return one

    def _must_end(self, one: Seen, stop_at: Instant) -> None:
        """Raise unless Compute Engine deletes a machine in time; then it is deleted at once."""
        if one.stop_at is None and one.state == "starting":
            return  # it says so once it runs; `tidy` looks at it then
        if one.stop_at is None:
            says = "Compute Engine does not say when it deletes it"
        elif one.stop_at > stop_at + LATE_S:
            says = f"it would be deleted {one.stop_at - stop_at:.0f} s too late"
        else:
            return
        try:
            self._delete(one.zone, one.id)
        except CloudwhaleError as error:
            raise Unreachable(
                f"{one.id} runs, and {says}; nor could it be deleted: {error.says}",
                "Both are tried again by themselves.",
            ) from error
        finally:
            self._listing.changed()
        raise TryAnother(f"{one.id} was deleted again: {says}")

    def _delete(self, zone: str, machine: str) -> None:
        self._account.compute("instances.delete", zone=zone, instance=machine)

    def _delete_quietly(self, one: Seen) -> None:
        with self._lock:
            if one.number in self._deleted:
                return
        try:
            self._delete(one.zone, one.id)
        except Denied:
            pass  # `terminate` and the sweep say why
        except CloudwhaleError as error:
            if not says_that_it_is_gone(error):
                return
        with self._lock:
            self._deleted.add(one.number)
        self._listing.changed()


def _never_ends(one: Seen, now: Instant) -> bool:
    """Say whether a machine runs that would be deleted too late: whoever launched it is dead."""
    if one.state != "running":
        return False
    if one.stop_at is None:
        return now - (one.started_at or one.launched_at) >= SHOWN_S
    return one.wanted_stop_at is not None and one.stop_at > one.wanted_stop_at + LATE_S
