"""What providers say of rented machines, as events: launched, refused, extended, gone."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from cloudwhale.clock import iso
from cloudwhale.control.hiring import EXTEND, LAUNCH, Ended, Extended, Launched, LeaseTold
from cloudwhale.control.reports import Notice
from cloudwhale.model import event as e
from cloudwhale.model.job import Job, JobState
from cloudwhale.model.node import Node, NodeState
from cloudwhale.model.offer import Offer
from cloudwhale.model.plan import Plan
from cloudwhale.model.reason import Code, Reason
from cloudwhale.model.rental import Lease, Rental, RentalState
from cloudwhale.model.units import Instant, MicroUsd, Seconds
from cloudwhale.model.world import World
from cloudwhale.planning import booting
from cloudwhale.planning.decided import events_of
from cloudwhale.planning.leasing import STOP_AFTER_S
from cloudwhale.planning.ledger import STOP_LAG_S
from cloudwhale.planning.settling import settled
from cloudwhale.spi.errors import CloudwhaleError, Denied, QuotaExceeded, TryAnother
from cloudwhale.spi.provider import Machine

Answer: TypeAlias = Launched | Extended | Ended | LeaseTold
"""What comes of something that is done to a rented machine."""

GOES_BACK = (RentalState.DRAINING, RentalState.NEEDS_ATTENTION)
OTHERS = "another offer is taken; this one is asked for again later"
GOES_ON = "its attempt there has ended, or the machine is gone: then it goes on elsewhere"


@dataclass(frozen=True, slots=True)
class Tried:
    """How often something has failed, and for how long."""

    times: int
    for_s: Seconds


class Hired:
    """Events of rented machines, each seen with what the earlier ones of the same breath changed.

    An answer that comes too late changes nothing.
    """

    def __init__(
        self,
        world: World,
        now: Instant,
        jobs: Mapping[str, Job] | None = None,
        has_heard_out: Callable[[str, Instant], bool] = lambda node, now: True,
    ) -> None:
        """`jobs`: as they are now, also after what agents say of them; None: as in the world.

        `has_heard_out`: whether all that a node's agent has said is read, as of now.
        """
        self._has_heard_out = has_heard_out
        self._talked = {node.id for node in world.nodes.values() if node.agent}
        self._lost: set[tuple[str, int]] = set()
        """Attempts that are told to be lost: a gang may lose several machines in one breath."""
        self._rentals = dict(world.rentals)
        self._jobs = world.jobs if jobs is None else jobs
        self._nodes = frozenset(world.nodes)
        """Of a launch whose answer was lost the agent may have joined before."""
        self._now = now

    def told(self, name: str, value: Answer) -> tuple[e.Event, ...]:
        """Return what the answer to an effect changes."""
        rental = self._rentals.get(name)
        if rental is None:
            return ()
        found: Iterable[e.Event]
        match value:
            case Launched():
                found = _launched(rental, value.machine, self._now)
            case Extended():
                found = _extended(rental, value, self._now)
            case Ended():
                found = _ended(rental, value.machine, self._now)
            case LeaseTold():
                found = _lease_told(rental, value.lease, self._now)
        return self._remembered(found)

    def offer_of(self, name: str) -> str:
        """Return the offer that a rental was made of; empty for an unknown one."""
        rental = self._rentals.get(name)
        return "" if rental is None else rental.offer

    @property
    def rentals(self) -> Iterable[Rental]:
        """Return all that are open, as they are now."""
        return self._rentals.values()

    def refused(self, name: str, verb: str, error: CloudwhaleError) -> tuple[e.Event, ...]:
        """Return what it changes that a provider says no; nothing when it may be out of reach."""
        rental = self._rentals.get(name)
        if rental is None or not isinstance(error, TryAnother | Denied):
            return ()
        found: Iterable[e.Event] = ()
        if verb == LAUNCH and rental.state is RentalState.RESERVED:
            is_quota = isinstance(error, QuotaExceeded)
            code = Code.QUOTA if is_quota else Code.NO_CAPACITY
            change = error.remedy if isinstance(error, Denied) and error.remedy else OTHERS
            reason = Reason(code=code, says=f"{rental.offer}: {error.says}", change=change)
            noted = e.Noted(at=self._now, subject=rental.id, reason=reason)
            found = [noted, *self._told(rental, reason), *_settled(rental, self._now)]
        elif verb == EXTEND and rental.renewal is not None:
            answer = Extended(rental.renewal.lease.number, "fixed")
            found = _extended(rental, answer, self._now)
        return self._remembered(found)

    def rents(self, node: str) -> bool:
        """Say whether a node is a machine that is rented, and not paid for yet."""
        return any(one.node == node for one in self._rentals.values())

    def warned(self, notice: Notice) -> tuple[e.Event, ...]:
        """Return what it changes that a machine was told by its provider that it will go.

        That it may go is told and changes nothing.
        """
        rental = next((one for one in self._rentals.values() if one.node == notice.node), None)
        if rental is None or rental.ended_at is not None:
            return ()
        if notice.goes_at is None:
            says = f"{rental.id} may be taken away by its provider: {notice.says}"
            return (_noted(rental, says, self._now, Code.TAKEN_AWAY),)
        if rental.state not in (RentalState.BOOTING, RentalState.READY):
            return ()
        left_s = max(0.0, notice.goes_at - self._now)
        says = f"{rental.id} is taken away by its provider in {left_s:.0f} s: {notice.says}"
        if not notice.stops:  # it works on for now, and its agent says it again in time
            return (_noted(rental, says, self._now, Code.TAKEN_AWAY),)
        return self._remembered(self._taken(rental, says, notice.goes_at))

    def stuck(self, name: str, error: CloudwhaleError, tried: Tried) -> tuple[e.Event, ...]:
        """Return that a machine's end keeps failing: its money stays set aside, a person must look.

        What is set aside holds up to the stop that the cloud itself enforces, so it does not grow.
        """
        rental = self._rentals.get(name)
        if rental is None or rental.state not in (RentalState.DRAINING, RentalState.LOST):
            return ()
        says = (
            f"{rental.id} cannot be given back, tried {tried.times} times in {tried.for_s:.0f} s: "
            f"{error.says}"
        )
        change = f"{error.remedy} It is tried again for ever; {_at_the_latest(rental)}".strip()
        reason = Reason(code=Code.NEEDS_ATTENTION, says=says, change=change)
        stuck = rental.but(state=RentalState.NEEDS_ATTENTION)
        return self._remembered(
            [
                e.Noted(at=self._now, subject=rental.id, reason=reason),
                e.RentalChanged(at=self._now, rental=stuck),
            ]
        )

    def _told(self, rental: Rental, reason: Reason) -> Iterator[e.Event]:
        """Yield to those who wait for a machine that it does not come."""
        for name in rental.jobs:
            job = self._jobs.get(name)
            if job is not None and job.state in (JobState.PENDING, JobState.RECOVERING):
                yield e.Waits(at=self._now, job=name, reason=reason)

    def seen(self, provider: str, machines: Iterable[Machine]) -> tuple[e.Event, ...]:
        """Return what a provider's list of its machines, newest first, changes."""
        listed = {machine.node: machine for machine in reversed(list(machines))}
        events: list[e.Event] = []
        for name, rental in sorted(self._rentals.items()):
            is_theirs = rental.taken is not None and rental.taken.provider == provider
            if is_theirs and rental.ended_at is None:
                found = list(self._listed(rental, listed.get(name)))
                if _ends(found) and not self._may_end(name):
                    continue
                events += [*found, *self._told_of_end(rental, found)]
        return self._remembered(events)

    def _may_end(self, name: str) -> bool:
        """Say whether a machine may count as gone: not before its last words were read."""
        return name not in self._talked or self._has_heard_out(name, self._now)

    def _listed(self, rental: Rental, machine: Machine | None) -> Iterable[e.Event]:
        is_taken = machine is not None and machine.state == "stopping"
        if machine is None or not is_taken or rental.state is not RentalState.READY:
            return _listed(rental, machine, self._now)
        why = f": {machine.says}" if machine.says else ""
        says = f"{rental.id} is taken away by its provider{why}"
        return self._taken(rental, says, goes_at=None)

    def _taken(self, rental: Rental, says: str, goes_at: Instant | None) -> Iterator[e.Event]:
        """Yield that a provider takes a machine: nothing starts there, and its attempts recover.

        What runs there is landed by its agent; or is asked to stop where nobody knows whether that
        has heard of it: `goes_at` is what the machine was told.
        """
        now = self._now
        yield _noted(rental, says, now, Code.TAKEN_AWAY)
        going = rental.but(state=RentalState.DRAINING, interrupted_at=now, goes_at=goes_at)
        yield e.RentalChanged(at=now, rental=going)
        if rental.node is None:
            return
        yield e.NodeDrained(at=now, node=rental.node)
        reason = Reason(code=Code.TAKEN_AWAY, says=says, change=GOES_ON)
        for job in _live_on(rental.node, self._jobs.values()):
            if (job.id, job.attempt) in self._lost:
                continue
            self._lost.add((job.id, job.attempt))
            if goes_at is None and job.wish is None:
                yield e.StopWished(
                    at=now, job=job.id, attempt=job.attempt, wish="give-way", reason=reason
                )
            yield e.AttemptLost(at=now, job=job.id, attempt=job.attempt, reason=reason)

    def _told_of_end(self, rental: Rental, found: Iterable[e.Event]) -> Iterator[e.Event]:
        """Yield to those who wait for a machine that boots that it has ended instead."""
        if rental.state is not RentalState.BOOTING:
            return
        for one in found:
            if isinstance(one, e.Noted) and one.reason.code is Code.BOOT_FAILED:
                yield from self._told(rental, one.reason)

    def _remembered(self, events: Iterable[e.Event]) -> tuple[e.Event, ...]:
        found = tuple(event for event in events if not self._has_joined(event))
        for event in found:
            if isinstance(event, e.RentalChanged):
                self._remember(event.rental)
        return found

    def _has_joined(self, event: e.Event) -> bool:
        return isinstance(event, e.NodeJoined) and event.node.id in self._nodes

    def _remember(self, rental: Rental) -> None:
        if rental.state is RentalState.RETURNED:
            self._rentals.pop(rental.id, None)
        else:
            self._rentals[rental.id] = rental


