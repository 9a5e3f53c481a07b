"""Machines and their ends: the cloud's stop from the launch on, its moves, the end, its removal."""

from collections.abc import Callable, Sequence
from threading import Event, Lock

from cloudwhale.model.offer import Offer
from cloudwhale.model.units import Instant, Seconds
from cloudwhale.spi.errors import CloudwhaleError, Denied, TryAnother, Unreachable
from cloudwhale.spi.provider import LaunchRequest, Machine
from cloudwhale_providers.aws import errors, tags
from cloudwhale_providers.aws.account import Account
from cloudwhale_providers.aws.asking import says_that_it_is_gone
from cloudwhale_providers.aws.fleets import Made
from cloudwhale_providers.aws.known import Known
from cloudwhale_providers.aws.listing import Listing, Seen
from cloudwhale_providers.aws.schedules import Schedules, name_of

LOOKS_S: tuple[Seconds, ...] = (0.0, 0.1, 0.3, 0.6, 1.2)
"""Waits before looks at a machine that was just made: EC2's lists are late by a second or so.

On a real clock, like the waits of botocore itself.
"""

Pause = Callable[[Seconds], object]


def for_real(for_s: Seconds) -> None:
    """Wait by a real clock."""
    Event().wait(for_s)


class Stopping:
    """Sets, moves and removes stops, and ends machines; safe for threads."""

    def __init__(self, account: Account, listing: Listing, known: Known, pause: Pause) -> None:
        self._account = account
        self._listing = listing
        self._known = known
        self._pause = pause
        self._schedules = Schedules(account)
        self._without: set[str] = set()
        """Nodes whose schedule was removed already."""
        self._armed_nodes: set[str] = set()
        """Nodes whose schedule is known to have been made."""
        self._lock = Lock()

    def armed(self, request: LaunchRequest, offer: Offer, made: Made) -> Machine:
        """Return a machine whose end the cloud sees to, also where the machine was there before.

        One whose stop cannot be set is ended: raise Denied or TryAnother, saying so; Unreachable
        when that fails too. Raise why EC2 has ended one that never ran.
        """
        self._known.took(offer)
        if made.seen is not None and not made.seen.is_alive:
            return self._ended(offer, made.seen)
        asked_at = self._account.clock.now()
        stop_at = request.stop_at
        if stop_at is not None and self._has_role:
            stop_at = self._armed(request, offer.region, made.id, stop_at)
        one = made.seen or self._looked(offer.region, made.id)
        if one is not None and not one.is_alive:
            return self._ended(offer, one)
        if one is not None:
            machine = self._known.machine(one).but(stop_at=stop_at)
        else:
            machine = Machine(
                id=made.id, node=request.node, state="starting", facts=offer.facts, owned=False,
                stop_at=stop_at, billed_from=asked_at, zone=made.zone, door=made.door,
            )  # fmt: skip
        self._known.launched(machine, offer.region)
        return machine

    def move(self, one: Seen, stop_at: Instant) -> Instant:
        """Move a machine's stop; return the one now in force.

        The tag first: where the schedule is refused, it still is what it was, and no later.
        """
        text = str(int(stop_at))
        self._account.calls.call(
            one.region, "ec2", "create_tags", Resources=[one.id],
            Tags=tags.listed({tags.STOP_AT: text}),
        )  # fmt: skip
        if self._has_role:
            with self._lock:
                self._without.discard(one.node)
            self._schedules.move(one.region, one.node, one.id, stop_at)
        self._listing.changed()
        return float(text)

    def terminate(self, machine: str, one: Seen | None) -> None:
        """End a machine; raise Unreachable when it may still run, Denied when we may not end it."""
        region = self._known.place_of(machine)
        if one is None and not region:
            if not self._listing.is_whole:
                raise Unreachable(f"{machine} is not listed, and not every region has answered")
            one = self._listing.elsewhere(machine)
            if one is None:
                return  # nothing of ours has that id: it is gone
        region = region if one is None else one.region
        if one is not None and one.state == "gone":
            return
        try:
            self._end(region, machine)
        except CloudwhaleError as error:
            if not says_that_it_is_gone(error):
                raise
            if one is None:  # made a moment ago, and EC2 does not know it yet
                raise Unreachable(error.says, "It is asked again by itself.") from error
        self._known.ended(machine)
        self._listing.changed()

    def complete(self, found: Sequence[Seen]) -> None:
        """Set the stops that are missing: whoever launched may have died right after.

        Looked at once for each machine, and until it is well; by its tag.
        """
        if not self._has_role:
            return
        with self._lock:
            new = [one for one in found if one.is_alive and one.node not in self._armed_nodes]
        for region in sorted({one.region for one in new}):
            try:
                self._complete(region, [one for one in new if one.region == region])
            except CloudwhaleError:
                continue  # the next list tries again

    def _complete(self, region: str, some: Sequence[Seen]) -> None:
        names = self._schedules.names(region)
        for one in some:
            if name_of(one.node) not in names and one.stop_at is not None:
                if one.stop_at <= self._account.clock.now():
                    self.terminate(one.id, one)
                    continue
                self._schedules.arm(region, one.node, one.id, one.stop_at)
            with self._lock:
                self._armed_nodes.add(one.node)

    def forget(self, found: Sequence[Seen]) -> None:
        """Remove the stops of machines that are seen to have ended; what fails, the next time."""
        if not self._has_role:
            return
        needed = {one.node for one in found if one.state != "gone"}
        with self._lock:
            over = {one.node: one.region for one in found if one.node not in needed}
            over = {node: where for node, where in over.items() if node not in self._without}
        for node, region in over.items():
            try:
                self._schedules.remove(region, node)
            except CloudwhaleError:
                continue
            with self._lock:
                self._without.add(node)

    @property
    def _has_role(self) -> bool:
        return bool(self._account.options.scheduler_role)

    def _armed(
        self, request: LaunchRequest, region: str, machine: str, stop_at: Instant
    ) -> Instant:
        with self._lock:
            self._without.discard(request.node)
        try:
            in_force = self._schedules.arm(region, request.node, machine, stop_at)
        except CloudwhaleError as error:
            raise self._undone(region, machine, error) from error
        with self._lock:
            self._armed_nodes.add(request.node)
        return in_force

    def _undone(self, region: str, machine: str, why: CloudwhaleError) -> CloudwhaleError:
        """End a machine without a stop; return what to say."""
        self._listing.changed()
        try:
            self._end(region, machine)
        except CloudwhaleError as error:
            return Unreachable(
                f"{machine} runs, and its end could not be set: {why.says}; nor could it be "
                f"ended: {error.says}",
                "Both are tried again by themselves.",
            )
        kind = Denied if isinstance(why, Denied) else TryAnother
        return kind(
            f"{machine} was ended again, as its end could not be set: {why.says}", why.remedy
        )

    def _end(self, region: str, machine: str) -> None:
        self._account.calls.call(region, "ec2", "terminate_instances", InstanceIds=[machine])

    def _looked(self, region: str, machine: str) -> Seen | None:
        """Return a machine that was just made; None while it is not listed, or cannot be."""
        for wait_s in LOOKS_S:
            if wait_s:
                self._pause(wait_s)
            try:
                one = self._listing.one(region, machine)
            except CloudwhaleError:
                return None  # it was made, whatever a look says
            if one is not None:
                return one
        return None

    def _ended(self, offer: Offer, one: Seen) -> Machine:
        """Return a machine that has ended; raise why, where it has never run and costs nothing."""
        errand = errors.Errand("ec2:CreateFleet", one.region)
        why = errors.death(one.reason, one.says or f"{one.id} ended at once", errand)
        if why is not None:
            raise why
        return self._known.machine(one)
