"""How machines end through a driver: what is gone is success, and silence is not."""

from collections.abc import Iterable
from typing import Any

from cloudwhale.spi.errors import CloudwhaleError, Denied, Unreachable
from cloudwhale_providers.libcloud.driving import Driving
from cloudwhale_providers.libcloud.errors import is_gone
from cloudwhale_providers.libcloud.listing import Listing, Seen, seen


class Ending:
    """Ends machines of ours; safe for threads."""

    def __init__(self, driving: Driving, listing: Listing) -> None:
        self._driving = driving
        self._listing = listing

    def terminate(self, machine: str) -> None:
        """End a machine by its id; raise Denied for others', Unreachable when it may still live."""
        one = self._listing.known(machine)
        if one is None:
            self._listing.all()
            one = self._listing.known(machine)
        if one is not None:
            self.end(one)
        elif self._listing.is_anothers(machine):
            raise Denied(f"{machine} is of another installation")
        elif not self._listing.was_ended(machine):
            self._end_unlisted(machine)

    def end(self, one: Seen) -> None:
        """End a machine that was listed."""
        self.destroyed("destroy_node", one.thing)
        self._listing.ended(one.id)

    def end_all(self, some: Iterable[Seen]) -> None:
        """End machines that there are too many of; those that cannot be are tried again later."""
        for one in some:
            try:
                self.end(one)
            except CloudwhaleError:
                continue  # the next list has it again

    def destroyed(self, verb: str, thing: Any) -> None:
        """Let the driver destroy something; raise Unreachable where it says that it did not."""
        try:
            done = self._driving.ask(verb, thing)
        except CloudwhaleError as error:
            if is_gone(error):
                return
            raise
        if done is False:
            raise Unreachable(f"the driver answers {verb} with no", "It is asked again.")

    def _end_unlisted(self, machine: str) -> None:
        """End a machine that no list has: it may be a list that lacks it."""
        is_there = self._listing.has(machine)
        if is_there:
            one = seen(self._driving.ask(self._driving.getter(), machine))
            if one is None or not self._listing.is_ours(one):
                raise Denied(f"{machine} is none of our machines")
            self.end(one)
        elif is_there is None and self._listing.is_empty_anew():
            says = f"{machine} is in no list, and no other machine of ours is"
            raise Unreachable(says, "An empty list may be an error: it is asked again.")