def _listed(rental: Rental, machine: Machine | None, now: Instant) -> Iterable[e.Event]:
    if machine is None:
        # A list may be old or partial; but past its own stop there is no machine for certain.
        if now < rental.lease.stop_at + STOP_LAG_S:
            return ()
        if rental.state is RentalState.RESERVED:
            return _settled(rental, now)
        return _gone(rental, rental.lease.stop_at, now)
    if rental.state is RentalState.RESERVED:
        return _launched(rental, machine, now)
    if machine.state == "gone":
        return _gone(rental, _billed_to(machine, now), now, machine.says)
    return ()


def _live_on(node: str, jobs: Iterable[Job]) -> Iterator[Job]:
    """Yield the jobs whose attempt is on a node, and not known to be lost."""
    for job in jobs:
        is_there = job.placement is not None and node in job.placement.nodes
        if is_there and job.state in (JobState.STARTING, JobState.RUNNING):
            yield job


def _at_the_latest(rental: Rental) -> str:
    return f"its cloud ends it by itself at {iso(rental.lease.stop_at)}"


def _ended(rental: Rental, machine: Machine | None, now: Instant) -> Iterable[e.Event]:
    if rental.state not in GOES_BACK or rental.ended_at is not None:
        return ()
    if machine is not None and machine.state != "gone":
        if rental.state is RentalState.DRAINING:
            return ()  # the next looks will see it go
        return (e.RentalChanged(at=now, rental=rental.but(state=RentalState.DRAINING)),)
    return _gone(rental, now if machine is None else _billed_to(machine, now), now)


def _billed_to(machine: Machine, now: Instant) -> Instant:
    """Return when a bill ended; now, where the provider does not say."""
    return now if machine.billed_to is None else machine.billed_to


def _ends(events: Iterable[e.Event]) -> bool:
    """Say whether a machine is gone after some events."""
    return any(
        isinstance(one, e.RentalChanged) and one.rental.ended_at is not None for one in events
    )


def _launched(rental: Rental, machine: Machine, now: Instant) -> Iterator[e.Event]:
    if rental.state is not RentalState.RESERVED or rental.taken is None:
        return
    requested = rental.but(
        state=RentalState.REQUESTED,
        machine=machine.id,
        door=machine.door,
        requested_at=now if machine.billed_from is None else machine.billed_from,
        launched_at=now,
        price_usd_h=machine.price_usd_h,
        taken=_where_it_stands(rental.taken, machine),
    )
    node = Node(
        id=machine.node,
        facts=rental.taken.facts,
        state=NodeState.EXPECTED,
        owned=False,
        provider=rental.taken.provider,
    )
    yield e.RentalChanged(at=now, rental=requested)
    yield e.RentalChanged(at=now, rental=requested.but(state=RentalState.BOOTING))
    yield e.NodeJoined(at=now, node=node)


def _where_it_stands(offer: Offer, machine: Machine) -> Offer:
    """Return an offer with the zone that its provider chose: what befalls it there is learned."""
    return offer if machine.zone in ("", offer.zone) else offer.but(zone=machine.zone)


def _extended(rental: Rental, answer: Extended, now: Instant) -> Iterator[e.Event]:
    renewal = rental.renewal
    if renewal is None or renewal.lease.number != answer.lease:
        return
    if answer.stop_at == "fixed":
        left = MicroUsd(rental.reserved - renewal.reserved)
        yield e.Released(
            at=now, payer=rental.payer, rental=rental.id, amount=renewal.reserved,
            projects=renewal.projects,
        )  # fmt: skip
        beside = {
            account: MicroUsd(amount - renewal.projects.get(account, 0))
            for account, amount in rental.projects.items()
        }
        fixed = rental.but(renewal=None, reserved=left, projects=beside, is_fixed=True)
        yield e.RentalChanged(at=now, rental=fixed)
    else:
        # What runs there has landed before a stop that is sooner than the one that was asked for.
        away_until = min(renewal.lease.away_until, answer.stop_at - STOP_AFTER_S)
        lease = renewal.lease.but(away_until=away_until, stop_at=answer.stop_at)
        yield e.RentalChanged(at=now, rental=rental.but(renewal=None, lease=lease))


def _lease_told(rental: Rental, told: Lease, now: Instant) -> Iterator[e.Event]:
    """Its agent reads it as soon as it can; a lease that has become longer since is told next."""
    if rental.state is RentalState.READY and rental.ended_at is None:
        lease = rental.lease
        if lease.number == told.number:
            lease = lease.but(watched_until=told.watched_until)
        yield e.RentalChanged(at=now, rental=rental.but(told=told, lease=lease))


def _gone(rental: Rental, at: Instant, now: Instant, says: str = "") -> Iterator[e.Event]:
    """The machine is no more; the next rounds see to its jobs, and pay for it."""
    is_lost = rental.state not in GOES_BACK
    if is_lost:
        why = f": {says}" if says else ""
        says = f"{rental.id} was taken away by its provider, or has ended{why}"
        yield _unbooted(rental, says, now)
    gone = rental.but(state=RentalState.LOST if is_lost else RentalState.DRAINING, ended_at=at)
    if is_lost and _was_interrupted(rental, at):
        gone = gone.but(interrupted_at=at)
    yield e.RentalChanged(at=now, rental=gone)


def _was_interrupted(rental: Rental, at: Instant) -> bool:
    """Say whether it was its provider that ended a machine: it did not have to end by itself yet.

    One that has heard no controller for long enough, or whose boot has failed, ends itself.
    """
    lease = rental.told or rental.lease
    return at < lease.watched_until and not rental.boot.has_failed


def _unbooted(rental: Rental, says: str, now: Instant) -> e.Noted:
    """Return the note of a machine's end; while it booted that tells how far it was."""
    far = booting.far_words(rental, now)
    if rental.state is not RentalState.BOOTING or not far:
        return _noted(rental, says, now)
    reason = Reason(
        code=Code.BOOT_FAILED, says=f"{says}, while it booted: {far}",
        change=booting.remedy(rental),
    )  # fmt: skip
    return e.Noted(at=now, subject=rental.id, reason=reason)


def _settled(rental: Rental, now: Instant) -> Iterable[e.Event]:
    return events_of(Plan(version=0, steps=(settled(rental),)), now)


def _noted(rental: Rental, says: str, now: Instant, code: Code = Code.MACHINE_GONE) -> e.Noted:
    reason = Reason(code=code, says=says)
    return e.Noted(at=now, subject=rental.id, reason=reason)
